"""The tables of docs/measurements.md about the recogniser: words, speed next to peers, graphs, nets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.bench import _data
from tests.bench._measured import Entry, Table, interval, known

Tree = Mapping[str, Any]
Trees = Sequence[Any]

ON_SPEECH = "--audio SPEECH --transcripts SPEECH/transcripts.tsv"
ON_CORPUS = "--audio CORPUS --transcripts CORPUS/transcripts.tsv"
SOME_SPEECH = " ".join(
    f"SPEECH/{name}.flac" for name in ("librivox-0870", "librivox-0880", "librivox-0890", "goforward", "digits-2934z")
)
MODELS = ("gmm", "gmm-continuous", "gmm-single-stream")
NETS = "large base small small-hard low-rank sparse sparse-blocks multi-frame"
SKIPS = (2, 3, 4)
FIRST = ("the first, with nothing in the cache", "the second")
TARGETS = (0.012, 0.02, 0.05)


def human(trees: Trees) -> list[Table]:
    """A run on human speech."""
    (tree,) = trees
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


def first_run(trees: Trees) -> list[Table]:
    """The same run with nothing in the cache, and again."""
    rows = [(what, f"{t['setup_s']:.1f}") for what, t in zip(FIRST, trees, strict=True)]
    return [Table(("run", "set-up, s"), rows)]


def models(trees: Trees) -> list[Table]:
    """The same corpus by several models."""
    preset = ("preset", lambda t: f"`{t['preset']}`")
    errors = ("errors", "wer_errors"), ("words", "wer_words"), ("WER", "wer", ".1%")
    return [Table.of(trees, preset, *errors, ("RTF", "rtf", ".4f"))]


def decode(trees: Trees) -> list[Table]:
    """`bench decode`."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            ("vocabulary", "vocabulary"),
            ("decoder", "decoder"),
            ("RTF", "rtf", ".4f"),
            ("its time / ours", lambda r: "" if r["ratio"] is None else f"{r['ratio']:.2f}"),
            ("word errors", _errors),
        )
    ]


def gmm(trees: Trees) -> list[Table]:
    """`bench gmm`: speeds, then what the selection gains and costs."""
    (tree,) = trees
    about = tree["agreement"]
    gain = "selection over dense, time"
    dense, selected = (about[f"word error rate, {name}"] for name in ("dense", "selected"))
    lost = interval(about["points of WER lost, 95 % interval (paired bootstrap)"], ".1f")
    selection = [
        ("dense scoring's time / its", f"{about[gain]:.1f}" + interval(about[f"{gain}, least and most"], ".1f")),
        ("Gaussians evaluated", f"{about['selection: Gaussians evaluated']:.0%}"),
        ("words", about["words"]),
        ("WER, dense · selected", f"{dense:.1%} · {selected:.1%}"),
        ("points lost (95 %)", f"{about['points of WER lost']:+.1f}{lost}"),
    ]  # fmt: skip
    return [
        Table.of(
            tree["rows"],
            ("scoring, one thread", "what"),
            ("µs per frame", "us_per_frame", ".0f"),
            ("pocketsphinx's time / its", lambda r: _if_there(r, "of_pocketsphinx")),
            ("dense scoring's time / its", lambda r: _if_there(r, "of_dense")),
        ),
        Table(("selection on the continuous model, block 1", "value"), selection),
    ]


def continuous(trees: Trees) -> list[Table]:
    """`bench continuous`: a column for each model and block size."""
    (tree,) = trees
    lines = (
        ("scoring, µs per frame", "us_per_frame", ".0f"),
        ("product stage, GFLOP/s", "product_gflops", ".0f"),
        ("bare products of the same tiles, GFLOP/s", "bare_gflops", ".0f"),
        ("bare products' time / ours", "product_of_bare", ".2f"),
        ("… with one tile that stays in the cache", "product_of_bare_in_cache", ".2f"),
        ("log-sum-exp, ns per Gaussian", "lse_ns_per_gaussian", ".2f"),
        ("log-sum-exp, share of scoring", "lse_share", ".0%"),
        ("parameters read, GB/s", "read_gbytes_per_s", ".1f"),
        ("the machine's own reading loop, GB/s", "machine_reads_gbytes_per_s", ".1f"),
    )
    rows = tree["rows"]
    return [
        Table(
            ("", *(f"{row['model']}, block {row['block']}" for row in rows)),
            [(title, *(format(row[key], form) for row in rows)) for title, key, form in lines],
        ),
        Table.of(
            tree["derivation"].items(),
            ("model", lambda item: item[0]),
            ("found in the cache or made, s", lambda item: item[1]["found_or_made_s"], ".2f"),
            ("packed, s", lambda item: item[1]["packed_s"], ".2f"),
        ),
    ]


