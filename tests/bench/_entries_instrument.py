"""The tables of docs/measurements.md about the instrument: roofs, sessions, attribution, what-if, its own cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.bench import _data, attribution, whatif_check
from tests.bench._measured import Entry, Table

Tree = Mapping[str, Any]
Trees = Sequence[Any]

UNITS = {"rate": (1e9, "Gop/s"), "bandwidth": (1e9, "GB/s")}
"""Of roofs per second; those of calls and scattered accesses are ns."""
SIZED = ("bandwidth", "latency")
KINDS = "flags outputs texts audio models caches graphs nets sessions window"


def counters(found: Trees) -> list[Table]:
    """Runs with counters, at block 16 and 1."""
    rows = []
    for tree in found:
        about, recorder = tree["counters"], tree["recorder"]
        rows.append(
            (
                tree["config"]["block"],
                len(about["read"]),
                _known(about["ns_per_reading"], ".0f"),
                recorder["spans"],
                _known(recorder["ns_per_span"], ".0f"),
                f"{recorder['perturbation']:.2%}",
            )
        )
    head = (
        "block",
        "events read",
        "ns per reading",
        "spans",
        "ns per span",
        "cost of the recorder",
    )
    return [Table(head, rows)]


def roofs(found: Trees) -> list[Table]:
    """`calibrate`: figures that have no size, then those that do, a row for each size.

    Without kernels of the workload: which of them the cache holds depends on what was run before.
    """
    (tree,) = found
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


def session(found: Trees) -> list[Table]:
    """`bench session`: opening and showing a million spans, then exporting them."""
    (tree,) = found
    figures = [(name, _number(value)) for name, value in tree["agreement"].items()]
    ratio = f"{tree['ratio']:.1f} ({tree['ratio_min']:.1f} to {tree['ratio_max']:.1f})"
    return [
        Table(("a million spans", "value"), [*figures, (tree["ratio_meaning"], ratio)]),
        Table(
            ("export", "s", "MB written", "MB of memory"),
            [
                (row["export"], row["s"], row["MB written"], row["MB of memory"])
                for row in tree["rows"]
            ],
        ),
    ]


def listed(found: Trees) -> list[Table]:
    """One part of `tests.bench.session`: a row for each figure, a column for each block size, if it has any."""
    keys = list(dict.fromkeys(key for tree in found for key in tree if key != "block"))
    heads = (f"block {tree['block']}" if "block" in tree else "value" for tree in found)
    rows = [(key, *(_number(tree.get(key)) for tree in found)) for key in keys]
    return [Table(("figure", *heads), rows)]


def campaign(found: Trees) -> list[Table]:
    """Attacks by kind."""
    (tree,) = found
    rows = [
        (
            row["kind"],
            row["attacks"],
            row["commands"],
            row["findings"],
            row["slowest_s"],
            row["largest_mb"],
        )
        for row in tree["kinds"]
    ]
    head = ("kind", "attacks", "commands", "findings", "slowest, s", "largest above its start, MB")
    return [Table(head, rows)]


def starts(found: Trees) -> list[Table]:
    """Starts of the worker."""
    (tree,) = found
    failed = tree["failed"]
    return [
        Table(
            ("presets", "starts", "crashed or failed"),
            [(len(failed), len(failed) * tree["each"], sum(failed.values()))],
        )
    ]


def selection(found: Trees) -> list[Table]:
    """`bench selection`."""
    (tree,) = found
    return [
        Table(
            ("block", "spans", "frames", "median ms", "worst", "first time", "without kept sums"),
            [
                (
                    row["block"],
                    row["spans"],
                    row["frames"],
                    *(
                        f"{row[key]:.1f}"
                        for key in ("ms", "worst_ms", "first_time_ms", "everything_ms")
                    ),
                )
                for row in tree["rows"]
            ],
        )
    ]


def overhead(found: Trees) -> list[Table]:
    """`bench overhead`: events in ns, then decodes with the recorder on and off."""
    (tree,) = found
    events = [row for row in tree["rows"] if row["measure"].startswith("ns per event")]
    decodes = [row for row in tree["rows"] if not row["measure"].startswith("ns per event")]
    return [
        Table(
            ("event", "median, ns", "middle half"),
            [
                (
                    row["measure"].removeprefix("ns per event: "),
                    f"{row['median']:.4g}",
                    f"{row['p25']:.4g} to {row['p75']:.4g}",
                )
                for row in events
            ],
        ),
        Table(
            ("ratio", "block", "wanted at most", "median", "95 %"),
            [
                (
                    row["measure"],
                    row["block"],
                    row.get("limit", ""),
                    f"{row['median']:.3f}",
                    f"{row['ci95_low']:.3f} to {row['ci95_high']:.3f}" if "ci95_low" in row else "",
                )
                for row in decodes
            ],
        ),
    ]


DESK: Final = (
    ("updates per second, live", "updates_per_s", "≥ 30", ".1f"),
    ("of a core, live", "gui_core_share", "≤ 0.35", ".2f"),
    ("own gaps above 50 ms in a minute", "own_gaps_over_50ms", "0", "d"),
    ("first painting, s", "first_paint_s", "≤ 0.8", ".2f"),
    ("a million spans: open, s", "open_1e6_s", "≤ 1", ".2f"),
    ("a million spans: pan and zoom, ms, p50", "pan_zoom_ms_p50", "", ".1f"),
    ("a million spans: pan and zoom, ms, p99", "pan_zoom_ms_p99", "≤ 16", ".1f"),
    ("memory, MB", "memory_mb", "≤ 400", ".0f"),
    ("left behind", "leaked", "0", "d"),
)
"""Figures of the window: title, key, what is wanted, format."""


def desk(found: Trees) -> list[Table]:
    """`bench desk`, each platform in a column; where a figure has several parts, the worse one."""
    (tree,) = found
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


def confirmed(found: Trees) -> list[Table]:
    """`confirm` of stages, after the run."""
    _, *trees = found
    return [
        Table(
            ("stage", "verdict", "change", "predicted", "measured (95 %)", "agrees"),
            [
                (
                    f"`{tree['stage']}`",
                    tree["verdict"] or "–",
                    p["change"] or p["name"],
                    _known(p["predicted"], ".2f"),
                    _known(p["measured_ratio"], ".2f") + _interval(p["ci95"]),
                    {True: "yes", False: "no", None: "–"}[p["agrees"]],
                )
                for tree in trees
                for p in tree["perturbations"]
                if not p["unavailable"]
            ],
        )
    ]


def planted(found: Trees) -> list[Table]:
    """`planted_causes`."""
    (tree,) = found
    return [
        Table(
            ("cause", "stage", "named", "verdicts", "its part of the time"),
            [
                (
                    name,
                    f"`{row['stage']}`",
                    f"{row['right']} of {row['tries']}",
                    ", ".join(row["verdicts"]),
                    f"{row['share']:.0%}",
                )
                for name, row in tree["causes"].items()
            ],
        )
    ]


def validation(found: Trees) -> list[Table]:
    """`ab_validation`: the counts, then the ratios."""
    (tree,) = found
    counts = [(name, value) for name, value in tree["agreement"].items() if isinstance(value, int)]
    return [
        Table(("comparisons with a known answer", "number"), counts),
        Table(
            ("ratio", "5 %", "median", "95 %"),
            [
                (row["what"], f"{row['q05']:.3f}", f"{row['median']:.3f}", f"{row['q95']:.3f}")
                for row in tree["rows"]
            ],
        ),
    ]


def explained(found: Trees) -> list[Table]:
    """`tests.bench.attribution`."""
    (tree,) = found
    return [attribution.table(tree)]


def constants(found: Trees) -> list[Table]:
    """`tests.bench.constants`."""
    (tree,) = found
    rows = [
        (f"`{row['where']}`", row["what"], row["stands"], f"{row['now']:g}", row["unit"])
        for row in tree["rows"]
    ]
    return [Table(("constant", "what it is", "in the code", "measured", "unit"), rows)]


def predicted(found: Trees) -> list[Table]:
    """`tests.bench.whatif_check`."""
    (tree,) = found
    return [whatif_check.table(tree)]


def _known(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _interval(ends: Sequence[float | None] | None) -> str:
    if ends is None or None in ends:
        return ""
    return f" ({ends[0]:.2f} to {ends[1]:.2f})"


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
    Entry("hour", ("python -m tests.bench.session hour",), listed, 40),
    Entry("kills", ("python -m tests.bench.session kills --kills 60",), listed, 180),
    Entry("disk", ("python -m tests.bench.session disk",), listed, 10),
    Entry(
        "campaign",
        (f"python -m tests.bench.campaign --seed 4 --each 15 --kind {KINDS} --json",),
        campaign,
        400,
    ),
    Entry("starts", ("python -m tests.bench.starts --each 20 --json",), starts, 7200),
    Entry(
        "explain",
        ("python -m tests.bench.attribution --repeat 10 --json",),
        explained,
        3400,
        _data.human_speech,
    ),
    Entry(
        "explain-ladder",
        ("python -m tests.bench.attribution --ladder --repeat 3 --json",),
        explained,
        600,
        _data.human_speech,
    ),
    Entry(
        "explain-loaded",
        ("python -m tests.bench.attribution --load 4 --repeat 1 --json",),
        explained,
        2900,
        _data.human_speech,
    ),
    Entry(
        "planted-causes",
        ("python -m tests.bench.planted_causes --tries 10",),
        planted,
        300,
        _data.human_speech,
    ),
    Entry(
        "whatif",
        ("python -m tests.bench.whatif_check --repeat 3 --json",),
        predicted,
        1200,
        _data.human_speech,
    ),
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
    Entry("overhead", ("asrscope bench overhead --json",), overhead, 300),
    Entry(
        "ab-validation",
        ("python -m tests.bench.ab_validation --aa 200 --planted 50",),
        validation,
        2400,
    ),
    Entry(
        "constants",
        ("python -m tests.bench.constants",),
        constants,
        60,
        _data.human_speech,
    ),
)
