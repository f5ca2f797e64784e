"""What the timeline draws, as plain arrays: which kinds of spans each lane has under each pixel column.

A block is as wide as its frames in time of the audio, as the other charts have them, or as long as it took in time of
the run: `WallAxis` is the range in that time, which moves together with that of the audio. One frame may take a
thousandth of another's time, and set-up has no frames at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from app.model.time_axis import NamedRange, TimeAxis
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.lod.spans import DECODE, KINDS, RowKey, SpanRow, Timeline
from profiler.arrays import F64, Array
from profiler.clock import FRAME_S
from profiler.plain import one_line
from profiler.session.reader import Session

BORDERS_UP_TO: Final = 8_000  # Spans in view up to which each is parted from the next and may have its name
NAMED_FROM: Final = 34  # Pixels from which a span has its name
PARTED_FROM: Final = 4  # Pixels from which a span is parted from the one before

TITLES: Final = {"blocks": "blocks", "stages": "stages", "replays": "replays", "setup": "set-up"}


class Ruler(NamedTuple):
    """Which time of the session's clock lies at a second of the plot: of decoded audio, or of the run."""

    timeline: Timeline
    run_time: bool

    def ns_at(self, second: Array | float) -> F64:
        if self.run_time:
            return self.timeline.extent_ns[0] + np.asarray(second) * 1e9
        return self.timeline.ns_at(np.asarray(second) / FRAME_S)

    def seconds_at(self, ns: Array | float) -> F64:
        if self.run_time:
            return (np.asarray(ns) - self.timeline.extent_ns[0]) * 1e-9
        return self.timeline.frames_at(ns) * FRAME_S


@dataclass(frozen=True)
class Named:
    """A span wide enough for its name: its ends in seconds, the name, its kind."""

    first_s: float
    last_s: float
    name: str
    kind: str


@dataclass(frozen=True)
class Lane:
    """One row: shares `busy` [columns, kinds], seconds `parted` between spans, and its spans (utterances: None)."""

    title: str
    row: SpanRow | None
    busy: F64
    parted: F64
    named: tuple[Named, ...]

    def named_at(self, second: float) -> list[Named]:
        return [one for one in self.named if one.first_s <= second < one.last_s]


@dataclass(frozen=True)
class TimelineModel:
    """The lanes over [first_s, last_s] seconds of the plot."""

    first_s: float
    last_s: float
    lanes: tuple[Lane, ...]
    spans: int  # How many were counted, in `length_s` seconds of the run
    length_s: float
    setup_s: float  # What the run took before its first frame, where that is folded at the left end; else 0


def timeline_model(
    session: Session, ruler: Ruler, visible: tuple[float, float], columns: int, counted: tuple[float, float]
) -> TimelineModel:
    """Reduce the spans of a session to `columns` pixel columns over `visible` seconds; count those in `counted`."""
    timeline = ruler.timeline
    first_s, last_s = visible
    edges = ruler.ns_at(column_edges(first_s, last_s, columns))
    order = [*TITLES]
    known = timeline.rows.values()
    rows = sorted(known, key=lambda row: (row.key.kind == "setup", row.key.lane, order.index(row.key.kind)))
    begin, end = ruler.ns_at(np.array(counted)).tolist()
    spans = sum(len(row.places(begin, end)) for row in rows)
    whole = spans <= BORDERS_UP_TO
    column_s = (last_s - first_s) / columns
    lanes = [_utterances(session, ruler, edges, column_s)]
    lanes += [_lane(session, ruler, row, edges, column_s, whole) for row in rows]
    folded = not ruler.run_time and counted[0] <= 0.0 and timeline.reached > 0
    setup_s = (float(timeline.ns_at(0.0)) - timeline.extent_ns[0]) * 1e-9 if folded else 0.0
    return TimelineModel(first_s, last_s, tuple(lanes), spans, (end - begin) * 1e-9, setup_s)


