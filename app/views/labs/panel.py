"""One panel of a lab's chart: its title and legend, axes with ticks and titles, levels and places, and the layers.

Categories whose names do not fit below each other's bars go down the left side, and the bars lie.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.style.plain_text import write
from app.style.theme import Tokens, font
from app.views.labs.layers import Layers, Place
from app.views.labs.ranges import Reach, reaches
from app.views.labs.series import Look, key_width, marks, named, paint_key
from pipelines.labs.chart import Bars, Chart, Gantt, Mark, StackedBars
from pipelines.labs.texts import figure

LINE = 15.0
"""Height of a line of small text."""

TITLE = 20.0
SMALL = 0.86
LABEL = 0.82
WIDEST_NAMES = 0.42
"""Share of the width that names of categories take on the left, at most."""

NAME_GAP = 7.0
"""Pixels between the names of categories on the left and the plot."""

BETWEEN = 6.0
"""Pixels between the names of neighbours below the plot."""

TICK_ROOM = 46.0
"""Pixels that a tick along x needs at least, with its label."""


class Panel:
    """Paints one panel into a rectangle."""

    def __init__(self, chart: Chart, looks: Mapping[str, Look], tokens: Tokens) -> None:
        self._chart, self._looks, self._tokens = chart, looks, tokens
        self._x, self._y = reaches(chart)

    def head(self, wide: float) -> float:
        """Pixels above the plot: title, legend, flags of places, the upright axis's title."""
        title = TITLE if self._chart.title else 0.0
        legend = len(self._keys(wide)) * (LINE + 2)
        flags = len(self._flags(QFontMetricsF(font(LABEL)), wide - 60)) * LINE
        return title + legend + flags + LINE + 7

    def paint(self, painter: QPainter, whole: QRectF, head: float) -> None:
        """Title, legend, axes, layers; the plot begins `head` below the top."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        top = whole.top()
        if self._chart.title:
            painter.setFont(font(0.95, strong=True))
            painter.setPen(self._tokens.color("text"))
            metrics = QFontMetricsF(painter.font())
            title = metrics.elidedText(
                self._chart.title, Qt.TextElideMode.ElideRight, whole.width()
            )
            write(
                painter,
                QRectF(whole.left(), top, whole.width(), 18),
                Qt.AlignmentFlag.AlignLeft,
                title,
            )
            top += TITLE
        self._legend(painter, QRectF(whole.left(), top, whole.width(), whole.height()))
        place = self._placed(whole.adjusted(0, head, 0, 0))
        self._axes(painter, place)
        painter.save()
        painter.setClipRect(place.area.adjusted(-4, -18, 4, 4))
        Layers(painter, place, self._looks, self._tokens).paint(self._chart)
        painter.restore()
        self._marks(painter, place)
        down, across = (self._x, self._y) if place.lying else (self._y, self._x)
        self._titles(painter, place, down, across)
        painter.restore()

    # -- legend ---------------------------------------------------------------------------------

    def _keys(self, wide: float) -> list[list[tuple[str, str, QRectF]]]:
        """Rows of the legend: (name, its text, its key from the left end); none where there is one series."""
        names = list(named(self._chart))
        if len(names) < 2:
            return []
        metrics = QFontMetricsF(font(SMALL))
        rows: list[list[tuple[str, str, QRectF]]] = [[]]
        x = 0.0
        for name in names:
            key = key_width(self._chart, name)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, wide - key - 6)
            width = key + 6 + metrics.horizontalAdvance(text)
            if rows[-1] and x + width > wide:
                rows.append([])
                x = 0.0
            rows[-1].append((name, text, QRectF(x, 0, key, LINE)))
            x += width + 14
        return rows

    def _legend(self, painter: QPainter, area: QRectF) -> None:
        for number, row in enumerate(self._keys(area.width())):
            for name, text, place in row:
                key = place.translated(area.left(), area.top() + number * (LINE + 2))
                paint_key(painter, key, self._chart, name, self._looks[name], self._tokens)
                painter.setFont(font(SMALL))
                painter.setPen(self._tokens.color("text"))
                write(
                    painter,
                    QRectF(key.right() + 5, key.top(), area.width(), LINE),
                    Qt.AlignmentFlag.AlignVCenter,
                    text,
                )

    # -- axes -----------------------------------------------------------------------------------

    @property
    def _gantt(self) -> bool:
        return any(isinstance(layer, Gantt) for layer in self._chart.layers)

    def _placed(self, area: QRectF) -> Place:
        """The plot within `area`, which leaves room for the labels of both axes."""
        metrics = QFontMetricsF(font(LABEL))
        lying = self._lies(metrics, area.width())
        down, across = (self._x, self._y) if lying else (self._y, self._x)
        names = [down.text(v) for v in down.ticks()]
        most = area.width() * WIDEST_NAMES
        if down.axis.categories:
            room = most - NAME_GAP + BETWEEN
            names = [line for name in names for line in _wrapped(metrics, name, room)]
        widest = max((metrics.horizontalAdvance(name) for name in names), default=0.0)
        left = min(widest + NAME_GAP + 1, most)
        lines = 1
        if across.axis.categories:
            room = (area.width() - left) / len(across.axis.categories)
            lines = max(len(_wrapped(metrics, n, room)) for n in across.axis.categories)
        below = LINE * (lines + 1) + 4
        plot = area.adjusted(left, 0, -12, -below)
        return Place(plot, self._x, self._y, area.left(), lying)

    def _lies(self, metrics: QFontMetricsF, wide: float) -> bool:
        """Whether bars lie, because the names of their categories do not fit below them in two lines."""
        names = self._x.axis.categories
        barred = any(isinstance(layer, Bars | StackedBars) for layer in self._chart.layers)
        if not names or not barred:
            return False
        room = (wide - 60) / len(names)
        return any(
            len(_wrapped(metrics, name, room)) > 2
            or max(metrics.horizontalAdvance(word) for word in name.split() or [""]) > room - 4
            for name in names
        )

    def _axes(self, painter: QPainter, place: Place) -> None:
        area, tokens = place.area, self._tokens
        painter.setFont(font(LABEL))
        metrics = QFontMetricsF(painter.font())
        down, across = (self._x, self._y) if place.lying else (self._y, self._x)
        rows = len(down.axis.categories)
        for value in down.ticks(max(3, int(area.height() / 26))):
            from_top = (value + 0.5) / rows if rows else 1.0 - down.place(value)
            y = area.top() + from_top * area.height()
            if not rows:
                painter.setPen(QPen(tokens.color("grid"), 1))
                painter.drawLine(QLineF(area.left(), y, area.right(), y))
            painter.setPen(tokens.color("text" if rows else "muted"))
            lines = [down.text(value)]
            room = area.left() - NAME_GAP - place.left
            if rows:
                most = int(area.height() / rows / LINE)
                lines = _elided(metrics, _wrapped(metrics, lines[0], room + BETWEEN), room, most)
            top = y - len(lines) * LINE / 2
            for i, line in enumerate(lines):
                box = QRectF(area.left() - NAME_GAP - 400, top + i * LINE, 400, LINE)
                write(
                    painter, box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, line
                )
        self._across(painter, place, across, metrics)
        painter.setPen(QPen(tokens.color("muted"), 1))
        painter.drawLine(QLineF(area.bottomLeft(), area.bottomRight()))

    def _across(
        self, painter: QPainter, place: Place, across: Reach, metrics: QFontMetricsF
    ) -> None:
        area, names = place.area, across.axis.categories
        room = area.width() / len(names) if names else area.width()
        end = -1e9
        for value in across.ticks(max(2, int(area.width() / TICK_ROOM))):
            x = area.left() + across.place(value) * area.width()
            lines = _wrapped(metrics, across.text(value), room) if names else [across.text(value)]
            half = max(metrics.horizontalAdvance(line) for line in lines) / 2
            if not names:
                painter.setPen(QPen(self._tokens.color("grid"), 1))
                painter.drawLine(QLineF(x, area.top(), x, area.bottom()))
            if x - half < end + 6:
                continue  # it would lie on the one before
            end = x + half
            painter.setPen(self._tokens.color("text" if names else "muted"))
            for i, line in enumerate(lines):
                box = QRectF(x - half - 20, area.bottom() + 3 + i * LINE, 2 * half + 40, LINE)
                write(painter, box, Qt.AlignmentFlag.AlignHCenter, line)

    def _titles(self, painter: QPainter, place: Place, down: Reach, across: Reach) -> None:
        """What both axes are: the upright one above the plot, the other below its right end."""
        area = place.area
        painter.setFont(font(LABEL))
        painter.setPen(self._tokens.color("muted"))
        if not down.axis.categories:
            wide = QFontMetricsF(painter.font()).horizontalAdvance(down.title) + 4
            box = QRectF(place.left, area.top() - LINE - 3, wide, LINE)
            painter.fillRect(box, self._tokens.color("card"))
            write(painter, box, Qt.AlignmentFlag.AlignLeft, down.title)
        lines = 1
        metrics = QFontMetricsF(painter.font())
        if across.axis.categories:
            room = area.width() / len(across.axis.categories)
            lines = max(len(_wrapped(metrics, n, room)) for n in across.axis.categories)
        wide = area.right() - place.left
        box = QRectF(place.left, area.bottom() + 3 + lines * LINE, wide, LINE)
        title = metrics.elidedText(across.title, Qt.TextElideMode.ElideLeft, wide)
        write(painter, box, Qt.AlignmentFlag.AlignRight, title)

    # -- levels and places ----------------------------------------------------------------------

    def _flags(self, metrics: QFontMetricsF, wide: float) -> list[list[tuple[Mark, float]]]:
        """The places on x by rows of their flags: (mark, share of the width); none lies on another."""
        rows: list[list[tuple[Mark, float]]] = []
        ends: list[float] = []
        lying = self._lies(metrics, wide)
        reach = self._x
        for mark in sorted(marks(self._chart), key=lambda m: m.value):
            if mark.on != "x" or lying:
                continue
            share = reach.place(mark.value)
            half = metrics.horizontalAdvance(mark.text) / 2 / max(wide - 60, 1.0) + 0.01
            begin = min(max(share - half, 0.0), 1.0 - 2 * half)
            row = next((i for i, end in enumerate(ends) if end <= begin), len(ends))
            if row == len(ends):
                ends.append(0.0)
                rows.append([])
            ends[row] = begin + 2 * half
            rows[row].append((mark, share))
        return rows

    def _marks(self, painter: QPainter, place: Place) -> None:
        painter.setFont(font(LABEL))
        metrics = QFontMetricsF(painter.font())
        rows = self._flags(metrics, place.area.width() + 60)
        flags = [(mark, share, i) for i, row in enumerate(rows) for mark, share in row]
        for mark, share, row in flags:
            self._pole(painter, place, mark, share, row)
        for mark, share, row in flags:
            self._flag(painter, place, mark, share, row)
        taken: list[QRectF] = []
        for mark in marks(self._chart):
            if mark.on == "y":
                self._level(painter, place, mark, taken)

    def _pole(self, painter: QPainter, place: Place, mark: Mark, share: float, row: int) -> None:
        """The line at a place on x, up to its flag."""
        area = place.area
        x = area.left() + share * area.width()
        self._band(painter, place, mark)
        painter.setPen(QPen(self._tokens.color("muted"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x, area.top() - LINE * (row + 1) - 2, x, area.bottom()))

    def _flag(self, painter: QPainter, place: Place, mark: Mark, share: float, row: int) -> None:
        """The text at a place on x, over the lines of those in higher rows."""
        area = place.area
        wide = QFontMetricsF(painter.font()).horizontalAdvance(mark.text) + 6
        x = area.left() + share * area.width()
        left = min(max(x - wide / 2, area.left()), area.right() - wide)
        box = QRectF(left, area.top() - LINE * (row + 2) - 2, wide, LINE)
        painter.fillRect(box, self._tokens.color("card"))
        painter.setPen(self._tokens.color("muted"))
        write(painter, box, Qt.AlignmentFlag.AlignCenter, mark.text)

    def _level(self, painter: QPainter, place: Place, mark: Mark, taken: list[QRectF]) -> None:
        area, tokens = place.area, self._tokens
        self._band(painter, place, mark)
        painter.setFont(font(LABEL))
        text = mark.text
        size = QSizeF(QFontMetricsF(painter.font()).horizontalAdvance(text) + 6, LINE)
        pen = QPen(tokens.color("text"), 1.2, Qt.PenStyle.DashLine)
        if place.lying:
            x = area.left() + place.y.place(mark.value) * area.width()
            line = QLineF(x, area.top() - 2, x, area.bottom())
            corner = QPointF(min(x + 3, area.right() - size.width()), area.top() - LINE - 2)
            step = QPointF(0, -LINE)
        else:
            y = area.bottom() - place.y.place(mark.value) * area.height()
            line = QLineF(area.left(), y, area.right(), y)
            above = y - LINE - 1 >= area.top() - LINE
            corner = QPointF(area.right() - size.width(), y - LINE - 1 if above else y + 1)
            step = QPointF(-size.width() - 8, 0)
        painter.setPen(pen)
        painter.drawLine(line)
        box = QRectF(corner, size)
        while any(box.intersects(other) for other in taken) and len(taken) < 8:
            box.translate(step)
        taken.append(box)
        ground = QColor(tokens.color("card"))
        ground.setAlpha(215)
        painter.fillRect(box, ground)
        painter.setPen(tokens.color("text"))
        write(painter, box, Qt.AlignmentFlag.AlignCenter, text)

    def _band(self, painter: QPainter, place: Place, mark: Mark) -> None:
        """Between both ends of a mark that has two."""
        if mark.until is None:
            return
        area, reach = place.area, place.x if mark.on == "x" else place.y
        a, b = sorted((reach.place(mark.value), reach.place(mark.until)))
        if (mark.on == "x") != place.lying:
            rect = QRectF(
                area.left() + a * area.width(), area.top(), (b - a) * area.width(), area.height()
            )
        else:
            rect = QRectF(
                area.left(),
                area.bottom() - b * area.height(),
                area.width(),
                (b - a) * area.height(),
            )
        ground = QColor(self._tokens.color("accent"))
        ground.setAlpha(36)
        painter.fillRect(rect, ground)


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


def _wrapped(metrics: QFontMetricsF, text: str, room: float) -> list[str]:
    """The words of a text in lines that leave BETWEEN of `room` free, as far as words allow."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= room - BETWEEN:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines or [""]


def _elided(metrics: QFontMetricsF, lines: list[str], room: float, most: int) -> list[str]:
    """At most so many of the lines of a text, at least one; the last has the rest, and of what is too wide its ends."""
    kept = max(1, most) - 1
    lines = [*lines[:kept], " ".join(lines[kept:])] if len(lines) > kept + 1 else lines
    return [metrics.elidedText(line, Qt.TextElideMode.ElideMiddle, room) for line in lines]
