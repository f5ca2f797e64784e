"""Sums over a session's spans by lane, stage and epoch, kept up with a live session.

Spans of one kind are summed up CHUNK at a time. A stretch of frames takes the chunks that lie within it
as they are and looks at single spans only on its edges, so that the answer for a selection takes about as
long in an hour of recording as in a minute. Nothing depends on the order of the frames: where chunks
overlap the edge much, more spans are looked at.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.categories import LAW_PARTS, MEASURED_PARTS
from profiler.analysis.conditions import Speed, shared_out
from profiler.analysis.nesting import LEAF_GROUPS, by_stage_and_epoch, group_codes, nest, pick
from profiler.analysis.parts import split
from profiler.analysis.recorded import Recorded
from profiler.analysis.waiting import Waiting
from profiler.arrays import Array
from profiler.spans import GROUPS, WORK_COUNTS

CHUNK: Final = 256
"""Spans per sum: a selection looks at two chunks of single spans per stage, and a chunk costs 216 bytes."""

STRETCH: Final = 1 << 16
"""Spans taken in at once: bounds the temporary arrays to some megabytes."""

ROW_GROUPS: Final = (*LEAF_GROUPS, "overhead")
"""The groups whose stages have rows: those that are taken off a tile, and those that explain what is left."""

# By code of the group; the last entry is for stages without one.
_IS_OUTSIDE: Final = np.array([g in ("idle", "setup") for g in (*GROUPS, "")])
_IS_SHOWN: Final = _IS_OUTSIDE | np.array([g in ROW_GROUPS for g in (*GROUPS, "")])


class Sums(NamedTuple):
    """Sums over spans, those on the edge of a stretch by the part that lies in it; times in ns."""

    time: float
    calls: float
    frames: float
    work: tuple[float, float, float]
    parts: tuple[float, ...]
    """MEASURED_PARTS, ns."""
    least: tuple[float, ...]
    likely: tuple[float, ...]
    most: tuple[float, ...]
    """What the law says of LAW_PARTS, ns; see `parts.Split`."""


_ENDS: Final = np.cumsum([3 + WORK_COUNTS, len(MEASURED_PARTS), *[len(LAW_PARTS)] * 3]).tolist()
"""Where the columns of counts, parts, least, likely and most end."""
_COLUMNS: Final = _ENDS[-1]


class StageSums:
    """The sums of one session; `update` takes in what it has read since, `within` answers."""

    def __init__(self) -> None:
        self._generation = -1
        self._reset()

    def _reset(self) -> None:
        self._consumed = 0
        self._kinds: dict[tuple[int, int, int], _Kind] = {}
        self._waiting: dict[int, Array] = {}
        self.beside = Beside()

    def update(self, session: Recorded, most: int | None = None) -> bool:
        """Take in spans read since the last call; start again when a law or roof was replaced, or replays say more of
        what was taken in.

        `most`: about how many at once, for a caller with something else to do meanwhile. True when none is left.
        """
        if session.generation != self._generation:
            self._reset()
            self._generation = session.generation
        if self.beside.follow(session) and self._consumed:
            self._reset()
            self.beside.follow(session)
        spans, codes = session.spans, group_codes(session.stages)
        enough = len(spans) if most is None else self._consumed + most
        while self._consumed < min(enough, len(spans)):
            end = min(self._consumed + STRETCH, len(spans))
            fresh = np.arange(self._consumed, end, dtype=np.uint32)
            lane_of = spans["lane"][self._consumed : end]
            self._consumed = end
            for lane in session.lanes.values():
                mine = fresh[lane_of == lane.id]
                if lane.decode:
                    mine = self._on_decode_lane(session, lane.id, mine, codes)
                else:
                    mine = mine[_IS_SHOWN[codes[spans["stage"][mine]]]]
                self._sort_in(session, lane.id, mine)
        return self._consumed == len(spans)

    def _on_decode_lane(self, session: Recorded, lane: int, fresh: Array, codes: Array) -> Array:
        """Return the positions that count by now: what lies in a tile counts when its tile has come."""
        spans = session.spans
        waiting = self._waiting.get(lane)
        mine = fresh if waiting is None else np.concatenate([waiting, fresh])
        nested = nest(pick(spans, mine), codes, ROW_GROUPS)
        self._waiting[lane] = mine[nested.used :]
        other = shared_out(nested.leaves, nested.outer, nested.outer_of, session.stages)
        self.beside.add(mine[nested.leaf_positions], other)
        outside = fresh[_IS_OUTSIDE[codes[spans["stage"][fresh]]]]
        return np.concatenate([mine[nested.leaf_positions], outside])

    def _sort_in(self, session: Recorded, lane: int, positions: Array) -> None:
        spans = session.spans
        stages, epochs = spans["stage"][positions], spans["epoch"][positions]
        for at, stage, epoch in by_stage_and_epoch(stages, epochs):
            kind = self._kinds.get((lane, stage, epoch))
            if kind is None:
                kind = self._kinds[lane, stage, epoch] = _Kind(stage, epoch)
            kind.add(session, positions[at], self.beside)

    def within(
        self, session: Recorded, first: int | None, last: int | None
    ) -> Iterator[tuple[int, int, int, Sums]]:
        """Give (lane, stage, epoch, sums) of the frames first … last − 1; of all spans when both are None."""
        for (lane, stage, epoch), kind in self._kinds.items():
            sums = kind.within(session, first, last, self.beside)
            if sums.calls > 0:
                yield lane, stage, epoch, sums


class Beside:
    """What the machine did beside each span: other programs, by position, its speed and replays, by time."""

    def __init__(self) -> None:
        self.speed = Speed()
        self.replays = Waiting()
        self._pieces: list[tuple[Array, Array]] = []

    def follow(self, session: Recorded) -> bool:
        """Take in probes and replays; True where they say something of earlier spans."""
        self.speed.update(session)
        return self.replays.update(session)

    def add(self, positions: Array, other: Array) -> None:
        """These spans had `other` ns taken by other programs."""
        some = np.flatnonzero(other)
        if len(some):
            self._pieces.append((positions[some].astype(np.int64), other[some]))

    def other(self, positions: Array) -> Array:
        """Return ns by position, float64 [n]."""
        if not self._pieces:
            return np.zeros(len(positions))
        if len(self._pieces) > 1:
            at, ns = (np.concatenate(part) for part in zip(*self._pieces, strict=True))
            order = np.argsort(at, kind="stable")
            self._pieces = [(at[order], ns[order])]
        at, ns = self._pieces[0]
        place = np.minimum(np.searchsorted(at, positions), len(at) - 1)
        found: Array = np.where(at[place] == positions, ns[place], 0.0)
        return found


class _Kind:
    """The spans of one lane, stage and epoch: their positions, and a row of sums for each full chunk."""

    def __init__(self, stage: int, epoch: int) -> None:
        self._stage, self._epoch = stage, epoch
        self._positions = np.empty(CHUNK, np.uint32)
        self._n = 0
        self._chunks = 0
        self._sums = np.empty((1, _COLUMNS))
        self._first = np.empty(1, np.int64)
        self._end = np.empty(1, np.int64)

    def add(self, session: Recorded, positions: Array, beside: "Beside") -> None:
        """Append spans, and sum up every chunk that is full now."""
        n = self._n + len(positions)
        if n > len(self._positions):
            self._positions = _grown(self._positions, n)
        self._positions[self._n : n] = positions
        self._n = n
        full = n // CHUNK
        if full > self._chunks:
            chosen = self._positions[self._chunks * CHUNK : full * CHUNK]
            spans = pick(session.spans, chosen)
            if full > len(self._sums):
                self._sums = _grown(self._sums, full)
                self._first, self._end = _grown(self._first, full), _grown(self._end, full)
            new = slice(self._chunks, full)
            amounts = self._amounts(session, spans, chosen, beside)
            self._sums[new] = amounts.reshape(_COLUMNS, -1, CHUNK).sum(axis=2).T
            begin, end = _reach(spans)
            self._first[new] = begin.reshape(-1, CHUNK).min(axis=1)
            self._end[new] = end.reshape(-1, CHUNK).max(axis=1)
            self._chunks = full

    def within(
        self, session: Recorded, first: int | None, last: int | None, beside: "Beside"
    ) -> Sums:
        """Sum up the frames first … last − 1."""
        chunks = slice(0, self._chunks)
        rest = self._positions[self._chunks * CHUNK : self._n]
        if first is None or last is None:
            total = self._sums[chunks].sum(axis=0)
            spans = pick(session.spans, rest)
            total += self._amounts(session, spans, rest, beside).sum(axis=1)
        else:
            begin, end = self._first[chunks], self._end[chunks]
            inside = (begin >= first) & (end <= last)
            edge = ~inside & (end > first) & (begin < last)
            total = self._sums[chunks][inside].sum(axis=0)
            at = np.flatnonzero(edge)[:, None] * CHUNK + np.arange(CHUNK)
            edges = np.concatenate([self._positions[at.ravel()], rest])
            spans = pick(session.spans, edges)
            total += self._amounts(session, spans, edges, beside) @ _part(spans, first, last)
        time, calls, frames, w0, w1, w2 = total[: _ENDS[0]].tolist()
        parts, least, likely, most = (
            tuple(total[begin:end].tolist()) for begin, end in pairwise(_ENDS)
        )
        return Sums(time, calls, frames, (w0, w1, w2), parts, least, likely, most)

    def _amounts(
        self, session: Recorded, spans: Array, positions: Array, beside: "Beside"
    ) -> Array:
        """What each span, at its position, adds to the sums, float64 [columns, n]."""
        amounts = np.empty((_COLUMNS, len(spans)))
        amounts[0] = spans["duration_ns"]
        amounts[1] = 1.0
        amounts[2] = spans["frames"]
        for i in range(WORK_COUNTS):
            amounts[3 + i] = spans[f"work{i}"]
        cost = session.costs.get((self._stage, self._epoch))
        found = split(
            spans,
            cost,
            session.calibration,
            beside.other(positions),
            beside.speed.at(spans["start_ns"]),
            beside.replays.share(session.stages[self._stage].name, cost, spans["start_ns"]),
        )
        amounts[_ENDS[0] :] = np.concatenate(found)
        return amounts


def _reach(spans: Array) -> tuple[Array, Array]:
    """First frame and the one after the last, int64 [n]; a span that names no frames takes one."""
    begin = spans["first_frame"].astype(np.int64)
    return begin, begin + np.maximum(spans["frames"], 1)


def _part(spans: Array, first: int, last: int) -> Array:
    """Which part of each span lies in the frames [first, last), float64 [n] of 0…1."""
    begin, end = _reach(spans)
    inside = np.minimum(end, last) - np.maximum(begin, first)
    part: Array = np.clip(inside, 0, None) / (end - begin)
    return part


def _grown(values: Array, need: int) -> Array:
    larger = np.empty((max(need, 2 * len(values)), *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
