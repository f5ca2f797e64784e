"""A picture of the roofs of the machine: the bandwidth ladder, and rates per kind of operation.

Left: the ladder, logarithmic on both axes: bytes per second over the working set, one line per kind of access and
number of threads, with labelled plateaus, and cache sizes if the system reports them. Right: the rates as bars,
the best repeat as a tick. Figures disturbed by other programs are drawn hollow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from app.model.provenance import measured_on
from app.pictures.writers import drawing
from app.style.drawn_text import draw_text
from app.style.theme import font, theme
from profiler.machine.roofs.ladder import plateaus
from profiler.machine.roofs.table import RATE, Roof, RoofTable, size_text

SIZE: Final = (1200, 640)
LINES: Final = {"read": "compute", "write": "memory", "triad": "search"}
"""Kind of access → the category whose colour its line takes."""

DASHES: Final = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine)
"""By number of threads, ascending."""

MAX_BARS: Final = 40
ROW: Final = 19
GIGA: Final = 1e9


@dataclass(frozen=True)
class Ladder:
    """One line: its name, thread count, place among the thread counts shown, and rungs."""

    name: str
    threads: int
    place: int
    rungs: list[Roof]


class CalibrationPicture(QWidget):
    """Draws the JSON object of `asrscope calibrate`."""

    def __init__(self, tree: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        rows = [{k: row[k] for k in Roof.__slots__} for row in tree["roofs"]]
        self._roof_table = RoofTable.from_rows(rows)
        self._steady = {_key(row): bool(row["steady"]) for row in tree["roofs"]}
        caches = tree["machine"].get("caches", [])
        self._caches = sorted(
            {(c["bytes"], f"L{c['level']}") for c in caches if c["type"] != "instruction"}
        )
        shown = _few([n for n in self._roof_table.threads if self._roof_table.ladder("read", n)])
        self._ladders = [
            Ladder(name, n, place, rungs)
            for name in LINES
            for place, n in enumerate(shown)
            if (rungs := self._roof_table.ladder(name, n)) and rungs[0].threads == n
        ]
        self.resize(*SIZE)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw both halves."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            whole = QRectF(self.rect()).adjusted(16, 16, -16, -16)
            left = QRectF(whole)
            left.setWidth(whole.width() * 0.6)
            right = QRectF(whole)
            right.setLeft(left.right() + 16)
            for card in (left, right):
                painter.setPen(QPen(theme().color("border"), 1))
                painter.setBrush(theme().color("card"))
                painter.drawRoundedRect(card, 8, 8)
            self._paint_ladder(painter, left.adjusted(16, 14, -16, -14))
            self._paint_rates(painter, right.adjusted(16, 14, -16, -14))

    # ---- the ladder -------------------------------------------------------------------------------

    def _paint_ladder(self, painter: QPainter, area: QRectF) -> None:
        draw_text(painter, area, "Bandwidth by working set", strong=True)
        if not self._ladders:
            draw_text(painter, area.translated(0, 26), "not measured", token="muted")
            return
        self._paint_legend(painter, QRectF(area.left(), area.top() + 24, area.width(), 20))
        plot = area.adjusted(44, 54, -8, -44)
        sizes = [r.bytes for ladder in self._ladders for r in ladder.rungs]
        rates = [r.median / GIGA for ladder in self._ladders for r in ladder.rungs]
        x0, x1 = math.log2(min(sizes)) - 0.3, math.log2(max(sizes)) + 0.3
        y0, y1 = math.log10(min(rates) * 0.75), math.log10(max(rates) * 1.3)

        def at(size: float, rate: float) -> QPointF:
            return QPointF(
                plot.left() + (math.log2(size) - x0) / (x1 - x0) * plot.width(),
                plot.bottom() - (math.log10(rate) - y0) / (y1 - y0) * plot.height(),
            )

        self._paint_axes(painter, plot, at, (x0, x1), (y0, y1))
        for ladder in self._ladders:
            self._paint_line(painter, ladder, at)
        self._paint_plateaus(painter, at, plot.right())

    def _paint_legend(self, painter: QPainter, area: QRectF) -> None:
        x = area.left()
        metrics = QFontMetricsF(font(0.92))
        for ladder in self._ladders:
            text = f"{ladder.name} ×{ladder.threads}"
            painter.setPen(_pen(ladder))
            painter.drawLine(QPointF(x, area.center().y()), QPointF(x + 22, area.center().y()))
            width = metrics.horizontalAdvance(text)
            draw_text(
                painter, QRectF(x + 28, area.top(), width + 2, area.height()), text, scale=0.92
            )
            x += width + 44

    def _paint_axes(
        self,
        painter: QPainter,
        plot: QRectF,
        at: Any,
        xs: tuple[float, float],
        ys: tuple[float, float],
    ) -> None:
        grid = QPen(theme().color("grid"), 1)
        for rate in (r * 10.0**p for p in range(-1, 5) for r in (1, 2, 5)):
            if ys[0] <= math.log10(rate) <= ys[1]:
                y = at(2 ** xs[0], rate).y()
                painter.setPen(grid)
                painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
                label = QRectF(plot.left() - 46, y - 9, 40, 18)
                draw_text(painter, label, f"{rate:g}", token="muted", scale=0.92, align="right")
        unit = QRectF(plot.left() - 46, plot.top() - 12, 40, 14)
        draw_text(painter, unit, "GB/s", token="muted", scale=0.85, align="right")
        for power in range(math.ceil(xs[0]), math.floor(xs[1]) + 1, 2):
            x = at(2.0**power, 10 ** ys[0]).x()
            painter.setPen(grid)
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            label = QRectF(x - 40, plot.bottom() + 4, 80, 18)
            draw_text(
                painter, label, size_text(1 << power), token="muted", scale=0.92, align="centre"
            )
        for size, name in self._caches:
            if xs[0] <= math.log2(size) <= xs[1]:
                x = at(size, 10 ** ys[0]).x()
                painter.setPen(QPen(theme().color("muted"), 1, Qt.PenStyle.DashDotLine))
                painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
                label = QRectF(x - 40, plot.bottom() + 21, 80, 18)
                text = f"{name} {size_text(size)}"
                draw_text(painter, label, text, scale=0.85, align="centre")

    def _paint_line(self, painter: QPainter, ladder: Ladder, at: Any) -> None:
        points = [at(r.bytes, r.median / GIGA) for r in ladder.rungs]
        painter.setPen(_pen(ladder))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(points))
        colour = theme().color(LINES[ladder.name])
        painter.setPen(QPen(colour, 1.4))
        for rung, point in zip(ladder.rungs, points, strict=True):
            painter.setBrush(colour if self._steady[_key(rung)] else theme().color("card"))
            painter.drawEllipse(point, 3.0, 3.0)

    def _paint_plateaus(self, painter: QPainter, at: Any, right: float) -> None:
        """Label the plateaus of reading on one thread below its line."""
        for ladder in self._ladders:
            if ladder.name != "read" or ladder.place:
                continue
            for plateau in plateaus(ladder.rungs):
                middle = math.sqrt(plateau.first_bytes * plateau.last_bytes)
                point = at(middle, plateau.rate / GIGA)
                # Below the line, and never beyond the right edge, where the last plateau ends.
                label = QRectF(min(point.x() - 80, right - 150), point.y() + 9, 160, 34)
                text = f"{plateau.rate / GIGA:.3g} GB/s\n{plateau.label}"
                draw_text(painter, label, text, scale=0.85, align="centre", behind="card")

    # ---- the rates --------------------------------------------------------------------------------

    def _paint_rates(self, painter: QPainter, area: QRectF) -> None:
        draw_text(painter, area, "Sustained rates", strong=True)
        threads = _few(sorted({r.threads for r in self._rates()}))
        rows = [r for r in self._rates() if r.threads in threads][:MAX_BARS]
        if not rows:
            draw_text(painter, area.translated(0, 26), "not measured", token="muted")
            return
        most = max(r.high for r in rows)
        minimum = min(r.median for r in rows) / 2
        names = [_title(r) for r in rows]
        wide = max(QFontMetricsF(font(0.92)).horizontalAdvance(name) for name in names) + 12
        note = "logarithmic · × threads · tick: best round · hollow: disturbed by other programs"
        draw_text(painter, area.translated(0, 24), note, token="muted", scale=0.85)
        bars = area.adjusted(wide, 46, -66, 0)
        height = min(ROW, bars.height() / len(rows))
        span = math.log10(most / minimum)
        for i, (roof, name) in enumerate(zip(rows, names, strict=True)):
            y = bars.top() + i * height
            line = QRectF(area.left(), y, wide - 8, height)
            draw_text(painter, line, name, scale=0.92, align="middle")
            colour = theme().color("compute" if roof.threads == 1 else "search")
            length = bars.width() * math.log10(roof.median / minimum) / span
            bar = QRectF(bars.left(), y + 3, length, height - 6)
            painter.setPen(QPen(colour, 1.4))
            painter.setBrush(colour if self._steady[_key(roof)] else QColor(0, 0, 0, 0))
            painter.drawRoundedRect(bar, 2, 2)
            best = bars.left() + bars.width() * math.log10(roof.high / minimum) / span
            painter.setPen(QPen(theme().color("text"), 1.2))
            painter.drawLine(QPointF(best, y + 2), QPointF(best, y + height - 2))
            figure = QRectF(area.right() - 62, y, 62, height)
            draw_text(painter, figure, _rate(roof.median), scale=0.92, align="right")

    def _rates(self) -> list[Roof]:
        rates = [r for r in self._roof_table.roofs if r.kind == RATE]
        return sorted(rates, key=lambda r: (_order(r), r.dtype != "float32", r.dtype, r.threads))


def calibration_picture(
    tree: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    theme: str = "dark",
    size: tuple[int, int] = SIZE,
    scale: float = 2.0,
) -> None:
    """Write the picture of a calibration (JSON object of `asrscope calibrate`), without a display.

    Raises PictureError for an unknown suffix or theme, or a place that cannot be written.
    """
    origin = measured_on(tree["machine"], tree["measured_at"])
    drawing(lambda: CalibrationPicture(tree), out, size, scale, origin, theme)


def _key(roof: Roof | Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("kind", "name", "dtype", "threads", "bytes")
    return tuple(getattr(roof, n) if isinstance(roof, Roof) else roof[n] for n in names)


def _few(counts: Sequence[int]) -> list[int]:
    """One thread, the maximum, and one in between: more lines would hide each other."""
    if len(counts) <= len(DASHES):
        return list(counts)
    return [counts[0], counts[len(counts) // 2], counts[-1]]


def _pen(ladder: Ladder) -> QPen:
    return QPen(theme().color(LINES[ladder.name]), 2.0, DASHES[ladder.place])


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


def _rate(value: float) -> str:
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}op/s"
    return f"{value:.3g} op/s"
