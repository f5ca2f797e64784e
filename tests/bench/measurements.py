"""Measure the tables of docs/measurements.md again.

    python -m tests.bench.measurements                      every table that takes less than two minutes
    python -m tests.bench.measurements --only search dnn    these, however long they take
    python -m tests.bench.measurements --list               what there is, its command and the most that it takes
    python -m tests.bench.measurements --out build/page.md  leave the page as it is and write the new one there

A table stands between `<!-- measured: NAME -->` and `<!-- end -->`, with its command, machine, load and date; text
between the tables is written by hand. Where data is missing or a command fails, one sentence says so, the table stays
as it was, and the end is 1. Use the machine for nothing else meanwhile: the load before stands with each table.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.machine.describe import describe
from profiler.process.children import ROOT
from tests.bench import _data, attribution, whatif_check
from tests.bench._measured import Entry, measured, names_in, places, replaced, shown
from tests.bench._rounds import command_line

PAGE = ROOT / "docs" / "measurements.md"

RUN, BENCH = "asrscope run --preset", "python -m tests.bench"
EVALUATE = "python -m pipelines.training evaluate"
ON_SPEECH = "--audio SPEECH --transcripts SPEECH/transcripts.tsv"
ON_CORPUS = "--audio CORPUS --transcripts CORPUS/transcripts.tsv"
SOME_SPEECH = " ".join(
    f"SPEECH/{name}.flac" for name in ("librivox-0870", "librivox-0880", "librivox-0890", "goforward", "digits-2934z")
)
NETS = "large base small small-hard low-rank sparse sparse-blocks multi-frame"
TARGETS = (0.012, 0.02, 0.05)
SKIPS = [(skip, *rule) for skip in (2, 3, 4) for rule in (("small", "copy"), ("multi-frame", "multi-frame"))]
CAPACITY_OF = ("gmm-quick", "gmm", "dnn")
"""Presets whose capacity stands in the page."""
KINDS = "flags outputs texts audio models kaldi caches graphs nets sessions window remote studies mcp remembered"

HUMAN, CORPUS = _data.human_speech, _data.synthetic_corpus
ERRORS = ("wer_errors", "wer_words", "wer")
SPREAD = ("ratio", "ratio_min", "ratio_max")
DECODE = shown(("rows", "vocabulary", "decoder", "rtf", "ratio", "wer_errors", "wer"))
LATENCIES = ("without_emission.p50", "without_emission.p99", "first_shown.p99")
ENTRIES: tuple[Entry, ...] = (
    Entry("human", (f"{RUN} gmm {ON_SPEECH} --out SESSION --json",), shown(("", *ERRORS, "audio_s", "rtf")), 30, HUMAN),
    Entry(
        "first-run",
        (f"ASRSCOPE_CACHE=EMPTY {RUN} gmm --out SESSION --json",) * 2,
        shown(("", "setup_s"), labels=("the first, with nothing in the cache", "the second")),
        110,
    ),
    Entry(
        "models",
        tuple(f"{RUN} {n} {ON_CORPUS} --out SESSION --json" for n in ("gmm", "gmm-continuous", "gmm-single-stream")),
        shown(("", "preset", *ERRORS, "rtf")),
        200,
        CORPUS,
    ),
    Entry("decode-human", (f"asrscope bench decode --repeat 1 {ON_SPEECH} --json",), DECODE, 200, HUMAN),
    Entry("decode", (f"asrscope bench decode --repeat 1 {ON_CORPUS} --json",), DECODE, 400, CORPUS),
    Entry(
        "gmm",
        ("asrscope bench gmm --repeat 5 --json",),
        shown(
            ("rows", "us_per_frame", "what", "of_pocketsphinx", "of_dense"),
            ("agreement", "selection over dense, time", "selection over dense, time, least and most"),
            ("agreement", "words", "word error rate, dense", "word error rate, selected", "points of WER lost"),
        ),
        400,
        CORPUS,
    ),
    Entry(
        "graphs",
        ("asrscope bench graphs --repeat 3 --json",),
        shown(
            ("rows", "graph", "states", "arcs", "cpu_s", "peak_gb", "load_s", "file_mb"),
            ("", "peer", *SPREAD),
            ("rows", "grammar", "audio", "words", "errors"),
        ),
        500,
        _data.spoken_digits,
    ),
    Entry(
        "search",
        (f"asrscope bench search --repeat 3 --audio {SOME_SPEECH} --json",),
        shown(
            ("rows", "vocabulary", "beam", "max_active", *SPREAD, "rtf", "peer_rtf", "same_words", "cost_difference")
        ),
        40,
        HUMAN,
    ),
    Entry(
        "ctc",
        ("asrscope bench ctc --repeat 2 --json",),
        shown(
            ("rows", "graph", "states", "arcs", *SPREAD, "rtf", "peer_rtf"),
            ("rows", "graph", "utterances", "same_words", "same_cost", "same_units", "cost_difference"),
            (
                "rows",
                "topology",
                "states",
                "arcs",
                "blank_skipping",
                "searched",
                "errors",
                "words",
                "rtf",
                "time_share",
            ),
        ),
        600,
        HUMAN,
    ),
    Entry(
        "lattice",
        (
            "asrscope ab --preset gmm --b search.lattice=true --repeat 4 "
            "--audio SPEECH/librivox-0870.flac --out SESSION --json",
        ),
        shown(("overall", "ratio", "ci95", "verdict"), ("stages", "name", "ratio", "ci95", "verdict")),
        20,
        HUMAN,
    ),
    Entry(
        "adaptive-beam",
        tuple(
            f"{RUN} gmm --set search.adaptive_beam=true --set search.target_rtf={target:g} {ON_SPEECH} "
            "--out SESSION --json"
            for target in TARGETS
        ),
        shown(("", "rtf", "wer_errors"), labels=TARGETS),
        50,
        HUMAN,
    ),
    Entry(
        "nets",
        tuple(f"{EVALUATE} {NETS} {speech} --json" for speech in (ON_CORPUS, ON_SPEECH)),
        shown(("nets", "net", "mb", "frames", "errors", "words", "wer")),
        900,
        CORPUS,
    ),
    Entry(
        "skipped-frames",
        tuple(f"{EVALUATE} {net} {ON_CORPUS} --set frames.skip={n} frames.rule={how} --json" for n, net, how in SKIPS),
        shown(("nets", "net", "errors", "wer"), labels=[f"1 of {n}, {how}" for n, _, how in SKIPS]),
        900,
        CORPUS,
    ),
    Entry(
        "dnn",
        ("asrscope bench dnn --json",),
        shown(
            ("rows", "batch", "net", "what", "us_per_frame"),
            ("agreement.wanted", "wanted", "found", "holds"),
            ("rows", "share computed", "what", "share of the senones asked for", "time of all outputs / time"),
            ("rows", "tokens_per_frame", "what", "rtf", "errors"),
        ),
        110,
        HUMAN,
    ),
    Entry(
        "counters",
        tuple(f"{RUN} gmm --set counters=true --set block={n} --out SESSION --json" for n in (16, 1)),
        shown(("", "config.block", "counters.ns_per_reading", *(f"recorder.{n}" for n in ("spans", "perturbation")))),
        20,
    ),
    Entry("session", ("asrscope bench session --json",), shown(("agreement",), ("", *SPREAD)), 50),
    Entry("hour", (f"{BENCH}.session hour",), shown(("",), labels=("block 16", "block 1")), 40),
    Entry("kills", (f"{BENCH}.session kills --kills 60",), shown(("",)), 180),
    Entry(
        "campaign",
        (f"{BENCH}.campaign --seed 4 --each 15 --kind {KINDS} --json",),
        shown(("kinds", "kind", "attacks", "commands", "findings", "slowest_s", "largest_mb")),
        600,
    ),
    Entry("memory", (f"{BENCH}.memory_use --hours 2",), shown(("growth_mb",)), 900),
    Entry(
        "capacity",
        tuple(f"asrscope capacity --preset {name} --out build/capacity/{name} --json" for name in CAPACITY_OF),
        shown(
            ("", "capacity", "capacity_range", "why"),
            (
                *("streams", "n", "held", "measurements", *(f"latency_s.{name}" for name in LATENCIES)),
                *("rtfx", "memory_bytes", "core_s_per_audio_hour"),
            ),
            labels=CAPACITY_OF,
        ),
        4200,
    ),
    *(
        Entry(
            name, (f"{BENCH}.attribution {options} --json",), lambda trees: [attribution.table(*trees)], upto_s, HUMAN
        )
        for name, options, upto_s in (("explain", "--repeat 3", 1500), ("explain-ladder", "--ladder --repeat 3", 600))
    ),
    Entry(
        "planted-causes",
        (f"{BENCH}.planted_causes --tries 10",),
        shown(("causes", "stage", "right", "tries", "verdicts", "share")),
        600,
        HUMAN,
    ),
    Entry(
        "whatif", (f"{BENCH}.whatif_check --repeat 3 --json",), lambda trees: [whatif_check.table(*trees)], 1200, HUMAN
    ),
    Entry(
        "confirm",
        (
            f"{RUN} gmm --set block=1 --audio SPEECH/librivox-0870.flac --out SESSION --json",
            *(f"asrscope confirm SESSION {stage} --json" for stage in ("score.mixture", "search.emit")),
        ),
        shown(
            ("perturbations", "change", "predicted", "measured_ratio", "ci95", "agrees"),
            labels=("", "score.mixture", "search.emit"),
        ),
        200,
        HUMAN,
    ),
    Entry("desk", ("asrscope bench desk --json",), shown(("figures",)), 900),
    Entry(
        "soak",
        ("asrscope bench soak --minutes 13 --json",),
        shown(("rows", "process", "memory_mb_per_minute", "memory_mb_last", "files_more", "threads_more")),
        1000,
    ),
    Entry(
        "overhead",
        ("asrscope bench overhead --json",),
        shown(("rows", "measure", "block", "limit", "median", "p25", "p75", "ci95_low", "ci95_high")),
        300,
    ),
    Entry(
        "ab-validation",
        (f"{BENCH}.ab_validation --aa 200 --planted 50",),
        shown(("agreement",), ("rows", "what", "q05", "median", "q95")),
        2400,
    ),
    Entry("constants", (f"{BENCH}.constants",), shown(("rows", "where", "what", "stands", "now", "unit")), 60, HUMAN),
)
"""In the order of the page."""


def chosen(entries: Sequence[Entry], only: Sequence[str]) -> list[Entry]:
    """The entries named, or else all that are quick; BadInput for a name that there is not."""
    names = {entry.name for entry in entries}
    for name in only:
        if name not in names:
            raise BadInput(f"--only takes {', '.join(sorted(names))}, not {name!r}.")
    return [entry for entry in entries if (entry.name in only if only else entry.quick)]


def measure(entries: Iterable[Entry], known: Iterable[str], page: Path, out: Path) -> list[str]:
    """Measure `entries` one after the other and write each into the page as soon as it is there.

    Returns the names of those that could not be measured; what stands in the page of them is left. `known`: every
    name that the page may have.
    """
    names, failed = set(known), []
    places(_read(page), names)
    machine, latest = describe(), page
    with tempfile.TemporaryDirectory(prefix="asrscope-measurements-") as folder:
        for entry in entries:
            _report(f"{entry.name}: {' · '.join(entry.commands)}")
            before = _processor_s()
            try:
                meant = names_in(Path(folder), _data.HUMAN, _data.synthetic_corpus, entry)
                table = measured(entry, meant, machine)
                # Read only now: a person may have written in it meanwhile.
                text = replaced(_read(latest), entry.name, table, names)
            except BadInput as error:
                _report(f"{entry.name} is left as it was: {error}")
                failed.append(entry.name)
                continue
            with writing(out, "the page") as draft:
                draft.write_bytes(text.encode("utf-8"))
            latest = out
            _report(f"{entry.name}: {_processor_s() - before:.0f} s of processor time")
    return failed


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(page: Path) -> str:
    return page.read_bytes().decode("utf-8")


def _report(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Measure, or list; 1 where anything could not be measured, 2 where the question or the page is wrong."""
    parser = command_line("measurements", __doc__)
    parser.add_argument("--only", metavar="NAME", nargs="+", action="extend", default=[])
    parser.add_argument("--list", action="store_true", help="print what there is")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page there")
    given = parser.parse_args(arguments)
    if given.list:
        for entry in ENTRIES:
            when = "" if entry.quick else "  (only with --only)"
            print(f"{entry.name:16} up to {entry.upto_s:.0f} s{when}")
            for command in entry.commands:
                print(f"    {command}")
        return 0
    try:
        wanted = chosen(ENTRIES, given.only)
        failed = measure(wanted, [entry.name for entry in ENTRIES], PAGE, given.out or PAGE)
    except BadInput as error:
        _report(str(error))
        return 2
    except KeyboardInterrupt:
        _report("Stopped; what was measured before stands in the page.")
        return 130
    left = [entry.name for entry in ENTRIES if not given.only and not entry.quick]
    if left:
        _report(f"Not measured, for they take over two minutes (--only NAME): {', '.join(left)}.")
    if failed:
        _report(f"Left as they were: {', '.join(failed)}.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
