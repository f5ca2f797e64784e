"""Memory traffic: each stage's bandwidth over its working set, against the bandwidth measured at every size.

The upper line is what the machine reads per second from a working set of that size: it falls in steps where a cache is
full. One dot per stage, sized by its share of the time; the bar above it extends to the traffic of the kernel's tiling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPen, QPolygonF

from app.charts.still import LINE, StillPlot, small_metrics
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, describe, fitting
from app.style.theme import theme
from app.views.roofline_model import MIN_SHARE, cache_sizes, place_of
from app.views.roofline_plot import decades
from app.views.stage_panel import group_color
from app.views.table_twin import Table
from app.views.view import View
from profiler.machine.roofs.table import size_text
from profiler.plain import one_line, percent, prefixed, speed

if TYPE_CHECKING:
    from profiler.analysis.breakdown import StageRow
    from profiler.machine.roofs.table import Roof
    from profiler.session.reader import Session

MEMORY: Final = "memory"  # The level of what fits into no cache


@dataclass(frozen=True)
class Traffic:
    """What one stage moves.

    Attributes:
        name: of the stage.
        group: of the stage.
        device: where it works; empty: the processor.
        share: of the wall time, None outside the decode lane.
        frame_bytes: bytes per frame of the stretch, if each moves once.
        most_frame_bytes: the same with the traffic of the kernel's tiling.
        working_set: bytes that one call reads again.
        rate: bytes per second, if each moves once.
        most_rate: the same with the traffic of the kernel's tiling.
        bandwidth: bytes per second measured at that working set, None without a ladder.
        level: "L1" … or MEMORY, empty where the caches are not known.
        defect: whether the stage ran faster than its roofs allow.
    """

    name: str
    group: str
    device: str
    share: float | None
    frame_bytes: float
    most_frame_bytes: float
    working_set: float
    rate: float
    most_rate: float
    bandwidth: float | None
    level: str
    defect: bool


@dataclass(frozen=True)
class Ladder:
    """Bandwidths measured in one place, (bytes, bytes/s) by growing size; the processor has neither device nor name."""

    device: str
    rungs: tuple[tuple[float, float], ...]
    name: str = ""


@dataclass(frozen=True)
class LadderModel:
    """Stages, most expensive first, the ladders of the places where they work, bytes of the processor's caches."""

    stages: tuple[Traffic, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    caches: tuple[int, ...] = ()
    threads: int = 1


def ladder_model(session: Session, rows: Sequence[StageRow], frames: int, threads: int) -> LadderModel:
    """The stages of a stretch of that many frames whose traffic is known."""
    caches = cache_sizes(session.meta.get("machine"))
    stages = tuple(_stages(session, rows, max(1, frames), threads, caches))
    at = {one.device: place_of(session, one.name, threads).device for one in stages}
    measured = ((place, session.calibration.ladder("read", threads, place)) for place in at)
    ladders = tuple(Ladder(place, _rungs(roofs), at[place]) for place, roofs in measured if roofs)
    return LadderModel(stages, ladders, caches, threads)


def _stages(
    session: Session, rows: Sequence[StageRow], frames: int, threads: int, caches: Sequence[int]
) -> Iterator[Traffic]:
    devices = {
        session.stages[number].name: cost.device
        for (number, _), cost in session.costs.items()
        if number in session.stages
    }
    for row in sorted(rows, key=lambda row: -row.own_ns):
        small = row.share is not None and row.share < MIN_SHARE
        if row.own_ns <= 0 or small or not row.bytes_min or not row.working_set:
            continue
        most, device = max(row.bytes_min, row.bytes_max or 0.0), devices.get(row.name, "")
        roof = session.calibration.bandwidth(row.working_set, threads, device=device)
        yield Traffic(
            name=one_line(row.name),
            group=row.group,
            device=one_line(device),
            share=row.share,
            frame_bytes=row.bytes_min / frames,
            most_frame_bytes=most / frames,
            working_set=row.working_set,
            rate=row.bytes_min / row.own_ns * 1e9,
            most_rate=most / row.own_ns * 1e9,
            bandwidth=None if roof is None else roof.median,
            level="" if device else level_of(row.working_set, caches),
            defect=row.defect is not None,
        )


def level_of(size: float, caches: Sequence[int]) -> str:
    """The first cache (bytes of each, from the first level on) into which a size fits; empty without any known."""
    if not caches:
        return ""
    return next((f"L{level}" for level, most in enumerate(caches, start=1) if size <= most), MEMORY)


def _rungs(roofs: Sequence[Roof]) -> tuple[tuple[float, float], ...]:
    return tuple((float(roof.bytes), roof.median) for roof in roofs)


LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 2 * LINE + 6, 2 * LINE + 4
"""Room for the axes' texts, for the sentence above and the names of the levels."""

HEIGHT = 200  # Pixels that the plot takes at least
TICK_APART = 70.0  # Pixels between two sizes on the axis at least
STEPS = (1, 2, 4, 5, 10)  # Powers of two between two of them


class LadderPlot(StillPlot):
    """Bandwidth over working set on logarithmic axes; a click on a dot chooses its stage."""

    def __init__(self) -> None:
        super().__init__()
        self._model = LadderModel()
        self._choice: str | None = None
        self.setMinimumHeight(HEIGHT)

    def show_model(self, model: LadderModel, choice: str | None) -> None:
        if (model, choice) != (self._model, self._choice):
            self._model, self._choice = model, choice
            describe(self, self.tr("Memory traffic"), self.sentence())
            self.rebuild()

    @property
    def marked(self) -> Traffic | None:
        stages = self._model.stages
        return next((one for one in stages if one.name == self._choice), stages[0] if stages else None)

    def sentence(self, stage: Traffic | None = None) -> str:
        stage = stage or self.marked
        return "" if stage is None else self.sentences(stage)[0]

    def sentences(self, stage: Traffic) -> tuple[str, ...]:
        """The same in fewer and fewer words."""
        each, size = f"{prefixed(stage.frame_bytes)}B", size_text(round(stage.working_set))
        moves = self.tr("{0}: {1} per frame at {2}").format(stage.name, each, speed(stage.rate))
        place = self.tr("working set {0}").format(size) + (f" ({self.tr(stage.level)})" if stage.level else "")
        if stage.bandwidth is None:
            return f"{moves}, {place}", moves, f"{stage.name}: {speed(stage.rate)}"
        share = percent(stage.rate / stage.bandwidth)
        of = self.tr("{0}, {1} of the {2} measured").format(moves, share, speed(stage.bandwidth))
        few = self.tr("{0}: {1} of {2}").format(stage.name, speed(stage.rate), speed(stage.bandwidth))
        return f"{of}, {place}", of, few

    # -- geometry ------------------------------------------------------------------------------

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)

    def _ranges(self) -> tuple[tuple[float, float], tuple[int, int]]:
        """Ends of the axes: powers of two, some of them fractions, and powers of ten."""
        model = self._model
        rungs = [rung for ladder in model.ladders for rung in ladder.rungs]
        sizes = [*(one.working_set for one in model.stages), *(size for size, _ in rungs)]
        rates = [rate for one in model.stages for rate in (one.rate, one.most_rate)]
        left, right = math.log2(min(sizes)) - 0.5, math.log2(max(sizes)) + 0.5
        return (left, right), decades([*rates, *(rate for _, rate in rungs)], 0.15)

    def place(self, size: float, rate: float) -> QPointF:
        """Position of a working set (bytes) and a rate (bytes/s) in the drawing."""
        area, ((left, right), (low, high)) = self._area(), self._ranges()
        across = (math.log2(size) - left) / (right - left)
        up = (math.log10(rate) - low) / max(1, high - low)
        return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

    # -- drawing -------------------------------------------------------------------------------

    def build(self) -> None:
        marked, area = self.marked, self._area()
        if marked is None:
            self.frame(area, (), ())
            return
        self._draw_axes(area)
        if not marked.device:  # the caches of a device are not known
            self._draw_levels(area)
        for ladder in self._model.ladders:
            pen = (
                QPen(theme().color("text"), 1.4)
                if ladder.device == marked.device
                else QPen(theme().color("muted"), 0.7)
            )
            self.curve([self.place(*rung) for rung in ladder.rungs], pen)
        text = fitting(small_metrics(), self.width() - 4.0, *self.sentences(marked))
        self.text(text, QRectF(2, 0, self.width() - 4.0, LINE), AT_LEFT, "text")
        self._draw_stages(marked)
        self._name_ladders(area)

    def _draw_axes(self, area: QRectF) -> None:
        (left, right), (low, high) = self._ranges()
        most = max(2, int(area.width() / TICK_APART))
        step = next((one for one in STEPS if (right - left) / one <= most), STEPS[-1])
        powers = [power for power in range(math.ceil(left), math.floor(right) + 1) if power % step == 0 and power >= 0]
        along = [(self.place(2.0**power, 1.0).x(), size_text(1 << power)) for power in powers]
        up = [(self.place(1.0, 10.0**p).y(), speed(10.0**p) if p > low else "") for p in range(low, high + 1)]
        self.frame(area, up, along)
        below = QRectF(0, self.height() - LINE, area.right(), LINE)
        self.text(self.tr("working set"), below, Qt.AlignmentFlag.AlignRight)

    def _draw_levels(self, area: QRectF) -> None:
        """A line where each cache is full, and the names of the levels between them."""
        caches = self._model.caches
        if not caches:
            return
        (left, right), pen = self._ranges()[0], QPen(theme().color("muted"), 1, Qt.PenStyle.DashLine)
        ends = [2.0**left, *caches, 2.0**right]
        names = [*(f"L{level}" for level in range(1, len(caches) + 1)), self.tr("memory")]
        for name, begin, end in zip(names, ends, [*ends[1:]], strict=False):
            x0, x1 = (self.place(min(max(size, ends[0]), ends[-1]), 1.0).x() for size in (begin, end))
            if end < ends[-1] and x1 > area.left():
                self.curve([QPointF(x1, area.top() - LINE), QPointF(x1, area.bottom())], pen)
            size = f"{name} {size_text(round(end))}" if end in caches else name
            text = next((t for t in (size, name) if small_metrics().horizontalAdvance(t) + 6 <= x1 - x0), "")
            if text:
                self.text(text, QRectF(x0, area.top() - LINE, x1 - x0, LINE))

    def _draw_stages(self, marked: Traffic) -> None:
        tokens, fills, edges, sizes, at = theme(), [], [], [], []
        others = [one for one in self._model.stages if one is not marked]
        for one in (*reversed(others), marked):  # what is drawn last is on top
            here, color = self.place(one.working_set, one.rate), tokens.color(group_color(one.group))
            radius = 2.5 + 7.0 * math.sqrt(min(one.share or 0.0, 1.0))
            self.curve([here, self.place(one.working_set, one.most_rate)], QPen(color, 1))
            if one is marked and one.bandwidth is not None:
                line = QPen(tokens.color("muted"), 1, Qt.PenStyle.DotLine)
                self.curve([here, self.place(one.working_set, one.bandwidth)], line)
            fill = QColor(color)
            fill.setAlpha(255 if one is marked else 150)
            fills.append(fill)
            edges.append(tokens.color("danger" if one.defect else "card"))
            sizes.append(2 * radius)
            at.append(here)
            around = QRectF(here.x() - radius - 1, here.y() - radius - 1, 2 * radius + 2, 2 * radius + 2)
            self.spot(around, self.sentence(one), one.name)
            self.taken.append(QPolygonF(around))
        self.spots(at, sizes, edges, fills, edge=1.5)
        for one in (marked, *others):
            self._name_stage(one, one is marked)

    def _name_stage(self, one: Traffic, marked: bool) -> None:
        """Write the name of a stage next to its dot, where there is room."""
        here, name = self.place(one.working_set, one.rate), one.name.partition(".")[2] or one.name
        radius = 5.0 + 7.0 * math.sqrt(min(one.share or 0.0, 1.0))
        wide = small_metrics().horizontalAdvance(name) + 2
        x, y, area = here.x(), here.y(), self._area()
        corners = (
            (x + radius, y - LINE / 2),
            (x - radius - wide, y - LINE / 2),
            (x + radius, y - LINE),
            (x + radius, y),
            (x - radius - wide, y - LINE),
            (x - radius - wide, y),
            (x - wide / 2, y + radius),
            (x - wide / 2, y - radius - LINE),
        )
        boxes = [box for box in (QRectF(*corner, wide, LINE) for corner in corners) if area.contains(box)]
        box = self.free(boxes) or next((box for box in boxes if marked), None)
        if box is not None:
            self.text(name, box, AT_LEFT, "text" if marked else "muted", ground=200)

    def _name_ladders(self, area: QRectF) -> None:
        """Say of each ladder where it was measured."""
        threads = self._model.threads
        processor = self.tr("reading, 1 thread") if threads == 1 else self.tr("reading, {0} threads").format(threads)
        for ladder in self._model.ladders:
            text = self.tr("reading, {0}").format(ladder.name) if ladder.device else processor
            wide = small_metrics().horizontalAdvance(text) + 2
            points = [self.place(*rung) for rung in ladder.rungs]
            tops = [
                QRectF(at.x() + dx, at.y() + dy, wide, LINE)
                for dy in (-LINE - 3, 4.0)
                for at in points
                for dx in (0.0, -wide / 2, -wide)
            ]
            box = self.free(box for box in tops if area.contains(box) and not _crosses(points, box))
            if box is not None:
                self.text(text, box, AT_LEFT, "muted", ground=200)


