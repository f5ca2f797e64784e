"""What is drawn over the stacked area of the cost view: the faint line of the 95 % quantile, and real time.

Real time is a dashed line where the scale reaches it; elsewhere a tag at the upper edge says how far off it is, so
that the data and not a limit far away decide the scale.
"""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.style.plain_text import write
from app.style.theme import Tokens, font, theme
from app.views.cost_model import REALTIME_MS, CostModel
from app.views.painting import Still, polyline
from app.views.plot import TimePlot
from app.views.plot_area import PixelItem
from app.views.scale import times
from app.views.stack import StackItem
from app.views.swatch import paint_spike

TAG_HEIGHT = 16.0
"""Pixels kept free above the area for the tag."""

BESIDE = 3
"""Pixels between a text at the right end and the cursor, which may stand there."""

FAINT = 0.6
"""Opacity of the line of the quantile."""


def realtime_text(model: CostModel) -> str:
    """How far real time is from the mean in view; empty without data."""
    if not math.isfinite(model.realtime_above):
        return ""
    text = QCoreApplication.translate("cost", "real time {0} higher")
    return text.format(times(model.realtime_above))


class QuantileItem(PixelItem):
    """The faint line: 95 % of the frames of a block lie below it."""

    def __init__(self, plot: TimePlot, stack: StackItem) -> None:
        super().__init__(plot.canvas, z=1.0)
        self._stack = stack

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one point per block."""
        model, data = self._stack.model, self._stack.data_area()
        if model is None or model.block_frames < 2:
            return
        there = np.flatnonzero(np.isfinite(model.p95_ms))
        if not len(there):
            return
        # One point in the middle of each block: columns of a block have the same value.
        starts = np.flatnonzero(np.diff(model.p95_ms[there], prepend=-1.0))
        middle = (there[starts] + np.append(there[starts[1:]], there[-1] + 1)) / 2
        # Whole columns are whole pixels: the line has the same pixels wherever it is scrolled to.
        x = middle * (data.width() / len(model.p95_ms))
        y = data.bottom() - model.scale.place(model.p95_ms[there[starts]]) * data.height()
        color = theme().color("muted")
        color.setAlphaF(FAINT)
        painter.setPen(QPen(color, 1))
        painter.drawPolyline(polyline(x, np.maximum(y, data.top() + 0.5)))


class RealTimeItem(PixelItem):
    """The line of real time or the tag that stands for it, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, stack: StackItem) -> None:
        super().__init__(plot.box, z=110.0)
        self._stack = stack
        self._still = Still()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw line and text, or the tag at the upper right."""
        model, data = self._stack.model, self._data_area()
        if model is None or data.height() < 2:
            return
        looks = (theme().name, realtime_text(model), model.realtime_shown, model.scale, data.top())
        self._still.paint(painter, area, looks, self._paint)

    def _data_area(self) -> QRectF:
        """As high as what scrolls below it."""
        data = self._stack.data_area()
        data.setWidth(self.boundingRect().width())
        return data

    def _paint(self, painter: QPainter) -> None:
        model, data, tokens = self._stack.model, self._data_area(), theme()
        assert model is not None
        painter.setFont(font(0.88))
        if not model.realtime_shown:
            self._paint_tag(painter, realtime_text(model), data, tokens)
            return
        place = float(model.scale.place(np.array([REALTIME_MS]))[0])
        y = round(data.bottom() - place * data.height()) + 0.5
        painter.setPen(QPen(tokens.color("danger"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(0, y, data.width(), y))
        text = QCoreApplication.translate("cost", "real time, RTF 1")
        self._paint_text(painter, text, y - 17, data.width(), tokens, "danger")

    def _paint_tag(self, painter: QPainter, text: str, data: QRectF, tokens: Tokens) -> None:
        if not text:
            return
        top = data.top() - TAG_HEIGHT
        left = self._paint_text(painter, text, top, data.width(), tokens, "muted")
        painter.fillRect(QRectF(left - 14, top, 13, TAG_HEIGHT - 1), tokens.color("card"))
        paint_spike(painter, left - 7, top + 5, tokens.color("danger"))

    def _paint_text(
        self, painter: QPainter, text: str, top: float, right: float, tokens: Tokens, ink: str
    ) -> float:
        """Write at the right end, on the card's colour; return where the text begins."""
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        place = QRectF(right - width - 4 - BESIDE, top, width + 4, TAG_HEIGHT - 1)
        painter.fillRect(place, tokens.color("card"))
        painter.setPen(tokens.color(ink))
        write(painter, place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        return place.left()
