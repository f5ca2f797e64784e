"""Measure the best rates of computation and memory traffic of this machine: the roofs used for verdicts.

    asrscope calibrate
    asrscope calibrate --png ladder.png --theme light
    asrscope calibrate --fresh --threads 1 --json

Takes about a minute the first time; after that, only what is missing or was disturbed is measured again.
Do not use the machine for anything else meanwhile. Ctrl+C stops and keeps the previous results.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from app.cli import _output
from app.model.document import Document, Drawing, Table
from app.model.report import Tree
from pipelines.labs.chart import Axis, Bars, Chart, Layer, Line, Mark, Note
from pipelines.labs.figures import figure
from profiler.errors import BadInput
from profiler.machine.roofs.table import BANDWIDTH, LATENCY, OVERHEAD, RATE, Key, Roof, RoofTable, plateaus, size_text

if TYPE_CHECKING:
    from profiler.machine.roofs.calibration import Calibration

FAMILIES: Final = ("gemm", "gemv", "fma", "scalar", "exp", "log")
DTYPES: Final = ("float32", "tf32", "bfloat16", "float16", "int8")  # In the order of the table
SIZE: Final = (1200, 666)
LINES: Final = {"read": "compute", "write": "memory", "triad": "search"}  # Access → category of colour
DISTURBED: Final = "disturbed by other programs"
RING: Final = ("unexplained", 4)  # What lies over points of the ladder that were disturbed
MOST_LINES: Final = 3  # Numbers of threads that have lines; each has a sign
MOST_BARS: Final = 40


def arguments(parser: argparse.ArgumentParser) -> None:
    _output.report_flags(parser)
    _output.picture_arguments(parser, "draw the ladder and the rates as a PNG")
    _output.number_flag(parser, "--threads", 0, 10**9, "up to N threads (default: all usable cores)")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print, draw."""
    from profiler.machine.describe import usable_cores

    cores = usable_cores() or 1
    if arguments.threads is not None and not 1 <= arguments.threads <= cores:
        raise BadInput(f"--threads must be 1 to {cores} on this machine, not {arguments.threads}.")
    from pipelines.scoring import peaks
    from profiler.machine.roofs import calibration

    with _output.Progress() as progress:
        known = calibration.calibrate(arguments.threads, progress, fresh=arguments.fresh, kernels=peaks.everywhere())
    tree = as_json(known)
    if arguments.png:
        from app.model.provenance import measured_on
        from app.pictures.drawings import drawings_picture

        origin = measured_on(tree["machine"], tree["measured_at"])
        drawings_picture(document(tree), origin, arguments.png, SIZE, theme=arguments.theme)
    _output.print_report(tree, arguments, document)
    if arguments.png and not arguments.json:
        print(f"\n{arguments.png}")


def as_json(known: Calibration) -> Tree:
    """The JSON object of `calibrate`."""
    from profiler.machine.describe import describe

    return {
        "schema": 1,
        "machine": describe(),
        "roofs": known.as_dict()["roofs"],
        "measured_at": known.measured_at,
        "unavailable": [missing._asdict() for missing in known.missing],
    }


def document(tree: Tree) -> Document:
    """Rates, calls and ladders with their plateaus as tables and charts, what is missing and why."""
    table = RoofTable.from_rows({name: row[name] for name in Roof.__slots__} for row in tree["roofs"])
    disturbed = {Key(*(row[name] for name in Key._fields)) for row in tree["roofs"] if not row["steady"]}

    def spread(roof: Roof) -> str:
        return f"{roof.spread:.1%}{'*' if roof.key in disturbed else ''}"

    def best(roof: Roof) -> tuple[str, str, str]:
        return figure(roof.median, roof.unit), figure(roof.high, roof.unit), spread(roof)

    rates = sorted((roof for roof in table.roofs if roof.kind == RATE), key=_order)
    times = [roof for kind in (OVERHEAD, LATENCY) for roof in table.roofs if roof.kind == kind]
    calls = [
        (
            f"access ({roof.name})" if roof.kind == LATENCY else roof.name,
            size_text(roof.bytes) if roof.bytes else "",
            f"{roof.median:.4g} ns",
            f"{roof.low:.4g} ns",
        )
        for roof in sorted(times, key=lambda roof: (roof.kind == LATENCY, roof.name, roof.bytes))
    ]
    rungs = []
    ladders = {(roof.name, roof.threads) for roof in table.roofs if roof.kind == BANDWIDTH}
    for name, threads in sorted(ladders, key=lambda ladder: (_place(ladder[0], tuple(LINES)), *ladder)):
        head, _, device = name.partition("@")
        steps = table.ladder(head, threads, device)
        flat = {one.first_bytes: f"{figure(one.rate, 'B/s')} over {one.label}" for one in plateaus(steps)}
        rungs += [(name, threads, size_text(r.bytes), *best(r), flat.get(r.bytes, "")) for r in steps]
    found = [f"* {sentence}" for sentence in table.refused.values()]
    if shaky := sum(roof.key in disturbed for roof in table.roofs if roof.kind != OVERHEAD):
        found.append(
            f"* {shaky} figures were disturbed by other programs; `asrscope calibrate` takes them again "
            "from ten minutes on."
        )
    at = tree["measured_at"]
    when = "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
    return Document(
        f"Last measured: {when or 'never'}; kept for this machine and these libraries.",
        [
            _ladder(table, disturbed, tree["machine"].get("caches", [])),
            _rates(rates, disturbed),
            Table(
                "Sustained rates",
                ("rate", "threads", "sustained", "best", "spread"),
                [(_title(roof), roof.threads, *best(roof)) for roof in rates],
            ),
            Table("One call, and one scattered access", ("of", "after, or over", "median", "least"), calls),
            Table(
                "Bandwidth by working set",
                ("bandwidth", "threads", "working set", "sustained", "best", "spread", "plateau"),
                rungs,
            ),
            *(f"{missing['name']}: {missing['reason']}" for missing in tree["unavailable"]),
            *found,
        ],
    )


