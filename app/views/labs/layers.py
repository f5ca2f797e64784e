"""The layers of a lab's chart as strokes of a painter: bars, stacks, lines, steps, Gantt blocks, marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from app.style.plain_text import write
from app.style.theme import Tokens, font
from app.views.labs.ranges import Reach
from app.views.labs.series import Look, paint_sign
from pipelines.labs.chart import Bars, Chart, Gantt, Line, StackedBars, Steps
from pipelines.labs.texts import PLAIN, figure

WIDTH = 0.76
"""Share of a category's room that its bars take together."""

WHISKERS = 40
"""Most points of a line that have an interval each; more have a band."""

SIGNED = 60
"""Most points of a line that have a sign each."""

BAND = 46
"""Alpha of a band."""

WIDEST_BAR = 64.0
"""Pixels: two bars in a wide chart are no slabs."""


@dataclass(frozen=True)
class Place:
    """Where the values of a panel lie. `left`: of the panel; `lying`: categories go down, values to the right."""

    area: QRectF
    x: Reach
    y: Reach
    left: float = 0.0
    lying: bool = False

    def at(self, x: float, y: float) -> QPointF:
        """The point of a pair of values."""
        across, up = self.x.place(x), self.y.place(y)
        if self.lying:
            return QPointF(
                self.area.left() + up * self.area.width(),
                self.area.top() + across * self.area.height(),
            )
        return QPointF(
            self.area.left() + across * self.area.width(),
            self.area.bottom() - up * self.area.height(),
        )

    @property
    def room(self) -> float:
        """Pixels of a category."""
        length = self.area.height() if self.lying else self.area.width()
        return length / max(1, len(self.x.axis.categories))

    def bar(self, category: float, side: float, wide: float, low: float, high: float) -> QRectF:
        """The rectangle of a bar whose middle is `side` pixels beside that of its category."""
        a, b = self.at(category, low), self.at(category, high)
        if self.lying:
            return QRectF(a.x(), a.y() + side - wide / 2, b.x() - a.x(), wide)
        return QRectF(a.x() + side - wide / 2, b.y(), wide, a.y() - b.y())


