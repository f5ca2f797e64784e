"""Work per frame: tokens, beam and senones as small multiples over audio time, and the cost of scoring.

Every quantity has its own row and scale, so that none is read against the axis of another. A
column shows the range of its frames (a single expensive frame stays visible) and their mean. The last row
has Gaussians, bytes and time relative to their earlier values: do they move together?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import Tokens, font, theme
from app.views.chart import ChartView
from app.views.plot import PixelItem, TimePlot, bars, polyline
from app.views.raster import blended
from app.views.readout import Line
from app.views.scale import clock, count, milliseconds, percent, short_count
from app.views.view import Table
from app.views.work_model import (
    SCORING_TIME,
    Curve,
    Panel,
    WorkModel,
    work_model,
)
from profiler.analysis.track import SCORING_BYTES
from profiler.session.model import FRAME_S

HEADING = 16
"""Pixels above each lane's curve for its name and figures."""

COLORS = {
    "search tokens": "search",
    "search beam": "search",
    "search.beam": "search",
    "search senones": "frontend",
    "scoring senones": "memory",
    "scoring gaussians": "compute",
    "scoring components": "frontend",
    SCORING_BYTES: "memory",
    SCORING_TIME: "text",
}
"""Category whose colour a quantity's curve takes: the part of the cost that it drives."""

TITLES = {
    "search tokens": "tokens",
    "search beam": "beam in use",
    "search.beam": "beam in use",
    "search senones": "active senones",
    "scoring senones": "senones scored",
    "scoring gaussians": "Gaussians",
    "scoring components": "components summed",
    SCORING_BYTES: "bytes (modelled)",
    SCORING_TIME: "scoring time",
}

SHORT = {"scoring components": "summed", SCORING_BYTES: "bytes", SCORING_TIME: "time"}
"""Where there is little room."""

UNITS = {"search beam": "nat", "search.beam": "nat", SCORING_BYTES: "B", SCORING_TIME: "ns"}
"""Of the table twin's columns; the others are counts."""

RELATIVE_WEIGHT = 2
"""Height of the lane with several curves, in those of the others."""

STYLES = {SCORING_BYTES: Qt.PenStyle.DashLine, "scoring components": Qt.PenStyle.DotLine}
"""Several curves of a lane differ in their line as well as in colour."""

TABLE_ROWS = 200
"""Rows of the table twin: stretches of the visible range."""