def _ladder(table: RoofTable, disturbed: Collection[Key], caches: Iterable[Tree]) -> Drawing:
    """Lines of all kinds of access and some numbers of threads: a colour a kind, a sign a number."""
    layers: list[Layer] = []
    looks: dict[str, tuple[str, int]] = {}
    hollow: list[Roof] = []
    shown = _few([n for n in table.threads if table.ladder("read", n)])
    for kind, category in LINES.items():
        for place, threads in enumerate(shown):
            rungs = table.ladder(kind, threads)
            if not rungs or rungs[0].threads != threads:
                continue
            name = f"{kind} ×{threads}"
            looks[name] = category, place
            layers.append(Line(name, tuple(float(r.bytes) for r in rungs), tuple(r.median for r in rungs)))
            hollow += [rung for rung in rungs if rung.key in disturbed]
    if hollow:
        looks[DISTURBED] = RING
        at = tuple(float(rung.bytes) for rung in hollow), tuple(rung.median for rung in hollow)
        layers.append(Line(DISTURBED, *at, joined=False))
    if layers:
        read = table.ladder("read", shown[0])
        sizes = [rung.bytes for rung in read]
        named = {(cache["bytes"], f"L{cache['level']}") for cache in caches if cache["type"] != "instruction"}
        layers += [
            Mark(f"{name} {size_text(size)}", size, on="x")
            for size, name in sorted(named)
            if min(sizes) <= size <= max(sizes)
        ]
        layers += [
            Note(f"{figure(one.rate, 'B/s')}\n{one.label}", math.sqrt(one.first_bytes * one.last_bytes), one.rate)
            for one in plateaus(read)
        ]
    x, y, title = Axis("working set", "B", log=True), Axis("bandwidth", "B/s", log=True), "Bandwidth by working set"
    return Drawing(title, Chart(x, y, tuple(layers), title), looks=looks)


def _rates(rates: Sequence[Roof], disturbed: Collection[Key]) -> Drawing:
    threads, title = _few(sorted({roof.threads for roof in rates})), "Sustained rates"
    shown = [roof for roof in rates if roof.threads in threads][:MOST_BARS]
    names = (f"{_title(roof)} ×{roof.threads}{' *' if roof.key in disturbed else ''}" for roof in shown)
    medians, best = tuple(roof.median for roof in shown), tuple(roof.high for roof in shown)
    x = Axis("kind", categories=tuple(names))
    y = Axis(f"rate, interval to the best round; *: {DISTURBED}", "op/s", log=True)
    return Drawing(title, Chart(x, y, (Bars("rate", medians, medians, best),) if shown else (), title))


def _few(counts: Sequence[int]) -> Sequence[int]:
    """One thread, the maximum, and one in between: more lines would hide each other."""
    return counts if len(counts) <= MOST_LINES else (counts[0], counts[len(counts) // 2], counts[-1])


def _order(roof: Roof) -> tuple[object, ...]:
    family = roof.name.partition("@")[0].partition(".")[0]
    return "@" in roof.name, _place(family, FAMILIES), family, _place(roof.dtype, DTYPES), roof.name, roof.threads


def _place(name: str, known: Sequence[str]) -> int:
    return known.index(name) if name in known else len(known)


def _title(roof: Roof) -> str:
    head, _, device = roof.name.partition("@")
    family, _, library = head.partition(".")
    parts = [family.upper() if family in ("gemm", "gemv") else family]
    parts += [roof.dtype] if family == "gemm" else []
    parts += [f"({library})"] if library else []
    return " ".join([*parts, f"on {device}"] if device else parts)
