"""The span timeline: what ran for which frames, by lane.

Utterances, blocks, the stages within them, other threads and devices, replays and set-up, each in a lane of its own.
Time is that of the audio, as in the other charts, with what came before the first frame folded at the left end; or, as
a choice, that of the run. A column of pixels is filled as far as it was busy, in the colours of what ran; spans have
their names where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.charts.items import PixelItem, RasterItem
from app.charts.legend import ReadoutLine
from app.charts.pixels import Stills, still_scale
from app.charts.raster import opaque, stacked
from app.charts.time_plot import TimePlot
from app.model.playhead import Snapshot
from app.model.statistics import COUNTED
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, write
from app.style.theme import font, text_width, theme
from app.views.chart import ChartView
from app.views.table_twin import Table
from app.views.timeline_model import Lane, Ruler, TimelineModel, WallAxis, frames_text, stage_name, timeline_model
from profiler.analysis.lod.spans import KINDS, timeline_of
from profiler.arrays import I64, U32
from profiler.plain import clock, count
from profiler.session.model import Marker

GAP = 3  # Pixels between two lanes

NAME_FONT = 0.88

TEXT_ROOM = 8  # Pixels of a span that its name cannot take
TABLE_ROWS = 1000  # Spans of the table twin at most
COLORS = {  # By kind of span
    "frontend": "frontend",
    "scoring": "compute",
    "search": "search",
    "transfer": "transfer",
    "overhead": "overhead",
    "idle": "idle",
    "setup": "unexplained",
    "prepare": "outline",
    "decode": "border",
    "odd": "hover",
}
NEUTRAL = frozenset({"prepare", "decode", "odd", "idle", "overhead"})  # Names on these have the colour of text


def duration(seconds: float) -> str:
    """A length of time in the unit that suits it: 12.3 µs, 4.56 ms, 1.20 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