def graphs(trees: Trees) -> list[Table]:
    """`bench graphs`: what graphs cost, then the words of small grammars."""
    (tree,) = trees
    about = [(name, f"{value:.4f}") for name, value in tree["agreement"].items()]
    return [
        Table.of(
            [row for row in tree["rows"] if "graph" in row],
            ("graph", "graph"),
            ("states", lambda row: f"{row['states']:,}".replace(",", " ")),
            ("arcs", lambda row: f"{row['arcs']:,}".replace(",", " ")),
            ("CPU s", "cpu_s", ".1f"),
            ("peak GB", "peak_gb", ".2f"),
            ("load s", "load_s", ".4f"),
            ("MB", "file_mb", ".2f"),
        ),
        Table((f"{tree['peer']}", "value"), [(tree["ratio_meaning"], _spread(tree)), *about]),
        Table.of(
            [row for row in tree["rows"] if "grammar" in row],
            *((name, name) for name in ("grammar", "audio", "words", "errors")),
        ),
    ]


def search(trees: Trees) -> list[Table]:
    """`bench search`."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            ("words", "vocabulary"),
            ("beam / max active", lambda row: f"{row['beam']:g} / {row['max_active']}"),
            ("its time / ours (min to max)", _spread),
            ("RTF ours", "rtf", ".4f"),
            (f"RTF {tree['peer']}", "peer_rtf", ".4f"),
            ("same words", lambda row: f"{row['same_words']} of {row['utterances']}"),
            ("largest difference in cost, nat", "cost_difference", ".4f"),
        )
    ]


def lattice(trees: Trees) -> list[Table]:
    """What a lattice adds: `ab`, the stages of the search."""
    (tree,) = trees
    stages = [("whole run", tree["overall"])]
    stages += [(f"`{s['name']}`", s) for s in tree["stages"] if "search" in s["name"]]
    return [
        Table.of(
            stages,
            ("", lambda stage: stage[0]),
            ("with lattice / without", lambda stage: stage[1]["ratio"], ".2f"),
            ("95 %", lambda stage: interval(stage[1]["ci95"])[2:-1] or "–"),
            ("verdict", lambda stage: stage[1]["verdict"]),
        )
    ]


def adaptive(trees: Trees) -> list[Table]:
    """Runs with a target."""
    rows = [
        (f"{target:g}", f"{tree['rtf']:.4f}", tree["wer_errors"]) for target, tree in zip(TARGETS, trees, strict=True)
    ]
    return [Table(("target RTF", "RTF", "word errors"), rows)]


def device_search(trees: Trees) -> list[Table]:
    """`bench device_search`."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            ("utterances at once", "at once"),
            ("device", "device"),
            ("RTF", "rtf", ".3f"),
            ("RTF, compiled", "rtf of the compiled decoder", ".4f"),
            ("compiled decoder's time / its", lambda row: _spread(row, ".3f")),
        )
    ]


def nets(trees: Trees) -> list[Table]:
    """Word errors of nets: the test sentences, then human speech."""
    sides = [{row["net"]: row for row in tree["nets"]} for tree in trees]
    errors = [
        (
            f"errors of {next(iter(side.values()))['words']}",
            lambda row, side=side: f"{side[row['net']]['errors']} = {side[row['net']]['wer']:.1%}",
        )
        for side in sides
    ]
    frames = (
        "million frames of training",
        lambda row: row["frames"] and row["frames"] / 1e6,
        ".1f",
    )
    return [Table.of(trees[0]["nets"], ("net", "net"), ("MB", "mb", ".1f"), frames, *errors)]


