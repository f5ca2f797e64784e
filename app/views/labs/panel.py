"""One panel of a lab's chart: its title and legend, axes with ticks and titles, levels and places, and the layers.

Categories whose names do not fit below each other's bars go down the left side, and the bars lie.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QFontMetricsF, QPen
from PySide6.QtWidgets import QWidget

from app.charts.still import LINE, StillPlot, Tick, small_metrics
from app.style.theme import font, theme
from app.views.labs.layers import Layers, Place, draw_signs
from app.views.labs.ranges import reaches
from app.views.labs.series import Look, line_of, marks, named
from pipelines.labs.chart import Bars, Chart, Line, Mark, StackedBars
from pipelines.labs.texts import figure

TITLE = 20.0
WIDEST_NAMES = 0.42
"""Share of the width that names of categories take on the left, at most."""

NAME_GAP = 6.0
"""Pixels between the names of categories on the left and the plot."""

RIGHT = 12.0
"""Pixels right of the plot: half of a label of its end."""

BETWEEN = 6.0
"""Pixels between the names of neighbours below the plot."""

TICK_ROOM = 46.0
"""Pixels that a tick along x needs at least, with its label."""

SWATCH, STRETCH = 10.0, 20.0
"""Pixels of the key of bars, and of that of a line, in the legend."""

AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class Panel(StillPlot):
    """Draws one panel."""

    def __init__(
        self, chart: Chart, looks: Mapping[str, Look], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.chart, self._looks = chart, looks
        self._x, self._y = reaches(chart)
        self.least_head = 0.0
        """Pixels above the plot, at least: the plots of a row begin at one height."""

    def head(self, wide: float) -> float:
        """Pixels above the plot: title, legend, flags of places, the upright axis's title."""
        title = TITLE if self.chart.title else 0.0
        legend = len(self._keys(wide)) * (LINE + 2)
        flags = len(self._flags(wide - 60)) * LINE
        return title + legend + flags + LINE + 7

    def build(self) -> None:
        """Title, legend, axes, levels and places, layers."""
        wide = float(self.width())
        if self.chart.title:
            face = font(0.95, strong=True)
            title = _elided(QFontMetricsF(face), self.chart.title, wide)
            self.text(title, QRectF(0, 0, wide, TITLE - 2), AT_LEFT, "text", face=face)
        place = self._placed(max(self.head(wide), self.least_head))
        for mark in marks(self.chart):
            self._band(place, mark)
        Layers(self, place, self._looks).draw(self.chart)
        self._mark_lines(place)
        self._mark_texts(place)
        self._legend(wide)

    # -- legend ---------------------------------------------------------------------------------

    def _keys(self, wide: float) -> list[list[tuple[str, str, QRectF]]]:
        """Rows of the legend: (name, its text, its key from the left end); none where there is one series."""
        names = list(named(self.chart))
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
                self.text(text, QRectF(key.right() + 5, key.top(), room, LINE), AT_LEFT, "text")

    def _key(self, place: QRectF, name: str) -> None:
        """What stands before a name: a swatch for bars, a stretch of line with its sign for lines."""
        line, look, tokens = line_of(self.chart, name), self._looks[name], theme()
        middle = place.center()
        if line is None:
            swatch = QRectF(place.left(), middle.y() - SWATCH / 2, SWATCH, SWATCH)
            self.bars([swatch], look.color(tokens), tokens.hatch_brush(look.category))
            return
        dashed = isinstance(line, Line) and line.dashed
        if not isinstance(line, Line) or line.joined:
            style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
            ends = [QPointF(place.left(), middle.y()), QPointF(place.right(), middle.y())]
            self.curve(ends, QPen(look.color(tokens), 2.0, style))
        if isinstance(line, Line) and not dashed:
            draw_signs(self, [middle], look)

    # -- axes -----------------------------------------------------------------------------------

    def _placed(self, head: float) -> Place:
        """Axes with their labels around the plot, and their titles."""
        metrics, wide = small_metrics(), float(self.width())
        lying = self._lies(metrics, wide)
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
        self.frame(area, ticks, along, (bool(rows), bool(columns)))
        if not rows:
            box = QRectF(0, area.top() - LINE - 3, metrics.horizontalAdvance(down.title) + 4, LINE)
            self.text(down.title, box, AT_LEFT, ground=255)
        title = _elided(metrics, across.title, area.right(), Qt.TextElideMode.ElideLeft)
        box = QRectF(0, area.bottom() + 3 + lines * LINE, area.right(), LINE)
        self.text(title, box, Qt.AlignmentFlag.AlignRight)
        return Place(area, self._x, self._y, lying)

    def _lies(self, metrics: QFontMetricsF, wide: float) -> bool:
        """Whether bars lie, because the names of their categories do not fit below them in two lines."""
        names = self._x.axis.categories
        barred = any(isinstance(layer, Bars | StackedBars) for layer in self.chart.layers)
        if not names or not barred:
            return False
        room = (wide - 60) / len(names)
        return any(
            _wrapped(metrics, name, room).count("\n") > 1
            or max(metrics.horizontalAdvance(word) for word in name.split() or [""]) > room - 4
            for name in names
        )

    # -- levels and places ----------------------------------------------------------------------

    def _flags(self, wide: float) -> list[list[tuple[Mark, float]]]:
        """The places on x by rows of their flags: (mark, share of the width); none lies on another."""
        rows: list[list[tuple[Mark, float]]] = []
        ends: list[float] = []
        metrics = small_metrics()
        lying = self._lies(metrics, wide)
        for mark in sorted(marks(self.chart), key=lambda m: m.value):
            if mark.on != "x" or lying:
                continue
            share = self._x.place(mark.value)
            half = metrics.horizontalAdvance(mark.text) / 2 / max(wide - 60, 1.0) + 0.01
            begin = min(max(share - half, 0.0), 1.0 - 2 * half)
            row = next((i for i, end in enumerate(ends) if end <= begin), len(ends))
            if row == len(ends):
                ends.append(0.0)
                rows.append([])
            ends[row] = begin + 2 * half
            rows[row].append((mark, share))
        return rows

    def _placed_flags(self, area: QRectF) -> list[tuple[Mark, float, float]]:
        """Each place on x, its pixel and the top of its flag."""
        rows = self._flags(area.width() + 60)
        return [
            (mark, area.left() + share * area.width(), area.top() - LINE * (row + 2) - 2)
            for row, found in enumerate(rows)
            for mark, share in found
        ]

    def _mark_lines(self, place: Place) -> None:
        area, tokens = place.area, theme()
        for _, x, top in self._placed_flags(area):
            pen = QPen(tokens.color("muted"), 1, Qt.PenStyle.DashLine)
            self.curve([QPointF(x, top + LINE), QPointF(x, area.bottom())], pen)
        for mark in marks(self.chart):
            if mark.on == "y":
                at = self._level(place, mark.value)
                ends = [QPointF(at.left(), at.top()), QPointF(at.right(), at.bottom())]
                self.curve(ends, QPen(tokens.color("text"), 1.2, Qt.PenStyle.DashLine))

    def _mark_texts(self, place: Place) -> None:
        """The texts of all marks where no other one and no figure lies."""
        area, metrics = place.area, small_metrics()
        for mark, x, top in self._placed_flags(area):
            wide = metrics.horizontalAdvance(mark.text) + 6
            left = min(max(x - wide / 2, area.left()), area.right() - wide)
            self.text(mark.text, QRectF(left, top, wide, LINE), ground=255)
        for mark in marks(self.chart):
            if mark.on != "y":
                continue
            at = self._level(place, mark.value)
            size = QSizeF(metrics.horizontalAdvance(mark.text) + 6, LINE)
            if place.lying:
                left = min(at.left() + 3, area.right() - size.width())
                boxes = [QRectF(QPointF(left, at.top() - LINE * n), size) for n in range(1, 4)]
            else:
                sides = (-LINE - 1, 1.0) if at.top() > area.top() + 1 else (1.0,)
                room = int(area.width() / (size.width() + 8))
                lefts = [area.right() - size.width() - n * (size.width() + 8) for n in range(room)]
                boxes = [
                    QRectF(QPointF(x, at.top() + side), size) for side in sides for x in lefts
                ] or [QRectF(QPointF(area.left(), at.top() + 1), size)]
            self.text(mark.text, self.free(boxes) or boxes[0], token="text", ground=215)

    def _level(self, place: Place, value: float) -> QRectF:
        """The line of a level, as a rectangle without width or without height."""
        at = place.at(0.0, value) if place.lying else place.at(self._x.low, value)
        if place.lying:
            return QRectF(at.x(), place.area.top() - 2, 0, place.area.height() + 2)
        return QRectF(place.area.left(), at.y(), place.area.width(), 0)

    def _band(self, place: Place, mark: Mark) -> None:
        """Between both ends of a mark that has two."""
        if mark.until is None:
            return
        area, color = place.area, theme().color("accent")
        color.setAlpha(36)
        reach = self._x if mark.on == "x" else self._y
        a, b = sorted((reach.place(mark.value), reach.place(mark.until)))
        if (mark.on == "x") != place.lying:
            rect = QRectF(area.left() + a * area.width(), area.top(), 0, area.height())
            rect.setWidth((b - a) * area.width())
        else:
            rect = QRectF(area.left(), area.bottom() - b * area.height(), area.width(), 0)
            rect.setHeight((b - a) * area.height())
        self.bars([rect], color)


def described(panel: Chart) -> str:
    """A panel in a sentence: what is drawn over what, and between which values."""
    x, y = reaches(panel)
    names = ", ".join(named(panel))
    over = (
        ", ".join(x.axis.categories)
        if x.axis.categories
        else (f"{figure(x.low, x.axis.unit)} to {figure(x.high, x.axis.unit)}")
    )
    ends = (
        ""
        if y.axis.categories
        else f" ({figure(y.low, y.axis.unit)} to {figure(y.high, y.axis.unit)})"
    )
    return f"{y.title}{ends} by {x.title} ({over}): {names}."


def _elided(
    metrics: QFontMetricsF,
    text: str,
    room: float,
    mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> str:
    return metrics.elidedText(text, mode, max(room, 1.0))


def _wrapped(metrics: QFontMetricsF, text: str, room: float, most: int | None = None) -> str:
    """The words of a text in lines that leave BETWEEN of `room` free, as far as words allow.

    With `most`, at most so many lines, at least one: the last has the rest, and of what is too wide its ends.
    """
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
