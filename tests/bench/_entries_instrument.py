"""The tables of docs/measurements.md about the instrument: roofs, sessions, attribution, what-if, its own cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.model.memory import TITLES
from tests.bench import _data, attribution, whatif_check
from tests.bench._measured import Entry, Table, interval, known

Tree = Mapping[str, Any]
Trees = Sequence[Any]

UNITS = {"rate": (1e9, "Gop/s"), "bandwidth": (1e9, "GB/s")}
"""Of roofs per second; those of calls and scattered accesses are ns."""
SIZED = ("bandwidth", "latency")
KINDS = "flags outputs texts audio models caches graphs nets sessions window"


def counters(trees: Trees) -> list[Table]:
    """Runs with counters, at block 16 and 1."""
    return [
        Table.of(
            trees,
            ("block", lambda tree: tree["config"]["block"]),
            ("events read", lambda tree: len(tree["counters"]["read"])),
            ("ns per reading", lambda tree: tree["counters"]["ns_per_reading"], ".0f"),
            ("spans", lambda tree: tree["recorder"]["spans"]),
            ("ns per span", lambda tree: tree["recorder"]["ns_per_span"], ".0f"),
            ("cost of the recorder", lambda tree: tree["recorder"]["perturbation"], ".2%"),
        )
    ]


def roofs(trees: Trees) -> list[Table]:
    """`calibrate`: figures that have no size, then those that do, a row for each size.

    Without kernels of the workload: which of them the cache holds depends on what was run before.
    """
    (tree,) = trees
    every = [roof for roof in tree["roofs"] if roof["kind"] != "kernel"]
    threads = sorted({roof["threads"] for roof in every})
    plain = [roof for roof in every if roof["kind"] not in SIZED]
    named = {(_called(roof), roof["dtype"] or "", roof["threads"]): roof for roof in plain}
    names = dict.fromkeys(key[:2] for key in named)
    sized = [roof for roof in every if roof["kind"] in SIZED]
    columns = list(dict.fromkeys((roof["name"], roof["threads"]) for roof in sized))
    ladder = {(roof["name"], roof["threads"], roof["bytes"]): roof for roof in sized}
    return [
        Table(
            ("roof", "", *map(_threads, threads)),
            [(*name, *(_roof(named.get((*name, n))) for n in threads)) for name in names],
        ),
        Table(
            ("working set", *(f"{name}, {_threads(n)}" for name, n in columns)),
            [
                (_size(size), *(_roof(ladder.get((*column, size))) for column in columns))
                for size in sorted({roof["bytes"] for roof in sized})
            ],
        ),
    ]


def _called(roof: Tree) -> str:
    """The name of a roof; of a call with what is read before it."""
    return f"{roof['name']} after {_size(roof['bytes'])}" if roof["bytes"] else str(roof["name"])


def _threads(n: int) -> str:
    return f"{n} thread{'s' if n > 1 else ''}"


def _roof(roof: Tree | None) -> str:
    if roof is None:
        return "–"
    scale, unit = UNITS.get(roof["kind"], (1.0, "ns"))
    star = "" if roof["steady"] else " *"
    return f"{roof['median'] / scale:.3g} {unit}{star}"


def _size(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n / 1024:.3g} KiB"


def session(trees: Trees) -> list[Table]:
    """`bench session`: opening and showing a million spans, then exporting them."""
    (tree,) = trees
    figures = [(name, _number(value)) for name, value in tree["agreement"].items()]
    ratio = f"{tree['ratio']:.1f}" + interval((tree["ratio_min"], tree["ratio_max"]), ".1f")
    names = ("export", "s", "MB written", "MB of memory")
    return [
        Table(("a million spans", "value"), [*figures, (tree["ratio_meaning"], ratio)]),
        Table.of(tree["rows"], *((name, name) for name in names)),
    ]


def listed(trees: Trees) -> list[Table]:
    """One part of `tests.bench.session`: a row for each figure, a column for each block size, if it has any."""
    keys = list(dict.fromkeys(key for tree in trees for key in tree if key != "block"))
    heads = (f"block {tree['block']}" if "block" in tree else "value" for tree in trees)
    rows = [(key, *(_number(tree.get(key)) for tree in trees)) for key in keys]
    return [Table(("figure", *heads), rows)]


def campaign(trees: Trees) -> list[Table]:
    """Attacks by kind."""
    (tree,) = trees
    names = ("kind", "attacks", "commands", "findings")
    return [
        Table.of(
            tree["kinds"],
            *((name, name) for name in names),
            ("slowest, s", "slowest_s"),
            ("largest above its start, MB", "largest_mb"),
        )
    ]


def starts(trees: Trees) -> list[Table]:
    """Starts of the worker."""
    (tree,) = trees
    failed = tree["failed"]
    row = len(failed), len(failed) * tree["each"], sum(failed.values())
    return [Table(("presets", "starts", "crashed or failed"), [row])]


def selection(trees: Trees) -> list[Table]:
    """`bench selection`."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            *((name, name) for name in ("block", "spans", "frames")),
            ("median ms", "ms", ".1f"),
            ("worst", "worst_ms", ".1f"),
            ("first time", "first_time_ms", ".1f"),
            ("without kept sums", "everything_ms", ".1f"),
        )
    ]