class Layers:
    """Paints the layers of one panel."""

    def __init__(
        self, painter: QPainter, place: Place, looks: Mapping[str, Look], tokens: Tokens
    ) -> None:
        self._painter, self._place = painter, place
        self._looks, self._tokens = looks, tokens

    def paint(self, panel: Chart) -> None:
        """All layers but the marks, in the order of the chart."""
        bars = [layer for layer in panel.layers if isinstance(layer, Bars)]
        for index, series in enumerate(bars):
            self._bars(series, index, len(bars))
        for layer in panel.layers:
            if isinstance(layer, StackedBars):
                self._stack(layer)
            elif isinstance(layer, Gantt):
                self._gantt(layer)
            elif isinstance(layer, Steps):
                self._steps(layer)
            elif isinstance(layer, Line):
                self._line(layer)

    def _bars(self, layer: Bars, index: int, of: int) -> None:
        place, floor = self._place, max(self._place.y.low, 0.0)
        wide = min(place.room * WIDTH / of, WIDEST_BAR)
        side = (index - (of - 1) / 2) * wide
        for category, value in enumerate(layer.values):
            if value is None:
                continue
            ends = sorted((floor, value))
            rect = place.bar(category, side, wide - min(2.0, 0.1 * wide), ends[0], ends[1])
            self._fill(rect, self._looks[layer.name])
            low, high = _ends(layer.low, layer.high, category)
            if low is not None and high is not None:
                self._whisker(category, side, low, high)
            self._value(rect, value, value if high is None else high, category, side, wide)

    def _value(
        self, rect: QRectF, value: float, top: float, category: int, side: float, wide: float
    ) -> None:
        """The figure above a bar, where it is not wider than the bar's room."""
        painter, place = self._painter, self._place
        unit = place.y.axis.unit
        text = figure(value, unit if unit in PLAIN or unit == "B" else "")
        painter.setFont(font(0.8))
        painter.setPen(self._tokens.color("text"))
        metrics = QFontMetricsF(painter.font())
        tip = place.at(category, max(top, value))
        if place.lying:
            if metrics.height() <= wide + 3:
                box = QRectF(tip.x() + 5, rect.center().y() - 8, 80, 16)
                write(painter, box, Qt.AlignmentFlag.AlignVCenter, text)
        elif metrics.horizontalAdvance(text) <= wide:
            box = QRectF(tip.x() + side - 40, tip.y() - 16, 80, 14)
            write(painter, box, Qt.AlignmentFlag.AlignCenter, text)

    def _whisker(self, category: float, side: float, low: float, high: float) -> None:
        place = self._place
        offset = QPointF(0, side) if place.lying else QPointF(side, 0)
        cap = QPointF(0, 3) if place.lying else QPointF(3, 0)
        a, b = place.at(category, low) + offset, place.at(category, high) + offset
        if QLineF(a, b).length() < 1.5:
            return
        self._painter.setPen(QPen(self._tokens.color("text"), 1.2))
        for line in (QLineF(a, b), QLineF(a - cap, a + cap), QLineF(b - cap, b + cap)):
            self._painter.drawLine(line)

    def _fill(self, rect: QRectF, look: Look) -> None:
        painter = self._painter
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.color(self._tokens))
        painter.drawRect(rect)
        painter.setBrush(self._tokens.hatch_brush(look.category))
        painter.drawRect(rect)

    def _stack(self, layer: StackedBars) -> None:
        place = self._place
        wide = min(place.room * WIDTH, WIDEST_BAR)
        count = len(layer.parts[0][1]) if layer.parts else 0
        for category in range(count):
            ground = place.y.low if place.y.log else 0.0
            total = 0.0
            for name, values in layer.parts:
                total += values[category]
                self._fill(
                    place.bar(category, 0.0, wide, max(ground, place.y.low), total),
                    self._looks[name],
                )
                ground = total
            self._value(
                place.bar(category, 0, wide, place.y.low, total), total, total, category, 0.0, wide
            )

    def _line(self, layer: Line) -> None:
        place, look = self._place, self._looks[layer.name]
        points = [
            (i, place.at(x, y))
            for i, (x, y) in enumerate(zip(layer.x, layer.y, strict=True))
            if y is not None
        ]
        if len(points) > WHISKERS:
            self._band(layer, look)
        else:
            color = QColor(look.color(self._tokens))
            color.setAlpha(170)
            for i, _ in points:
                low, high = _ends(layer.low, layer.high, i)
                if low is not None and high is not None:
                    self._painter.setPen(QPen(color, 1.2))
                    self._painter.drawLine(
                        QLineF(place.at(layer.x[i], low), place.at(layer.x[i], high))
                    )
        if layer.joined and len(points) > 1:
            style = Qt.PenStyle.DashLine if layer.dashed else Qt.PenStyle.SolidLine
            self._painter.setPen(QPen(look.color(self._tokens), 2.0, style))
            self._painter.setBrush(Qt.BrushStyle.NoBrush)
            self._painter.drawPolyline(QPolygonF([point for _, point in points]))
        if len(points) <= SIGNED and not layer.dashed:
            for _, point in points:
                paint_sign(self._painter, point, look, self._tokens)

    def _band(self, layer: Line, look: Look) -> None:
        place, upper, lower = self._place, [], []
        for i, x in enumerate(layer.x):
            low, high = _ends(layer.low, layer.high, i)
            if low is not None and high is not None:
                upper.append(place.at(x, high))
                lower.append(place.at(x, low))
        color = QColor(look.color(self._tokens))
        color.setAlpha(BAND)
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(color)
        self._painter.drawPolygon(QPolygonF([*upper, *reversed(lower)]))

    def _steps(self, layer: Steps) -> None:
        place, corners = self._place, []
        for i, (x, y) in enumerate(zip(layer.x, layer.y, strict=True)):
            if i:
                corners.append(place.at(x, layer.y[i - 1]))
            corners.append(place.at(x, y))
        self._painter.setPen(QPen(self._looks[layer.name].color(self._tokens), 2.0))
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.drawPolyline(QPolygonF(corners))

    def _gantt(self, layer: Gantt) -> None:
        painter, place = self._painter, self._place
        rows = max(1, len(place.y.axis.categories))
        height = place.area.height() / rows
        painter.setFont(font(0.78))
        metrics = QFontMetricsF(painter.font())
        for block in layer.blocks:
            left = place.area.left() + place.x.place(block.begin) * place.area.width()
            right = place.area.left() + place.x.place(block.end) * place.area.width()
            top = place.area.top() + block.row * height
            rect = QRectF(left, top + 0.14 * height, max(right - left, 0.6), 0.72 * height)
            self._fill(rect, self._looks[block.kind])
            if block.text and metrics.horizontalAdvance(block.text) <= rect.width() - 3:
                painter.setPen(self._tokens.color("card"))
                write(painter, rect, Qt.AlignmentFlag.AlignCenter, block.text)


def _ends(
    low: tuple[float | None, ...], high: tuple[float | None, ...], i: int
) -> tuple[float | None, float | None]:
    """The interval of the value at place `i`; None where there is none."""
    return (low[i] if i < len(low) else None), (high[i] if i < len(high) else None)