class TimelineView(ChartView[TimelineModel]):
    """Spans by lane."""

    id = "timeline"
    title = "Timeline"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.wall = WallAxis(axis)
        self.wall.setParent(self)
        self.run_time = self.add_toggle(self.tr("Run time"), self.tr("Spans as long as they took, set-up among them"))
        self.run_time.toggled.connect(self._time_chosen)
        self.raster = _Busy(self.plot)
        self.names = _Names(self.plot)
        self.wall.visible_changed.connect(self._axis_moved)
        self.plot.clicked.connect(self._choose)
        self.setMinimumHeight(120)

    def _ruler(self, snapshot: Snapshot) -> Ruler:
        return Ruler(timeline_of(snapshot.session), self.run_time.isChecked())

    def _time_chosen(self, run_time: bool) -> None:
        if not run_time:
            self.wall.set_timeline(None)
        self.plot.set_axis(self.wall if run_time else self.axis)
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> TimelineModel:
        return timeline_model(snapshot.session, self._ruler(snapshot), visible, columns, self.plot.visible)

    def draw(self, snapshot: Snapshot) -> None:
        if self.run_time.isChecked():
            self.wall.set_timeline(timeline_of(snapshot.session))
        super().draw(snapshot)

    def clear(self) -> None:
        self.wall.set_timeline(None)
        super().clear()

    def events(self, snapshot: Snapshot) -> tuple[tuple[Marker, ...], I64 | tuple[()]]:
        return (), ()

    def show_model(self, model: TimelineModel | None) -> None:
        self.names.set_model(model)
        if model is None:
            self.raster.show_nothing()
            self.plot.set_ticks(())
            return
        height = float(self.plot.plot_size[1])
        self.plot.set_height_range(0.0, height)
        rects = self.names.lane_rects()
        lanes = zip(model.lanes, rects, strict=True)
        self.plot.set_ticks([(height - rect.center().y(), self.tr(lane.title)) for lane, rect in lanes])
        self.raster.show_lanes(model, rects, height)

    def show_texts(self, model: TimelineModel) -> None:
        self.set_note(self._spans(model))

    def _choose(self, at: QPointF) -> None:
        """Select the time of the span under a click, and choose its stage; unfold what is folded; elsewhere, clear."""
        model, axis = self.model(), self.plot.axis
        lane = None if model is None else self.names.lane_at(at.y())
        second = self.plot.second_at(at)
        if model is None or lane is None or self.snapshot is None:
            axis.clear()
            return
        if self.names.setup_rect().contains(at):
            self.run_time.setChecked(True)
            self.wall.fit()
            return
        row, ruler = model.lanes[lane].row, self._ruler(self.snapshot)
        span = None if row is None else row.span_at(float(ruler.ns_at(second)))
        if span is not None:
            stage = self.snapshot.session.stages.get(span.stage)
            if stage is not None and stage.group in COUNTED:
                self.axis.choose_stage(stage.name)
        named = next(iter(model.lanes[lane].named_at(second)), None)
        if named is not None:
            axis.select(named.first_s, named.last_s)
        elif span is not None:
            axis.select(*ruler.seconds_at(np.array([span.start_ns, span.end_ns])).tolist())
        else:
            axis.clear()

    def readout(self, model: TimelineModel, second: float) -> list[ReadoutLine]:
        lane = self.names.lane_at(self.plot.mouse.y())
        if lane is None or self.snapshot is None:
            return []
        session, row, ruler = self.snapshot.session, model.lanes[lane].row, self._ruler(self.snapshot)
        of = self.tr("since the start") if ruler.run_time else self.tr("of the audio")
        head = ReadoutLine(clock(second, 3), of, strong=True)
        if row is None:
            inside = model.lanes[lane].named_at(second)
            return [head, *(ReadoutLine(n.name, duration(n.last_s - n.first_s)) for n in inside)]
        span = row.span_at(float(ruler.ns_at(second)))
        if span is None:
            return [head]
        record = session.spans[span.number]
        first, frames = int(record["first_frame"]), int(record["frames"])
        group, length = session.stages[span.stage].group, duration((span.end_ns - span.start_ns) * 1e-9)
        lines = [
            head,
            ReadoutLine(stage_name(session, span.stage), length, None if group in NEUTRAL else COLORS[group]),
        ]
        if frames:
            lines.append(
                ReadoutLine(self.tr("frame") if frames == 1 else self.tr("frames"), frames_text(first, frames))
            )
        return lines

    def summary(self) -> str:
        model = self.model()
        if model is None or not model.spans:
            return self.tr("No spans in view yet.")
        busy = ", ".join(
            f"{self.tr(lane.title)} {100 * float(np.minimum(lane.busy.sum(axis=1), 1).mean()):.0f} %"
            for lane in model.lanes
        )
        return self.tr("{0}; busy: {1}.").format(self._spans(model), busy)

    def _spans(self, model: TimelineModel) -> str:
        """How many spans there are in view, and in how long a time of the run."""
        text = self.tr("1 span in {1}") if model.spans == 1 else self.tr("{0} spans in {1}")
        return text.format(count(model.spans), duration(model.length_s))

    def table(self) -> Table:
        headers = [self.tr(t) for t in ("lane", "stage", "start s", "duration µs", "first frame", "frames")]
        model = self.model()
        rows: list[list[object]] = []
        if model is None or self.snapshot is None:
            return headers, rows
        session, ruler = self.snapshot.session, self._ruler(self.snapshot)
        begin, end = ruler.ns_at(np.array([model.first_s, model.last_s])).tolist()
        for lane in model.lanes:
            for span in () if lane.row is None else lane.row.within(begin, end, most=TABLE_ROWS - len(rows)):
                record = session.spans[span.number]
                start, length = float(ruler.seconds_at(span.start_ns)), (span.end_ns - span.start_ns) / 1e3
                what = self.tr(lane.title), stage_name(session, span.stage)
                frames = [str(int(record[name])) for name in ("first_frame", "frames")]
                rows.append([*what, f"{start:.6f}", f"{length:.1f}", *frames])
        return headers, rows


