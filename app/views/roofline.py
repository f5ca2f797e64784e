"""The roofline: how far each stage is from what the machine allows; below the stages, or alone in their place.

One dot per stage, sized by its share of the time; the bar next to it extends to the intensity of the kernel's
tiling. The roofs drawn and labelled are those of the stage explained above, over its own working set and operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QTransform,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.plain_text import describe, show_tip, write
from app.style.theme import font
from app.views.roofline_model import Point
from app.views.scale import percent
from app.views.themed import ThemedWidget

HEIGHT = 236
"""Pixels that the whole drawing takes at least; alone it takes all there is."""

WIDTHS_HIGH = 0.9
"""Height below the stages, at most, in widths: a roofline is read with both axes."""

ALONE_HIGH = 1.6
"""Height in place of the stages, at most, in widths: higher, every roof would look steep."""

LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 22.0, 32.0
"""Room for the axes' texts."""

PIECES = 6
"""Rectangles that stand for a text along a slope: one would keep names out of much that is free."""

UNBOUNDED = (1 << 24) - 1
"""Qt's greatest height of a widget (QWIDGETSIZE_MAX): no bound."""

TEXT = 15.0
"""Height of a line of text."""

NAMED = 12
"""Number of the most expensive stages that are labelled, where there is room."""

REACH = 10
"""Radius in pixels around a dot within which the mouse hits it."""

GROUP_COLOR = {"search": "search", "frontend": "frontend", "scoring": "accent"}


