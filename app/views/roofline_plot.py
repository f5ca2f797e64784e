"""The roofline: how far each stage is from what the machine allows.

One dot per stage, sized by its share of the time; the bar next to it extends to the intensity of the kernel's
tiling. The thick roofs are those of the marked stage, over its own working set and operations; the thin ones are the
levels of memory of the place where it works: the processor, or a device. In a comparison an arrow goes to each dot from
a ring: the same stage in the baseline, or on the other side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPen, QPolygonF, QTransform

from app.charts.still import LINE, StillPlot, distance, small_metrics
from app.style.plain_text import AT_LEFT, describe
from app.style.theme import theme
from app.views.roofline_model import Place, Point, rate
from app.views.stage_panel import group_color
from profiler.plain import percent, prefixed, speed

HEIGHT = 232  # Pixels that it takes at least
WIDTHS_HIGH = 1.6  # Height in widths, at most: higher, every roof would look steep
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 22.0, 32.0  # Room for the axes' texts
INK = 3  # Pixels of a line of text above and below its letters

FROM_EDGE = 0.15
"""Decades between the lower end of the axis of rates and a dot: one upon the edge has no room for its name."""

SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65, 0.25, 0.75, 0.2, 0.8)
"""Of the slope's length, where the middle of its name may be; the first that is free is taken."""

LEVEL_SHARES = (0.85, 0.7, 0.55, 0.4, 0.25)  # Of the length of a level's line, where the middle of its name may be
HEAD = 6.0  # Pixels of the head of an arrow, along it and across

Ranges = tuple[tuple[int, int], tuple[int, int]]
NOWHERE: Ranges = (0, 1), (0, 1)


class _Dot:
    """Where a point is drawn."""

    def __init__(self, point: Point, here: QPointF, left: float) -> None:
        self.point, self.here = point, here
        self.radius = radius_of(point)
        around = self.radius + 1
        self.place = QRectF(here.x() - around, here.y() - around, 2 * around, 2 * around)
        self.bar = QRectF(left, here.y() - 1, here.x() - left, 2)
        """Around the line from the least intensity to the dot."""

    def away(self, box: QRectF) -> float:
        box = box.adjusted(0, INK, 0, -INK)
        left = QPointF(self.bar.left(), self.here.y())
        return min(distance(box, self.here) - self.radius, distance(box, left))

    def name_places(self, width: float) -> Iterator[QRectF]:
        """Yield the possible rectangles of its name, `width` pixels wide, the best first."""
        x, y, gap = self.here.x(), self.here.y(), self.radius + 4
        for left, top in (
            (x + gap, y - LINE / 2),
            (x - width / 2, y - 11 - LINE),
            (x - width / 2, y + 11),
            (x + 4, y + 9),
            (x + 4, y - 9 - LINE),
            (x - gap - width, y - LINE / 2),
            (x - 4 - width, y + 9),
            (x - 4 - width, y - 9 - LINE),
            (self.bar.left() - 4 - width, y - LINE / 2),
        ):
            yield QRectF(left, top, width, LINE)