class _Busy(RasterItem):
    """How busy each lane was, in the colours of what ran, with lines between spans."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot)
        self._parted = np.empty((0, 0))
        self._lanes: Sequence[Lane] = ()
        self._rects: Sequence[QRectF] = ()

    def show_lanes(self, model: TimelineModel, rects: Sequence[QRectF], height: float) -> None:
        self._lanes, self._rects = model.lanes, rects
        columns = len(model.lanes[0].busy)
        self._parted = np.zeros((columns, len(model.lanes)))
        for number, lane in enumerate(model.lanes):
            x = np.round((lane.parted - model.first_s) / (model.last_s - model.first_s) * columns).astype(np.int64)
            self._parted[x[(x >= 0) & (x < columns)], number] = 1.0
        values = np.concatenate([self._parted, *(lane.busy for lane in model.lanes)], axis=1)
        self.show_columns(model.first_s, model.last_s, 0.0, height, values)

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        pixels = np.zeros((height, at.stop - at.start), np.uint32)
        tokens = theme()
        colors = [tokens.color(COLORS[kind]).name() for kind in KINDS]
        for lane, rect, parted in zip(self._lanes, self._rects, self._parted[at].T > 0, strict=True):
            busy = lane.busy[at]
            # A plot that has just become lower is painted before its lanes are laid out again.
            top, bottom = (min(round(y * scale), height) for y in (rect.top(), rect.bottom()))
            if bottom > top and busy.any():
                pixels[top:bottom] = stacked(busy, bottom - top, colors, tokens.card)
                pixels[top:bottom, parted] = opaque(tokens.card)
        return pixels

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        tokens = theme()
        across = place.width() / len(self._lanes[0].busy)
        painter.setPen(Qt.PenStyle.NoPen)
        for lane, rect in zip(self._lanes, self._rects, strict=True):
            busy = np.round(lane.busy, 3)
            starts = np.flatnonzero(np.any(np.diff(busy, axis=0, prepend=-1.0), axis=1))
            for begin, end in zip(starts, np.append(starts[1:], len(busy)), strict=True):
                bottom = place.top() + rect.bottom()
                for kind in np.flatnonzero(busy[begin]):
                    high = busy[begin, kind] * rect.height()
                    painter.setBrush(tokens.color(COLORS[KINDS[kind]]))
                    painter.drawRect(QRectF(place.left() + begin * across, bottom - high, (end - begin) * across, high))
                    bottom -= high
        painter.setPen(QPen(tokens.color("card"), 1))
        for rect, parted in zip(self._rects, self._parted.T, strict=True):
            top, bottom = place.top() + rect.top(), place.top() + rect.bottom()
            x = place.left() + np.flatnonzero(parted) * across + 0.5
            painter.drawLines([QLineF(at, top, at, bottom) for at in x.tolist()])


class _Names(PixelItem):
    """The names of spans that have room."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=2.0)
        self._model: TimelineModel | None = None
        self._face = font(NAME_FONT)
        self._metrics = QFontMetricsF(self._face)
        self._stills = Stills()

    def set_model(self, model: TimelineModel | None) -> None:
        self._model = model

    def lane_rects(self) -> list[QRectF]:
        lanes = 0 if self._model is None else len(self._model.lanes)
        width, height = self.plot.plot_size
        tops = [round(n * height / max(1, lanes)) for n in range(lanes + 1)]
        return [QRectF(0, top, width, max(2, after - top - GAP)) for top, after in pairwise(tops)]

    def lane_at(self, y: float) -> int | None:
        rects = self.lane_rects()
        return next((n for n, rect in enumerate(rects) if rect.top() <= y <= rect.bottom()), None)

    def setup_rect(self) -> QRectF:
        """Where the time before the first frame is folded, in pixels; empty where it is not."""
        model = self._model
        if model is not None and model.setup_s > 0:
            for lane, rect in zip(model.lanes, self.lane_rects(), strict=True):
                if lane.row is not None and lane.row.key.kind == "setup":
                    wide = self._fitting(self._setup(model), 1 << 10)[1] + TEXT_ROOM
                    return QRectF(0, rect.top(), wide, rect.height())
        return QRectF()

    @staticmethod
    def _setup(model: TimelineModel) -> str:
        return QCoreApplication.translate("Timeline", "{0} before").format(duration(model.setup_s))

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        if self._model is None:
            return
        if folded := self.setup_rect():
            painter.fillRect(folded, theme().color(COLORS["setup"]))
            painter.setFont(self._face)
            painter.setPen(theme().color("card"))
            write(painter, folded.adjusted(TEXT_ROOM / 2, 0, 0, 0), AT_LEFT, self._setup(self._model))
        first, last = self.plot.visible
        per_s = area.width() / (last - first)
        painter.setFont(self._face)
        scale = still_scale(painter)
        for lane, rect in zip(self._model.lanes, self.lane_rects(), strict=True):
            for named in lane.named:
                left = max((named.first_s - first) * per_s, 0.0)
                right = min((named.last_s - first) * per_s, area.width())
                room = right - left - TEXT_ROOM
                if room < self._metrics.averageCharWidth() * 2 or rect.height() < 10:
                    continue
                text, wide = self._fitting(named.name, int(room))
                ink = "text" if named.kind in NEUTRAL else "card"
                place = QRectF(round(left + TEXT_ROOM / 2), rect.top(), wide, rect.height())
                painter.setPen(theme().color(ink))
                draw = partial(write, area=place, flags=AT_LEFT, text=text)
                self._stills.paint(painter, place, (text, ink), draw, scale)

    def _fitting(self, name: str, room: int) -> tuple[str, int]:
        """A name, cut short where it has no room, and its width."""
        whole = math.ceil(text_width(name, NAME_FONT)) + 1
        if whole <= room + 1:
            return name, whole
        text = self._metrics.elidedText(name, Qt.TextElideMode.ElideRight, room)
        return text, math.ceil(self._metrics.horizontalAdvance(text)) + 1
