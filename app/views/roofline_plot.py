"""The roofline: how far each stage is from what the machine allows; below the stages, or alone in their place.

One dot per stage, sized by its share of the time; the bar next to it extends to the intensity of the kernel's
tiling. The roofs drawn and labelled are those of the stage explained above, over its own working set and operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.scale import percent
from app.charts.themed import ThemedWidget
from app.style.plain_text import describe, show_tip, write
from app.style.theme import font
from app.views.roofline_model import Point, rate, short
from app.views.roofline_places import (
    FROM_EDGE,
    SHARES,
    TEXT,
    crosses,
    decades,
    distance,
    pieces,
    turned,
)

HEIGHT = 236
"""Pixels that the whole drawing takes at least; alone it takes all there is."""

WIDTHS_HIGH = 0.9
"""Height below the stages, at most, in widths: a roofline is read with both axes."""

ALONE_HIGH = 1.6
"""Height in place of the stages, at most, in widths: higher, every roof would look steep."""

LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 22.0, 32.0
"""Room for the axes' texts."""

UNBOUNDED = (1 << 24) - 1
"""Qt's greatest height of a widget (QWIDGETSIZE_MAX): no bound."""

NAMED = 12
"""Number of the most expensive stages that are labelled, where there is room."""

INK = 3
"""Pixels of a line of text above and below its letters."""

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
            # Some of both roofs, wherever the dots are.
            xs += [0.8 * marked.ridge, 2 * marked.ridge]
            ys.append(marked.ceiling)
        return decades(xs), decades(ys, FROM_EDGE)

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
            # Names of roofs have more places to go to than those of stages.
            self._paint_names(painter, marked, taken)
            taken += [self._dot(point) for point in self._points]
            self._paint_roof_names(painter, marked, taken)

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

    def _corners(self, point: Point) -> tuple[QPointF, QPointF, QPointF]:
        """Where a point's roofs begin, meet and end."""
        (left, right), (low, _) = self._ranges()
        first = max(10.0**left, 10.0**low / point.bandwidth)
        return (
            self.place(first, first * point.bandwidth),
            self.place(point.ridge, point.ceiling),
            self.place(10.0**right, point.ceiling),
        )

    def _paint_roof(self, painter: QPainter, point: Point) -> None:
        painter.setPen(QPen(self._tokens.color("text"), 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(self._corners(point)))
        painter.setPen(QPen(self._tokens.color("muted"), 1, Qt.PenStyle.DotLine))
        here = self.place(point.intensity, point.rate)
        painter.drawLine(QLineF(here, self.place(point.intensity, point.roof)))

    def _bar(self, point: Point) -> QRectF:
        """Around the line from the least intensity to the dot."""
        left = self.place(point.min_intensity, point.rate)
        here = self.place(point.intensity, point.rate)
        return QRectF(left, here).adjusted(0, -1, 0, 1)

    def _dot(self, point: Point) -> QRectF:
        """Around the dot itself."""
        radius = radius_of(point) + 1
        here = self.place(point.intensity, point.rate)
        return QRectF(here.x() - radius, here.y() - radius, 2 * radius, 2 * radius)

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
        """Label both roofs where nothing is `taken`: what limits, how much of it there is, for how many threads."""
        painter.setFont(font(0.85))
        painter.setPen(self._tokens.color("muted"))
        metrics, area = QFontMetricsF(painter.font()), self._area()
        threads = self.tr("1 thread")
        if self._threads != 1:
            threads = self.tr("{0} threads").format(self._threads)
        flat = self.tr("arithmetic {0}, {1}").format(rate(point.ceiling), threads)
        slope = self.tr("memory {0}, {1}").format(f"{short(point.bandwidth)}B/s", threads)
        start, ridge, _ = self._corners(point)
        above, *higher = (ridge.y() - TEXT - 1 - up for up in range(0, int(ridge.y()), 4))
        wide = metrics.horizontalAdvance(flat) + 2
        places = [QPointF(area.right() - wide, y) for y in (above, ridge.y() + 2, *higher)]
        self._write_where_free(painter, places, wide, flat, taken)
        wide = metrics.horizontalAdvance(slope) + 2
        line = QLineF(start, ridge)
        for share in SHARES:
            along = pieces(line, share, wide)
            if along and not any(piece.intersects(other) for piece in along for other in taken):
                self._write_along(painter, line, share, slope, wide)
                taken += along
                return
        # No room along the slope for its text: above it, where no stage can be.
        places = [QPointF(area.left() + 2, y) for y in (above, *higher)]
        self._write_where_free(painter, places, wide, slope, taken)

    def _write_along(
        self, painter: QPainter, line: QLineF, share: float, text: str, wide: float
    ) -> None:
        """Write above a rising line, around the point at a share of its length."""
        painter.save()
        painter.setTransform(turned(line, share), True)
        write(
            painter,
            QRectF(-wide / 2, -TEXT - 1, wide, TEXT),
            Qt.AlignmentFlag.AlignCenter,
            text,
        )
        painter.restore()

    def _write_where_free(
        self,
        painter: QPainter,
        places: Sequence[QPointF],
        wide: float,
        text: str,
        taken: list[QRectF],
    ) -> None:
        """Write at the first of these places for its upper left corner that is free."""
        for place in places:
            box = QRectF(place.x(), place.y(), wide, TEXT)
            if self._area().contains(box) and not any(box.intersects(other) for other in taken):
                self._write_on_card(painter, box, text)
                taken.append(box)
                return

    def _write_on_card(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Write over what crosses the text: a line of the grid shows through, a roof would strike it out."""
        ground = self._tokens.color("card")
        ground.setAlpha(255 if self._on_roof(box) else 200)
        painter.fillRect(box.adjusted(0, INK, 0, -INK), ground)
        write(painter, box, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_names(self, painter: QPainter, marked: Point, taken: list[QRectF]) -> None:
        painter.setFont(font(0.85))
        for point, name, box in self.names(marked, taken):
            painter.setPen(self._tokens.color("text" if point is marked else "muted"))
            self._write_on_card(painter, box, name)

    def away(self, point: Point, box: QRectF) -> float:
        """Pixels between a text and the nearer end of a point's bar: the edge of its dot, or the left end."""
        bar, box = self._bar(point), box.adjusted(0, INK, 0, -INK)
        dot = distance(box, self.place(point.intensity, point.rate)) - radius_of(point)
        return min(dot, distance(box, QPointF(bar.left(), bar.center().y())))

    def _on_roof(self, box: QRectF) -> bool:
        """Whether a roof goes through the letters of a text."""
        corners = () if self.marked is None else self._corners(self.marked)
        box = box.adjusted(0, INK, 0, -INK)
        return any(crosses(QLineF(*ends), box) for ends in pairwise(corners))

    def names(self, marked: Point, taken: list[QRectF]) -> list[tuple[Point, str, QRectF]]:
        """Names of the marked stage and the most expensive ones where there is room, which `taken` has less of then.

        A name nearer to another point than to its own would be taken for that one's. One through which a roof goes is
        the last resort.
        """
        metrics = QFontMetricsF(font(0.85))
        found = []
        for point in [marked, *(p for p in self._points[:NAMED] if p is not marked)]:
            name = point.name.partition(".")[2] or point.name
            here = self.place(point.intensity, point.rate)
            chosen: QRectF | None = None
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
                (self._bar(point).left() - 4 - width, here.y() - TEXT / 2),
            ):
                box = QRectF(x, y, width, TEXT)
                own = self.away(point, box)
                if any(self.away(other, box) < own for other in self._points if other != point):
                    continue
                if self._area().contains(box) and not any(box.intersects(t) for t in taken):
                    if not self._on_roof(box):
                        chosen = box
                        break
                    chosen = chosen or box
            if chosen is not None:
                taken.append(chosen)
                found.append((point, name, chosen))
        return found


def radius_of(point: Point) -> float:
    """Radius of a stage's dot in pixels: its area grows with the share of the time."""
    return 2.5 + 7.0 * math.sqrt(min(point.share or 0.0, 1.0))
