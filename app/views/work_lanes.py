"""The lanes of the work per frame as plot items: their curves, which scroll, and their headings, which stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.style.plain_text import write
from app.style.theme import font, theme
from app.views.columns import column_grid
from app.views.painting import Still, bars, blit, is_vector, polyline, raster_scale
from app.views.plot import TimePlot
from app.views.plot_area import PixelItem
from app.views.raster import blended
from app.views.strips import Strips, between, opaque, uprights
from app.views.work_figures import average
from app.views.work_model import SCORING_TIME, Curve, Panel, WorkModel
from profiler.analysis.track import SCORING_BYTES
from profiler.arrays import F64, U32

BAND = 0.72
"""How far the band from least to greatest value is moved towards the card: a trick that takes turns fills a lane."""

WIDTHS_KEPT = 256
"""Texts of headings whose width is kept."""

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


class PanelsItem(PixelItem):
    """The lanes: upright strokes in the columns of pixels; in SVG and PDF, lines."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.canvas, z=0.0)
        self._strips = Strips()
        self.model: WorkModel | None = None

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model; None shows nothing."""
        self.model = model
        self.update()

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn."""
        area = self.boundingRect()
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, area.height() / max(1, len(panels)) / 2)
        each = (area.height() - len(panels) * (head + 2)) / max(1, len(panels))
        rects, top = [], 0.0
        for _ in panels:
            rects.append(QRectF(0, round(top + head), area.width(), round(each)))
            top += head + 2 + each
        return rects

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw every lane with its heading."""
        if self.model is None:
            return
        panels = self.model.panels
        rects = self.panel_rects(panels)
        for panel, rect in zip(panels, rects, strict=True):
            self._paint_panel(painter, panel, rect)
        if not is_vector(painter):
            self._paint_raster(painter, self.model, rects, area)
            return
        for panel, rect in zip(panels, rects, strict=True):
            for curve in reversed(panel.curves):
                self._paint_curve(painter, panel, curve, rect)

    def _paint_raster(
        self, painter: QPainter, model: WorkModel, rects: list[QRectF], area: QRectF
    ) -> None:
        """All curves, as upright strokes in the columns of pixels."""
        scale = raster_scale(painter)
        height = max(1, round(area.height() * scale))
        drawn = [
            (panel, curve, rect)
            for panel, rect in zip(model.panels, rects, strict=True)
            for curve in reversed(panel.curves)
        ]
        if not drawn:
            return
        columns = len(drawn[0][1].mean)
        first, width = column_grid(model.first_s, model.last_s, columns)
        # Per curve: least, greatest, mean, and the mean of the column before [curves, 4, columns].
        values = np.empty((len(drawn), 4, columns))
        for (_, curve, _), rows in zip(drawn, values, strict=True):
            rows[:3] = curve.low, curve.high, curve.mean
            rows[3, :1], rows[3, 1:] = curve.mean[:1], curve.mean[:-1]

        def draw(begin: int, end: int) -> U32:
            pixels = np.zeros((height, (end - begin) * scale), np.uint32)
            number = first + np.arange(begin, end)
            places = np.empty((4, len(drawn), end - begin))
            for at, (panel, _, rect) in enumerate(drawn):
                # Within its lane alone: the others have nothing to do with it.
                lane = QRectF(0, 0, rect.width(), rect.height())
                places[:, at] = heights_of(panel, lane, values[at, :, begin:end])
            low, high, mean, joined = places
            # The line joins each mean to the one before.
            joined = np.where(np.isfinite(joined), joined, mean)
            bands, lines = (
                zip(*between(start, stop, scale), strict=True)
                for start, stop in ((high, low), (joined, mean))
            )
            for (_, curve, rect), band, (top, bottom) in zip(drawn, bands, lines, strict=True):
                color = self._tokens.color(COLORS[curve.name]).name()
                within = pixels[round(rect.top() * scale) : round(rect.bottom() * scale)]
                uprights(within, *band, opaque(blended(color, self._tokens.card, BAND)), scale)
                if dashes := DASHES.get(curve.name):
                    bottom[number % sum(dashes) >= dashes[0]] = -1
                uprights(within, top, bottom, opaque(color), scale)
            return pixels

        key = tuple(
            (curve.name, panel.scale, rect.top(), rect.height()) for panel, curve, rect in drawn
        )
        shown = values.reshape(-1, columns).T
        self._strips.update((self._tokens.name, width, key), first, shown, height, scale, draw)
        blit(painter, area, self._strips)

    def _paint_panel(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        tokens = self._tokens
        painter.setPen(QPen(tokens.color("grid"), 1))
        for y in (rect.bottom(), rect.top()):
            painter.drawLine(QLineF(0, round(y) - 0.5, rect.width(), round(y) - 0.5))

    def _paint_curve(self, painter: QPainter, panel: Panel, curve: Curve, rect: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(curve.mean))
        if not len(there):
            return
        x = (there + 0.5) / len(curve.mean) * rect.width()
        values = np.stack([curve.low[there], curve.high[there], curve.mean[there]])
        low, high, mean = heights_of(panel, rect, values)
        color = self._tokens.color(COLORS[curve.name])
        painter.setPen(QPen(QColor(blended(color.name(), self._tokens.card, BAND)), 1))
        painter.drawPolyline(bars(x, high, low))
        painter.setPen(QPen(color, 1, STYLES.get(curve.name, Qt.PenStyle.SolidLine)))
        painter.drawPolyline(polyline(x, mean))


def heights_of(panel: Panel, rect: QRectF, values: F64) -> F64:
    """Pixel of each of some values of a curve, of any shape; NaN where there is none."""
    bottom, height = rect.bottom() - 1, rect.height() - 2
    return bottom - panel.scale.place(values) * height


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, panels: PanelsItem) -> None:
        super().__init__(plot.box, z=110.0)
        self._panels = panels
        self._model: WorkModel | None = None
        self._still = Still()
        self._face = font(0.92)
        self._wide = lru_cache(WIDTHS_KEPT)(QFontMetricsF(self._face).horizontalAdvance)

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model's figures; None shows nothing."""
        self._model = model
        self._still.drop()
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one heading per lane."""
        self._still.paint(painter, area, theme().name, self._paint_headings)

    def _paint_headings(self, painter: QPainter) -> None:
        model = self._model
        if model is None:
            return
        for panel, rect in zip(model.panels, self._panels.panel_rects(model.panels), strict=True):
            self._paint_heading(painter, panel, rect)

    def _paint_heading(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        painter.setFont(self._face)
        # The lanes reach further than what is seen of them.
        room, x, y = self.boundingRect().width(), 0.0, rect.top() - HEADING
        titles = {curve.name: self.tr(TITLES[curve.name]) for curve in panel.curves}
        figures = {curve.name: average(curve) for curve in panel.curves}
        short = {name: self.tr(SHORT.get(TITLES[name], TITLES[name])) for name in titles}
        wide, nothing = self._wide, dict.fromkeys(titles, "")
        for names, means in (
            (titles, figures),
            (short, figures),
            (titles, nothing),
            (short, nothing),
        ):
            needed = sum(
                31 + wide(names[n]) + (7 + wide(means[n]) if means[n] else 0) for n in names
            )
            if needed - 16 <= room:
                break
        note = self.tr("logarithmic") if panel.scale.log else ""
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
