"""Sums over a session's spans by lane, stage and epoch, filled by `CostTrack` and read for any stretch of frames.

Spans of one kind are summed up CHUNK at a time. A stretch takes the chunks that lie within it as they are and looks at
single spans only on its edges, so a selection in an hour of recording takes about as long as in a minute. Nothing
depends on the order of the frames: where chunks overlap the edge, more spans are looked at.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from profiler.analysis.conditions import COUNTS, OTHER, STOPPED, THROTTLED
from profiler.analysis.counts import Sums
from profiler.analysis.nesting import pick
from profiler.arrays import Array
from profiler.session.format.grow import Growing, zeros
from profiler.spans import SPAN, WORK_COUNTS

CHUNK: Final = 256
"""Spans per sum: a selection looks at two chunks of single spans per stage, and a chunk costs 80 bytes."""

_COLUMNS: Final = 5 + WORK_COUNTS
"""Those of `Sums`."""

Kind = tuple[int, int, int]
"""Lane, stage and epoch."""


class StageSums:
    """The sums of one session. `spans` is always all of its spans; `positions` are numbers among them."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, _Kind] = {}
        self._lost = _Lost()

    def add(self, kind: Kind, spans: Array, positions: Array, lost_ns: Array | None = None) -> None:
        """Append spans of one kind; `lost_ns` [COUNTS, n]: what of each was not its own, in GRAINs."""
        if lost_ns is not None:
            self._lost.add(positions, lost_ns)
        self._kinds.setdefault(kind, _Kind()).add(spans, positions, self._lost)

    def totals(self) -> Iterator[tuple[Kind, Sums]]:
        for key, kind in self._kinds.items():
            yield key, _sums(kind.total)

    def within(self, spans: Array, first: int, last: int) -> Iterator[tuple[Kind, Sums]]:
        """Give the sums of the frames first … last − 1 of each kind that has any."""
        for key, kind in self._kinds.items():
            sums = _sums(kind.within(spans, first, last, self._lost))
            if sums.calls > 0:
                yield key, sums


class _Lost:
    """ns that were not their own, [COUNTS], by the position of a span; kept of those with any."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Array, Array]] = []

    def add(self, positions: Array, lost_ns: Array) -> None:
        some = np.flatnonzero(lost_ns.any(axis=0))
        if len(some):
            self._pieces.append((positions[some].astype(np.int64), lost_ns[:, some]))

    def of(self, positions: Array) -> Array:
        if not self._pieces:
            return np.zeros((len(COUNTS), len(positions)))
        if len(self._pieces) > 1:
            at, ns = (np.concatenate(part, axis=-1) for part in zip(*self._pieces, strict=True))
            order = np.argsort(at, kind="stable")
            self._pieces = [(at[order], ns[:, order])]
        at, ns = self._pieces[0]
        place = np.minimum(np.searchsorted(at, positions), len(at) - 1)
        found: Array = np.where(at[place] == positions, ns[:, place], 0.0)
        return found


class _Kind:
    """Positions of the spans of one kind, with sums, first frame and frame after the last of each full chunk."""

    def __init__(self) -> None:
        self._positions = Growing(np.uint32)
        # The spans of the last chunk, which is not full: rare ones lie all over a session.
        self._rest: Array = np.empty(0, SPAN)
        self._chunks = 0
        self._sums = np.empty((1, _COLUMNS))
        self._reach = np.empty((1, 2), np.int64)
        self._full: Array = np.zeros(_COLUMNS)
        self.total: Array = np.zeros(_COLUMNS)

    def add(self, spans: Array, positions: Array, lost: _Lost) -> None:
        self._positions.extend(positions)
        rest = self._positions.view[self._chunks * CHUNK :]
        chosen = np.concatenate([self._rest, pick(spans, positions)])
        amounts = _amounts(chosen, rest, lost)
        chunks = len(self._positions) // CHUNK
        new, whole = slice(self._chunks, chunks), (chunks - self._chunks) * CHUNK
        if whole:
            self._sums, self._reach = _grown(self._sums, chunks), _grown(self._reach, chunks)
            sums = amounts[:, :whole].reshape(_COLUMNS, -1, CHUNK).sum(axis=2).T
            self._sums[new] = sums
            self._full = self._full + sums.sum(axis=0)
            first, end = (edge.reshape(-1, CHUNK) for edge in _frames(chosen[:whole]))
            self._reach[new, 0], self._reach[new, 1] = first.min(axis=1), end.max(axis=1)
            self._chunks = chunks
        self._rest = chosen[whole:].copy()
        self.total = self._full + amounts[:, whole:].sum(axis=1)

    def within(self, spans: Array, first: int, last: int, lost: _Lost) -> Array:
        """Sum up the frames first … last − 1, float64 [columns]."""
        begin, end = self._reach[: self._chunks].T
        inside = (begin >= first) & (end <= last)
        edge = ~inside & (end > first) & (begin < last)
        at = np.flatnonzero(edge)[:, None] * CHUNK + np.arange(CHUNK)
        positions = self._positions.view
        edges = np.concatenate([positions[at.ravel()], positions[self._chunks * CHUNK :]])
        chosen = np.concatenate([pick(spans, edges[: at.size]), self._rest])
        begin, end = _frames(chosen)
        part = np.clip(np.minimum(end, last) - np.maximum(begin, first), 0, None) / (end - begin)
        whole = self._sums[: self._chunks][inside].sum(axis=0)
        total: Array = whole + _amounts(chosen, edges, lost) @ part
        return total


def _sums(columns: Array) -> Sums:
    time, other, throttled, calls, frames, *work = columns.tolist()
    return Sums(time, other, calls, frames, (work[0], work[1], work[2]), throttled)


def _amounts(spans: Array, positions: Array, lost: _Lost) -> Array:
    """What each span, at its position, adds to the sums, float64 [columns, n]."""
    amounts = np.empty((_COLUMNS, len(spans)))
    of_each = lost.of(positions)
    amounts[0] = spans["duration_ns"] - of_each[STOPPED]
    amounts[1], amounts[2] = of_each[OTHER], of_each[THROTTLED]
    amounts[3] = 1.0
    amounts[4] = spans["frames"]
    for i in range(WORK_COUNTS):
        amounts[5 + i] = spans[f"work{i}"]
    return amounts


def _frames(spans: Array) -> tuple[Array, Array]:
    """First frame and the one after the last, int64 [n]; a span that names no frames takes one."""
    begin = spans["first_frame"].astype(np.int64)
    return begin, begin + np.maximum(spans["frames"], 1)


def _grown(values: Array, need: int) -> Array:
    """`values` with room for `need` rows, twice as many as before where there are too few."""
    if need <= len(values):
        return values
    larger = zeros((max(need, 2 * len(values)), *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