class Roofline(StillPlot):
    """Rate over intensity on logarithmic axes; a click on a dot chooses its stage."""

    def __init__(self) -> None:
        super().__init__()
        self._points: tuple[Point, ...] = ()
        self._before: dict[str, Point] = {}
        self._baseline = ""
        self._marked: str | None = None
        self.where = Place()  # Where the marked stage works
        self.arrows: list[tuple[str, QLineF]] = []  # The stages that have arrows, and where
        self._ranges = NOWHERE
        self.named: list[tuple[Point, str, QRectF]] = []  # The stages that have their names, and where
        self.setMinimumHeight(HEIGHT)

    def show_points(
        self,
        points: Sequence[Point],
        marked: str | None,
        where: Place | None = None,
        before: Sequence[Point] = (),
        baseline: str = "",
    ) -> None:
        """Show these stages; the roofs are those of `marked`, or of the most expensive one, which works `where`.

        `before`: what they are compared with, which is called `baseline`.
        """
        where, known = where or Place(), {point.name: point for point in before}
        if (tuple(points), marked, where, known) == (self._points, self._marked, self.where, self._before):
            return
        self._points, self._marked, self.where = tuple(points), marked, where
        self._before, self._baseline = known, baseline
        self._ranges = self._found_ranges()
        describe(self, self.tr("Roofline"), self.sentence())
        self.rebuild()

    @property
    def points(self) -> tuple[Point, ...]:
        return self._points

    @property
    def marked(self) -> Point | None:
        named = (point for point in self._points if point.name == self._marked)
        return next(named, self._points[0] if self._points else None)

    def sentence(self, point: Point | None = None) -> str:
        """Say where a stage (the marked one) is and which roof is above it."""
        point = point or self.marked
        if point is None:
            return ""
        limit = self.tr("arithmetic") if point.intensity > point.ridge else self.tr("bandwidth")
        text = self.tr("{0}: {1} operations per byte, {2}op/s, {3} of what its {4} allows (ridge at {5}).")
        sentence: str = text.format(
            point.name,
            f"{point.intensity:.3g}",
            prefixed(point.rate),
            percent(point.rate / point.roof),
            limit,
            f"{point.ridge:.3g}",
        )
        before = self._before.get(point.name)
        return sentence if before is None or point is before else f"{sentence} {self._sentence_before(before)}"

    def _sentence_before(self, before: Point) -> str:
        text = self.tr("{0} in {1}: {2} operations per byte, {3}op/s.")
        said: str = text.format(before.name, self._baseline, f"{before.intensity:.3g}", prefixed(before.rate))
        return said

    # -- geometry ------------------------------------------------------------------

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)

    def _found_ranges(self) -> Ranges:
        """Powers of ten at both ends of the axes."""
        if not self._points:
            return NOWHERE
        xs = [x for p in self._points for x in (p.min_intensity, p.intensity)]
        ys = [y for p in self._points for y in (p.rate, p.roof)]
        for before in (self._before[p.name] for p in self._points if p.name in self._before):
            xs.append(before.intensity)
            ys.append(before.rate)
        if (marked := self.marked) is not None:
            # Some of both roofs, wherever the dots are.
            xs += [0.8 * marked.ridge, 2 * marked.ridge]
            ys.append(marked.ceiling)
        return decades(xs), decades(ys, FROM_EDGE)

    def place(self, x: float, y: float) -> QPointF:
        """Position of an intensity and a rate in the drawing."""
        area, ((left, right), (low, high)) = self._area(), self._ranges
        across = (math.log10(x) - left) / max(1, right - left)
        up = (math.log10(y) - low) / max(1, high - low)
        return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

    def _slope(self, bandwidth: float, ceiling: float) -> QLineF:
        """The line of a bandwidth, from the edge of the drawing to a ceiling; of no length where that is beyond."""
        (left, _), (low, _) = self._ranges
        last = ceiling / bandwidth
        first = min(max(10.0**left, 10.0**low / bandwidth), last)
        return QLineF(self.place(first, first * bandwidth), self.place(last, ceiling))

    def _roof(self, point: Point) -> list[QPointF]:
        """Where a point's roofs begin, meet and end."""
        slope, (_, right) = self._slope(point.bandwidth, point.ceiling), self._ranges[0]
        return [slope.p1(), slope.p2(), self.place(10.0**right, point.ceiling)]

    # -- drawing ---------------------------------------------------------------------------

    def build(self) -> None:
        self.named, self.arrows = [], []
        marked = self.marked
        if marked is None:
            self.frame(self._area(), (), ())
            return
        self._draw_axes(marked)
        levels = self._draw_roofs(marked)
        dots = [
            _Dot(point, self.place(point.intensity, point.rate), self.place(point.min_intensity, point.rate).x())
            for point in self._points
        ]
        self._draw_arrows(dots, marked)
        self._draw_dots(dots, marked)
        # No name lies on a dot's bar.
        self.taken += [QPolygonF(dot.bar) for dot in dots]
        # Names of roofs have more places to go to than those of stages.
        self._name_stages(dots, marked)
        self.taken += [QPolygonF(dot.place) for dot in dots]
        self._name_roofs(marked)
        # A roof beside a level's line would strike its name out.
        start, ridge, _ = self._roof(marked)
        aside = QPointF(0, 1)
        self.taken.append(QPolygonF([start - aside, ridge - aside, ridge + aside, start + aside]))
        for text, line in levels:
            self._write_along(text, line, LEVEL_SHARES)

    def _draw_axes(self, marked: Point) -> None:
        area, ((left, right), (low, high)) = self._area(), self._ranges
        along = [(self.place(10.0**p, 1.0).x(), f"{10.0**p:g}") for p in range(left, right + 1)]
        # The corner belongs to the axis below.
        up = [(self.place(1.0, 10.0**p).y(), rate(10.0**p) if p > low else "") for p in range(low, high + 1)]
        self.frame(area, up, along)
        of = self.tr("roofs of {0}").format(marked.name)
        if self.where.device:
            of = self.tr("roofs of {0} on {1}").format(marked.name, self.where.device)
        metrics, right_end = small_metrics(), Qt.AlignmentFlag.AlignRight
        of = metrics.elidedText(of, Qt.TextElideMode.ElideRight, area.right())
        self.text(of, QRectF(0, 0, self.width() - 2, LINE), right_end)
        below = QRectF(0, self.height() - LINE, area.right(), LINE)
        self.text(self.tr("operations per byte"), below, right_end)

    def _draw_roofs(self, marked: Point) -> list[tuple[str, QLineF]]:
        """The roofs of the marked stage, and the lines of the levels with their names."""
        tokens, levels = theme(), []
        for level in self.where.levels:
            line = self._slope(level.bandwidth, marked.ceiling)
            if line.length() > 1 and self.where.level_of(marked.bandwidth) != level.name:
                self.curve([line.p1(), line.p2()], QPen(tokens.color("muted"), 0.7))
                levels.append((f"{level.name} {speed(level.bandwidth)}", line))
        self.curve(self._roof(marked), QPen(tokens.color("text"), 1.4))
        here = self.place(marked.intensity, marked.rate)
        above = self.place(marked.intensity, marked.roof)
        self.curve([here, above], QPen(tokens.color("muted"), 1, Qt.PenStyle.DotLine))
        return levels

    def _draw_arrows(self, dots: Sequence[_Dot], marked: Point) -> None:
        """From the ring of each stage in the baseline to its dot, where they lie apart."""
        for dot in dots:
            before = self._before.get(dot.point.name)
            if before is None:
                continue
            there, radius = self.place(before.intensity, before.rate), radius_of(before)
            line = QLineF(there, dot.here)
            length = line.length() - radius - dot.radius - 1
            if length < HEAD:
                continue
            color = theme().color(group_color(dot.point.group))
            line = QLineF(line.pointAt(radius / line.length()), line.pointAt((radius + length) / line.length()))
            pen = QPen(color, 2.0 if dot.point is marked else 1.2)
            self.curve([line.p1(), line.p2()], pen)
            back = line.unitVector()
            x, y = HEAD * back.dx(), HEAD * back.dy()
            ends = [line.p2() - QPointF(x - side * y / 2, y + side * x / 2) for side in (-1, 1)]
            self.curve([ends[0], line.p2(), ends[1]], pen)
            self.spots([there], [2 * radius], [color], [theme().color("card")], edge=1.5)
            around = QRectF(there.x() - radius, there.y() - radius, 2 * radius, 2 * radius)
            self.spot(around, self._sentence_before(before), before.name)
            aside = QPointF(-back.dy(), back.dx())
            self.taken += [
                QPolygonF(around),
                QPolygonF([line.p1() - aside, line.p2() - aside, line.p2() + aside, line.p1() + aside]),
            ]
            self.arrows.append((dot.point.name, line))

    def _draw_dots(self, dots: Sequence[_Dot], marked: Point) -> None:
        tokens, fills, edges = theme(), [], []
        last_on_top = dots[::-1]
        for dot in last_on_top:
            color = tokens.color(group_color(dot.point.group))
            self.curve([QPointF(dot.bar.left(), dot.here.y()), dot.here], QPen(color, 1))
            fill = QColor(color)
            fill.setAlpha(255 if dot.point is marked else 150)
            fills.append(fill)
            edges.append(tokens.color("danger" if dot.point.defect else "card"))
            self.spot(dot.place, self.sentence(dot.point), dot.point.name)
        sizes = [2 * dot.radius for dot in last_on_top]
        self.spots([dot.here for dot in last_on_top], sizes, edges, fills, edge=1.5)

    def _name_stages(self, dots: Sequence[_Dot], marked: Point) -> None:
        """The marked stage and all others, the most expensive first, where there is room.

        A name nearer to another point than to its own would be taken for that one's. One through which a roof goes is
        the last resort.
        """
        metrics, area = small_metrics(), self._area()
        for dot in sorted(dots, key=lambda one: one.point is not marked):
            name = dot.point.name.partition(".")[2] or dot.point.name
            free = [
                box
                for box in dot.name_places(metrics.horizontalAdvance(name) + 2)
                if area.contains(box) and self.is_free(box) and _own(dot, box, dots)
            ]
            box = next((box for box in free if not self._on_roof(box)), free[0] if free else None)
            if box is not None:
                self._write_on_card(name, box, "text" if dot.point is marked else "muted")
                self.named.append((dot.point, name, box))

    def _name_roofs(self, point: Point) -> None:
        """Label both roofs where nothing is `taken`: what limits, how much of it there is, for how many threads."""
        metrics, area = small_metrics(), self._area()
        number = self.where.threads
        threads = self.tr("1 thread") if number == 1 else self.tr("{0} threads").format(number)
        of = "" if self.where.device or not number else f", {threads}"
        level = self.where.level_of(point.bandwidth) or self.tr("bandwidth")
        flat = self.tr("arithmetic {0}").format(rate(point.ceiling)) + of
        slope = f"{level} {prefixed(point.bandwidth)}B/s"
        start, ridge, _ = self._roof(point)
        above, *higher = (ridge.y() - LINE - 1 - up for up in range(0, int(ridge.y()), 4))
        wide = metrics.horizontalAdvance(flat) + 2
        places = [QPointF(area.right() - wide, y) for y in (above, ridge.y() + 2, *higher)]
        self._write_where_free(places, wide, flat)
        line = QLineF(start, ridge)
        if not any(self._write_along(text, line, SHARES) for text in (slope + of, slope)):
            # No room along the slope for its text: above it, where no stage can be.
            wide = metrics.horizontalAdvance(slope) + 2
            places = [QPointF(area.left() + 2, y) for y in (above, *higher)]
            self._write_where_free(places, wide, slope)

    def _write_along(self, text: str, line: QLineF, shares: Sequence[float]) -> bool:
        """Write along a rising line, above it or below, around the first of these shares of its length with room."""
        wide = small_metrics().horizontalAdvance(text) + 2
        for top, share in product((-LINE - 1, 1.0), shares):
            box, at = QRectF(-wide / 2, top, wide, LINE), line.pointAt(share)
            along = QTransform().translate(at.x(), at.y()).rotate(-line.angle())
            within = line.length() * min(share, 1 - share) >= wide / 2 + 4
            if within and self.is_free(along.map(QPolygonF(box))):
                self.text(text, box, ground=200, along=along)
                return True
        return False

    def _write_where_free(self, places: Sequence[QPointF], wide: float, text: str) -> None:
        """Write at the first of these places for its upper left corner that is free."""
        boxes = (QRectF(place.x(), place.y(), wide, LINE) for place in places)
        box = self.free(box for box in boxes if self._area().contains(box))
        if box is not None:
            self._write_on_card(text, box, "muted")

    def _write_on_card(self, text: str, box: QRectF, token: str) -> None:
        ground = 255 if self._on_roof(box) else 200
        self.text(text, box, AT_LEFT, token, ground=ground)

    def _on_roof(self, box: QRectF) -> bool:
        corners = () if self.marked is None else self._roof(self.marked)
        box = box.adjusted(0, INK, 0, -INK)
        return any(crosses(QLineF(*ends), box) for ends in pairwise(corners))


def decades(values: Sequence[float], below: float = 0.0) -> tuple[int, int]:
    """Powers of ten at both ends of an axis for these values, with `below` decades added under them."""
    low, high = math.log10(min(values)), math.log10(max(values))
    return math.floor(low - below), math.ceil(high)


def crosses(line: QLineF, box: QRectF) -> bool:
    """Whether a line that goes to the right, and is not upright, passes through a box."""
    left, right = max(line.x1(), box.left()), min(line.x2(), box.right())
    if left >= right:
        return False
    slope = line.dy() / line.dx()
    ends = [line.y1() + slope * (x - line.x1()) for x in (left, right)]
    return min(ends) < box.bottom() and max(ends) > box.top()


def _own(dot: _Dot, box: QRectF, dots: Sequence[_Dot]) -> bool:
    away = dot.away(box)
    return all(other.away(box) >= away for other in dots)


def radius_of(point: Point) -> float:
    """Radius of a stage's dot in pixels: its area grows with the share of the time."""
    return 2.5 + 7.0 * math.sqrt(min(point.share or 0.0, 1.0))
