"""Work per frame: tokens, senones and Gaussians as small multiples over audio time.

Every quantity has a lane and a scale of its own, so that none is read against another's axis. A
column shows the range of its frames (a single dear frame stays visible) and their mean.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from app.playhead import Snapshot
from app.theme import Tokens, font, theme
from app.time_axis import TimeAxis
from app.views.chart import ChartView
from app.views.events import FRAME_S
from app.views.plot import PixelItem, TimePlot, bars, polyline
from app.views.raster import blended
from app.views.readout import Line
from app.views.scale import clock, count, short_count
from app.views.view import Table
from app.views.work_model import Curve, Lane, WorkModel, work_model

HEADING = 16
"""Pixels above each lane's curve for its name and figures."""

COLORS = {
    "tokens": "search",
    "senones asked": "frontend",
    "senones scored": "memory",
    "gaussians": "compute",
    "components": "compute",
}
"""Category whose colour a quantity's curve takes: the part of the cost that it drives."""

TITLES = {
    "tokens": "tokens",
    "senones asked": "senones asked for",
    "senones scored": "senones scored",
    "gaussians": "Gaussians evaluated",
    "components": "mixture components summed",
}

TABLE_ROWS = 200
"""Rows of the table twin: stretches of the visible range."""


class LanesItem(PixelItem):
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

    def lane_rects(self, lanes: int) -> list[QRectF]:
        """Where each lane's curve is drawn."""
        area = self.boundingRect()
        each = area.height() / max(1, lanes)
        head = min(HEADING, each / 2)
        return [
            QRectF(0, round(i * each + head), area.width(), round(each - head - 2))
            for i in range(lanes)
        ]

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw every lane with its heading."""
        if self.model is None:
            return
        lanes = self.model.lanes
        for lane, rect in zip(lanes, self.lane_rects(len(lanes)), strict=True):
            self._paint_lane(painter, lane, rect)

    def _paint_lane(self, painter: QPainter, lane: Lane, rect: QRectF) -> None:
        tokens = self._tokens
        painter.setPen(QPen(tokens.color("grid"), 1))
        for y in (rect.bottom(), rect.top()):
            painter.drawLine(QLineF(0, round(y) - 0.5, rect.width(), round(y) - 0.5))
        for curve in lane.curves:
            self._paint_curve(painter, lane, curve, rect)

    def _paint_curve(self, painter: QPainter, lane: Lane, curve: Curve, rect: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(curve.mean))
        if not len(there):
            return
        height = rect.height() - 2
        x = (there + 0.5) / len(curve.mean) * rect.width()
        low, high, mean = (
            rect.bottom() - 1 - lane.place(values[there]) * height
            for values in (curve.low, curve.high, curve.mean)
        )
        color = self._tokens.category[COLORS[curve.name]]
        painter.setPen(QPen(QColor(blended(color, self._tokens.card, 0.55)), 1))
        painter.drawPolyline(bars(x, high, low))
        painter.setPen(QPen(QColor(color), 1))
        painter.drawPolyline(polyline(x, mean))


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, lanes: LanesItem) -> None:
        super().__init__(plot.box, z=110.0)
        self._lanes = lanes

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one heading per lane."""
        model = self._lanes.model
        if model is None:
            return
        for lane, rect in zip(model.lanes, self._lanes.lane_rects(len(model.lanes)), strict=True):
            self._paint_heading(painter, lane, rect)

    def _paint_heading(self, painter: QPainter, lane: Lane, rect: QRectF) -> None:
        tokens = theme()
        face = font(0.92)
        metrics = QFontMetricsF(face)
        painter.setFont(face)
        x, y = 0.0, rect.top() - HEADING
        parts = [
            part
            for curve in lane.curves
            for part in (
                (None, COLORS[curve.name]),
                (self.tr(TITLES[curve.name]), "text"),
                (self.tr("mean {0}").format(count(curve.average)), "muted"),
            )
        ]
        if lane.log:
            parts.append((self.tr("logarithmic"), "muted"))
        for text, token in parts:
            if text is None:
                painter.fillRect(QRectF(x, y + HEADING / 2 - 1, 10, 2), tokens.color(token))
                x += 15
                continue
            painter.setPen(tokens.color(token))
            place = QRectF(x, y, rect.width() - x, HEADING)
            width = metrics.horizontalAdvance(text)
            painter.fillRect(QRectF(x - 2, y + 1, width + 4, HEADING - 2), tokens.color("card"))
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
            x += width + (8 if token == "text" else 18)


class WorkView(ChartView[WorkModel]):
    """How much the search holds and asks for, and how much is computed for it."""

    id = "work"
    title = "Work per frame"

    def __init__(self, axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(axis, parent)
        self.lanes = LanesItem(self.plot)
        self.headings = HeadingsItem(self.plot, self.lanes)
        self.setMinimumHeight(120)

    def reduce(self, snapshot: Snapshot, columns: int) -> WorkModel:
        """Return least, greatest and mean count per pixel column."""
        return work_model(
            snapshot.session, snapshot.track, snapshot.cursor_frame, self.axis.visible, columns
        )

    def show_model(self, model: WorkModel | None) -> None:
        """Label the lanes' scales and hand the model to the item."""
        self.lanes.set_model(model)
        if model is None:
            return
        height = float(self.plot.plot_size()[1])
        self.plot.set_height_range(0.0, height)
        labels = []
        rects = self.lanes.lane_rects(len(model.lanes))
        for lane, rect in zip(model.lanes, rects, strict=True):
            if rect.height() >= 22:
                labels.append((height - rect.bottom() + 3, short_count(lane.bottom)))
            labels.append((height - rect.top() - 3, short_count(lane.top)))
        self.plot.set_ticks(labels)
        self.overlay.set_events(model.marks, model.boundaries)
        self.set_note(self.tr("per 10 ms frame · band: least to greatest, line: mean"))

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        super().apply_theme(tokens)
        self.lanes.apply_theme(tokens)

    def readout(self, model: WorkModel, second: float) -> list[Line]:
        """Return the mean counts at a second of audio."""
        column = model.column_at(second)
        if column is None or not np.isfinite(model.curves[0].mean[column]):
            return []
        lines = [Line(clock(second, 2), self.tr("per frame"), strong=True)]
        for curve in model.curves:
            value = count(float(curve.mean[column]))
            lines.append(Line(self.tr(TITLES[curve.name]), value, COLORS[curve.name]))
        return lines

    def summary(self) -> str:
        """Return one sentence with the mean of every quantity."""
        model = self.model()
        if model is None or not model.lanes:
            return self.tr("No work counts recorded yet.")
        parts = [f"{self.tr(TITLES[c.name])} {count(c.average)}" for c in model.curves]
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
            headers += [title, self.tr("{0}, greatest").format(title)]
        rows: list[list[object]] = []
        for row in range(wanted):
            if not model.lanes or np.isnan(model.curves[0].mean[row]):
                continue
            start = first + row * step
            cells: list[object] = [f"{start:.2f}", f"{start + step:.2f}"]
            for curve in model.curves:
                cells += [f"{curve.mean[row]:.1f}", f"{curve.high[row]:.0f}"]
            rows.append(cells)
        return headers, rows