def title_of(session: Session, key: RowKey) -> str:
    """What a row is called: what it has, or the lane where that is not the one that decodes."""
    lane = session.lanes.get(key.lane)
    if key.kind == "stages" and lane is not None and not lane.decode:
        return one_line(lane.name, 12)
    return TITLES[key.kind]


def stage_name(session: Session, stage: int) -> str:
    known = session.stages.get(stage)
    return "?" if known is None else one_line(known.name)


def _lane(session: Session, ruler: Ruler, row: SpanRow, edges: F64, column_s: float, whole: bool) -> Lane:
    width = np.diff(edges)[:, None]
    busy = np.divide(row.busy(edges), width, out=np.zeros((len(width), len(KINDS))), where=width > 0)
    parted, named = np.empty(0), []
    if whole:
        places = row.places(edges[0], edges[-1])
        starts_s, ends_s = ruler.seconds_at(row.ends(places)).T
        parted = starts_s[np.diff(starts_s, prepend=-1.0) >= PARTED_FROM * column_s]
        for at in np.flatnonzero(ends_s - starts_s >= NAMED_FROM * column_s).tolist():
            span = row.span(places[at])
            stage, name = session.stages.get(span.stage), _shown_name(session, row, span.number, span.stage)
            group = "setup" if stage is None else stage.group
            named.append(Named(float(starts_s[at]), float(ends_s[at]), name, group))
    return Lane(title_of(session, row.key), row, np.minimum(busy, 1.0), parted, tuple(named))


def _shown_name(session: Session, row: SpanRow, number: int, stage: int) -> str:
    """A block is known by its frames, everything else by its stage."""
    if row.key.kind == "blocks":
        span = session.spans[number]
        decodes = session.stages[stage].group == "decode"
        return frames_text(int(span["first_frame"]), int(span["frames"])) if decodes else "prepare"
    name = stage_name(session, stage)
    return name.removeprefix("replay.").removeprefix("setup.")


def frames_text(first: int, frames: int) -> str:
    return f"{first}" if frames == 1 else f"{first}–{first + frames - 1}"


def _utterances(session: Session, ruler: Ruler, edges: F64, column_s: float) -> Lane:
    """The utterances from their first block to their last, in two shades."""
    utterances = session.utterances.in_time
    busy = np.zeros((len(edges) - 1, len(KINDS)))
    if not len(utterances):
        return Lane("utterance", None, busy, np.empty(0), ())
    timeline = ruler.timeline
    low, high = utterances.first.searchsorted(timeline.frames_at(edges[[0, -1]]), side="right").tolist()
    some = slice(max(low - 1, 0), max(high, 1))
    begin = timeline.ns_at(utterances.first[some])
    end = timeline.ns_at(np.minimum(utterances.end[some], timeline.reached))
    middle = (edges[1:] + edges[:-1]) / 2
    at = np.searchsorted(begin, middle, side="right") - 1
    there = (at >= 0) & (middle < end[np.maximum(at, 0)])
    busy[np.flatnonzero(there), DECODE + (some.start + at[there]) % 2] = 1.0
    begin_s, end_s = ruler.seconds_at(begin), ruler.seconds_at(end)
    seen = np.flatnonzero((end > edges[0]) & (begin < edges[-1]) & (end_s - begin_s >= NAMED_FROM * column_s))
    named = tuple(
        Named(float(begin_s[n]), float(end_s[n]), one_line(utterances[some.start + n].name), KINDS[DECODE])
        for n in seen.tolist()
    )
    return Lane("utterance", None, busy, np.empty(0), named)


Range = tuple[float, float]  # First and last second

HELD = 0.05  # Share by which the width of a following window may be wrong: of another, all its pixels would be others


