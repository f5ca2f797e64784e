"""Sums over a session's spans by lane, stage and epoch, kept up with a live session.

Spans of one kind are summed up CHUNK at a time. A stretch of frames takes the chunks that lie within it
as they are and looks at single spans only on its edges, so that the answer for a selection takes about as
long in an hour of recording as in a minute. Nothing depends on the order of the frames: where chunks
overlap the edge much, more spans are looked at.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from profiler.analysis.conditions import shared_out
from profiler.analysis.counts import Sums
from profiler.analysis.nesting import LEAF_GROUPS, by_stage_and_epoch, group_codes, nest, pick
from profiler.analysis.recorded import Recorded
from profiler.arrays import Array
from profiler.spans import GROUPS, WORK_COUNTS

CHUNK: Final = 256
"""Spans per sum: a selection looks at two chunks of single spans per stage, and a chunk costs 72 bytes."""

STRETCH: Final = 1 << 16
"""Spans taken in at once: bounds the temporary arrays to some megabytes."""

ROW_GROUPS: Final = (*LEAF_GROUPS, "overhead")
"""The groups whose stages have rows: those that are taken off a tile, and those that explain what is left."""

# By code of the group; the last entry is for stages without one.
_IS_OUTSIDE: Final = np.array([g in ("idle", "setup") for g in (*GROUPS, "")])
_IS_SHOWN: Final = _IS_OUTSIDE | np.array([g in ROW_GROUPS for g in (*GROUPS, "")])


_COLUMNS: Final = 4 + WORK_COUNTS
"""Those of `Sums`."""


class StageSums:
    """The sums of one session; `update` takes in what it has read since, `within` answers."""

    def __init__(self) -> None:
        self._generation = -1
        self._reset()

    def _reset(self) -> None:
        self._consumed = 0
        self._kinds: dict[tuple[int, int, int], _Kind] = {}
        self._waiting: dict[int, Array] = {}
        self._other = OtherPrograms()

    def update(self, session: Recorded, most: int | None = None) -> bool:
        """Take in spans read since the last call; start again when the session says something else of earlier ones.

        `most`: about how many at once, for a caller with something else to do meanwhile. True when none is left.
        """
        if session.generation != self._generation:
            self._reset()
            self._generation = session.generation
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
        self._other.add(mine[nested.leaf_positions], other)
        outside = fresh[_IS_OUTSIDE[codes[spans["stage"][fresh]]]]
        return np.concatenate([mine[nested.leaf_positions], outside])

    def _sort_in(self, session: Recorded, lane: int, positions: Array) -> None:
        spans = session.spans
        stages, epochs = spans["stage"][positions], spans["epoch"][positions]
        for at, stage, epoch in by_stage_and_epoch(stages, epochs):
            kind = self._kinds.get((lane, stage, epoch))
            if kind is None:
                kind = self._kinds[lane, stage, epoch] = _Kind()
            kind.add(session, positions[at], self._other)

    def within(
        self, session: Recorded, first: int | None, last: int | None
    ) -> Iterator[tuple[int, int, int, Sums]]:
        """Give (lane, stage, epoch, sums) of the frames first … last − 1; of all spans when both are None."""
        for (lane, stage, epoch), kind in self._kinds.items():
            sums = kind.within(session, first, last, self._other)
            if sums.calls > 0:
                yield lane, stage, epoch, sums


class OtherPrograms:
    """ns in which other programs ran instead, by the position of a span."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Array, Array]] = []

    def add(self, positions: Array, other: Array) -> None:
        """These spans had `other` ns taken by other programs."""
        some = np.flatnonzero(other)
        if len(some):
            self._pieces.append((positions[some].astype(np.int64), other[some]))

    def of(self, positions: Array) -> Array:
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

    def __init__(self) -> None:
        self._positions = np.empty(CHUNK, np.uint32)
        self._n = 0
        self._chunks = 0
        self._sums = np.empty((1, _COLUMNS))
        self._first = np.empty(1, np.int64)
        self._end = np.empty(1, np.int64)

    def add(self, session: Recorded, positions: Array, other: OtherPrograms) -> None:
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
            amounts = _amounts(spans, chosen, other)
            self._sums[new] = amounts.reshape(_COLUMNS, -1, CHUNK).sum(axis=2).T
            begin, end = _reach(spans)
            self._first[new] = begin.reshape(-1, CHUNK).min(axis=1)
            self._end[new] = end.reshape(-1, CHUNK).max(axis=1)
            self._chunks = full

    def within(
        self, session: Recorded, first: int | None, last: int | None, other: OtherPrograms
    ) -> Sums:
        """Sum up the frames first … last − 1."""
        chunks = slice(0, self._chunks)
        rest = self._positions[self._chunks * CHUNK : self._n]
        if first is None or last is None:
            total = self._sums[chunks].sum(axis=0)
            spans = pick(session.spans, rest)
            total += _amounts(spans, rest, other).sum(axis=1)
        else:
            begin, end = self._first[chunks], self._end[chunks]
            inside = (begin >= first) & (end <= last)
            edge = ~inside & (end > first) & (begin < last)
            total = self._sums[chunks][inside].sum(axis=0)
            at = np.flatnonzero(edge)[:, None] * CHUNK + np.arange(CHUNK)
            edges = np.concatenate([self._positions[at.ravel()], rest])
            spans = pick(session.spans, edges)
            total += _amounts(spans, edges, other) @ _part(spans, first, last)
        time, other_ns, calls, frames, w0, w1, w2 = total.tolist()
        return Sums(time, other_ns, calls, frames, (w0, w1, w2))


def _amounts(spans: Array, positions: Array, other: OtherPrograms) -> Array:
    """What each span, at its position, adds to the sums, float64 [columns, n]."""
    amounts = np.empty((_COLUMNS, len(spans)))
    amounts[0] = spans["duration_ns"]
    amounts[1] = np.minimum(other.of(positions), amounts[0])
    amounts[2] = 1.0
    amounts[3] = spans["frames"]
    for i in range(WORK_COUNTS):
        amounts[4 + i] = spans[f"work{i}"]
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