def skipped(trees: Trees) -> list[Table]:
    """Nets that score one frame of several: `nets` of two nets and the mixtures, for each number of frames."""
    rows = [
        (skip, name, how, row["errors"], f"{row['wer']:.1%}")
        for (skip, name, how), tree in zip(_skips(), trees, strict=True)
        for row in tree["nets"]
        if row["net"] == name
    ]
    return [Table(("one frame of", "net", "scores of the others", "errors", "WER"), rows)]


def _skips() -> Iterator[tuple[int, str, str]]:
    for skip in SKIPS:
        yield skip, "small", "copy"
        yield skip, "multi-frame", "multi-frame"


def dnn(trees: Trees) -> list[Table]:
    """`bench dnn`: times by batch, what is wanted, lazy outputs and whole runs."""
    (tree,) = trees
    timed = [row for row in tree["rows"] if "batch" in row]
    batches = sorted({row["batch"] for row in timed})
    times: dict[tuple[str, str], dict[int, float]] = {}
    for row in timed:
        times.setdefault((row["net"], row["what"]), {})[row["batch"]] = row["us_per_frame"]
    return [
        Table(
            ("µs per frame", *(f"batch {batch}" for batch in batches)),
            [
                (f"{net}: {what}", *(known(us.get(batch), ".0f") for batch in batches))
                for (net, what), us in times.items()
            ],
        ),
        Table.of(
            [{"name": name, **row} for name, row in tree["agreement"]["wanted"].items()],
            (f"base at batch 32, beside {tree['peer']}", "name"),
            ("wanted", "wanted"),
            ("measured", "found", ".2f"),
            ("holds", lambda row: {True: "yes", False: "no", None: "–"}[row["holds"]]),
        ),
        Table.of(
            [row for row in tree["rows"] if "share computed" in row],
            ("lazy outputs", "what"),
            ("needed", "share of the senones asked for", ".0%"),
            ("computed", "share computed", ".0%"),
            ("time of all outputs / its", "time of all outputs / time", ".2f"),
            ("efficiency", "efficiency", ".2f"),
        ),
        Table.of(
            [row for row in tree["rows"] if "tokens_per_frame" in row],
            ("whole runs", "what"),
            ("RTF", "rtf", ".4f"),
            ("errors", "errors"),
            ("tokens per frame", "tokens_per_frame", ".0f"),
        ),
    ]


def _errors(row: Tree) -> str | None:
    return None if row["wer"] is None else f"{row['wer_errors']} ({row['wer']:.1%})"


def _if_there(row: Tree, key: str) -> str:
    return f"{row[key]:.2f}" if key in row else ""


def _spread(row: Tree, form: str = ".2f") -> str:
    return f"{row['ratio']:{form}}" + interval((row["ratio_min"], row["ratio_max"]), form)


RUN = "asrscope run --preset"
EVALUATE = "python -m pipelines.training evaluate"

ENTRIES = (
    Entry("human", (f"{RUN} gmm {ON_SPEECH} --out SESSION --json",), human, 30, _data.human_speech),
    Entry("first-run", (f"ASRSCOPE_CACHE=EMPTY {RUN} gmm --out SESSION --json",) * 2, first_run, 110),
    Entry(
        "models",
        tuple(f"{RUN} {name} {ON_CORPUS} --out SESSION --json" for name in MODELS),
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
            f"{RUN} gmm --set search.adaptive_beam=true --set search.target_rtf={target:g} {ON_SPEECH} "
            "--out SESSION --json"
            for target in TARGETS
        ),
        adaptive,
        50,
        _data.human_speech,
    ),
    Entry("device-search", ("asrscope bench device_search --repeat 3 --json",), device_search, 60),
    Entry(
        "nets",
        tuple(f"{EVALUATE} {NETS} {speech} --json" for speech in (ON_CORPUS, ON_SPEECH)),
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
