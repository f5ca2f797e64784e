"""A picture of the roofs of the machine: the bandwidth ladder, and rates per kind of operation.

Left: the ladder, logarithmic on both axes: bytes per second over the working set, one line per kind of access and
number of threads, with labelled plateaus, and cache sizes if the system reports them. Right: the rates as bars with
the best round as an interval. Figures disturbed by other programs are hollow, or have a star.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.model.provenance import caption, measured_on
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.style.plain_text import Label
from app.views.labs.panel import Panel
from app.views.labs.series import Look, looks
from pipelines.labs.chart import Axis, Bars, Chart, Layer, Line, Mark, Note
from pipelines.labs.texts import figure
from profiler.machine.roofs.table import RATE, Roof, RoofTable, plateaus, size_text

SIZE: Final = (1200, 666)
MARGIN: Final = 16
LINES: Final = {"read": "compute", "write": "memory", "triad": "search"}
"""Kind of access → the category whose colour its line takes."""

DISTURBED: Final = "disturbed by other programs"
RING: Final = Look("unexplained", 4)
"""What lies over points of the ladder that were disturbed."""

MAX_LINES: Final = 3
"""Most numbers of threads that have lines; each has a sign."""

MAX_BARS: Final = 40


class CalibrationPicture(QWidget):
    """Draws the JSON object of `asrscope calibrate`."""

    def __init__(self, tree: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        rows = [{k: row[k] for k in Roof.__slots__} for row in tree["roofs"]]
        table = RoofTable.from_rows(rows)
        steady = {_key(row): bool(row["steady"]) for row in tree["roofs"]}
        caches = tree["machine"].get("caches", [])
        row = QHBoxLayout(self)
        row.setContentsMargins(MARGIN, MARGIN, MARGIN, 8)
        row.setSpacing(MARGIN)
        found = _ladder(table, steady, caches)
        row.addWidget(self._card("Bandwidth by working set", *found), 6)
        rates = _rates(table, steady)
        row.addWidget(self._card("Sustained rates", rates, looks(rates)), 4)

    def _card(self, title: str, chart: Chart, known: Mapping[str, Look]) -> QWidget:
        card = QFrame()
        card.setProperty("card", True)
        inside = QVBoxLayout(card)
        inside.setContentsMargins(16, 14, 16, 14)
        if chart.layers:
            inside.addWidget(Panel(chart, known))
        else:
            inside.addWidget(Label(f"{title}: not measured"))
            inside.addStretch(1)
        return card


def _ladder(
    table: RoofTable, steady: Mapping[Any, bool], caches: Sequence[Mapping[str, Any]]
) -> tuple[Chart, Mapping[str, Look]]:
    """The lines of all kinds and some numbers of threads, and how they look: a colour a kind, a sign a number."""
    layers: list[Layer] = []
    known: dict[str, Look] = {}
    disturbed: list[Roof] = []
    shown = _few([n for n in table.threads if table.ladder("read", n)])
    for kind, category in LINES.items():
        for place, threads in enumerate(shown):
            rungs = table.ladder(kind, threads)
            if not rungs or rungs[0].threads != threads:
                continue
            name = f"{kind} ×{threads}"
            known[name] = Look(category, place)
            rates = tuple(rung.median for rung in rungs)
            layers.append(Line(name, tuple(float(rung.bytes) for rung in rungs), rates))
            disturbed += [rung for rung in rungs if not steady[_key(rung)]]
    if disturbed:
        known[DISTURBED] = RING
        at = tuple(float(rung.bytes) for rung in disturbed), tuple(r.median for r in disturbed)
        layers.append(Line(DISTURBED, *at, joined=False))
    if layers:
        sizes = [rung.bytes for rung in table.ladder("read", shown[0])]
        named = {(c["bytes"], f"L{c['level']}") for c in caches if c["type"] != "instruction"}
        layers += [
            Mark(f"{name} {size_text(size)}", size, on="x")
            for size, name in sorted(named)
            if min(sizes) <= size <= max(sizes)
        ]
        layers += [
            Note(
                f"{figure(one.rate, 'B/s')}\n{one.label}",
                math.sqrt(one.first_bytes * one.last_bytes),
                one.rate,
            )
            for one in plateaus(table.ladder("read", shown[0]))
        ]
    x, y = Axis("working set", "B", log=True), Axis("bandwidth", "B/s", log=True)
    return Chart(x, y, tuple(layers), "Bandwidth by working set"), known


def _rates(table: RoofTable, steady: Mapping[Any, bool]) -> Chart:
    """A bar for each kind of operation and number of threads."""
    rates = [roof for roof in table.roofs if roof.kind == RATE]
    threads = _few(sorted({roof.threads for roof in rates}))
    rates.sort(key=lambda r: (_order(r), r.dtype != "float32", r.dtype, r.threads))
    rates = [roof for roof in rates if roof.threads in threads][:MAX_BARS]
    names = tuple(_title(roof) + ("" if steady[_key(roof)] else " *") for roof in rates)
    medians, best = tuple(r.median for r in rates), tuple(r.high for r in rates)
    layers = (Bars("rate", medians, medians, best),) if rates else ()
    x = Axis("kind", categories=names)
    y = Axis(f"rate, interval to the best round; *: {DISTURBED}", "op/s", log=True)
    return Chart(x, y, layers, "Sustained rates")


def calibration_picture(
    tree: Mapping[str, Any], out: str | os.PathLike[str], *, theme: str = "dark", scale: float = 2.0
) -> None:
    """Write the picture of a calibration (JSON object of `asrscope calibrate`), without a display.

    Raises PictureError for an unknown suffix or theme, OutputError for a place that cannot be written.
    """
    origin = measured_on(tree["machine"], tree["measured_at"])

    def make() -> tuple[QWidget, Mapping[str, str]]:
        return captioned(CalibrationPicture(tree), [caption(origin)], MARGIN), origin

    write_picture(make, out, SIZE, theme=theme, scale=scale)


def _key(roof: Roof | Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("kind", "name", "dtype", "threads", "bytes")
    return tuple(getattr(roof, n) if isinstance(roof, Roof) else roof[n] for n in names)


def _few(counts: Sequence[int]) -> list[int]:
    """One thread, the maximum, and one in between: more lines would hide each other."""
    if len(counts) <= MAX_LINES:
        return list(counts)
    return [counts[0], counts[len(counts) // 2], counts[-1]]


def _order(roof: Roof) -> tuple[int, str]:
    family = roof.name.partition("@")[0].partition(".")[0]
    families = ("gemm", "gemv", "fma", "scalar", "exp", "log")
    known = families.index(family) if family in families else len(families)
    return known + 10 * ("@" in roof.name), roof.name


def _title(roof: Roof) -> str:
    head, _, device = roof.name.partition("@")
    family, _, library = head.partition(".")
    parts = [family.upper() if family in ("gemm", "gemv") else family]
    if roof.dtype != "float32":
        parts.append(roof.dtype)
    parts += [library] if library else []
    parts += [f"@ {device}"] if device else [f"×{roof.threads}"]
    return " ".join(parts)
