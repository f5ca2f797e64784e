"""Spans by row of a timeline, reduced to the busy time of each kind per pixel column: exact at any number of spans.

The busy time before a moment is a stored sum over whole chunks of spans plus a sum over the spans of the last chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from profiler.arrays import F64, I64, Array
from profiler.session.format.grow import Growing, sweep
from profiler.session.reader import Session
from profiler.spans import GROUPS, TILING

CHUNK: Final = 8  # Spans whose sums are kept together
AT_ONCE: Final = 1 << 16  # Spans taken in at once: bounds the temporary arrays to some megabytes
KINDS: Final = (*GROUPS, "odd")  # The group; every other block (`decode`) is `odd`, so that two are seen
DECODE: Final = KINDS.index("decode")

RowKind = Literal["blocks", "stages", "replays", "setup"]
ROWS: Final[tuple[RowKind, ...]] = ("blocks", "stages", "replays", "setup")
AGAIN: Final = ("replay.", "setup.replay", "setup.calls again", "setup.probe")  # Stages replayed beside the run


class RowKey(NamedTuple):
    """What a row has: a kind of spans on a lane."""

    kind: RowKind
    lane: int


@dataclass(frozen=True, slots=True)
class Shown:
    """One span: its number among those of the session, its stage, its time on the session's clock."""

    number: int
    stage: int
    start_ns: int
    end_ns: int


