"""Level of detail: per-frame numbers reduced to one value per pixel column, at bounded cost.

Two structures over values that only grow at the end, so that a live tail is processed once. Both hold the values
by reference and add a sixteenth of their size:

- `RunningSums`: the sum before each block of 16 frames, from which the *exact* mean over any stretch of
  time is two look-ups and at most 30 additions.
- `Extremes`: a pyramid of block minima and maxima (factor 16), so that a spike one frame long still
  shows when an hour fits into a thousand pixels.

Both give the same numbers bit for bit whether they were fed at once or in pieces: only full blocks are
summed up, strictly in order, and minima and maxima are exact.
"""

import math
from collections.abc import Callable

import numpy as np

from profiler.arrays import F64, Array

FACTOR = 16
"""Blocks of one level that make a block of the next."""

BLOCKS_PER_COLUMN = 2
"""A level is used while at least this many of its blocks fall into a column (edge error < 1/2)."""


TOUCHED = 1e-6
"""Frames that a column must have a part of to have a mean: edges are rounded, and so are differences of large sums."""

STEP_DIGITS = 11
"""Significant digits of a column's width: a range that only moves keeps its columns, however its ends are rounded."""


def column_grid(first: float, last: float, columns: int) -> tuple[int, float]:
    """Number of the first of `columns` columns over [first, last], and their width.

    Column n of a width spans [n × width, (n + 1) × width), wherever the range begins: a range that moves shows the same
    columns at another place. So the range is moved by up to half a column.
    """
    width = float(f"{(last - first) / columns:.{STEP_DIGITS}g}")
    return math.floor(first / width + 0.5), width


def aligned(first: float, last: float, columns: int) -> tuple[float, float]:
    """[first, last] moved onto the grid of its columns."""
    number, width = column_grid(first, last, columns)
    return number * width, (number + columns) * width


def column_edges(first: float, last: float, columns: int) -> F64:
    """Edges in frames [columns + 1] of equally wide columns over [first, last], on their grid."""
    number, width = column_grid(first, last, columns)
    edges: F64 = np.arange(number, number + columns + 1, dtype=np.float64) * width
    return edges


def _grown(array: Array, used: int, needed: int) -> Array:
    if needed <= len(array):
        return array
    bigger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    bigger[:used] = array[:used]
    return bigger


class _Kept:
    """Values per column as computed last, from which columns of the same edges are taken over."""

    def __init__(self) -> None:
        self._edges: F64 = np.empty(0)
        self._values: tuple[F64, ...] = ()
        self._sure = 0.0

    def changed_from(self, frame: int) -> None:
        """What was computed of frames from here on holds no longer."""
        self._sure = min(self._sure, float(frame))

    def columns(
        self, edges: F64, sure: float, compute: Callable[[F64], tuple[F64, ...]]
    ) -> tuple[F64, ...]:
        """Return arrays of `compute` [columns, …] for all columns, computing those that are not known.

        Args:
            edges: column edges in frames [columns + 1].
            sure: columns that end here or before will not change by what is to come.
            compute: the arrays of the columns between some edges, each depending on its own edges alone.
        """
        begin, end, at = self._known(edges, sure)
        if begin < end:
            pieces = [[old[at : at + end - begin] for old in self._values]]
            if begin > 0:
                pieces.insert(0, list(compute(edges[: begin + 1])))
            if end < len(edges) - 1:
                pieces.append(list(compute(edges[end:])))
            self._values = tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
        else:
            self._values = compute(edges)
        self._edges, self._sure = edges, sure
        # Read only: they are handed out and taken over.
        for values in self._values:
            values.flags.writeable = False
        return self._values

    def _known(self, edges: F64, sure: float) -> tuple[int, int, int]:
        """Columns begin … end − 1 that are known from column `at` of the kept ones on."""
        begin, end, at = _same_columns(self._edges, edges)
        # The playhead may also have gone back.
        unchanged = min(self._sure, sure)
        end = min(end, int(np.searchsorted(edges[1:], unchanged, side="right")))
        return begin, end, at


_compared: tuple[F64, F64, tuple[int, int, int]] | None = None
"""The last two arrays of edges compared, and what they have in common: every series of a chart asks the same."""


