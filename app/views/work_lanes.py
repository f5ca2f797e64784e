"""The lanes of the work per frame as plot items: their curves, which scroll, and their headings, which stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.charts.items import Levels, PixelItem, RasterItem, bars, polyline
from app.charts.raster import between, blended, opaque, uprights
from app.charts.time_plot import TimePlot
from app.style.plain_text import write
from app.style.theme import font, theme
from app.views.work_figures import average
from app.views.work_model import SCORING_TIME, Panel, WorkModel
from app.views.work_model import Curve as WorkCurve
from profiler.analysis.lod.columns import column_grid
from profiler.analysis.track import SCORING_BYTES
from profiler.arrays import F64, U32

BAND = 0.72
"""How far the band from least to greatest value is moved towards the card: a trick that takes turns fills a lane."""

HEADING = 15
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

SHORT = {"senones scored": "scored", "active senones": "active", "components summed": "summed"}
"""Where there is little room."""

STYLES = {"scoring components": Qt.PenStyle.DotLine}
"""Several curves of a lane differ in their line as well as in colour."""

DASHES = {"scoring components": (1, 2)}
"""The same styles in pixels: columns drawn and columns left out."""


class PanelsItem(RasterItem):
    """The lanes: upright strokes in the columns of pixels; in SVG and PDF, lines."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot)
        self._plot = plot
        self._edges = Levels(plot)
        self._curves: list[_Drawn] = []
        self._first = 0
        """Number of the first column on the grid of all columns: dashes move with the data."""

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn, in pixels from the top of the plot."""
        width, height = self._plot.plot_size()
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, height / max(1, len(panels)) / 2)
        each = (height - len(panels) * (head + 2)) / max(1, len(panels))
        tops = (number * (head + 2 + each) + head for number in range(len(panels)))
        return [QRectF(0, round(top), width, round(each)) for top in tops]

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model; None shows nothing."""
        panels = () if model is None else model.panels
        height, rects = self._plot.plot_size()[1], self.panel_rects(panels)
        y = height - np.array([[round(r.bottom()), round(r.top())] for r in rects]).ravel()
        self._edges.show_levels(y.astype(np.float64))
        if model is None or not panels:
            self.show_nothing()
            return
        self._curves = [
            _Drawn(panel, curve, rect)
            for panel, rect in zip(panels, rects, strict=True)
            for curve in reversed(panel.curves)
        ]
        columns = len(self._curves[0].curve.mean)
        self._first, _ = column_grid(model.first_s, model.last_s, columns)
        self.show_columns(model.first_s, model.last_s, 0.0, float(height))

    def draw_pixels(self, height: int, scale: int) -> U32:
        """All curves, as upright strokes in the columns of pixels."""
        columns = len(self._curves[0].curve.mean)
        pixels = np.zeros((height, columns), np.uint32)
        number = self._first + np.arange(columns)
        for panel, curve, rect in self._curves:
            # Within its lane alone: the others have nothing to do with it.
            lane = QRectF(0, 0, rect.width(), rect.height())
            values = np.stack([curve.low, curve.high, curve.mean])
            low, high, mean = heights_of(panel, lane, values)
            # The line joins each mean to the one before.
            joined = np.append(mean[:1], mean[:-1])
            joined = np.where(np.isfinite(joined), joined, mean)
            within = pixels[round(rect.top() * scale) : round(rect.bottom() * scale)]
            color = theme().color(COLORS[curve.name]).name()
            band = opaque(blended(color, theme().card, BAND))
            uprights(within, *between(high, low, scale), band)
            top, bottom = between(joined, mean, scale)
            if dashes := DASHES.get(curve.name):
                bottom[number % sum(dashes) >= dashes[0]] = -1
            uprights(within, top, bottom, opaque(color))
        return pixels

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """Bands as strokes, means as lines."""
        for panel, curve, rect in self._curves:
            there = np.flatnonzero(np.isfinite(curve.mean))
            if not len(there):
                continue
            lane = rect.translated(0, place.top())
            x = place.left() + (there + 0.5) / len(curve.mean) * place.width()
            values = np.stack([curve.low[there], curve.high[there], curve.mean[there]])
            low, high, mean = heights_of(panel, lane, values)
            color = theme().color(COLORS[curve.name])
            painter.setPen(QPen(QColor(blended(color.name(), theme().card, BAND)), 1))
            painter.drawPolyline(bars(x, high, low))
            painter.setPen(QPen(color, 1, STYLES.get(curve.name, Qt.PenStyle.SolidLine)))
            painter.drawPolyline(polyline(x, mean))


class _Drawn(NamedTuple):
    panel: Panel
    curve: WorkCurve
    rect: QRectF


def heights_of(panel: Panel, rect: QRectF, values: F64) -> F64:
    """Pixel of each of some values of a curve, of any shape; NaN where there is none."""
    bottom, height = rect.bottom() - 1, rect.height() - 2
    return bottom - panel.scale.place(values) * height


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("WorkLanes", text)


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, panels: PanelsItem) -> None:
        super().__init__(plot, z=110.0)
        self._panels = panels
        self._model: WorkModel | None = None
        self._face = font(0.92)
        self._wide = QFontMetricsF(self._face).horizontalAdvance

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model's figures; None shows nothing."""
        self._model = model
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one heading per lane."""
        model = self._model
        if model is None:
            return
        for panel, rect in zip(model.panels, self._panels.panel_rects(model.panels), strict=True):
            self._paint_heading(painter, panel, rect)

    def _paint_heading(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        painter.setFont(self._face)
        # The lanes reach further than what is seen of them.
        room, x, y = self.boundingRect().width(), 0.0, rect.top() - HEADING
        titles = {curve.name: tr(TITLES[curve.name]) for curve in panel.curves}
        figures = {curve.name: average(curve) for curve in panel.curves}
        short = {name: tr(SHORT.get(TITLES[name], TITLES[name])) for name in titles}
        wide, nothing = self._wide, dict.fromkeys(titles, "")
        for names, means in (
            (titles, figures),
            (short, figures),
            (titles, nothing),
            (short, nothing),
        ):
            needed = sum(31 + wide(names[n]) + (7 + wide(means[n]) if means[n] else 0) for n in names)
            if needed - 16 <= room:
                break
        note = tr("logarithmic") if panel.scale.log else ""
        if needed + wide(note) > room:
            note = ""
        # Under all of it: a line between two words would look as if it struck one out.
        whole = min(needed - 16 + (16 + wide(note) if note else 0), room)
        ground = QRectF(-1, y + 1, whole + 4, HEADING - 2)
        painter.fillRect(ground, theme().color("card"))
        for name, title in names.items():
            self._swatch(painter, name, x, y + HEADING / 2)
            x = self._word(painter, QPointF(x + 15, y), title, "text")
            if means[name]:
                x = self._word(painter, QPointF(x + 7, y), means[name], "muted")
            x += 16
        if note:
            self._word(painter, QPointF(x, y), note, "muted")

    def _swatch(self, painter: QPainter, name: str, x: float, y: float) -> None:
        style = STYLES.get(name, Qt.PenStyle.SolidLine)
        painter.setPen(QPen(theme().color(COLORS[name]), 2, style))
        painter.drawLine(QLineF(x, y, x + 10, y))

    def _word(self, painter: QPainter, at: QPointF, text: str, token: str) -> float:
        """Draw a word; return where it ends."""
        width = self._wide(text)
        painter.setPen(theme().color(token))
        place = QRectF(at.x(), at.y(), width + 2, HEADING)
        write(painter, place, Qt.AlignmentFlag.AlignVCenter, text)
        return at.x() + width
