"""Level of detail: per-frame numbers reduced to one value per pixel column, at bounded cost.

`means` of rows that only grow at the end are exact over any stretch: two look-ups in the sums that a `PerFrame` keeps.
`Extremes`: a pyramid of block minima and maxima (factor 16), so that a spike one frame long still shows among an hour;
it adds an eighth of the values' size. Both give the same bits whether they were fed at once or in pieces.
"""

import math
from collections.abc import Sequence

import numpy as np

from profiler.analysis.per_frame import FrameRow
from profiler.arrays import F64, Array

Values = Array | FrameRow  # One value per frame: both give arrays for slices

FACTOR = 16  # Blocks of one level that make a block of the next
PIECE = 1 << 15  # Frames of a row that are looked at in one go: a quarter of a megabyte
BLOCKS_PER_COLUMN = 2  # A level is used while at least this many of its blocks fall into a column (edge error < 1/2)
TOUCHED = 1e-6  # Part of a frame that a column must have to have a mean: edges and differences are rounded
STEP_DIGITS = 11  # Significant digits of a column's width: a range that only moves keeps its columns


def column_grid(first: float, last: float, columns: int) -> tuple[int, float]:
    """The first of `columns` columns over [first, last] and their width, on a grid that a moved range shares."""
    width = float(f"{(last - first) / columns:.{STEP_DIGITS}g}")
    return math.floor(first / width + 0.5), width


def column_edges(first: float, last: float, columns: int) -> F64:
    """Edges in frames [columns + 1] of equally wide columns over [first, last], on their grid."""
    number, width = column_grid(first, last, columns)
    return np.arange(number, number + columns + 1, dtype=np.float64) * width


def _areas(rows: Sequence[FrameRow], edges: F64) -> F64:
    """Integral of rows of one `PerFrame` between neighbours of `edges` [k + 1], which frames may be cut, [rows, k]."""
    return np.diff(rows[0].store.area([row.number for row in rows], edges), axis=1)


def totals(rows: Sequence[FrameRow], first: int, last: int) -> F64:
    """Sum over frames [first, last) of each row."""
    first, last = max(0, first), min(last, len(rows[0]))
    if last <= first:
        return np.zeros(len(rows))
    return _areas(rows, np.array([first, last], dtype=np.float64))[:, 0]


def means(rows: Sequence[FrameRow], edges: F64, end: int | None = None) -> F64:
    """Mean of rows between `edges` in frames [columns + 1], below `end`, [columns, rows]; NaN without a frame."""
    stop = len(rows[0]) if end is None else min(end, len(rows[0]))
    if stop == 0:
        return np.full((len(edges) - 1, len(rows)), np.nan)
    at = np.clip(edges, 0.0, stop)
    width = np.diff(at)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        # The difference of two large sums may fall a rounding error below zero.
        area = np.maximum(_areas(rows, at), 0.0)
        return np.where(width > TOUCHED, area.T / width, np.nan)