def _crosses(points: Sequence[QPointF], box: QRectF) -> bool:
    return QPolygonF([*points, *points[::-1]]).intersects(QPolygonF(box))


class MemoryLadderView(View):
    """What each stage moves, and how fast, against what the machine can."""

    id = "memory"
    title = "Memory traffic"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = LadderPlot()
        self.set_body(self.plot)
        self._model = LadderModel()
        axis.stage_changed.connect(self._soon.start)
        self.plot.chosen.connect(axis.choose_stage)

    def draw(self, snapshot: Snapshot) -> None:
        desk = snapshot.desk
        rows = () if desk.costs is None else desk.costs.stages
        self._model = ladder_model(snapshot.session, rows, desk.frames, desk.threads)
        self.plot.show_model(self._model, self.axis.stage)
        self.set_note(self.tr("bytes of the cost laws ÷ measured time"))

    def clear(self) -> None:
        super().clear()
        self._model = LadderModel()
        self.plot.show_model(self._model, None)

    def model(self) -> LadderModel:
        return self._model

    def summary(self) -> str:
        sentence = self.plot.sentence()
        return f"{sentence}." if sentence else self.tr("No stage whose memory traffic is known yet.")

    def table(self) -> Table:
        headers = [
            *("stage", "working set", "fits in", "bytes per frame", "at most", "GB/s", "GB/s at most"),
            *("GB/s measured", "share"),
        ]
        rows: list[list[object]] = []
        for one in self._model.stages:
            measured = None if one.bandwidth is None else f"{one.bandwidth * 1e-9:.3g}"
            share = None if one.bandwidth is None else percent(one.rate / one.bandwidth)
            size = size_text(round(one.working_set))
            figures = [f"{one.frame_bytes:.0f}", f"{one.most_frame_bytes:.0f}"]
            figures += [f"{rate * 1e-9:.3g}" for rate in (one.rate, one.most_rate)]
            rows.append([one.name, size, self.tr(one.level), *figures, measured, share])
        for ladder in self._model.ladders:
            name = ladder.name or self.tr("processor")
            for size_bytes, rate in ladder.rungs:
                size = size_text(round(size_bytes))
                rows.append([name, size, "", None, None, None, None, f"{rate * 1e-9:.3g}", None])
        return [self.tr(text) for text in headers], rows