def _same_columns(old: F64, edges: F64) -> tuple[int, int, int]:
    """Columns begin … end − 1 of `edges` that are those of `old` from number `at` on; 0, 0, 0 where there are none."""
    global _compared
    if _compared is not None and _compared[0] is old and _compared[1] is edges:
        return _compared[2]
    found = (0, 0, 0)
    if len(old) == len(edges) and len(edges) > 1 and old[-1] > old[0]:
        moved = round((edges[0] - old[0]) / (old[-1] - old[0]) * (len(old) - 1))
        begin, end = max(0, -moved), min(len(edges) - 1, len(edges) - 1 - moved)
        if begin < end and np.array_equal(
            edges[begin : end + 1], old[begin + moved : end + moved + 1]
        ):
            found = (begin, end, begin + moved)
    _compared = (old, edges, found)
    return found


class RunningSums:
    """Prefix sums of values [frames, series], one per block of FACTOR frames."""

    def __init__(self, series: int) -> None:
        self._values = np.zeros((series, 0))
        self._before = np.zeros((series, 64))
        self._blocks = 0
        self._kept = _Kept()

    def __len__(self) -> int:
        return self._values.shape[1]

    def follow(self, values: F64, same: int | None = None) -> None:
        """Take `values` [frames, series] in place of what was there.

        Args:
            values: all frames from the first on. They are kept by reference and must not change while
                anything is asked; fastest where the frames of a series lie in a row.
            same: frames that are as they were (default: all there were).
        """
        done = min(self._blocks, len(self) if same is None else same // FACTOR)
        self._kept.changed_from(len(self) if same is None else same)
        self._values = values.T
        self._blocks = len(values) // FACTOR
        if self._blocks <= done:
            return
        if self._blocks >= self._before.shape[1]:
            before = np.empty((len(self._before), 2 * self._blocks))
            before[:, : done + 1] = self._before[:, : done + 1]
            self._before = before
        piece = self._before[:, done : self._blocks + 1]
        fresh = self._values[:, done * FACTOR : self._blocks * FACTOR]
        piece[:, 1:] = fresh.reshape(len(piece), -1, FACTOR).sum(axis=2)
        # Starting the accumulation at the last sum keeps the order of additions, hence the bits.
        np.add.accumulate(piece, axis=1, out=piece)

    def _area(self, at: F64) -> F64:
        """Integral of the series from the first frame to `at` [k], which frames may be cut, [series, k]."""
        last = len(self) - 1
        whole = np.minimum(at.astype(np.int64), last)
        block = whole // FACTOR
        # Each frame of the block counts up to `at`.
        frames = block[:, None] * FACTOR + np.arange(FACTOR)
        parts = np.clip(at[:, None] - frames, 0.0, 1.0)
        inside = self._values[:, np.minimum(frames, last)]
        area: F64 = self._before[:, block] + np.einsum("skf,kf->sk", inside, parts)
        return area

    def total(self, first: int, last: int) -> F64:
        """Sum over frames [first, last) per series."""
        first, last = max(0, first), min(last, len(self))
        if last <= first:
            return np.zeros(len(self._values))
        area = self._area(np.array([first, last], dtype=np.float64))
        return area[:, 1] - area[:, 0]

    def means(self, edges: F64, end: int | None = None) -> F64:
        """Mean per column [columns, series]; NaN where a column has no frame.

        Args:
            edges: column edges in frames [columns + 1], fractions allowed: the mean is of the
                piecewise constant curve, so nothing shimmers while the range moves.
            end: frames from here on count as not there (the playhead).
        """
        stop = len(self) if end is None else min(end, len(self))
        if stop == 0:
            return np.full((len(edges) - 1, len(self._values)), np.nan)
        (means,) = self._kept.columns(edges, stop, lambda some: (self._means(some, stop),))
        return means

    def _means(self, edges: F64, stop: int) -> F64:
        at = np.clip(edges, 0.0, stop)
        width = np.diff(at)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            # The difference of two large sums may fall a rounding error below zero.
            area = np.maximum(np.diff(self._area(at), axis=1), 0.0)
            return np.where(width > TOUCHED, area.T / width, np.nan)


class Extremes:
    """Minima and maxima of one series over frames, as a pyramid that grows at the end."""

    def __init__(self) -> None:
        self._low: list[Array] = [np.empty(0)]
        self._high: list[Array] = [np.empty(0)]
        self._count = [0]
        self._kept, self._kept_level = _Kept(), 0

    def __len__(self) -> int:
        return self._count[0]

    def follow(self, low: Array, high: Array | None = None, same: int | None = None) -> None:
        """Take one value per frame [frames], or lower and upper ends, in place of what was there.

        Args:
            low: all frames from the first on, kept by reference.
            high: upper ends, where they are not the same.
            same: frames that are as they were (default: all there were).
        """
        kept = len(self) if same is None else min(same, len(self))
        self._kept.changed_from(kept)
        self._low[0], self._high[0] = low, low if high is None else high
        self._count[0] = len(low)
        level = 0
        while self._count[level] >= FACTOR:
            level += 1
            if level == len(self._count):
                self._low.append(np.empty(64, low.dtype))
                self._high.append(np.empty(64, low.dtype))
                self._count.append(0)
            kept //= FACTOR
            self._summarise(level, kept)
        del self._low[level + 1 :], self._high[level + 1 :], self._count[level + 1 :]

    def _summarise(self, level: int, kept: int) -> None:
        """Rebuild the blocks of a level from `kept` on, each of FACTOR blocks of the level below."""
        kept = min(kept, self._count[level])
        full = self._count[level - 1] // FACTOR
        part = slice(kept * FACTOR, full * FACTOR)
        self._low[level] = _grown(self._low[level], kept, full)
        self._high[level] = _grown(self._high[level], kept, full)
        low = self._low[level - 1][part].reshape(-1, FACTOR)
        high = self._high[level - 1][part].reshape(-1, FACTOR)
        self._low[level][kept:full] = low.min(axis=1)
        self._high[level][kept:full] = high.max(axis=1)
        self._count[level] = full

    def columns(self, edges: F64, end: int | None = None) -> tuple[F64, F64]:
        """Minimum and maximum per column, each [columns]; NaN where a column has no frame.

        Args:
            edges: column edges in frames [columns + 1]; a frame that a column only touches counts.
            end: frames from here on count as not there (the playhead).
        """
        stop = len(self) if end is None else min(end, len(self))
        per_column = (edges[-1] - edges[0]) / (len(edges) - 1)
        level = 0
        while (
            level + 1 < len(self._count)
            and per_column >= BLOCKS_PER_COLUMN * FACTOR ** (level + 1)
            # Only whole blocks before the playhead: the rest is read one level down.
            and stop // FACTOR ** (level + 1) > 0
        ):
            level += 1
        size = FACTOR**level
        whole = stop // size
        if not stop:
            return np.full(len(edges) - 1, np.nan), np.full(len(edges) - 1, np.nan)
        if level != self._kept_level:
            self._kept, self._kept_level = _Kept(), level
        # What lies beyond the last whole block is read as one block, which later ones are not.
        least, most = self._kept.columns(
            edges, whole * size, lambda some: self._columns(some, level, stop)
        )
        return least, most

    def _columns(self, edges: F64, level: int, stop: int) -> tuple[F64, F64]:
        """Minimum and maximum per column, from the blocks of a level and the frames after the last whole one."""
        size = FACTOR**level
        whole = stop // size
        start = np.floor(np.clip(edges[:-1], 0, stop) / size).astype(np.int64)
        after = np.ceil(np.clip(edges[1:], 0, stop) / size).astype(np.int64)
        begin, end = int(start[0]), max(int(after[-1]), 1)
        low, high = (
            self._low[level][begin : min(end, whole)],
            self._high[level][begin : min(end, whole)],
        )
        if whole * size < stop and end > whole:
            tail = slice(whole * size, stop)
            low = np.append(low, self._low[0][tail].min())
            high = np.append(high, self._high[0][tail].max())
        blocks = len(low)
        there = (edges[1:] > 0) & (edges[:-1] < stop)
        if not blocks:
            nothing = np.full(len(there), np.nan)
            return nothing, nothing.copy()
        # reduceat over [start, after): the odd entries are the gaps and are thrown away.
        pairs = np.empty(2 * len(start), dtype=np.int64)
        pairs[0::2] = np.minimum(start - begin, blocks - 1)
        pairs[1::2] = np.clip(after - begin, 1, blocks)
        # A stopper lets an interval end at the very end of the array.
        least = np.minimum.reduceat(np.append(low, low[-1]), pairs)[0::2]
        most = np.maximum.reduceat(np.append(high, high[-1]), pairs)[0::2]
        return np.where(there, least, np.nan), np.where(there, most, np.nan)
