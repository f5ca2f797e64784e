"""Spans by row of a timeline, reduced to the busy time of each kind per pixel column: exact at any number of spans.

The busy time until a moment is a kept sum over whole chunks of spans, and one over the spans of the last chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from profiler.arrays import F64, I64, Array
from profiler.session.format.grow import Growing, zeros
from profiler.session.reader import Session
from profiler.spans import GROUPS, TILING

CHUNK: Final = 16
"""Spans whose sums are kept together."""

KINDS: Final = (*GROUPS, "odd")
"""What a span is shown as: its group; blocks (`decode`) are `odd` in turns, so that neighbours are seen as two."""

DECODE: Final = KINDS.index("decode")

RowKind = Literal["blocks", "stages", "replays", "setup"]

AGAIN: Final = ("replay.", "setup.replay", "setup.calls again", "setup.probe")
"""Name prefixes of stages that are replayed next to the run to attribute their time."""


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
    """The spans of one row in order of time."""

    def __init__(self, key: RowKey) -> None:
        self.key = key
        self._clear()

    def _clear(self) -> None:
        self._start, self._duration = Growing(np.dtype(np.int64)), Growing(np.dtype(np.int64))
        self._number = Growing(np.dtype(np.uint32))
        self._stage, self._kind = Growing(np.dtype(np.uint16)), Growing(np.dtype(np.uint8))
        # Busy time before each chunk, [chunks + 1 and room, kinds]; the last one is of whole chunks only.
        self._chunks = 0
        self._sums: F64 = zeros((1, len(KINDS)))

    def __len__(self) -> int:
        return len(self._start)

    @property
    def end_ns(self) -> int:
        """When its last span ends; 0 without any."""
        return int(self._start.view[-1] + self._duration.view[-1]) if len(self) else 0

    def add(self, spans: Array, numbers: I64, kinds: Array) -> None:
        """Append spans (records of a session), their numbers and kinds, in any order among themselves."""
        start = spans["start_ns"]
        late = len(self) and len(start) and start.min() < self._start.view[-1]
        if late or (np.diff(start) < 0).any():
            before = self._start, self._duration, self._number, self._stage, self._kind
            columns = start, spans["duration_ns"], numbers, spans["stage"], kinds
            whole = [np.concatenate([b.view, c]) for b, c in zip(before, columns, strict=True)]
            order = np.argsort(whole[0], kind="stable")
            self._clear()
            self._extend(*(column[order] for column in whole))
            return
        self._extend(start, spans["duration_ns"], numbers, spans["stage"], kinds)

    def _extend(self, start: I64, duration: Array, number: I64, stage: Array, kind: Array) -> None:
        self._start.extend(start)
        self._duration.extend(duration.astype(np.int64))
        self._number.extend(number)
        self._stage.extend(stage)
        self._kind.extend(kind)
        done, chunks = self._chunks, len(self) // CHUNK
        if chunks > done:
            part = slice(done * CHUNK, chunks * CHUNK)
            code = np.repeat(np.arange(chunks - done), CHUNK) * len(KINDS) + self._kind.view[part]
            busy = np.bincount(code, self._duration.view[part], (chunks - done) * len(KINDS))
            sums = np.cumsum(busy.reshape(-1, len(KINDS)), axis=0) + self._sums[done]
            if chunks >= len(self._sums):
                before, self._sums = self._sums, zeros((2 * chunks, len(KINDS)))
                self._sums[: done + 1] = before[: done + 1]
            self._sums[done + 1 : chunks + 1] = sums
            self._chunks = chunks

    def busy(self, edges_ns: F64) -> F64:
        """Busy time of each kind between neighbours of `edges_ns` [columns + 1], ns [columns, kinds]."""
        if not len(self):
            return np.zeros((len(edges_ns) - 1, len(KINDS)))
        start, duration, kind = self._start.view, self._duration.view, self._kind.view
        # Spans begun before each edge, of which the last chunk is looked at one by one.
        # In integers, or numpy makes another array of all the starts.
        begun = np.searchsorted(start, np.ceil(edges_ns).astype(np.int64), side="left")
        chunk = begun // CHUNK
        until = self._sums[chunk]
        places = chunk[:, None] * CHUNK + np.arange(CHUNK)
        last = np.minimum(places, len(start) - 1)
        ran = np.minimum(duration[last], edges_ns[:, None] - start[last])
        ran[places >= begun[:, None]] = 0
        # Spans of earlier chunks that go on after the edge: the one before the chunk at most.
        before = np.maximum(chunk * CHUNK - 1, 0)
        over = np.maximum(start[before] + duration[before] - edges_ns, 0) * (chunk > 0)
        code = np.arange(len(edges_ns))[:, None] * len(KINDS) + kind[last]
        inside = np.bincount(code.ravel(), ran.ravel(), len(edges_ns) * len(KINDS))
        until = until + inside.reshape(-1, len(KINDS))
        until[np.arange(len(edges_ns)), kind[before]] -= over
        found: F64 = np.maximum(np.diff(until, axis=0), 0.0)
        return found

    def span_at(self, t_ns: float) -> Shown | None:
        """Return the span at a time, the last to begin; None without one."""
        place = int(np.searchsorted(self._start.view, math.floor(t_ns), side="right")) - 1
        if place < 0 or self._start.view[place] + self._duration.view[place] < t_ns:
            return None
        return self._span(place)

    def within(self, begin_ns: float, end_ns: float, least_ns: float = 0.0, most: int | None = None) -> list[Shown]:
        """The spans that reach into [begin, end) and last `least_ns`, in order of time; `most`: the first ones."""
        places = self._places(begin_ns, end_ns, least_ns)[:most]
        return [self._span(place) for place in places.tolist()]

    def count(self, begin_ns: float, end_ns: float) -> int:
        """How many spans reach into [begin, end)."""
        first, last = self._range(begin_ns, end_ns)
        return last - first

    def starts(self, begin_ns: float, end_ns: float) -> I64:
        """When the spans that reach into [begin, end) begin, int64 [n]."""
        first, last = self._range(begin_ns, end_ns)
        found: I64 = self._start.view[first:last]
        return found

    def _range(self, begin_ns: float, end_ns: float) -> tuple[int, int]:
        start = self._start.view
        first = max(int(np.searchsorted(start, math.floor(begin_ns), side="right")) - 1, 0)
        if first < len(start) and start[first] + self._duration.view[first] <= begin_ns:
            first += 1
        return first, max(first, int(np.searchsorted(start, math.ceil(end_ns), side="left")))

    def _places(self, begin_ns: float, end_ns: float, least_ns: float) -> I64:
        first, last = self._range(begin_ns, end_ns)
        places = np.arange(first, last)
        if least_ns > 0:
            places = places[self._duration.view[first:last] >= least_ns]
        return places

    def _span(self, place: int) -> Shown:
        start = int(self._start.view[place])
        return Shown(
            int(self._number.view[place]),
            int(self._stage.view[place]),
            start,
            start + int(self._duration.view[place]),
        )


class Timeline:
    """The rows of one session, kept up with its spans, and where on its clock its frames were decoded."""

    def __init__(self) -> None:
        self._generation = -1
        self._clear()

    def _clear(self) -> None:
        self.rows: dict[RowKey, SpanRow] = {}
        self._taken = 0
        # By block in order of time: first frame and start, frame reached and end.
        self._frames, self._times = Growing(np.dtype(np.float64)), Growing(np.dtype(np.float64))

    def follow(self, session: Session) -> None:
        """Take in what the session has read since the last call."""
        if session.generation != self._generation:
            self._clear()
            self._generation = session.generation
        fresh = session.spans[self._taken :]
        if not len(fresh):
            return
        numbers = np.arange(self._taken, self._taken + len(fresh))
        self._taken += len(fresh)
        decode = {lane.id for lane in session.lanes.values() if lane.decode}
        of = np.zeros(max(session.stages) + 1, np.uint8)
        kinds = np.zeros(len(of), np.uint8)
        names: tuple[RowKind, ...] = ("blocks", "stages", "replays", "setup")
        for number, stage in session.stages.items():
            kinds[number] = KINDS.index(stage.group)
            of[number] = _row_of(stage.name, stage.group)
        for lane in np.unique(fresh["lane"]).tolist():
            mine = np.flatnonzero(fresh["lane"] == lane)
            rows = of[fresh["stage"][mine]]
            for row, kind in enumerate(names):
                some = mine[rows == row]
                if not len(some):
                    continue
                key = RowKey(kind, lane)
                target = self.rows.setdefault(key, SpanRow(key))
                spans = fresh[some]
                shown = kinds[spans["stage"]]
                if kind == "blocks":
                    turn = (len(target) + np.arange(len(some))) % 2
                    shown = np.where(shown == DECODE, shown + turn, shown).astype(np.uint8)
                    if lane in decode:
                        self._decoded(spans[kinds[spans["stage"]] == DECODE])
                target.add(spans, numbers[some], shown)

    def _decoded(self, blocks: Array) -> None:
        first, start = blocks["first_frame"].astype(np.float64), blocks["start_ns"]
        reached, end = first + blocks["frames"], start + blocks["duration_ns"]
        frames = np.stack([first, reached], axis=1).ravel()
        # A damaged file may go back in frames or time; a map needs both to rise.
        frames = np.maximum.accumulate(np.append(self._frames.view[-1:], frames))
        times = np.stack([start, end], axis=1).ravel().astype(np.float64)
        times = np.maximum.accumulate(np.append(self._times.view[-1:], times))
        known = len(self._frames) > 0
        self._frames.extend(frames[known:])
        self._times.extend(times[known:])

    def ns_at(self, frames: Array | float) -> F64:
        """When frames were decoded (fractions: within their block), ns of the session's clock."""
        if not len(self._frames):
            return np.zeros(np.shape(frames))
        return np.asarray(np.interp(frames, self._frames.view, self._times.view))

    def frames_at(self, ns: Array | float) -> F64:
        """Which frame was decoded at times of the session's clock, with fractions."""
        if not len(self._times):
            return np.zeros(np.shape(ns))
        return np.asarray(np.interp(ns, self._times.view, self._frames.view))

    @property
    def reached(self) -> float:
        """Frames decoded so far."""
        return float(self._frames.view[-1]) if len(self._frames) else 0.0

    @property
    def extent_ns(self) -> tuple[int, int]:
        """When the first span begins and the last one ends; (0, 0) without any."""
        rows = [row for row in self.rows.values() if len(row)]
        if not rows:
            return 0, 0
        return min(int(row._start.view[0]) for row in rows), max(row.end_ns for row in rows)


def _row_of(name: str, group: str) -> int:
    if group in TILING:
        return 0
    if group != "setup":
        return 1 if not name.startswith(AGAIN) else 2
    return 2 if name.startswith(AGAIN) else 3


_timelines: WeakKeyDictionary[Session, Timeline] = WeakKeyDictionary()


def timeline_of(session: Session) -> Timeline:
    """The up-to-date timeline of a session; the same object for everyone who asks."""
    timeline = _timelines.setdefault(session, Timeline())
    timeline.follow(session)
    return timeline
