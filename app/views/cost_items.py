"""What lies in the cost plot: the stacked area with its grid, the faint line of the 95 % quantile, real time.

Real time is a dashed line where the scale reaches it; elsewhere a tag at the upper edge says how far off it is, so
that the data and not a limit far away decide the scale.
"""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.charts.items import Curve, Levels, PixelItem, hair
from app.charts.pixels import Stills, still_scale
from app.charts.scale import times
from app.charts.stack import Stack
from app.charts.swatch import paint_spike
from app.charts.time_plot import TimePlot
from app.style.plain_text import write
from app.style.theme import font, theme
from app.views.cost_model import LAYERS, OWN, REALTIME_MS, CostModel

TAG_HEIGHT = 16.0
"""Pixels kept free above the area for the tag."""

BESIDE = 3
"""Pixels between a text at the right end and the cursor, which may stand there."""

FAINT = 0.6
"""Opacity of the line of the quantile."""


def realtime_text(model: CostModel) -> str:
    """How far real time is from the mean of the scope; empty without data."""
    if not math.isfinite(model.realtime_above):
        return ""
    text = QCoreApplication.translate("cost", "real time {0} higher")
    return text.format(times(model.realtime_above))


class CostItems:
    """The items of the cost plot."""

    def __init__(self, plot: TimePlot) -> None:
        self.model: CostModel | None = None
        self._grid = Levels(plot)
        self.stack = Stack(plot, LAYERS)
        self.other_programs = True
        """Whether their time is drawn, as a cap."""
        self.p95 = Curve(plot, z=1.0)
        self.labels = CostLabels(plot)

    def set_hatched(self, on: bool) -> None:
        self.stack.hatched = on
        self.set_model(self.model, self.labels.band)

    def set_model(self, model: CostModel | None, band: float) -> None:
        """Show another model (None: nothing), with `band` pixels left free at the top."""
        self.model = model
        self.labels.set_model(model, band)
        if model is None:
            self.stack.show_nothing()
            self._grid.show_levels(np.empty(0))
            self.p95.show_points(np.empty(0), np.empty(0))
            return
        faint = theme().color("muted")
        faint.setAlphaF(FAINT)
        self.p95.setPen(hair(faint))
        self._grid.show_levels(model.scale.place(np.array(model.scale.ticks())))
        columns = len(model.mean_ms)
        self._show_quantile(model, model.first_s, (model.last_s - model.first_s) / columns)
        shown = model.mean_ms
        if not self.other_programs:
            shown = shown.copy()
            shown[:, OWN:] *= 0.0
        self.stack.show_layers(shown, model.scale, model.first_s, model.last_s)

    def _show_quantile(self, model: CostModel, first_s: float, width: float) -> None:
        """One point in the middle of each block: columns of a block have the same value. No line along the top edge."""
        there = np.flatnonzero(np.isfinite(model.p95_ms))
        if model.block_frames < 2 or not len(there):
            self.p95.show_points(np.empty(0), np.empty(0))
            return
        starts = np.flatnonzero(np.diff(model.p95_ms[there], prepend=-1.0))
        middle = (there[starts] + np.append(there[starts[1:]], there[-1] + 1)) / 2
        values = model.p95_ms[there[starts]]
        above = values > model.scale.top
        along_the_top = above & np.append(above[1:], False)
        self.p95.show_points(first_s + middle * width, model.scale.place(values), ~along_the_top)


class CostLabels(PixelItem):
    """The line of real time or the tag that stands for it, and marks of what the scale cuts off."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=110.0)
        self._model: CostModel | None = None
        self._stills = Stills()
        self._wide: dict[str, int] = {}
        self.band = 0.0

    def set_model(self, model: CostModel | None, band: float) -> None:
        """Show another model (None: nothing), whose area begins `band` pixels below the top."""
        self._model, self.band = model, band

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw line and text, or the tag at the upper right."""
        model, tokens = self._model, theme()
        data = area.adjusted(0, min(self.band, max(0.0, area.height() - 1)), 0, 0)
        if model is None or data.height() < 2:
            return
        step = (model.last_s - model.first_s) / len(model.mean_ms)
        for column in model.spikes:
            x = self.x_of(model.first_s + (column + 0.5) * step)
            paint_spike(painter, x, data.top(), tokens.color("muted"))
        painter.setFont(font(0.88))
        if not model.realtime_shown:
            self._paint_tag(painter, realtime_text(model), data)
            return
        place = float(model.scale.place(np.array([REALTIME_MS]))[0])
        y = round(data.bottom() - place * data.height()) + 0.5
        painter.setPen(QPen(tokens.color("danger"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(0, y, data.width(), y))
        text = QCoreApplication.translate("cost", "real time, RTF 1")
        self._paint_text(painter, text, y - 17, data.width(), "danger")

    def _paint_tag(self, painter: QPainter, text: str, data: QRectF) -> None:
        if not text:
            return
        top = data.top() - TAG_HEIGHT
        left = self._paint_text(painter, text, top, data.width(), "muted", 14)
        paint_spike(painter, left + 7, top + 5, theme().color("muted"))

    def _paint_text(self, painter: QPainter, text: str, top: float, right: float, ink: str, indent: int = 0) -> float:
        """Write at the right end, on the card's colour, which begins so far left of it; return where that is."""
        if text not in self._wide:
            self._wide = {text: math.ceil(QFontMetricsF(painter.font()).horizontalAdvance(text)) + 4 + indent}
        wide = self._wide[text]
        place = QRectF(round(right - BESIDE) - wide, round(top), wide, TAG_HEIGHT - 1)

        def draw(into: QPainter) -> None:
            into.fillRect(place, theme().color("card"))
            into.setPen(theme().color(ink))
            write(into, place.adjusted(indent, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)

        self._stills.paint(painter, place, text, draw, still_scale(painter))
        return place.left()
