"""Stages as dots on logarithmic axes; and the roofline: how far each stage is from what the machine allows.

In the roofline the bar next to a dot extends to the intensity of the kernel's tiling. The thick roofs are those of the
marked stage, over its own working set and operations; the thin ones are the levels of memory of the place where it
works: the processor, or a device. In a comparison an arrow goes to each dot from a ring: the same stage in the
baseline, or on the other side.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import ClassVar, Generic, TypeVar

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPen, QPolygonF, QTransform

from app.charts.still import LINE, Spot, StillPlot, Tick, distance, small_metrics
from app.style.plain_text import AT_LEFT, describe
from app.style.theme import theme
from app.views.roofline_model import Place, Point, Stage, rate
from app.views.stage_panel import group_color
from profiler.plain import percent, prefixed, speed

INK = 3  # Pixels of a line of text above and below its letters
RIGHT_END = Qt.AlignmentFlag.AlignRight

Ranges = tuple[tuple[float, float], tuple[float, float]]
NOWHERE: Ranges = (0, 1), (0, 1)


S = TypeVar("S", bound=Stage)


class Dot(Generic[S]):
    """Where a stage is drawn, and where the bar ends that begins at its dot."""

    def __init__(self, stage: S, here: QPointF, end: QPointF) -> None:
        self.stage, self.here, self.end = stage, here, end
        self.radius = radius_of(stage)
        around = self.radius + 1
        self.place = QRectF(here.x() - around, here.y() - around, 2 * around, 2 * around)
        bar = QRectF(end, here).normalized()
        self.bar = bar.adjusted(-1, 0, 1, 0) if bar.height() else bar.adjusted(0, -1, 0, 1)

    def away(self, box: QRectF) -> float:
        """Pixels from the ink of a text in a box."""
        box = box.adjusted(0, INK, 0, -INK)
        return min(distance(box, self.here) - self.radius, distance(box, self.end))

    def name_places(self, width: float) -> Iterator[QRectF]:
        """Yield the possible rectangles of its name, `width` pixels wide, the best first."""
        x, y, gap = self.here.x(), self.here.y(), self.radius + 4
        half, below, above = y - LINE / 2, y + 9, y - 9 - LINE
        places = [
            (x + gap, half),
            (x - width / 2, y - 11 - LINE),
            (x - width / 2, y + 11),
            (x + 4, below),
            (x + 4, above),
        ]
        places += [(x - gap - width, half), (x - 4 - width, below), (x - 4 - width, above)]
        for left, top in (*places, (self.bar.left() - 4 - width, half)):
            yield QRectF(left, top, width, LINE)


class StageDots(StillPlot, Generic[S]):
    """Stages on two logarithmic axes, each dot as large as its share of the time; a click on one chooses its stage."""

    margins: ClassVar[tuple[float, float, float, float]]  # Pixels left, above, right and below, for texts

    def __init__(self, height: int) -> None:
        super().__init__()
        self.stages: tuple[S, ...] = ()
        self._choice: str | None = None
        self.ranges = NOWHERE  # Powers of ten at the ends of both axes
        self.named: list[tuple[S, str, QRectF]] = []  # The stages that have their names, and where
        self.setMinimumHeight(height)

    @property
    def marked(self) -> S | None:
        """The stage that is chosen if it is there, else the most expensive one."""
        return next((one for one in self.stages if one.name == self._choice), next(iter(self.stages), None))

    def sentence(self, stage: S | None = None) -> str:
        """What there is to say of a stage (None: the marked one); empty without any (override)."""
        raise NotImplementedError

    def _area(self) -> QRectF:
        left, top, right, bottom = self.margins
        return QRectF(self.rect()).adjusted(left, top, -right, -bottom)

    def place(self, x: float, y: float) -> QPointF:
        area, ((left, right), (low, high)) = self._area(), self.ranges
        across, up = (math.log10(x) - left) / (right - left or 1), (math.log10(y) - low) / (high - low or 1)
        return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

    def axes(self, up: Sequence[Tick], along: Sequence[Tick], title: str) -> None:
        area = self._area()
        self.canvas.frame(area, up, along)
        self.canvas.text(title, QRectF(0, self.height() - LINE, area.right(), LINE), RIGHT_END)

    def draw_dots(self, dots: Sequence[Dot[S]], marked: S) -> None:
        """Draw dots, the first on top, with their bars; the marked one is opaque."""
        tokens, fills, edges = theme(), [], []
        dots = dots[::-1]
        for dot in dots:
            color = group_color(dot.stage.group)
            self.canvas.curve([dot.end, dot.here], QPen(tokens.color(color), 1))
            fills.append(tokens.color(color, 255 if dot.stage is marked else 150))
            edges.append(tokens.color("danger" if dot.stage.defect else "card"))
            self.canvas.spots.append(Spot(dot.place, self.sentence(dot.stage), dot.stage.name))
        self.canvas.signs([dot.here for dot in dots], [2 * dot.radius for dot in dots], edges, fills, edge=1.5)

    def name_dots(self, dots: Sequence[Dot[S]], marked: S) -> None:
        """The names of the marked stage and all others, the most expensive first, where there is room.

        A name nearer to another point than to its own would be taken for that one's. One through which a line goes is
        the last resort.
        """
        area, self.named = self._area(), []
        self.canvas.taken += [QPolygonF(dot.bar) for dot in dots]
        for dot in sorted(dots, key=lambda one: one.stage is not marked):
            name = dot.stage.name.partition(".")[2] or dot.stage.name
            free = [
                box
                for box in dot.name_places(small_metrics().horizontalAdvance(name) + 2)
                if area.contains(box)
                and self.canvas.is_free(box)
                and all(other.away(box) >= dot.away(box) for other in dots)
            ]
            box = next((box for box in free if not self.on_line(box)), free[0] if free else None)
            if box is not None:
                self.write_on_card(name, box, "text" if dot.stage is marked else "muted")
                self.named.append((dot.stage, name, box))
        self.canvas.taken += [QPolygonF(dot.place) for dot in dots]

    def on_line(self, box: QRectF) -> bool:
        """Whether a line goes through a box that would strike out a text (override)."""
        return False

    def write_on_card(self, text: str, box: QRectF, token: str) -> None:
        self.canvas.text(text, box, AT_LEFT, token, ground=255 if self.on_line(box) else 200)


HEIGHT = 232  # Pixels that a roofline takes at least
WIDTHS_HIGH = 1.6  # Height in widths, at most: higher, every roof would look steep
FROM_EDGE = 0.15  # Decades between the lower end of the axis of rates and a dot: upon it a name would have no room
SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65, 0.25, 0.75, 0.2, 0.8)  # Places of a name on the slope
LEVEL_SHARES = (0.85, 0.7, 0.55, 0.4, 0.25)  # Of the length of a level's line, where the middle of its name may be
HEAD = 6.0  # Pixels of the head of an arrow, along it and across


class Roofline(StageDots[Point]):
    """Rate over intensity."""

    margins = 58.0, 22.0, 12.0, 32.0

    def __init__(self) -> None:
        super().__init__(HEIGHT)
        self._before: dict[str, Point] = {}
        self._baseline = ""
        self.where = Place()  # Where the marked stage works
        self.arrows: list[tuple[str, QLineF]] = []  # The stages that have arrows, and where

    def show_points(
        self,
        points: Sequence[Point],
        marked: str | None,
        where: Place | None = None,
        before: Sequence[Point] = (),
        baseline: str = "",
    ) -> None:
        """Show stages, with the roofs of `marked` or the most expensive, `where` it works; `before`: of `baseline`."""
        shown = tuple(points), marked, where or Place(), {point.name: point for point in before}
        if shown != (self.stages, self._choice, self.where, self._before):
            self.stages, self._choice, self.where, self._before = shown
            self._baseline = baseline
            self.ranges = self._found_ranges()
            describe(self, self.tr("Roofline"), self.sentence())
            self.rebuild()

    def sentence(self, stage: Point | None = None) -> str:
        point = stage or self.marked
        if point is None:
            return ""
        limit = self.tr("arithmetic") if point.intensity > point.ridge else self.tr("bandwidth")
        text = self.tr("{0}: {1} operations per byte, {2}op/s, {3} of what its {4} allows (ridge at {5}).")
        share, ridge = percent(point.rate / point.roof), f"{point.ridge:.3g}"
        sentence = text.format(point.name, f"{point.intensity:.3g}", prefixed(point.rate), share, limit, ridge)
        before = self._before.get(point.name)
        return sentence if before is None else f"{sentence} {self._sentence_before(before)}"

    def _sentence_before(self, before: Point) -> str:
        text: str = self.tr("{0} in {1}: {2} operations per byte, {3}op/s.")
        return text.format(before.name, self._baseline, f"{before.intensity:.3g}", prefixed(before.rate))

    def _found_ranges(self) -> Ranges:
        marked = self.marked
        if marked is None:
            return NOWHERE
        before = [self._before[p.name] for p in self.stages if p.name in self._before]
        # Some of both roofs, wherever the dots are.
        xs = [0.8 * marked.ridge, 2 * marked.ridge, *(p.intensity for p in (*self.stages, *before))]
        xs += [p.min_intensity for p in self.stages]
        ys = [marked.ceiling, *(p.rate for p in (*self.stages, *before)), *(p.roof for p in self.stages)]
        return decades(xs), decades(ys, FROM_EDGE)

    def _slope(self, bandwidth: float, ceiling: float) -> QLineF:
        """The line of a bandwidth, from the edge of the drawing to a ceiling; of no length where that is beyond."""
        (left, _), (low, _) = self.ranges
        last = ceiling / bandwidth
        first = min(max(10.0**left, 10.0**low / bandwidth), last)
        return QLineF(self.place(first, first * bandwidth), self.place(last, ceiling))

    def _roof(self, point: Point) -> list[QPointF]:
        """Where a point's roofs begin, meet and end."""
        slope, (_, right) = self._slope(point.bandwidth, point.ceiling), self.ranges[0]
        return [slope.p1(), slope.p2(), self.place(10.0**right, point.ceiling)]

    def on_line(self, box: QRectF) -> bool:
        corners = () if self.marked is None else self._roof(self.marked)
        box = box.adjusted(0, INK, 0, -INK)
        return any(crosses(QLineF(*ends), box) for ends in pairwise(corners))

    def build(self) -> None:
        self.arrows = []
        marked = self.marked
        if marked is None:
            self.canvas.frame(self._area(), (), ())
            return
        self._draw_axes(marked)
        levels = self._draw_roofs(marked)
        place = self.place
        dots = [Dot(p, place(p.intensity, p.rate), place(p.min_intensity, p.rate)) for p in self.stages]
        self._draw_arrows(dots, marked)
        self.draw_dots(dots, marked)
        # Names of roofs have more places to go to than those of stages.
        self.name_dots(dots, marked)
        self._name_roofs(marked)
        # A roof beside a level's line would strike its name out.
        start, ridge, _ = self._roof(marked)
        self.canvas.taken.append(_band(QLineF(start, ridge), QPointF(0, 1)))
        for text, line in levels:
            self._write_along(text, line, LEVEL_SHARES)

    def _draw_axes(self, marked: Point) -> None:
        (left, right), (low, high) = ([int(end) for end in ends] for ends in self.ranges)
        along = [(self.place(10.0**p, 1.0).x(), f"{10.0**p:g}") for p in range(left, right + 1)]
        # The corner belongs to the axis below.
        up = [(self.place(1.0, 10.0**p).y(), rate(10.0**p) if p > low else "") for p in range(low, high + 1)]
        self.axes(up, along, self.tr("operations per byte"))
        of = self.tr("roofs of {0} on {1}") if self.where.device else self.tr("roofs of {0}")
        of = of.format(marked.name, self.where.device)
        of = small_metrics().elidedText(of, Qt.TextElideMode.ElideRight, self._area().right())
        self.canvas.text(of, QRectF(0, 0, self.width() - 2, LINE), RIGHT_END)

    def _draw_roofs(self, marked: Point) -> list[tuple[str, QLineF]]:
        tokens, levels = theme(), []
        for level in self.where.levels:
            line = self._slope(level.bandwidth, marked.ceiling)
            if line.length() > 1 and self.where.level_of(marked.bandwidth) != level.name:
                self.canvas.curve([line.p1(), line.p2()], QPen(tokens.color("muted"), 0.7))
                levels.append((f"{level.name} {speed(level.bandwidth)}", line))
        self.canvas.curve(self._roof(marked), QPen(tokens.color("text"), 1.4))
        ends = [self.place(marked.intensity, height) for height in (marked.rate, marked.roof)]
        self.canvas.curve(ends, QPen(tokens.color("muted"), 1, Qt.PenStyle.DotLine))
        return levels

    def _draw_arrows(self, dots: Sequence[Dot[Point]], marked: Point) -> None:
        """From the ring of each stage in the baseline to its dot, where they lie apart."""
        for dot in dots:
            before = self._before.get(dot.stage.name)
            if before is None:
                continue
            there, radius = self.place(before.intensity, before.rate), radius_of(before)
            line = QLineF(there, dot.here)
            length = line.length() - radius - dot.radius - 1
            if length < HEAD:
                continue
            color = theme().color(group_color(dot.stage.group))
            line = QLineF(line.pointAt(radius / line.length()), line.pointAt((radius + length) / line.length()))
            pen = QPen(color, 2.0 if dot.stage is marked else 1.2)
            self.canvas.curve([line.p1(), line.p2()], pen)
            back = line.unitVector()
            x, y = HEAD * back.dx(), HEAD * back.dy()
            ends = [line.p2() - QPointF(x - side * y / 2, y + side * x / 2) for side in (-1, 1)]
            self.canvas.curve([ends[0], line.p2(), ends[1]], pen)
            self.canvas.signs([there], [2 * radius], [color], [theme().color("card")], edge=1.5)
            around = QRectF(there.x() - radius, there.y() - radius, 2 * radius, 2 * radius)
            self.canvas.spots.append(Spot(around, self._sentence_before(before), before.name))
            self.canvas.taken += [QPolygonF(around), _band(line, QPointF(-back.dy(), back.dx()))]
            self.arrows.append((dot.stage.name, line))

    def _name_roofs(self, point: Point) -> None:
        """Label both roofs where nothing is `taken`: what limits, how much of it there is, for how many threads."""
        area, number = self._area(), self.where.threads
        threads = self.tr("1 thread") if number == 1 else self.tr("{0} threads").format(number)
        of = "" if self.where.device or not number else f", {threads}"
        level = self.where.level_of(point.bandwidth) or self.tr("bandwidth")
        flat = self.tr("arithmetic {0}").format(rate(point.ceiling)) + of
        slope = f"{level} {prefixed(point.bandwidth)}B/s"
        start, ridge, _ = self._roof(point)
        above, *higher = (ridge.y() - LINE - 1 - up for up in range(0, int(ridge.y()), 4))
        left = area.right() - small_metrics().horizontalAdvance(flat) - 2
        self._write_where_free(flat, left, [above, ridge.y() + 2, *higher])
        if not any(self._write_along(text, QLineF(start, ridge), SHARES) for text in (slope + of, slope)):
            # No room along the slope for its text: above it, where no stage can be.
            self._write_where_free(slope, area.left() + 2, [above, *higher])

    def _write_along(self, text: str, line: QLineF, shares: Sequence[float]) -> bool:
        """Write along a rising line, above it or below, around the first of these shares of its length with room."""
        wide = small_metrics().horizontalAdvance(text) + 2
        for top, share in product((-LINE - 1, 1.0), shares):
            box, at = QRectF(-wide / 2, top, wide, LINE), line.pointAt(share)
            along = QTransform().translate(at.x(), at.y()).rotate(-line.angle())
            within = line.length() * min(share, 1 - share) >= wide / 2 + 4
            if within and self.canvas.is_free(along.map(QPolygonF(box))):
                self.canvas.text(text, box, ground=200, along=along)
                return True
        return False

    def _write_where_free(self, text: str, left: float, tops: Sequence[float]) -> None:
        wide = small_metrics().horizontalAdvance(text) + 2
        boxes = (QRectF(left, top, wide, LINE) for top in tops)
        box = self.canvas.free(box for box in boxes if self._area().contains(box))
        if box is not None:
            self.write_on_card(text, box, "muted")


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


def _band(line: QLineF, aside: QPointF) -> QPolygonF:
    return QPolygonF([line.p1() - aside, line.p2() - aside, line.p2() + aside, line.p1() + aside])


def radius_of(stage: Stage) -> float:
    """Radius of a stage's dot in pixels: its area grows with the share of the time."""
    return 2.5 + 7.0 * math.sqrt(min(stage.share or 0.0, 1.0))