class WallAxis(TimeAxis):
    """Seconds since the first span of the session."""

    least_s = 2e-6
    empty_s = 1e-3

    def __init__(self, shared: TimeAxis) -> None:
        super().__init__()
        self._shared = shared
        self._ruler: Ruler | None = None
        self._passing_on = False
        self.snap_points = lambda first, last: [
            self.seconds_at(point) for point in shared.snap_points(self.audio_at(first), self.audio_at(last))
        ]
        shared.visible_changed.connect(self._shared_moved)
        shared.selection_changed.connect(self._shared_selected)
        shared.cursor_changed.connect(self._shared_cursor)
        shared.hover_changed.connect(self._shared_hovered)
        shared.named_changed.connect(self.named_changed)
        self.visible_changed.connect(self._moved)
        self.selection_changed.connect(self._selected_here)
        self.hover_changed.connect(self._hovered_here)

    def set_timeline(self, timeline: Timeline | None) -> None:
        """Take over how far the session has come; None: it was closed."""
        before = self._ruler
        ruler = self._ruler = None if timeline is None else Ruler(timeline, run_time=True)
        if ruler is None:
            return
        self.end = max(float(ruler.seconds_at(ruler.timeline.extent_ns[1])), self.least_s)
        self.following = False
        self._mode = "tail"
        self._shared_cursor(self._shared.cursor)
        if before is None or before.timeline is not timeline or self._shared.following:
            self._shared_moved(*self._shared.visible)
        self._shared_selected(self._shared.selected)

    def seconds_at(self, audio_s: float) -> float:
        """When a second of audio was decoded; beyond what is there, at the mean speed so far."""
        if self._ruler is None or not self._ruler.timeline.reached:
            return 0.0
        timeline = self._ruler.timeline
        frames = audio_s / FRAME_S
        more = max(0.0, frames - timeline.reached) + min(0.0, frames)
        first, last = timeline.ns_at(np.array([0.0, timeline.reached]))
        per_frame = (last - first) / timeline.reached
        ns = float(timeline.ns_at(frames)) + more * float(per_frame)
        return float(self._ruler.seconds_at(ns))

    def audio_at(self, second: float) -> float:
        if self._ruler is None:
            return 0.0
        return float(self._ruler.timeline.frames_at(self._ruler.ns_at(second))) * FRAME_S

    def named_ranges(self) -> Sequence[NamedRange]:
        at, ranges = self.seconds_at, self._shared.named_ranges()
        return [one._replace(first=at(one.first), last=at(one.last)) for one in ranges]

    def fit(self) -> None:
        self._show(0.0, self.end)

    def _pass_on(self, change: Callable[[], None]) -> None:
        if not self._passing_on and self._ruler is not None:
            self._passing_on = True
            change()
            self._passing_on = False

    def _shared_moved(self, first: float, last: float) -> None:
        begin, end = self.seconds_at(first), self.seconds_at(last)
        width = self.visible[1] - self.visible[0]
        if self._shared.windowed and abs(end - begin - width) < HELD * width:
            begin = end - width
        self._pass_on(lambda: self._show(begin, end))

    def _moved(self, first: float, last: float) -> None:
        self._pass_on(lambda: self._shared.set_visible(self.audio_at(first), self.audio_at(last)))

    def _shared_selected(self, selected: Range | None) -> None:
        self._pass_on(lambda: _select(self, selected, self.seconds_at))

    def _selected_here(self, selected: Range | None) -> None:
        self._pass_on(lambda: _select(self._shared, selected, self.audio_at))

    def _shared_cursor(self, audio_s: float) -> None:
        # What is recorded after the last frame is no future.
        self.cursor = self.end if audio_s >= self._shared.end else self.seconds_at(audio_s)
        self.cursor_changed.emit(self.cursor)

    def _shared_hovered(self) -> None:
        audio_s = self._shared.hover
        self._pass_on(lambda: self.set_hover(None if audio_s is None else self.seconds_at(audio_s)))

    def _hovered_here(self) -> None:
        second = self.hover
        self._pass_on(lambda: self._shared.set_hover(None if second is None else self.audio_at(second)))


def _select(axis: TimeAxis, selected: Range | None, convert: Callable[[float], float]) -> None:
    """Select on `axis` what is selected on the other, whose seconds `convert` turns into those of `axis`."""
    if selected is None:
        axis.clear()
    else:
        axis.select(*map(convert, selected))