class PanelsItem(PixelItem):
    """The lanes, drawn with opaque 1-px pens and no antialiasing."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.box, z=0.0)
        self._tokens = theme()
        self.model: WorkModel | None = None

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model; None shows nothing."""
        self.model = model
        self.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self._tokens = tokens
        self.update()

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn."""
        area = self.boundingRect()
        weights = [RELATIVE_WEIGHT if panel.relative else 1 for panel in panels]
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, area.height() / max(1, len(panels)) / 2)
        each = (area.height() - len(panels) * (head + 2)) / max(1, sum(weights))
        rects, top = [], 0.0
        for weight in weights:
            rects.append(QRectF(0, round(top + head), area.width(), round(weight * each)))
            top += head + 2 + weight * each
        return rects

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw every lane with its heading."""
        if self.model is None:
            return
        panels = self.model.panels
        for panel, rect in zip(panels, self.panel_rects(panels), strict=True):
            self._paint_panel(painter, panel, rect)

    def _paint_panel(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        tokens = self._tokens
        painter.setPen(QPen(tokens.color("grid"), 1))
        for y in (rect.bottom(), rect.top()):
            painter.drawLine(QLineF(0, round(y) - 0.5, rect.width(), round(y) - 0.5))
        if panel.relative:
            y = rect.bottom() - 1 - float(panel.place(np.ones(1))[0]) * (rect.height() - 2)
            painter.setPen(QPen(tokens.color("border"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QLineF(0, round(y) - 0.5, rect.width(), round(y) - 0.5))
        # The last one, time, flickers most: what it is compared with is drawn on top.
        for curve in reversed(panel.curves):
            self._paint_curve(painter, panel, curve, rect)

    def _paint_curve(self, painter: QPainter, panel: Panel, curve: Curve, rect: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(curve.mean))
        if not len(there) or not curve.one > 0:
            return  # relative to nothing: no height means anything
        height = rect.height() - 2
        x = (there + 0.5) / len(curve.mean) * rect.width()
        low, high, mean = (
            rect.bottom() - 1 - panel.place(values[there] / curve.one) * height
            for values in (curve.low, curve.high, curve.mean)
        )
        color = self._tokens.color(COLORS[curve.name])
        if not panel.relative:
            painter.setPen(QPen(QColor(blended(color.name(), self._tokens.card, 0.55)), 1))
            painter.drawPolyline(bars(x, high, low))
        painter.setPen(QPen(color, 1, STYLES.get(curve.name, Qt.PenStyle.SolidLine)))
        painter.drawPolyline(polyline(x, mean))


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, panels: PanelsItem) -> None:
        super().__init__(plot.box, z=110.0)
        self._panels = panels

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one heading per lane."""
        model = self._panels.model
        if model is None:
            return
        for panel, rect in zip(model.panels, self._panels.panel_rects(model.panels), strict=True):
            self._paint_heading(painter, panel, rect)

    def _paint_heading(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        face = font(0.92)
        metrics = QFontMetricsF(face)
        painter.setFont(face)
        x, y = 0.0, rect.top() - HEADING
        titles = {curve.name: self.tr(TITLES[curve.name]) for curve in panel.curves}
        figures = {curve.name: average(curve) for curve in panel.curves}
        short = {name: self.tr(SHORT.get(name, TITLES[name])) for name in titles}
        wide, nothing = metrics.horizontalAdvance, dict.fromkeys(titles, "")
        for names, means in ((titles, figures), (titles, nothing), (short, nothing)):
            needed = sum(
                31 + wide(names[n]) + (7 + wide(means[n]) if means[n] else 0) for n in names
            )
            if needed - 16 <= rect.width():
                break
        for name, title in names.items():
            self._swatch(painter, name, x, y + HEADING / 2)
            x = self._word(painter, metrics, QPointF(x + 15, y), title, "text")
            if means[name]:
                x = self._word(painter, metrics, QPointF(x + 7, y), means[name], "muted")
            x += 16
        note = self._note(panel)
        if note and x + metrics.horizontalAdvance(note) <= rect.width():
            self._word(painter, metrics, QPointF(x, y), note, "muted")

    def _note(self, panel: Panel) -> str:
        if panel.relative:
            relative = self.tr("relative to the baseline")
            return self.tr("{0}, logarithmic").format(relative) if panel.log else relative
        return self.tr("logarithmic") if panel.log else ""

    def _swatch(self, painter: QPainter, name: str, x: float, y: float) -> None:
        style = STYLES.get(name, Qt.PenStyle.SolidLine)
        painter.setPen(QPen(theme().color(COLORS[name]), 2, style))
        painter.drawLine(QLineF(x, y, x + 10, y))

    def _word(
        self, painter: QPainter, metrics: QFontMetricsF, at: QPointF, text: str, token: str
    ) -> float:
        """Draw a word on top; return where it ends."""
        width = metrics.horizontalAdvance(text)
        tokens = theme()
        painter.fillRect(
            QRectF(at.x() - 2, at.y() + 1, width + 4, HEADING - 2), tokens.color("card")
        )
        painter.setPen(tokens.color(token))
        place = QRectF(at.x(), at.y(), width + 2, HEADING)
        write(painter, place, Qt.AlignmentFlag.AlignVCenter, text)
        return at.x() + width


def figure(name: str, value: float) -> str:
    """A quantity's value with its unit, as people read it."""
    if name == SCORING_TIME:
        return f"{milliseconds(value * 1e-6)} ms"
    if name == SCORING_BYTES:
        return f"{short_count(value)}B" if value >= 1e3 else f"{count(value)} B"
    return count(value)


def average(curve: Curve) -> str:
    """A curve's mean, and what part it is of the whole where there is one."""
    value = figure(curve.name, curve.average)
    return f"{value} ({percent(curve.average / curve.whole)})" if curve.whole else value


class WorkView(ChartView[WorkModel]):
    """How many tokens and senones the search has active, and how much is computed for it."""

    id = "work"
    title = "Work per frame"

    def __init__(self, axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(axis, parent)
        self.panels = PanelsItem(self.plot)
        self.headings = HeadingsItem(self.plot, self.panels)
        self.setMinimumHeight(120)

    def reduce(self, snapshot: Snapshot, columns: int) -> WorkModel:
        """Return minimum, maximum and mean count per pixel column."""
        return work_model(
            snapshot.session, snapshot.track, snapshot.cursor_frame, self.axis.visible, columns
        )

    def show_model(self, model: WorkModel | None) -> None:
        """Label the lanes' scales and hand the model to the item."""
        self.panels.set_model(model)
        if model is None:
            return
        height = float(self.plot.plot_size()[1])
        self.plot.set_height_range(0.0, height)
        labels = []
        rects = self.panels.panel_rects(model.panels)
        for panel, rect in zip(model.panels, rects, strict=True):
            unit = "×" if panel.relative else ""
            if rect.height() >= 22:
                labels.append((height - rect.bottom() + 3, short_count(panel.bottom) + unit))
            labels.append((height - rect.top() - 3, short_count(panel.top) + unit))
            one = float(panel.place(np.ones(1))[0]) * (rect.height() - 2)
            if panel.relative and 10 < one < rect.height() - 14:
                labels.append((height - rect.bottom() + one, "1×"))
        self.plot.set_ticks(labels)
        self.overlay.set_events(model.marks, model.boundaries)
        self.set_note(self.tr("per 10 ms frame · band: min–max, line: mean"))

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        super().apply_theme(tokens)
        self.panels.apply_theme(tokens)

    def readout(self, model: WorkModel, second: float) -> list[Line]:
        """Return the mean counts at a second of audio."""
        column = model.column_at(second)
        if column is None or not np.isfinite(model.curves[0].mean[column]):
            return []
        lines = [Line(clock(second, 2), self.tr("per frame"), strong=True)]
        for curve in model.curves:
            value = figure(curve.name, float(curve.mean[column]))
            lines.append(Line(self.tr(TITLES[curve.name]), value, COLORS[curve.name]))
        return lines

    def summary(self) -> str:
        """Return one sentence with the mean of every quantity."""
        model = self.model()
        if model is None or not model.panels:
            return self.tr("No work counts recorded yet.")
        parts = [f"{self.tr(TITLES[c.name])} {average(c)}" for c in model.curves]
        return self.tr("Mean per frame from {0} to {1}: {2}.").format(
            clock(model.first_s),
            clock(min(model.last_s, model.cursor_frame * FRAME_S)),
            ", ".join(parts),
        )

    def table(self) -> Table:
        """Return the visible range in up to `TABLE_ROWS` stretches: mean and greatest."""
        headers = [self.tr("from s"), self.tr("to s")]
        if self.snapshot is None:
            return headers, []
        first, last = self.axis.visible
        wanted = min(TABLE_ROWS, max(1, round((last - first) / FRAME_S)))
        model = self.reduce(self.snapshot, wanted)
        step = (last - first) / wanted
        for curve in model.curves:
            title = self.tr(TITLES[curve.name])
            if unit := UNITS.get(curve.name):
                title = f"{title}, {unit}"
            headers += [title, self.tr("{0}, max").format(title)]
        rows: list[list[object]] = []
        for row in range(wanted):
            if not model.panels or np.isnan(model.curves[0].mean[row]):
                continue
            start = first + row * step
            cells: list[object] = [f"{start:.2f}", f"{start + step:.2f}"]
            for curve in model.curves:
                cells += [f"{curve.mean[row]:.1f}", f"{curve.high[row]:.0f}"]
            rows.append(cells)
        return headers, rows