def overhead(trees: Trees) -> list[Table]:
    """`bench overhead`: events in ns, then decodes with the recorder on and off."""
    (tree,) = trees
    prefix = "ns per event: "
    return [
        Table.of(
            [row for row in tree["rows"] if row["measure"].startswith(prefix)],
            ("event", lambda row: row["measure"].removeprefix(prefix)),
            ("median, ns", "median", ".4g"),
            ("middle half", lambda row: f"{row['p25']:.4g} to {row['p75']:.4g}"),
        ),
        Table.of(
            [row for row in tree["rows"] if not row["measure"].startswith(prefix)],
            ("ratio", "measure"),
            ("block", "block"),
            ("wanted at most", lambda row: row.get("limit", "")),
            ("median", "median", ".3f"),
            (
                "95 %",
                lambda row: interval((row.get("ci95_low"), row.get("ci95_high")), ".3f")[2:-1],
            ),
        ),
    ]


DESK: Final = (
    ("updates per second, live", "updates_per_s", "≥ 30", ".1f"),
    ("of a core, live", "gui_core_share", "≤ 0.35", ".2f"),
    ("own gaps above 50 ms in a minute", "own_gaps_over_50ms", "0", ".0f"),
    ("first painting, s", "first_paint_s", "≤ 0.8", ".2f"),
    ("a million spans: open, s", "open_1e6_s", "≤ 1", ".2f"),
    ("a million spans: pan and zoom, ms, p50", "pan_zoom_ms_p50", "", ".1f"),
    ("a million spans: pan and zoom, ms, p99", "pan_zoom_ms_p99", "≤ 16", ".1f"),
    ("memory, MB", "memory_mb", "≤ 400", ".0f"),
    ("left behind", "leaked", "0", ".0f"),
)
"""Figures of the window: title, key, what is wanted, format."""


def desk(trees: Trees) -> list[Table]:
    """`bench desk`, each platform in a column; where a figure has several parts, the worse one."""
    (tree,) = trees
    platforms = list(dict.fromkeys(row["platform"] for row in tree["rows"]))
    rows = []
    for title, key, wanted, form in DESK:
        cells = []
        for platform in platforms:
            values = [r[key] for r in tree["rows"] if r["platform"] == platform and key in r]
            worst = min if wanted.startswith("≥") else max
            cells.append(format(worst(values), form) if values else "–")
        rows.append((title, wanted, *cells))
    return [Table(("figure", "wanted", *platforms), rows)]


