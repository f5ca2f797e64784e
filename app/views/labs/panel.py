"""One panel of a lab's chart: its title and legend, axes with ticks and titles, levels and places, and the layers.

Categories whose names do not fit below each other's bars go down the left side, and the bars lie.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPen
from PySide6.QtWidgets import QWidget

from app.charts.still import LINE, StillPlot, Tick, small_metrics
from app.model.document import Drawing
from app.style.plain_text import AT_LEFT
from app.style.theme import font, theme
from app.views.labs.layers import Layers, Look, PanelArea, draw_signs, line_of, looks, marks, named
from app.views.labs.ranges import reaches
from pipelines.labs.chart import Bars, Chart, Mark
from pipelines.labs.figures import figure

TITLE = 20.0
FLAG = LINE + 7  # Pixels between the plot and the texts of places: the title of the upright axis is there
WIDEST_NAMES = 0.42  # Share of the width that names of categories take on the left, at most
NAME_GAP = 6.0  # Pixels between the names of categories on the left and the plot
RIGHT = 12.0  # Pixels right of the plot: half of a label of its end
BETWEEN = 6.0  # Pixels between the names of neighbours below the plot
TICK_ROOM = 46.0  # Pixels that a tick along x needs at least, with its label
SWATCH, STRETCH = 10.0, 20.0  # Pixels of the key of bars, and of that of a line, in the legend


def panel_of(drawing: Drawing) -> Panel:
    known = {name: Look(*look) for name, look in drawing.looks.items()}
    return Panel(drawing.chart, known or looks(drawing.chart))


class Panel(StillPlot):
    """Draws one panel."""

    def __init__(self, chart: Chart, looks: Mapping[str, Look], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.least_head = 0.0  # Pixels above the plot, at least: the plots of a row begin at one height
        self.show_chart(chart, looks)

    def show_chart(self, chart: Chart, looks: Mapping[str, Look]) -> None:
        self.chart, self._looks = chart, looks
        self._x, self._y = reaches(chart)
        self.rebuild()

    def head(self, wide: float) -> float:
        """Pixels above the plot: title, legend, flags of places, the upright axis's title."""
        title = TITLE if self.chart.title else 0.0
        legend = len(self._keys(wide)) * (LINE + 2)
        on = "y" if self._lies(wide) else "x"
        flags = any(mark.on == on for mark in marks(self.chart))
        return title + legend + (FLAG + LINE if flags else FLAG)

    def build(self) -> None:
        wide = float(self.width())
        if self.chart.title:
            face = font(0.95, strong=True)
            title = _elided(QFontMetricsF(face), self.chart.title, wide)
            self.canvas.text(title, QRectF(0, 0, wide, TITLE - 2), AT_LEFT, "text", face=face)
        place = self.place = self._placed(max(self.head(wide), self.least_head))
        self._bands(place)
        Layers(self.canvas, place, self._looks).draw(self.chart)
        self._marks(place)
        self._legend(wide)

    def _keys(self, wide: float) -> list[list[tuple[str, str, QRectF]]]:
        """Rows of the legend: (name, its text, its key from the left end); none where there is one series."""
        names = named(self.chart)
        if len(names) < 2:
            return []
        metrics = small_metrics()
        rows: list[list[tuple[str, str, QRectF]]] = [[]]
        x = 0.0
        for name in names:
            key = SWATCH if line_of(self.chart, name) is None else STRETCH
            text = _elided(metrics, name, wide - key - 8)
            width = key + 8 + metrics.horizontalAdvance(text)
            if rows[-1] and x + width > wide:
                rows.append([])
                x = 0.0
            rows[-1].append((name, text, QRectF(x, 0, key, LINE)))
            x += width + 14
        return rows

    def _legend(self, wide: float) -> None:
        top = TITLE if self.chart.title else 0.0
        for number, row in enumerate(self._keys(wide)):
            for name, text, place in row:
                key = place.translated(0, top + number * (LINE + 2))
                self._key(key, name)
                room = small_metrics().horizontalAdvance(text) + 3
                self.canvas.text(text, QRectF(key.right() + 5, key.top(), room, LINE), AT_LEFT, "text")

    def _key(self, place: QRectF, name: str) -> None:
        """What stands before a name: a swatch for bars, a stretch of line with its sign for lines."""
        line, look = line_of(self.chart, name), self._looks[name]
        middle = place.center()
        if line is None:
            swatch = QRectF(place.left(), middle.y() - SWATCH / 2, SWATCH, SWATCH)
            self.canvas.bars([swatch], look.color(), theme().hatch_brush(look.category))
            return
        if line.joined:
            style = Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine
            ends = [QPointF(place.left(), middle.y()), QPointF(place.right(), middle.y())]
            self.canvas.curve(ends, QPen(look.color(), 2.0, style))
        if not line.dashed and not line.steps:
            draw_signs(self.canvas, [middle], look)

    def _placed(self, head: float) -> PanelArea:
        """Axes with their labels around the plot, and their titles."""
        metrics, wide = small_metrics(), float(self.width())
        lying = self._lies(wide)
        down, across = (self._x, self._y) if lying else (self._y, self._x)
        rows, columns = len(down.axis.categories), len(across.axis.categories)
        most = wide * WIDEST_NAMES
        names = [down.text(value) for value in down.ticks()]
        if rows:
            names = [line for n in names for line in _wrapped(metrics, n, most - 1).split("\n")]
        left = NAME_GAP + 1 + max((metrics.horizontalAdvance(name) for name in names), default=0)
        left = min(left, most)
        room = (wide - left - RIGHT) / max(columns, 1)
        below = [_wrapped(metrics, n, room) if columns else n for n in across.axis.categories]
        lines = max((name.count("\n") + 1 for name in below), default=1)
        area = QRectF(0, 0, wide, self.height() - LINE * (lines + 1) - 4)
        area.setCoords(left, head, max(wide - RIGHT, left + 1), max(area.bottom(), head + 1))
        ticks: list[Tick] = []
        for value in down.ticks(max(3, int(area.height() / 26))):
            share = (value + 0.5) / rows if rows else 1.0 - down.place(value)
            text = down.text(value)
            if rows:
                most_lines = int(area.height() / rows / LINE)
                text = _wrapped(metrics, text, left - NAME_GAP, most_lines)
            ticks.append((area.top() + share * area.height(), text))
        along: list[Tick] = []
        end = -1e9
        for value in across.ticks(max(3, int(area.width() / TICK_ROOM))):
            x = area.left() + across.place(value) * area.width()
            text = _wrapped(metrics, across.text(value), room) if columns else across.text(value)
            half = max(metrics.horizontalAdvance(line) for line in text.split("\n")) / 2
            clear = x - half >= end + BETWEEN and x + half <= wide
            end = x + half if clear else end
            along.append((x, text if clear else ""))
        self.canvas.frame(area, ticks, along, (bool(rows), bool(columns)))
        if not rows:
            box = QRectF(0, area.top() - LINE - 3, metrics.horizontalAdvance(down.title) + 4, LINE)
            self.canvas.text(down.title, box, AT_LEFT, ground=255)
        title = _elided(metrics, across.title, area.right(), Qt.TextElideMode.ElideLeft)
        box = QRectF(0, area.bottom() + 3 + lines * LINE, area.right(), LINE)
        self.canvas.text(title, box, Qt.AlignmentFlag.AlignRight)
        return PanelArea(area, self._x, self._y, lying)

    def _lies(self, wide: float) -> bool:
        """Whether bars lie, because the names of their categories do not fit below them in two lines."""
        metrics = small_metrics()
        names = self._x.axis.categories
        room = (wide - 60) / max(len(names), 1)
        barred = any(isinstance(layer, Bars) for layer in self.chart.layers)
        return barred and any(
            _wrapped(metrics, name, room).count("\n") > 1
            or max(metrics.horizontalAdvance(word) for word in name.split() or [""]) > room - 4
            for name in names
        )

    def _ends(self, place: PanelArea, mark: Mark) -> tuple[bool, list[QPointF]]:
        """Whether a mark is upright, and where it lies: one place, or both ends of a band."""
        ends = [mark.value] if mark.until is None else [mark.value, mark.until]
        if mark.on == "x":
            return not place.lying, [place.point(end, self._y.low) for end in ends]
        return place.lying, [place.point(self._x.low, end) for end in ends]

    def _bands(self, place: PanelArea) -> None:
        color, area = theme().color("accent", 36), place.area
        for mark in marks(self.chart):
            upright, ends = self._ends(place, mark)
            band = QRectF(ends[0], ends[-1]).normalized()
            if upright:
                band.setCoords(band.left(), area.top(), band.right(), area.bottom())
            else:
                band.setCoords(area.left(), band.top(), area.right(), band.bottom())
            self.canvas.bars([band] if mark.until is not None else [], color)

    def _marks(self, place: PanelArea) -> None:
        """Lines and texts of all marks: above the plot, or along a level from its right end on."""
        area, metrics, tokens = place.area, small_metrics(), theme()
        top = area.top() - FLAG - LINE
        for mark in sorted(marks(self.chart), key=lambda m: m.value):
            upright, (at, *_) = self._ends(place, mark)
            wide = metrics.horizontalAdvance(mark.text) + 6
            if upright:
                left = min(max(at.x() - wide / 2, area.left()), self.width() - wide)
                boxes = [QRectF(left, top, wide, LINE)]
                boxes += [QRectF(left, area.top() + n * LINE, wide, LINE) for n in range(4)]
                ends = [QPointF(at.x(), top + LINE), QPointF(at.x(), area.bottom())]
            else:
                sides = (-LINE - 1, 1.0) if at.y() > area.top() + 1 else (1.0,)
                step = wide + 8
                lefts = [area.right() - wide - n * step for n in range(int(area.width() / step))]
                boxes = [QRectF(x, at.y() + side, wide, LINE) for side in sides for x in lefts]
                boxes += [QRectF(area.left(), at.y() + 1, wide, LINE)]
                ends = [QPointF(area.left(), at.y()), QPointF(area.right(), at.y())]
            token = "muted" if mark.on == "x" else "text"
            self.canvas.curve(ends, QPen(tokens.color(token), 1.1, Qt.PenStyle.DashLine))
            self.canvas.text(mark.text, self.canvas.free(boxes) or boxes[0], token=token, ground=215)


def described(panel: Chart) -> str:
    """A panel in a sentence: what is drawn over what, and between which values."""
    x, y = reaches(panel)
    ends = [f"{figure(on.low, on.axis.unit)} to {figure(on.high, on.axis.unit)}" for on in (x, y)]
    over = ", ".join(x.axis.categories) or ends[0]
    values = "" if y.axis.categories else f" ({ends[1]})"
    return f"{y.title}{values} by {x.title} ({over}): {', '.join(named(panel))}."


def _elided(
    metrics: QFontMetricsF, text: str, room: float, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
) -> str:
    return metrics.elidedText(text, mode, max(room, 1.0))


def _wrapped(metrics: QFontMetricsF, text: str, room: float, most: int | None = None) -> str:
    """The words in lines that leave BETWEEN of `room` free; with `most` of them, the last holds the rest, shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= room - (0 if most else BETWEEN):
            lines[-1] = longer
        else:
            lines.append(word)
    if most is not None:
        kept = max(1, most) - 1
        if len(lines) > kept + 1:
            lines = [*lines[:kept], " ".join(lines[kept:])]
        lines = [_elided(metrics, line, room, Qt.TextElideMode.ElideMiddle) for line in lines]
    return "\n".join(lines)