class Roofline(ThemedWidget):
    """Rate over intensity on logarithmic axes; a click on a dot chooses its stage."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._points: tuple[Point, ...] = ()
        self._marked: str | None = None
        self._threads = 1
        self._alone = False
        self.set_height(HEIGHT)

    def set_height(self, pixels: int | None, most: int = UNBOUNDED) -> None:
        """Take this height below other things, or all there is up to `most` (None): the card is named after it then."""
        self._alone = pixels is None
        self.setMinimumHeight(HEIGHT if pixels is None else pixels)
        self.setMaximumHeight(max(HEIGHT, most) if pixels is None else pixels)
        upright = QSizePolicy.Policy.Expanding if pixels is None else QSizePolicy.Policy.Fixed
        self.setSizePolicy(QSizePolicy.Policy.Expanding, upright)

    def show_points(self, points: Sequence[Point], marked: str | None, threads: int = 1) -> None:
        """Show these stages; the roofs are those of `marked`, or of the most expensive one, for so many threads."""
        if (tuple(points), marked, threads) == (self._points, self._marked, self._threads):
            return
        self._points, self._marked, self._threads = tuple(points), marked, threads
        describe(self, self.tr("Roofline"), self.sentence())
        self.update()

    @property
    def points(self) -> tuple[Point, ...]:
        """What is drawn."""
        return self._points

    @property
    def marked(self) -> Point | None:
        """The stage whose roof is drawn."""
        named = (point for point in self._points if point.name == self._marked)
        return next(named, self._points[0] if self._points else None)

    def sentence(self, point: Point | None = None) -> str:
        """Say where a stage (the marked one) is and which roof is above it."""
        point = point or self.marked
        if point is None:
            return ""
        limit = self.tr("arithmetic") if point.intensity > point.ridge else self.tr("bandwidth")
        text = self.tr(
            "{0}: {1} operations per byte, {2}op/s, {3} of what its {4} allows (ridge at {5})."
        )
        return text.format(
            point.name,
            f"{point.intensity:.3g}",
            short(point.rate),
            percent(point.rate / point.roof),
            limit,
            f"{point.ridge:.3g}",
        )

    # -- geometry ------------------------------------------------------------------

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)

    def _ranges(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Powers of ten at both ends of the axes."""
        xs = [x for p in self._points for x in (p.min_intensity, p.intensity)]
        ys = [y for p in self._points for y in (p.rate, p.roof)]
        if (marked := self.marked) is not None:
            xs.append(2 * marked.ridge)
            ys.append(marked.ceiling)
        return tuple(  # type: ignore[return-value]
            (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
            for values in (xs, ys)
        )

    def place(self, x: float, y: float) -> QPointF:
        """Position of an intensity and a rate in the drawing."""
        area, ((left, right), (low, high)) = self._area(), self._ranges()
        across = (math.log10(x) - left) / max(1, right - left)
        up = (math.log10(y) - low) / max(1, high - low)
        return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

    def point_at(self, position: QPointF) -> Point | None:
        """The stage under the mouse: the nearest dot within reach."""

        def away(point: Point) -> float:
            return QLineF(self.place(point.intensity, point.rate), position).length()

        near = min(self._points, key=away, default=None)
        return near if near is not None and away(near) <= REACH else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the stage that is clicked."""
        if (point := self.point_at(event.position())) is not None:
            self.chosen.emit(point.name)

    def event(self, event: QEvent) -> bool:
        """Tool tip of a dot: its figures."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            point = self.point_at(QPointF(event.pos()))
            show_tip(event.globalPos(), self.sentence(point) if point else "", self)
            return True
        return super().event(event)

    # -- drawing ---------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axes, roofs, dots and their names."""
        marked = self.marked
        if marked is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_axes(painter)
            self._paint_roof(painter, marked)
            for point in reversed(self._points):
                self._paint_point(painter, point, point is marked)
            # No name lies on a dot's bar.
            taken = [self._bar(point) for point in self._points]
            self._paint_roof_names(painter, marked, taken)
            self._paint_names(painter, marked, taken)

    def _text(self, painter: QPainter, area: QRectF, text: str, flags: Qt.AlignmentFlag) -> None:
        painter.setFont(font(0.85))
        painter.setPen(self._tokens.color("muted"))
        write(painter, area, flags, text)

    def _paint_axes(self, painter: QPainter) -> None:
        area, ((left, right), (low, high)) = self._area(), self._ranges()
        flags = Qt.AlignmentFlag
        grid = QPen(self._tokens.color("grid"), 1)
        for power in range(left, right + 1):
            x = area.left() + (power - left) / max(1, right - left) * area.width()
            painter.setPen(grid)
            painter.drawLine(QLineF(x, area.top(), x, area.bottom()))
            label = QRectF(x - 30, area.bottom() + 1, 60, TEXT)
            self._text(painter, label, f"{10.0**power:g}", flags.AlignCenter)
        for power in range(low, high + 1):
            y = area.bottom() - (power - low) / max(1, high - low) * area.height()
            painter.setPen(grid)
            painter.drawLine(QLineF(area.left(), y, area.right(), y))
            label = QRectF(0, y - TEXT / 2, area.left() - 5, TEXT)
            if power > low:  # the corner belongs to the other axis
                self._text(painter, label, rate(10.0**power), flags.AlignRight | flags.AlignVCenter)
        title = QRectF(0, 0, self.width(), 16)
        if not self._alone:
            painter.setFont(font(0.88, strong=True))
            painter.setPen(self._tokens.color("muted"))
            write(painter, title, flags.AlignLeft | flags.AlignTop, self.tr("ROOFLINE"))
        if (marked := self.marked) is not None:
            painter.setFont(font(0.85))
            metrics = QFontMetricsF(painter.font())
            of = self.tr("roofs of {0}").format(marked.name)
            of = metrics.elidedText(of, Qt.TextElideMode.ElideRight, title.width() - 84)
            self._text(painter, title, of, flags.AlignRight)
        below = QRectF(0, self.height() - TEXT, self.width() - RIGHT, TEXT)
        self._text(painter, below, self.tr("operations per byte"), flags.AlignRight)

    def _paint_roof(self, painter: QPainter, point: Point) -> None:
        (left, right), (low, _) = self._ranges()
        first = max(10.0**left, 10.0**low / point.bandwidth)
        corners = [
            self.place(first, first * point.bandwidth),
            self.place(point.ridge, point.ceiling),
            self.place(10.0**right, point.ceiling),
        ]
        painter.setPen(QPen(self._tokens.color("text"), 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(corners))
        painter.setPen(QPen(self._tokens.color("muted"), 1, Qt.PenStyle.DotLine))
        here = self.place(point.intensity, point.rate)
        painter.drawLine(QLineF(here, self.place(point.intensity, point.roof)))

    def _bar(self, point: Point) -> QRectF:
        """Around the line from the least intensity to the dot."""
        left = self.place(point.min_intensity, point.rate)
        here = self.place(point.intensity, point.rate)
        return QRectF(left, here).adjusted(0, -1, 0, 1)

    def _paint_point(self, painter: QPainter, point: Point, marked: bool) -> None:
        tokens = self._tokens
        color = tokens.color(GROUP_COLOR.get(point.group, "muted"))
        here = self.place(point.intensity, point.rate)
        painter.setPen(QPen(color, 1))
        painter.drawLine(QLineF(self.place(point.min_intensity, point.rate), here))
        radius = radius_of(point)
        fill = QColor(color)
        fill.setAlpha(255 if marked else 150)
        painter.setBrush(fill)
        painter.setPen(QPen(tokens.color("danger" if point.defect else "card"), 1.5))
        painter.drawEllipse(here, radius, radius)

    def _paint_roof_names(self, painter: QPainter, point: Point, taken: list[QRectF]) -> None:
        """Label both roofs: what limits, how much of it there is, for how many threads."""
        painter.setFont(font(0.85))
        painter.setPen(self._tokens.color("muted"))
        metrics, area = QFontMetricsF(painter.font()), self._area()
        (left, _), (low, _) = self._ranges()
        threads = self.tr("1 thread")
        if self._threads != 1:
            threads = self.tr("{0} threads").format(self._threads)
        flat = self.tr("arithmetic {0}, {1}").format(rate(point.ceiling), threads)
        slope = self.tr("memory {0}, {1}").format(f"{short(point.bandwidth)}B/s", threads)
        ridge = self.place(point.ridge, point.ceiling)
        first = max(10.0**left, 10.0**low / point.bandwidth)
        start = self.place(first, first * point.bandwidth)
        wide = metrics.horizontalAdvance(flat) + 2
        for top in (ridge.y() - TEXT - 1, ridge.y() + 2):
            box = QRectF(area.right() - wide, top, wide, TEXT)
            if area.contains(box):
                self._write_on_card(painter, box, flat)
                taken.append(box)
                break
        wide = metrics.horizontalAdvance(slope) + 2
        line = QLineF(start, ridge)
        if line.length() > wide + 8:
            taken += self._write_along(painter, line, slope, wide)
            return
        # Too short a slope for its text: above it, where no stage can be.
        box = QRectF(area.left() + 2, ridge.y() - TEXT - 1, wide, TEXT)
        while any(box.intersects(other) for other in taken):
            box.translate(0, -TEXT)
        if area.contains(box):
            self._write_on_card(painter, box, slope)
            taken.append(box)

    def _write_along(self, painter: QPainter, line: QLineF, text: str, wide: float) -> list[QRectF]:
        """Write above a rising line; return upright rectangles that the text lies in, piece by piece."""
        turned = QTransform().translate(line.center().x(), line.center().y())
        turned.rotate(-line.angle())
        painter.save()
        painter.setTransform(turned, True)
        write(
            painter,
            QRectF(-wide / 2, -TEXT - 1, wide, TEXT),
            Qt.AlignmentFlag.AlignCenter,
            text,
        )
        painter.restore()
        each = wide / PIECES
        pieces = (QRectF(-wide / 2 + i * each, -TEXT, each, TEXT - 2) for i in range(PIECES))
        return [turned.mapRect(piece) for piece in pieces]

    def _write_on_card(self, painter: QPainter, box: QRectF, text: str) -> None:
        ground = self._tokens.color("card")
        ground.setAlpha(200)
        painter.fillRect(box, ground)
        write(painter, box, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_names(self, painter: QPainter, marked: Point, taken: list[QRectF]) -> None:
        painter.setFont(font(0.85))
        for point, name, box in self.names(marked, taken):
            painter.setPen(self._tokens.color("text" if point is marked else "muted"))
            write(painter, box, Qt.AlignmentFlag.AlignVCenter, name)

    def names(self, marked: Point, taken: list[QRectF]) -> list[tuple[Point, str, QRectF]]:
        """Names of the marked stage and the most expensive ones where there is room, which `taken` has less of then.

        A name nearer to another point than to its own would be taken for that one's.
        """
        metrics = QFontMetricsF(font(0.85))
        dots = [self.place(point.intensity, point.rate) for point in self._points]
        found = []
        for point in [marked, *(p for p in self._points[:NAMED] if p is not marked)]:
            name = point.name.partition(".")[2] or point.name
            here = self.place(point.intensity, point.rate)
            width, beside = metrics.horizontalAdvance(name) + 2, radius_of(point) + 4
            for x, y in (
                (here.x() + beside, here.y() - TEXT / 2),
                (here.x() - width / 2, here.y() - 11 - TEXT),
                (here.x() - width / 2, here.y() + 11),
                (here.x() + 4, here.y() + 9),
                (here.x() + 4, here.y() - 9 - TEXT),
                (here.x() - beside - width, here.y() - TEXT / 2),
                (here.x() - 4 - width, here.y() + 9),
                (here.x() - 4 - width, here.y() - 9 - TEXT),
            ):
                box = QRectF(x, y, width, TEXT)
                own = distance(box, here)
                if any(distance(box, dot) <= own for dot in dots if dot != here):
                    continue
                if self._area().contains(box) and not any(box.intersects(t) for t in taken):
                    taken.append(box)
                    found.append((point, name, box))
                    break
        return found


def radius_of(point: Point) -> float:
    """Radius of a stage's dot in pixels: its area grows with the share of the time."""
    return 2.5 + 7.0 * math.sqrt(min(point.share or 0.0, 1.0))


def distance(box: QRectF, point: QPointF) -> float:
    """Pixels from a point to the nearest one of a box; 0 within."""
    across = max(box.left() - point.x(), 0.0, point.x() - box.right())
    down = max(box.top() - point.y(), 0.0, point.y() - box.bottom())
    return math.hypot(across, down)


def short(value: float) -> str:
    """Three figures and the prefix of a unit, set off: 27 G, 1 T, 850 (with a space at the end)."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.3g} "


def rate(value: float) -> str:
    """Operations per second: 104 Gop/s."""
    return f"{short(value)}op/s"