def soaked(trees: Trees) -> list[Table]:
    """`bench soak`, a row for each process."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            ("process", "process"),
            ("MB a minute (at most 1)", "memory_mb_per_minute", ".2f"),
            ("MB at the end", "memory_mb_last", ".0f"),
            ("more files", "files_more"),
            ("more threads", "threads_more"),
        )
    ]


def confirmed(trees: Trees) -> list[Table]:
    """`confirm` of stages, after the run."""
    _, *confirmations = trees
    rows = [(tree, p) for tree in confirmations for p in tree["perturbations"]]
    agrees = {True: "yes", False: "no", None: "–"}
    return [
        Table(
            ("stage", "verdict", "change", "predicted", "measured (95 %)", "agrees"),
            [
                (
                    f"`{tree['stage']}`",
                    tree["verdict"] or "–",
                    p["change"] or p["name"],
                    known(p["predicted"], ".2f"),
                    known(p["measured_ratio"], ".2f") + interval(p["ci95"]),
                    agrees[p["agrees"]],
                )
                for tree, p in rows
                if not p["unavailable"]
            ],
        )
    ]


def planted(trees: Trees) -> list[Table]:
    """`planted_causes`."""
    (tree,) = trees
    return [
        Table.of(
            [{"cause": name, **row} for name, row in tree["causes"].items()],
            ("cause", "cause"),
            ("stage", lambda row: f"`{row['stage']}`"),
            ("named", lambda row: f"{row['right']} of {row['tries']}"),
            ("verdicts", lambda row: ", ".join(row["verdicts"])),
            ("its part of the time", "share", ".0%"),
        )
    ]


def memory_use(trees: Trees) -> list[Table]:
    """`memory_use`: growth over hours of audio, then the planted components."""
    grown, planted_in = trees
    rows = []
    for name, slope in grown["growth_mb"].items():
        likely, low, high = slope or (None, None, None)
        rows.append((TITLES.get(name, name), known(likely, ".2f"), "–" if low is None else f"{low:.2f} to {high:.2f}"))
    named = f"{planted_in['right']} of {planted_in['tries']}"
    return [
        Table((f"growth over {grown['hours']:.1f} h", "MB per hour of audio", "95 %"), rows),
        Table(("planted", "named"), [("10 MB in one component", named)]),
    ]


CAPACITY_OF: Final = ("gmm-quick", "gmm", "dnn")
"""Presets whose capacity stands in the page."""


def capacity(trees: Trees) -> list[Table]:
    """`capacity` of each preset: how many streams, then each number of streams that was tried."""
    named = list(zip(CAPACITY_OF, trees, strict=True))
    rows = [(name, row) for name, tree in named for row in tree["streams"]]
    return [
        Table(
            ("preset", "streams", "by single measurements", "what limits it"),
            [
                (f"`{name}`", tree["capacity"], "{} to {}".format(*tree["capacity_range"]), tree["why"])
                for name, tree in named
            ],
        ),
        Table.of(
            rows,
            ("preset", lambda of: f"`{of[0]}`"),
            ("streams", lambda of: of[1]["n"]),
            ("held", lambda of: f"{of[1]['held']} of {of[1]['measurements']}"),
            ("delay p50, s", lambda of: _latency(of[1], "without_emission", "p50")),
            ("delay p99, s", lambda of: _latency(of[1], "without_emission", "p99")),
            ("first shown p99, s", lambda of: _latency(of[1], "first_shown", "p99")),
            ("RTFx", lambda of: of[1]["rtfx"], ".1f"),
            ("memory, MB", lambda of: of[1]["memory_bytes"] / 1e6, ".0f"),
            ("core-s per hour", lambda of: of[1]["core_s_per_audio_hour"], ".0f"),
        ),
    ]


def _latency(row: Tree, name: str, quantile: str) -> str:
    return known((row["latency_s"][name] or {}).get(quantile), ".3f")


def validation(trees: Trees) -> list[Table]:
    """`ab_validation`: the counts, then the ratios."""
    (tree,) = trees
    counts = [(name, value) for name, value in tree["agreement"].items() if isinstance(value, int)]
    ratios = (
        ("ratio", "what"),
        ("5 %", "q05", ".3f"),
        ("median", "median", ".3f"),
        ("95 %", "q95", ".3f"),
    )
    return [
        Table(("comparisons with a known answer", "number"), counts),
        Table.of(tree["rows"], *ratios),
    ]


def explained(trees: Trees) -> list[Table]:
    """`tests.bench.attribution`."""
    (tree,) = trees
    return [attribution.table(tree)]


def constants(trees: Trees) -> list[Table]:
    """`tests.bench.constants`."""
    (tree,) = trees
    return [
        Table.of(
            tree["rows"],
            ("constant", lambda row: f"`{row['where']}`"),
            ("what it is", "what"),
            ("in the code", "stands"),
            ("measured", "now", "g"),
            ("unit", "unit"),
        )
    ]


def predicted(trees: Trees) -> list[Table]:
    """`tests.bench.whatif_check`."""
    (tree,) = trees
    return [whatif_check.table(tree)]


def _number(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(map(_number, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_number(one)}" for key, one in value.items())
    return str(value)


BENCH = "python -m tests.bench"

ENTRIES = (
    Entry(
        "counters",
        tuple(
            f"asrscope run --preset gmm --set counters=true --set block={block} --out SESSION --json"
            for block in (16, 1)
        ),
        counters,
        20,
    ),
    Entry("roofs", ("asrscope calibrate --fresh --json",), roofs, 80),
    Entry("session", ("asrscope bench session --json",), session, 50),
    Entry("hour", (f"{BENCH}.session hour",), listed, 40),
    Entry("kills", (f"{BENCH}.session kills --kills 60",), listed, 180),
    Entry("disk", (f"{BENCH}.session disk",), listed, 10),
    Entry("campaign", (f"{BENCH}.campaign --seed 4 --each 15 --kind {KINDS} --json",), campaign, 400),
    Entry("starts", (f"{BENCH}.starts --each 20 --json",), starts, 7200),
    Entry("memory", (f"{BENCH}.memory_use --hours 2", f"{BENCH}.memory_use --tries 10"), memory_use, 900),
    Entry(
        "capacity",
        tuple(f"asrscope capacity --preset {name} --out build/capacity/{name} --json" for name in CAPACITY_OF),
        capacity,
        4200,
    ),
    *(
        Entry(name, (f"{BENCH}.attribution {options} --json",), explained, upto_s, _data.human_speech)
        for name, options, upto_s in (
            ("explain", "--repeat 3", 1500),
            ("explain-ladder", "--ladder --repeat 3", 600),
            ("explain-loaded", "--load 4 --repeat 1", 2900),
        )
    ),
    Entry("planted-causes", (f"{BENCH}.planted_causes --tries 10",), planted, 600, _data.human_speech),
    Entry("whatif", (f"{BENCH}.whatif_check --repeat 3 --json",), predicted, 1200, _data.human_speech),
    Entry(
        "confirm",
        (
            "asrscope run --preset gmm --set block=1 --audio SPEECH/librivox-0870.flac --out SESSION --json",
            "asrscope confirm SESSION score.mixture --json",
            "asrscope confirm SESSION search.emit --json",
        ),
        confirmed,
        200,
        _data.human_speech,
    ),
    Entry("selection", ("asrscope bench selection --json",), selection, 10),
    Entry("desk", ("asrscope bench desk --json",), desk, 900),
    Entry("soak", ("asrscope bench soak --minutes 13 --json",), soaked, 1000),
    Entry("overhead", ("asrscope bench overhead --json",), overhead, 300),
    Entry("ab-validation", (f"{BENCH}.ab_validation --aa 200 --planted 50",), validation, 2400),
    Entry("constants", (f"{BENCH}.constants",), constants, 60, _data.human_speech),
)
