"""The tables of docs/measurements.md about the recogniser: words, speed beside peers, graphs, nets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.bench import _data
from tests.bench._measured import Entry, Table

Tree = Mapping[str, Any]
Trees = Sequence[Any]

ON_SPEECH = "--audio SPEECH --transcripts SPEECH/transcripts.tsv"
ON_CORPUS = "--audio CORPUS --transcripts CORPUS/transcripts.tsv"
SOME_SPEECH = " ".join(
    f"SPEECH/{name}.flac"
    for name in ("librivox-0870", "librivox-0880", "librivox-0890", "goforward", "digits-2934z")
)
MODELS = ("gmm", "gmm-continuous", "gmm-single-stream")
NETS = "large base small small-hard low-rank sparse sparse-blocks multi-frame"
SKIPS = (2, 3, 4)
FIRST = ("the first, with nothing in the cache", "the second")
TARGETS = (0.012, 0.02, 0.05)


def human(found: Trees) -> list[Table]:
    """A run on human speech."""
    (tree,) = found
    slowest = max(tree["utterances"], key=lambda u: u["rtf"])
    rows = [
        ("word errors", f"{tree['wer_errors']} of {tree['wer_words']}"),
        ("audio", f"{tree['audio_s']:.0f} s"),
        ("RTF", f"{tree['rtf']:.4f}"),
        (f"RTF of the slowest file, {slowest['id']}", f"{slowest['rtf']:.4f}"),
        ("overhead, of wall time", f"{tree['categories']['overhead_s'] / tree['wall_s']:.1%}"),
        ("senones that a frame's search needs, mean", f"{tree['shares']['senones_asked']:.0%}"),
    ]
    return [Table(("figure", "value"), rows)]


def first_run(found: Trees) -> list[Table]:
    """The same run with nothing in the cache, and again."""
    rows = [(what, f"{t['setup_s']:.1f}") for what, t in zip(FIRST, found, strict=True)]
    return [Table(("run", "set-up, s"), rows)]


def models(found: Trees) -> list[Table]:
    """The same corpus by several models."""
    rows = [
        (f"`{t['preset']}`", t["wer_errors"], t["wer_words"], f"{t['wer']:.1%}", f"{t['rtf']:.4f}")
        for t in found
    ]
    return [Table(("preset", "errors", "words", "WER", "RTF"), rows)]


def decode(found: Trees) -> list[Table]:
    """`bench decode`."""
    (tree,) = found
    rows = [
        (
            row["vocabulary"],
            row["decoder"],
            f"{row['rtf']:.4f}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
            "–" if row["wer"] is None else f"{row['wer_errors']} ({row['wer']:.1%})",
        )
        for row in tree["rows"]
    ]
    return [Table(("vocabulary", "decoder", "RTF", "its time / ours", "word errors"), rows)]


def gmm(found: Trees) -> list[Table]:
    """`bench gmm`: speeds, then what the selection gains and costs."""
    (tree,) = found
    speeds = [
        (
            row["what"],
            f"{row['us_per_frame']:.0f}",
            f"{row['of_pocketsphinx']:.2f}" if "of_pocketsphinx" in row else "",
            f"{row['of_dense']:.2f}" if "of_dense" in row else "",
        )
        for row in tree["rows"]
    ]
    about = tree["agreement"]
    least, most = about["selection over dense, time, least and most"]
    low, high = about["points of WER lost, 95 % interval (paired bootstrap)"]
    selection = [
        (
            "dense scoring's time / its",
            f"{about['selection over dense, time']:.1f} ({least:.1f} to {most:.1f})",
        ),
        ("Gaussians evaluated", f"{about['selection: Gaussians evaluated']:.0%}"),
        ("words", about["words"]),
        (
            "WER, dense · selected",
            f"{about['word error rate, dense']:.1%} · {about['word error rate, selected']:.1%}",
        ),
        ("points lost (95 %)", f"{about['points of WER lost']:+.1f} ({low:.1f} to {high:.1f})"),
    ]
    return [
        Table(
            (
                "scoring, one thread",
                "µs per frame",
                "pocketsphinx's time / its",
                "dense scoring's time / its",
            ),
            speeds,
        ),
        Table(("selection on the continuous model, block 1", "value"), selection),
    ]


def continuous(found: Trees) -> list[Table]:
    """`bench continuous`: a column for each model and block size."""
    (tree,) = found
    rows = tree["rows"]

    def line(title: str, key: str, form: str) -> tuple[str, ...]:
        return (title, *(format(row[key], form) for row in rows))

    return [
        Table(
            ("", *(f"{row['model']}, block {row['block']}" for row in rows)),
            [
                line("scoring, µs per frame", "us_per_frame", ".0f"),
                line("product stage, GFLOP/s", "product_gflops", ".0f"),
                line("bare products of the same tiles, GFLOP/s", "bare_gflops", ".0f"),
                line("bare products' time / ours", "product_of_bare", ".2f"),
                line("… with one tile that stays in the cache", "product_of_bare_in_cache", ".2f"),
                line("log-sum-exp, ns per Gaussian", "lse_ns_per_gaussian", ".2f"),
                line("log-sum-exp, share of scoring", "lse_share", ".0%"),
                line("parameters read, GB/s", "read_gbytes_per_s", ".1f"),
                line("the machine's own reading loop, GB/s", "machine_reads_gbytes_per_s", ".1f"),
            ],
        ),
        Table(
            ("model", "found in the cache or made, s", "packed, s"),
            [
                (name, f"{made['found_or_made_s']:.2f}", f"{made['packed_s']:.2f}")
                for name, made in tree["derivation"].items()
            ],
        ),
    ]


def graphs(found: Trees) -> list[Table]:
    """`bench graphs`: what graphs cost, then the words of small grammars."""
    (tree,) = found
    built = [row for row in tree["rows"] if "graph" in row]
    heard = [row for row in tree["rows"] if "grammar" in row]
    return [
        Table(
            ("graph", "states", "arcs", "CPU s", "peak GB", "load s", "MB"),
            [
                (
                    row["graph"],
                    f"{row['states']:,}".replace(",", " "),
                    f"{row['arcs']:,}".replace(",", " "),
                    f"{row['cpu_s']:.1f}",
                    f"{row['peak_gb']:.2f}",
                    f"{row['load_s']:.4f}",
                    f"{row['file_mb']:.2f}",
                )
                for row in built
            ],
        ),
        Table(
            (f"{tree['peer']}", "value"),
            [
                (tree["ratio_meaning"], _spread(tree)),
                *((name, f"{value:.4f}") for name, value in tree["agreement"].items()),
            ],
        ),
        Table(
            ("grammar", "audio", "words", "errors"),
            [(row["grammar"], row["audio"], row["words"], row["errors"]) for row in heard],
        ),
    ]


def search(found: Trees) -> list[Table]:
    """`bench search`."""
    (tree,) = found
    rows = [
        (
            row["vocabulary"],
            f"{row['beam']:g} / {row['max_active']}",
            _spread(row),
            f"{row['rtf']:.4f}",
            f"{row['peer_rtf']:.4f}",
            f"{row['same_words']} of {row['utterances']}",
            f"{row['cost_difference']:.4f}",
        )
        for row in tree["rows"]
    ]
    return [
        Table(
            (
                "words",
                "beam / max active",
                "its time / ours (min to max)",
                "RTF ours",
                f"RTF {tree['peer']}",
                "same words",
                "largest difference in cost, nat",
            ),
            rows,
        )
    ]


def lattice(found: Trees) -> list[Table]:
    """What a lattice adds: `ab`, the stages of the search."""
    (tree,) = found
    stages = [("whole run", tree["overall"]), *((f"`{s['name']}`", s) for s in tree["stages"])]
    rows = [
        (name, _known(row["ratio"], ".2f"), _ends(row["ci95"]), row["verdict"])
        for name, row in stages
        if name == "whole run" or "search" in name
    ]
    return [Table(("", "with lattice / without", "95 %", "verdict"), rows)]


def adaptive(found: Trees) -> list[Table]:
    """Runs with a target."""
    rows = [
        (f"{target:g}", f"{tree['rtf']:.4f}", tree["wer_errors"])
        for target, tree in zip(TARGETS, found, strict=True)
    ]
    return [Table(("target RTF", "RTF", "word errors"), rows)]


def device_search(found: Trees) -> list[Table]:
    """`bench device_search`."""
    (tree,) = found
    rows = [
        (
            row["at once"],
            row["device"],
            f"{row['rtf']:.3f}",
            f"{row['rtf of the compiled decoder']:.4f}",
            f"{row['ratio']:.3f} ({row['ratio_min']:.3f} to {row['ratio_max']:.3f})",
        )
        for row in tree["rows"]
    ]
    head = ("utterances at once", "device", "RTF", "RTF, compiled", "compiled decoder's time / its")
    return [Table(head, rows)]


def nets(found: Trees) -> list[Table]:
    """Word errors of nets: the test sentences, then human speech."""
    sides = [{row["net"]: row for row in tree["nets"]} for tree in found]
    rows = [
        (
            name,
            _known(row["mb"], ".1f"),
            _known(row["frames"] and row["frames"] / 1e6, ".1f"),
            *(f"{side[name]['errors']} = {side[name]['wer']:.1%}" for side in sides),
        )
        for name, row in sides[0].items()
    ]
    heads = (f"errors of {next(iter(side.values()))['words']}" for side in sides)
    return [Table(("net", "MB", "million frames of training", *heads), rows)]


def skipped(found: Trees) -> list[Table]:
    """Nets that score one frame of several: `nets` of two nets and the mixtures, for each number of frames."""
    return [
        Table(
            ("one frame of", "net", "scores of the others", "errors", "WER"),
            [
                (skip, name, how, row["errors"], f"{row['wer']:.1%}")
                for (skip, name, how), tree in zip(_skips(), found, strict=True)
                for row in tree["nets"]
                if row["net"] == name
            ],
        )
    ]


def _skips() -> Iterator[tuple[int, str, str]]:
    for skip in SKIPS:
        yield skip, "small", "copy"
        yield skip, "multi-frame", "multi-frame"


def dnn(found: Trees) -> list[Table]:
    """`bench dnn`: times by batch, what is wanted, lazy outputs and whole runs."""
    (tree,) = found
    timed = [row for row in tree["rows"] if "batch" in row]
    batches = sorted({row["batch"] for row in timed})
    ways = dict.fromkeys((row["net"], row["what"]) for row in timed)
    by = {(row["net"], row["what"], row["batch"]): row["us_per_frame"] for row in timed}
    lazy = [row for row in tree["rows"] if "share computed" in row]
    runs = [row for row in tree["rows"] if "tokens_per_frame" in row]
    return [
        Table(
            ("µs per frame", *(f"batch {batch}" for batch in batches)),
            [
                (f"{net}: {what}", *(_known(by.get((net, what, b)), ".0f") for b in batches))
                for net, what in ways
            ],
        ),
        Table(
            (f"base at batch 32, beside {tree['peer']}", "wanted", "measured", "holds"),
            [
                (name, row["wanted"], _known(row["found"], ".2f"), _yes(row["holds"]))
                for name, row in tree["agreement"]["wanted"].items()
            ],
        ),
        Table(
            ("lazy outputs", "needed", "computed", "time of all outputs / its", "efficiency"),
            [
                (
                    row["what"],
                    f"{row['share of the senones asked for']:.0%}",
                    f"{row['share computed']:.0%}",
                    f"{row['time of all outputs / time']:.2f}",
                    f"{row['efficiency']:.2f}",
                )
                for row in lazy
            ],
        ),
        Table(
            ("whole runs", "RTF", "errors", "tokens per frame"),
            [
                (row["what"], f"{row['rtf']:.4f}", row["errors"], f"{row['tokens_per_frame']:.0f}")
                for row in runs
            ],
        ),
    ]


def _spread(row: Tree) -> str:
    return f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})"


def _known(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _ends(ends: Sequence[float] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


def _yes(holds: bool | None) -> str:
    return {True: "yes", False: "no", None: "–"}[holds]


EVALUATE = "python -m pipelines.training evaluate"

ENTRIES = (
    Entry(
        "human",
        (f"asrscope run --preset gmm {ON_SPEECH} --out SESSION --json",),
        human,
        30,
        _data.human_speech,
    ),
    Entry(
        "first-run",
        ("ASRSCOPE_CACHE=EMPTY asrscope run --preset gmm --out SESSION --json",) * len(FIRST),
        first_run,
        110,
    ),
    Entry(
        "models",
        tuple(f"asrscope run --preset {name} {ON_CORPUS} --out SESSION --json" for name in MODELS),
        models,
        200,
        _data.synthetic_corpus,
    ),
    Entry(
        "decode-human",
        (f"asrscope bench decode --repeat 1 {ON_SPEECH} --json",),
        decode,
        200,
        _data.human_speech,
    ),
    Entry(
        "decode",
        (f"asrscope bench decode --repeat 1 {ON_CORPUS} --json",),
        decode,
        400,
        _data.synthetic_corpus,
    ),
    Entry("gmm", ("asrscope bench gmm --repeat 5 --json",), gmm, 400, _data.synthetic_corpus),
    Entry("continuous", ("asrscope bench continuous --json",), continuous, 60),
    Entry("graphs", ("asrscope bench graphs --repeat 3 --json",), graphs, 500, _data.spoken_digits),
    Entry(
        "search",
        (f"asrscope bench search --repeat 3 --audio {SOME_SPEECH} --json",),
        search,
        40,
        _data.human_speech,
    ),
    Entry(
        "lattice",
        (
            "asrscope ab --preset gmm --b search.lattice=true --repeat 4 "
            "--audio SPEECH/librivox-0870.flac --out SESSION --json",
        ),
        lattice,
        20,
        _data.human_speech,
    ),
    Entry(
        "adaptive-beam",
        tuple(
            f"asrscope run --preset gmm --set search.adaptive_beam=true "
            f"--set search.target_rtf={target:g} {ON_SPEECH} --out SESSION --json"
            for target in TARGETS
        ),
        adaptive,
        50,
        _data.human_speech,
    ),
    Entry(
        "device-search",
        ("asrscope bench device_search --repeat 3 --json",),
        device_search,
        60,
    ),
    Entry(
        "nets",
        (
            f"{EVALUATE} {NETS} {ON_CORPUS} --json",
            f"{EVALUATE} {NETS} {ON_SPEECH} --json",
        ),
        nets,
        900,
        _data.synthetic_corpus,
    ),
    Entry(
        "skipped-frames",
        tuple(
            f"{EVALUATE} {name} {ON_CORPUS} --set frames.skip={skip} frames.rule={how} --json"
            for skip, name, how in _skips()
        ),
        skipped,
        900,
        _data.synthetic_corpus,
    ),
    Entry("dnn", ("asrscope bench dnn --json",), dnn, 110, _data.human_speech),
)