class SpanRow:
    """The spans of one row in order of time: their numbers among those of the session, which holds the rest."""

    def __init__(self, key: RowKey) -> None:
        self.key = key
        self.spans: Array = np.empty(0)  # Those of the session, as they are now
        self._number, self._kind = Growing(np.uint32), Growing(np.uint8)
        # When the first span of each chunk begins.
        self._first = Growing(np.int64)
        # Busy time before each chunk, [chunks + 1, kinds]; the last one is of whole chunks only.
        self._sums = Growing(np.float64, len(KINDS))
        self._sums.extend(np.zeros((1, len(KINDS))))

    def __len__(self) -> int:
        return len(self._number)

    def _column(self, name: Literal["start_ns", "duration_ns"], places: slice[int, int | None] | Array) -> I64:
        return np.asarray(self.spans[name][self._number.view[places]], np.int64)

    def add(self, numbers: I64, kinds: Array) -> None:
        """Append spans by number, and their kinds, in any order among themselves."""
        start = self.spans["start_ns"][numbers]
        if (np.diff(start) < 0).any() or (len(self) and start[0] < self.span(-1).start_ns):
            # What begins before the first of them stays where it is.
            same = self._begun(int(start.min()))
            numbers = np.concatenate([self._number.view[same:], numbers])
            kinds = np.concatenate([self._kind.view[same:], kinds])
            order = np.argsort(self.spans["start_ns"][numbers], kind="stable")
            numbers, kinds = numbers[order], kinds[order]
            self._number.cut(same)
            self._kind.cut(same)
            self._first.cut(-(-same // CHUNK))
            self._sums.cut(same // CHUNK + 1)
        self._number.extend(numbers)
        self._kind.extend(kinds)
        self._first.extend(self._column("start_ns", np.arange(len(self._first) * CHUNK, len(self), CHUNK)))
        done, chunks = len(self._sums) - 1, len(self) // CHUNK
        if chunks > done:
            part = slice(done * CHUNK, chunks * CHUNK)
            code = np.repeat(np.arange(chunks - done), CHUNK) * len(KINDS) + self._kind.view[part]
            busy = np.bincount(code, self._column("duration_ns", part), (chunks - done) * len(KINDS))
            self._sums.extend(np.cumsum(busy.reshape(-1, len(KINDS)), axis=0) + self._sums.view[-1])

    def _begun(self, t_ns: int) -> int:
        """How many spans began before a time."""
        first = max(int(self._first.view.searchsorted(t_ns)) - 1, 0) * CHUNK
        return first + int((self._column("start_ns", slice(first, first + CHUNK)) < t_ns).sum())

    def busy(self, edges_ns: F64) -> F64:
        """Busy time of each kind between neighbours of `edges_ns` [columns + 1], ns [columns, kinds]."""
        if not len(self):
            return np.zeros((len(edges_ns) - 1, len(KINDS)))
        # The last chunk with spans begun before each edge, which are looked at one by one.
        chunk = np.maximum(self._first.view.searchsorted(np.ceil(edges_ns).astype(np.int64)) - 1, 0)
        places = chunk[:, None] * CHUNK + np.arange(CHUNK)
        last = np.minimum(places, len(self) - 1)
        ran = np.minimum(self._column("duration_ns", last), edges_ns[:, None] - self._column("start_ns", last))
        ran[(places > last) | (ran < 0)] = 0
        # Spans of earlier chunks that go on after the edge: the one before the chunk at most.
        before = np.maximum(chunk * CHUNK - 1, 0)
        ended = self._column("start_ns", before) + self._column("duration_ns", before)
        over = np.maximum(ended - edges_ns, 0) * (chunk > 0)
        kind = self._kind.view
        code = np.arange(len(edges_ns))[:, None] * len(KINDS) + kind[last]
        inside = np.bincount(code.ravel(), ran.ravel(), len(edges_ns) * len(KINDS))
        until = self._sums.view[chunk] + inside.reshape(-1, len(KINDS))
        until[np.arange(len(edges_ns)), kind[before]] -= over
        return np.asarray(np.maximum(np.diff(until, axis=0), 0.0))

    def span_at(self, t_ns: float) -> Shown | None:
        """Return the span at a time, the last to begin; None without one."""
        place = self._begun(math.floor(t_ns) + 1) - 1
        latest = None if place < 0 else self.span(place)
        return None if latest is None or latest.end_ns < t_ns else latest

    def within(self, begin_ns: float, end_ns: float, most: int | None = None) -> list[Shown]:
        """The spans that reach into [begin, end), in order of time; `most`: the first ones."""
        return [self.span(place) for place in self.places(begin_ns, end_ns)[:most]]

    def ends(self, places: range) -> I64:
        """When each of the spans at `places` begins and ends, [n, 2]."""
        part = slice(places.start, places.stop)
        starts = self._column("start_ns", part)
        return np.stack([starts, starts + self._column("duration_ns", part)], axis=1)

    def places(self, begin_ns: float, end_ns: float) -> range:
        """The places of the spans that reach into [begin, end)."""
        first = max(self._begun(math.floor(begin_ns) + 1) - 1, 0)
        if first < len(self) and self.span(first).end_ns <= begin_ns:
            first += 1
        return range(first, max(first, self._begun(math.ceil(end_ns))))

    def span(self, place: int) -> Shown:
        """The span at a place in order of time; −1 is the last."""
        number = int(self._number.view[place])
        span = self.spans[number]
        start = int(span["start_ns"])
        return Shown(number, int(span["stage"]), start, start + int(span["duration_ns"]))


class Timeline:
    """The rows of one session, kept up with its spans, and where on its clock its frames were decoded."""

    def __init__(self) -> None:
        self._generation = -1
        self._clear()

    def _clear(self) -> None:
        self.rows: dict[RowKey, SpanRow] = {}
        self._taken = 0
        # By block in order of time: first frame and start.
        self._frames, self._times = Growing(np.float64), Growing(np.float64)
        # Of the last one: frame reached and end.
        self.reached, self._end_ns = 0.0, 0.0

    def follow(self, session: Session) -> None:
        """Take in what the session has read since the last call."""
        if session.generation != self._generation:
            self._clear()
            self._generation = session.generation
        spans = session.spans
        for row in self.rows.values():
            row.spans = spans
        while self._taken < len(spans):
            self._take(session, np.arange(self._taken, min(self._taken + AT_ONCE, len(spans))))
            if len(spans) - self._taken >= AT_ONCE:
                sweep()

    def _take(self, session: Session, numbers: I64) -> None:
        self._taken += len(numbers)
        fresh = session.spans[numbers[0] : numbers[-1] + 1]
        row_by_stage, kind_by_stage = np.zeros((2, max(session.stages) + 1), np.uint8)
        for number, stage in session.stages.items():
            kind_by_stage[number] = KINDS.index(stage.group)
            row_by_stage[number] = ROWS.index(_row_of(stage.name, stage.group))
        row_of, kind_of = row_by_stage[fresh["stage"]], kind_by_stage[fresh["stage"]]
        for lane in np.unique(fresh["lane"]).tolist():
            on_lane = fresh["lane"] == lane
            for row, row_kind in enumerate(ROWS):
                at = np.flatnonzero(on_lane & (row_of == row))
                if not len(at):
                    continue
                key = RowKey(row_kind, lane)
                target = self.rows.setdefault(key, SpanRow(key))
                target.spans = session.spans
                kinds = kind_of[at]
                decodes = kinds == DECODE
                blocks = fresh[at[decodes]]
                if len(blocks) and session.lanes[lane].decode:
                    self._decoded(blocks)
                kinds[decodes] += ((len(target) + np.arange(len(at))) % 2)[decodes].astype(np.uint8)
                target.add(numbers[at], kinds)

    def _decoded(self, blocks: Array) -> None:
        first, start = blocks["first_frame"].astype(np.float64), blocks["start_ns"].astype(np.float64)
        # A damaged file may go back in frames or time; a map needs both to rise.
        frames = np.maximum.accumulate(np.append(self._frames.view[-1:], first))
        times = np.maximum.accumulate(np.append(self._times.view[-1:], start))
        skip = len(self._frames) > 0
        self._frames.extend(frames[skip:])
        self._times.extend(times[skip:])
        self.reached = max(float(frames[-1]), self.reached, float((first + blocks["frames"]).max()))
        self._end_ns = max(float(times[-1]), self._end_ns, float((start + blocks["duration_ns"]).max()))

    def ns_at(self, frames: Array | float) -> F64:
        """When frames were decoded, ns of the session's clock; a block lasts until the next one begins."""
        return _between(frames, self._frames.view, self._times.view, self.reached, self._end_ns)

    def frames_at(self, ns: Array | float) -> F64:
        """Which frame was decoded at times of the session's clock, with fractions."""
        return _between(ns, self._times.view, self._frames.view, self._end_ns, self.reached)

    @property
    def extent_ns(self) -> tuple[int, int]:
        """When the first span begins and the last one ends; (0, 0) without any."""
        rows = [row for row in self.rows.values() if len(row)]
        if not rows:
            return 0, 0
        return min(row.span(0).start_ns for row in rows), max(row.span(-1).end_ns for row in rows)


def _between(at: Array | float, valid: F64, values: F64, last: float, value: float) -> F64:
    """`values` interpolated where ascending `valid` is `at`, then `value` at `last`; `np.interp` reads all n."""
    x = np.asarray(at, np.float64)
    if not len(valid):
        return np.zeros(x.shape)
    low = np.maximum(valid.searchsorted(x, side="right") - 1, 0)
    final, after = low + 1 == len(valid), np.minimum(low + 1, len(valid) - 1)
    begin, width = valid[low], np.where(final, last, valid[after]) - valid[low]
    share = np.divide(x - begin, width, out=np.ones(x.shape), where=width > 0)
    return np.asarray(values[low] + np.clip(share, 0.0, 1.0) * (np.where(final, value, values[after]) - values[low]))


def _row_of(name: str, group: str) -> RowKind:
    if group in TILING:
        return "blocks"
    if name.startswith(AGAIN):
        return "replays"
    return "setup" if group == "setup" else "stages"


_timelines: WeakKeyDictionary[Session, Timeline] = WeakKeyDictionary()


def timeline_of(session: Session) -> Timeline:
    timeline = _timelines.setdefault(session, Timeline())
    timeline.follow(session)
    return timeline