class Extremes:
    """Minima and maxima of some series over frames, as a pyramid that grows at the end."""

    def __init__(self, series: int = 1) -> None:
        self._rows: tuple[list[Values], list[Values]] = ([np.empty(0)] * series, [np.empty(0)] * series)
        # From the second level on: [series, blocks there is room for].
        self._low: list[Array] = []
        self._high: list[Array] = []
        self._count = [0]

    def __len__(self) -> int:
        return self._count[0]

    def follow(self, low: Sequence[Values], high: Sequence[Values] | None = None, same: int | None = None) -> None:
        """Take one value per frame by series, or both ends, by reference; `same`: unchanged frames (None: all)."""
        kept = len(self) if same is None else min(same, len(self))
        lower = list(low)
        # The same list where the ends are the same: its slices are then made once.
        self._rows = (lower, lower if high is None else list(high))
        self._count[0] = len(low[0])
        level = 0
        while self._count[level] >= FACTOR:
            level += 1
            if level == len(self._count):
                for pyramid in (self._low, self._high):
                    pyramid.append(np.empty((len(low), 64), low[0].dtype))
                self._count.append(0)
            kept //= FACTOR
            self._summarise(level, kept)
        del self._low[level:], self._high[level:], self._count[level + 1 :]

    def _summarise(self, level: int, kept: int) -> None:
        """Rebuild the blocks of a level from `kept` on, each of FACTOR blocks of the level below."""
        kept, full = min(kept, self._count[level]), self._count[level - 1] // FACTOR
        low, high = self._below(level)
        out = []
        for pyramid in (self._low, self._high):
            pyramid[level - 1] = _wider(pyramid[level - 1], kept, full)
            out.append(pyramid[level - 1])
        # In pieces, whose temporary arrays reuse the same memory; `min` and `max` over a short axis are slower.
        begins = np.arange(0, PIECE, FACTOR)
        for number, (lower, upper) in enumerate(zip(low, high, strict=True)):
            for first in range(kept, full, PIECE // FACTOR):
                last = min(first + PIECE // FACTOR, full)
                under, some = slice(first * FACTOR, last * FACTOR), begins[: last - first]
                values = lower[under]
                np.minimum.reduceat(values, some, out=out[0][number, first:last])
                np.maximum.reduceat(values if upper is lower else upper[under], some, out=out[1][number, first:last])
        self._count[level] = full

    def _below(self, level: int) -> tuple[Sequence[Values], Sequence[Values]]:
        """Lower and upper ends by series of the blocks that a level is made of."""
        if level == 1:
            return self._rows
        return list(self._low[level - 2]), list(self._high[level - 2])

    def columns(self, edges: F64, end: int | None = None) -> tuple[F64, F64]:
        """Minimum and maximum [columns, series] between `edges` in frames, below `end`; NaN where there is no frame."""
        nothing = np.full((len(edges) - 1, len(self._rows[0])), np.nan)
        stop = len(self) if end is None else min(end, len(self))
        if not stop:
            return nothing, nothing.copy()
        per_column = (edges[-1] - edges[0]) / (len(edges) - 1)
        level, size = 0, 1
        while (
            level + 1 < len(self._count)
            and per_column >= BLOCKS_PER_COLUMN * size * FACTOR
            # Only whole blocks before the playhead: the rest is read one level down.
            and stop >= size * FACTOR
        ):
            level, size = level + 1, size * FACTOR
        whole = stop // size
        start = np.floor(np.clip(edges[:-1], 0, stop) / size).astype(np.int64)
        after = np.ceil(np.clip(edges[1:], 0, stop) / size).astype(np.int64)
        begin, last = int(start[0]), max(int(after[-1]), 1)
        low, high = self._below(level + 1)
        lower = [row[begin : min(last, whole)] for row in low]
        upper = lower if high is low else [row[begin : min(last, whole)] for row in high]
        if whole * size < stop and last > whole:
            tail = slice(whole * size, stop)
            lower, upper = (
                [np.append(blocks, least(row[tail])) for blocks, row in zip(some, rows, strict=True)]
                for some, rows, least in zip((lower, upper), self._rows, (np.min, np.max), strict=True)
            )
        blocks = len(lower[0])
        if not blocks:
            return nothing, nothing.copy()
        there = (edges[1:] > 0) & (edges[:-1] < stop)
        # From a column's start to the next one's, and the block that it ends in, which may be the next one's too.
        begins = np.minimum(start - begin, blocks - 1)
        ends = np.clip(after - begin, 1, blocks) - 1
        least, most = (
            np.stack([extreme(extreme.reduceat(row, begins), row[ends]) for row in some])
            for extreme, some in zip((np.minimum, np.maximum), (lower, upper), strict=True)
        )
        return np.where(there, least, np.nan).T, np.where(there, most, np.nan).T


def _wider(array: Array, used: int, needed: int) -> Array:
    if needed <= array.shape[1]:
        return array
    bigger = np.empty((len(array), max(needed, 2 * array.shape[1])), dtype=array.dtype)
    bigger[:, :used] = array[:, :used]
    return bigger
