"""The layers of a lab's chart as items of a plot: colour, hatch and sign of each name, the tool tip of each value.

A name looks the same in all panels, and never differs from another in colour alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPen

from app.charts.still import LINE, Canvas, Spot, small_metrics
from app.style.theme import font, theme
from app.views.labs.ranges import Reach, values_of
from pipelines.labs.chart import Bars, Chart, Gantt, Layer, Line, Mark, Note, Values
from pipelines.labs.figures import PLAIN, figure

COLOURS = ("compute", "memory", "search", "transfer", "other_programs")
GREYS = ("frontend", "unexplained", "overhead")  # Where a panel has no colour left
RING = "ring"
SIGNS = (("o", 6.8), ("s", 6.2), ("t1", 8.0), ("d", 9.0), (RING, 6.8))  # Points of lines, with their sizes in pixels


class Look(NamedTuple):
    """The category whose colour and hatch a series takes, and the number of its sign (0…4)."""

    category: str
    sign: int

    def color(self, alpha: int = 255) -> QColor:
        return theme().color(self.category, alpha)


def looks(chart: Chart) -> Mapping[str, Look]:
    """How each name in the panels of a chart looks: alike in all of them, and unlike all others of its panels."""
    found: dict[str, Look] = {}
    for panel in (chart, *chart.beside):
        names = named(panel)
        mine = [found[name] for name in names if name in found]
        for name in (name for name in names if name not in found):
            known, here = ({look.category for look in looks} for looks in (found.values(), mine))
            wanted = [c for c in COLOURS if c not in known] + [c for c in (*COLOURS, *GREYS) if c not in here]
            signs = [n for n in range(len(SIGNS)) if n not in {look.sign for look in mine}]
            again = (*COLOURS, *GREYS)[len(mine) % (len(COLOURS) + len(GREYS))]
            found[name] = Look((wanted or [again])[0], (signs or [len(mine) % len(SIGNS)])[0])
            mine.append(found[name])
    return found


def named(panel: Chart) -> list[str]:
    found: dict[str, None] = {}
    for layer in panel.layers:
        if isinstance(layer, Gantt):
            found |= dict.fromkeys(block.kind for block in layer.blocks)
        elif isinstance(layer, Bars | Line):
            found[layer.name] = None
    return [*found]


def line_of(panel: Chart, name: str) -> Line | None:
    lines = (x for x in panel.layers if isinstance(x, Line) and x.name == name)
    return next(lines, None)


def marks(panel: Chart) -> list[Mark]:
    return [layer for layer in panel.layers if isinstance(layer, Mark)]


WIDTH = 0.76  # Share of a category's room that its bars take together
WHISKERS = 40  # Most points of a line that have an interval each; more have a band
SIGNED = 60  # Most points of a line that have a sign each
BAND = 46  # Alpha of a band
WIDEST_BAR = 64.0  # Pixels: two bars in a wide chart are no slabs
BEAM = 6.0  # Pixels of the end of a bar's interval
AROUND_POINT = QRectF(-4.0, -4.0, 8.0, 8.0)  # Of a line, which the mouse hits first
NOTE_GAP = 8.0  # Pixels between a place and its note


@dataclass(frozen=True)
class PanelArea:
    """Where the values of a panel lie. `lying`: categories go down, values to the right."""

    area: QRectF
    x: Reach
    y: Reach
    lying: bool = False

    def point(self, x: float, y: float) -> QPointF:
        across, up = self.x.place(x), self.y.place(y)
        if self.lying:
            across, up = up, 1.0 - across
        return QPointF(self.area.left() + across * self.area.width(), self.area.bottom() - up * self.area.height())

    @property
    def room(self) -> float:
        length = self.area.height() if self.lying else self.area.width()
        return length / max(1, len(self.x.axis.categories))

    def bar(self, category: float, side: float, wide: float, low: float, high: float) -> QRectF:
        half = QPointF(0, wide / 2) if self.lying else QPointF(wide / 2, 0)
        a, b = self.point(category, low), self.point(category, high)
        middle = half * (2 * side / wide)
        return QRectF(a + middle - half, b + middle + half).normalized()


class Layers:
    """Puts the layers of one panel into a canvas."""

    def __init__(self, canvas: Canvas, place: PanelArea, looks: Mapping[str, Look]) -> None:
        self._canvas, self._place, self._looks = canvas, place, looks

    def draw(self, panel: Chart) -> None:
        bars = [layer for layer in panel.layers if isinstance(layer, Bars)]
        aside = [series for series in bars if not series.stacked]
        for index, series in enumerate(aside):
            self._bars(series, index, len(aside))
        if stacked := [series for series in bars if series.stacked]:
            self._stack(stacked)
        for layer in sorted(panel.layers, key=lambda layer: isinstance(layer, Note)):
            if isinstance(layer, Gantt):
                self._gantt(layer)
            elif isinstance(layer, Line):
                self._line(layer)
            elif isinstance(layer, Note):
                self._note(layer)

    def _tell(self, layer: Layer, places: Sequence[QRectF]) -> None:
        rows = values_of(layer, self._place.x, self._place.y)
        for place, (name, at, value, interval) in zip(places, rows, strict=True):
            sentence = f"{name}, {at}: {value}"
            self._canvas.spots.append(Spot(place, f"{sentence} ({interval})" if interval else sentence))

    def _fill(self, rects: Sequence[QRectF], name: str) -> None:
        look = self._looks[name]
        self._canvas.bars(rects, look.color(), theme().hatch_brush(look.category))

    def _bars(self, layer: Bars, index: int, of: int) -> None:
        place, floor = self._place, max(self._place.y.low, 0.0)
        wide = min(place.room * WIDTH / of, WIDEST_BAR)
        side = (index - (of - 1) / 2) * wide
        aside = QPointF(0, side) if place.lying else QPointF(side, 0)
        rects, lines = [], []
        ends = dict(_intervals(layer.low, layer.high))
        for category, value in enumerate(layer.values):
            if value is None:
                continue
            rects.append(place.bar(category, side, wide - min(2.0, 0.1 * wide), floor, value))
            low, high = ends.get(category, (value, value))
            line = QLineF(place.point(category, low) + aside, place.point(category, high) + aside)
            if line.length() >= 1.5:
                lines.append(line)
            end, tip = (place.point(category, at) + aside for at in (value, max(value, high)))
            self._value(value, end, tip, wide)
        self._fill(rects, layer.name)
        self._canvas.intervals(lines, QPen(theme().color("text"), 1.2), BEAM)
        self._tell(layer, rects)

    def _value(self, value: float, end: QPointF, tip: QPointF, wide: float) -> None:
        """The figure beyond the tip of a bar's interval where it has room; within a lying bar that is too long."""
        unit = self._place.y.axis.unit
        text, face = figure(value, unit if unit in PLAIN or unit == "B" else ""), font(0.8)
        metrics = QFontMetricsF(face)
        room = metrics.horizontalAdvance(text)
        box = QRectF(tip.x() - room / 2 - 1, tip.y() - 16, room + 2, 14)
        if self._place.lying:
            box = QRectF(tip.x() + 5, tip.y() - 8, room + 2, 16)
            if metrics.height() > wide + 3:
                return
            if box.right() > self._canvas.rect.width():
                box.moveRight(end.x() - 4)
                self._canvas.text(text, box, token="card", face=face)
                return
        elif room > wide:
            return
        self._canvas.text(text, box, token="text", face=face, ground=200)

    def _stack(self, series: Sequence[Bars]) -> None:
        place = self._place
        wide = min(place.room * WIDTH, WIDEST_BAR)
        low = max(place.y.low, 0.0) if place.y.log else place.y.low
        tops = [0.0] * len(place.x.axis.categories)
        for layer in series:
            rects = []
            for category, value in enumerate(layer.values):
                if value is not None:
                    ground = max(tops[category], low)
                    tops[category] += value
                    rects.append(place.bar(category, 0.0, wide, ground, max(tops[category], ground)))
            self._fill(rects, layer.name)
            self._tell(layer, rects)
        for category, total in enumerate(tops):
            end = place.point(category, total)
            self._value(total, end, end, wide)

    def _line(self, layer: Line) -> None:
        canvas, place, look = self._canvas, self._place, self._looks[layer.name]
        points = [place.point(x, y) for x, y in zip(layer.x, layer.y, strict=True) if y is not None]
        intervals = _intervals(layer.low, layer.high)
        ends = [[place.point(layer.x[i], end) for end in interval] for i, interval in intervals]
        if len(points) > WHISKERS and ends:
            canvas.between([low for low, _ in ends], [high for _, high in ends], look.color(BAND))
        else:
            canvas.intervals([QLineF(low, high) for low, high in ends], QPen(look.color(170), 1.2))
        if layer.joined:
            style = Qt.PenStyle.DashLine if layer.dashed else Qt.PenStyle.SolidLine
            canvas.curve(points, QPen(look.color(), 2.0, style), steps=layer.steps)
        if points and len(points) <= SIGNED and not layer.dashed and not layer.steps:
            draw_signs(canvas, points, look)
        self._tell(layer, [AROUND_POINT.translated(point) for point in points])

    def _note(self, layer: Note) -> None:
        """Below its place or above it, within the plot, where no other text is."""
        area, at, metrics = self._place.area, self._place.point(layer.x, layer.y), small_metrics()
        lines = layer.text.split("\n")
        wide = max(metrics.horizontalAdvance(line) for line in lines) + 4
        high = LINE * len(lines)
        left = min(max(at.x() - wide / 2, area.left()), area.right() - wide)
        tops = (at.y() + NOTE_GAP, at.y() - NOTE_GAP - high)
        box = self._canvas.free(QRectF(left, top, wide, high) for top in tops)
        if box is not None:
            self._canvas.text(layer.text, box, token="text", ground=215)

    def _gantt(self, layer: Gantt) -> None:
        place, face = self._place, font(0.78)
        height = place.area.height() / max(1, len(place.y.axis.categories))
        metrics, kinds = QFontMetricsF(face), dict[str, list[QRectF]]()
        rects = []
        for block in layer.blocks:
            begin, end = (place.x.place(end) * place.area.width() for end in (block.begin, block.end))
            left, top = place.area.left() + begin, place.area.top() + (block.row + 0.14) * height
            rects.append(QRectF(left, top, max(end - begin, 0.6), 0.72 * height))
            kinds.setdefault(block.kind, []).append(rects[-1])
            if block.text and metrics.horizontalAdvance(block.text) <= rects[-1].width() - 3:
                self._canvas.text(block.text, rects[-1], token="card", face=face)
        for kind, those in kinds.items():
            self._fill(those, kind)
        self._tell(layer, rects)


def draw_signs(canvas: Canvas, points: Sequence[QPointF], look: Look) -> None:
    """Points of a line in the sign of their series; that of a ring is hollow."""
    symbol, size = SIGNS[look.sign]
    color, card, number = look.color(), theme().color("card"), len(points)
    if symbol == RING:
        canvas.signs(points, [size] * number, [color] * number, [card] * number, edge=1.6)
    else:
        canvas.signs(points, [size] * number, [card] * number, [color] * number, symbol, edge=0.8)


def _intervals(low: Values, high: Values) -> Iterator[tuple[int, tuple[float, float]]]:
    for i, (a, b) in enumerate(zip(low, high, strict=False)):
        if a is not None and b is not None:
            yield i, (a, b)
