"""Memory traffic: each stage's bandwidth over its working set, against the bandwidth measured at every size.

The upper line is what the machine reads per second from a working set of that size: it falls in steps where a cache is
full. The bar above a dot extends to the traffic of the kernel's tiling.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPen, QPolygonF

from app.charts.still import LINE, small_metrics
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, describe, fitting
from app.style.theme import theme
from app.views.roofline_model import MIN_SHARE, Stage, cache_sizes, place_of
from app.views.roofline_plot import Dot, StageDots, decades
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis.breakdown import StageRow
from profiler.machine.roofs.table import size_text
from profiler.plain import one_line, percent, prefixed, speed
from profiler.session.reader import Session

MEMORY: Final = "memory"  # The level of what fits into no cache


@dataclass(frozen=True)
class Traffic(Stage):
    """What one stage moves, if each byte moves once."""

    device: str  # Where it works; empty: the processor
    frame_bytes: float  # Per frame of the stretch
    tiled: float  # How many times as much it moves with the kernel's tiling
    working_set: float  # Bytes that one call reads again
    rate: float  # Bytes per second
    bandwidth: float | None  # Bytes per second measured at that working set, None without a ladder
    level: str  # "L1" … or MEMORY, empty where the caches are not known


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
    caches = cache_sizes(session.meta.get("machine"))
    stages = tuple(_stages(session, rows, max(1, frames), threads, caches))
    ladders = []
    for place, name in {one.device: place_of(session, one.name, threads).device for one in stages}.items():
        if roofs := session.calibration.ladder("read", threads, place):
            ladders.append(Ladder(place, tuple((float(roof.bytes), roof.median) for roof in roofs), name))
    return LadderModel(stages, tuple(ladders), caches, threads)


def _stages(
    session: Session, rows: Sequence[StageRow], frames: int, threads: int, caches: Sequence[int]
) -> Iterator[Traffic]:
    laws = [(session.stages.get(number), cost.device) for (number, _), cost in session.costs.items()]
    devices = {stage.name: device for stage, device in laws if stage is not None}
    for row in sorted(rows, key=lambda row: -row.own_ns):
        small = row.share is not None and row.share < MIN_SHARE
        if row.own_ns <= 0 or small or not row.bytes_min or not row.working_set:
            continue
        device = devices.get(row.name, "")
        roof = session.calibration.bandwidth(row.working_set, threads, device=device)
        yield Traffic(
            name=one_line(row.name),
            group=row.group,
            device=one_line(device),
            share=row.share,
            frame_bytes=row.bytes_min / frames,
            tiled=max(1.0, (row.bytes_max or 0.0) / row.bytes_min),
            working_set=row.working_set,
            rate=row.bytes_min / row.own_ns * 1e9,
            bandwidth=None if roof is None else roof.median,
            level="" if device else level_of(row.working_set, caches),
            defect=row.defect is not None,
        )


def level_of(size: float, caches: Sequence[int]) -> str:
    """The first cache (bytes of each, from the first level on) into which a size fits; empty without any known."""
    if not caches:
        return ""
    return next((f"L{level}" for level, most in enumerate(caches, start=1) if size <= most), MEMORY)


TICK_APART = 70.0  # Pixels between two sizes on the axis at least
STEPS = (1, 2, 4, 5, 10)  # Powers of two between two of them


class LadderPlot(StageDots[Traffic]):
    """Bandwidth over working set."""

    margins = 62.0, 2 * LINE + 6, 12.0, 2 * LINE + 4

    def __init__(self) -> None:
        super().__init__(200)
        self._model = LadderModel()

    def show_model(self, model: LadderModel, choice: str | None) -> None:
        if (model, choice) != (self._model, self._choice):
            self._model, self.stages, self._choice = model, model.stages, choice
            if model.stages:
                rungs = [rung for ladder in model.ladders for rung in ladder.rungs]
                sizes = [*(one.working_set for one in model.stages), *(size for size, _ in rungs)]
                rates = [rate for one in model.stages for rate in (one.rate, one.rate * one.tiled)]
                half = math.log10(2.0) / 2
                across = math.log10(min(sizes)) - half, math.log10(max(sizes)) + half
                self.ranges = across, decades([*rates, *(rate for _, rate in rungs)], 0.15)
            describe(self, self.tr("Memory traffic"), self.sentence())
            self.rebuild()

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

    def build(self) -> None:
        marked, area = self.marked, self._area()
        if marked is None:
            self.canvas.frame(area, (), ())
            return
        self._draw_axes(area)
        if not marked.device:  # the caches of a device are not known
            self._draw_levels(area)
        tokens, place = theme(), self.place
        own, other = QPen(tokens.color("text"), 1.4), QPen(tokens.color("muted"), 0.7)
        for ladder in self._model.ladders:
            self.canvas.curve([place(*rung) for rung in ladder.rungs], own if ladder.device == marked.device else other)
        text = fitting(small_metrics(), self.width() - 4.0, *self.sentences(marked))
        self.canvas.text(text, QRectF(2, 0, self.width() - 4.0, LINE), AT_LEFT, "text")
        if marked.bandwidth is not None:
            ends = [place(marked.working_set, rate) for rate in (marked.rate, marked.bandwidth)]
            self.canvas.curve(ends, QPen(tokens.color("muted"), 1, Qt.PenStyle.DotLine))
        stages = sorted(self.stages, key=lambda one: one is not marked)
        dots = [
            Dot(one, place(one.working_set, one.rate), place(one.working_set, one.rate * one.tiled)) for one in stages
        ]
        self.draw_dots(dots, marked)
        self.name_dots(dots, marked)
        self._name_ladders(area)

    def _draw_axes(self, area: QRectF) -> None:
        (left, right), (low, high) = self.ranges
        first, last = max(0, math.ceil(left / math.log10(2))), math.floor(right / math.log10(2))
        most = max(2, int(area.width() / TICK_APART))
        step = next((one for one in STEPS if (right - left) / math.log10(2) / one <= most), STEPS[-1])
        powers = [power for power in range(first, last + 1) if power % step == 0]
        along = [(self.place(2.0**power, 1.0).x(), size_text(1 << power)) for power in powers]
        rates = [(10.0**p, p > low) for p in range(int(low), int(high) + 1)]
        up = [(self.place(1.0, rate).y(), speed(rate) if named else "") for rate, named in rates]
        self.axes(up, along, self.tr("working set"))

    def _draw_levels(self, area: QRectF) -> None:
        """A line where each cache is full, and the names of the levels between them."""
        caches, pen = self._model.caches, QPen(theme().color("muted"), 1, Qt.PenStyle.DashLine)
        names = [*(f"L{level}" for level in range(1, len(caches) + 1)), self.tr("memory")] if caches else []
        x0 = area.left()
        for name, size in zip(names, (*caches, None), strict=False):
            x1 = area.right() if size is None else self.place(size, 1.0).x()
            if area.left() < x1 < area.right():
                self.canvas.curve([QPointF(x1, area.top() - LINE), QPointF(x1, area.bottom())], pen)
            x1 = min(max(x1, area.left()), area.right())
            texts = (name,) if size is None else (f"{name} {size_text(size)}", name)
            text = fitting(small_metrics(), x1 - x0 - 6, *texts, "")
            self.canvas.text(text, QRectF(x0, area.top() - LINE, x1 - x0, LINE))
            x0 = x1

    def _name_ladders(self, area: QRectF) -> None:
        threads = self._model.threads
        processor = self.tr("reading, 1 thread") if threads == 1 else self.tr("reading, {0} threads").format(threads)
        for ladder in self._model.ladders:
            text = self.tr("reading, {0}").format(ladder.name) if ladder.device else processor
            wide = small_metrics().horizontalAdvance(text) + 2
            points = [self.place(*rung) for rung in ladder.rungs]
            line = QPolygonF([*points, *points[::-1]])
            tops = (
                QRectF(at.x() + dx, at.y() + dy, wide, LINE)
                for dy in (-LINE - 3, 4.0)
                for at in points
                for dx in (0.0, -wide / 2, -wide)
            )
            box = self.canvas.free(box for box in tops if area.contains(box) and not line.intersects(QPolygonF(box)))
            if box is not None:
                self.write_on_card(text, box, "muted")


class MemoryLadderView(View):
    """What each stage moves, and how fast, against what the machine can."""

    id = "memory"
    title = "Memory traffic"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = LadderPlot()
        self.set_body(self.plot)
        self._model: LadderModel = LadderModel()
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
            figures = [f"{one.frame_bytes * times:.0f}" for times in (1.0, one.tiled)]
            figures += [f"{one.rate * times * 1e-9:.3g}" for times in (1.0, one.tiled)]
            rows.append([one.name, size_text(round(one.working_set)), self.tr(one.level), *figures, measured, share])
        for ladder in self._model.ladders:
            name = ladder.name or self.tr("processor")
            for size, rate in ladder.rungs:
                rows.append([name, size_text(round(size)), "", *[None] * 4, f"{rate * 1e-9:.3g}", None])
        return [self.tr(text) for text in headers], rows
