"""Level of detail: per-frame numbers reduced to one value per pixel column, at bounded cost.

`means` of rows that only grow at the end are exact over any stretch: two look-ups in the sums that a `PerFrame` keeps.
`Extremes`: a pyramid of block minima and maxima (factor 16), so that a spike one frame long still shows among an hour;
it adds an eighth of the values' size. Both give the same bits whether they were fed at once or in pieces.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from profiler.analysis.per_frame import FrameRow
from profiler.arrays import F64, Array

Values = Array | FrameRow
"""One value per frame: both give arrays for slices."""

FACTOR = 16
"""Blocks of one level that make a block of the next."""

LARGE = 1 << 16
"""Elements of each array from which threads are worth starting: some 100 µs for all of them."""

MOST_THREADS = 4
"""More than these only wait for memory."""

PIECE = 1 << 15
"""Frames of a row that are looked at in one go: a quarter of a megabyte."""

BLOCKS_PER_COLUMN = 2
"""A level is used while at least this many of its blocks fall into a column (edge error < 1/2)."""


TOUCHED = 1e-6
"""Frames that a column must have a part of to have a mean: edges are rounded, and so are differences of large sums."""

STEP_DIGITS = 11
"""Significant digits of a column's width: a range that only moves keeps its columns, however its ends are rounded."""


def column_grid(first: float, last: float, columns: int) -> tuple[int, float]:
    """Number of the first of `columns` columns over [first, last], and their width.

    Column n spans [n × width, (n + 1) × width): a range that moves shows the same columns, moved by up to half of one.
    """
    width = float(f"{(last - first) / columns:.{STEP_DIGITS}g}")
    return math.floor(first / width + 0.5), width


def column_edges(first: float, last: float, columns: int) -> F64:
    """Edges in frames [columns + 1] of equally wide columns over [first, last], on their grid."""
    number, width = column_grid(first, last, columns)
    return np.arange(number, number + columns + 1, dtype=np.float64) * width


def _area(rows: Sequence[FrameRow], at: F64) -> F64:
    """Integral of rows of one `PerFrame` from the first frame to `at` [k], which frames may be cut, [rows, k]."""
    return rows[0].store.area([row.number for row in rows], at)


def totals(rows: Sequence[FrameRow], first: int, last: int) -> F64:
    """Sum over frames [first, last) of each row."""
    first, last = max(0, first), min(last, len(rows[0]))
    if last <= first:
        return np.zeros(len(rows))
    area = _area(rows, np.array([first, last], dtype=np.float64))
    return area[:, 1] - area[:, 0]


def means(rows: Sequence[FrameRow], edges: F64, end: int | None = None) -> F64:
    """Mean per column [columns, rows]; NaN where a column has no frame.

    `edges`: in frames [columns + 1], fractions allowed: the curve is piecewise constant. `end`: the first frame that is
    not there (the playhead).
    """
    stop = len(rows[0]) if end is None else min(end, len(rows[0]))
    if stop == 0:
        return np.full((len(edges) - 1, len(rows)), np.nan)
    at = np.clip(edges, 0.0, stop)
    width = np.diff(at)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        # The difference of two large sums may fall a rounding error below zero.
        area = np.maximum(np.diff(_area(rows, at), axis=1), 0.0)
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
        """Take one value per frame for each series, or lower and upper ends [frames], kept by reference.

        `same`: frames that are as they were (default: all there were).
        """
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
        kept = min(kept, self._count[level])
        full = self._count[level - 1] // FACTOR
        below = self._below(level)
        found = []
        for pyramid in (self._low, self._high):
            pyramid[level - 1] = _wider(pyramid[level - 1], kept, full)
            found.append(pyramid[level - 1])
        if kept < full:
            reduced = partial(_reduce, below, found, kept, full)
            run_parallel(reduced, range(len(below[0])), (full - kept) * FACTOR)
        self._count[level] = full

    def _below(self, level: int) -> tuple[Sequence[Values], Sequence[Values]]:
        if level == 1:
            return self._rows
        return list(self._low[level - 2]), list(self._high[level - 2])

    def _blocks(self, level: int, begin: int, end: int) -> tuple[list[Array], list[Array]]:
        """Lower and upper ends of blocks [begin, end) of a level by series, [end − begin] each."""
        low, high = self._below(level + 1)
        lower = [row[begin:end] for row in low]
        return lower, lower if high is low else [row[begin:end] for row in high]

    def columns(self, edges: F64, end: int | None = None) -> tuple[F64, F64]:
        """Minimum and maximum per column, each [columns, series]; NaN where a column has no frame.

        `edges`: in frames [columns + 1]; a frame that a column only touches counts. `end`: the first frame that is not
        there.
        """
        stop = len(self) if end is None else min(end, len(self))
        if not stop:
            nothing = np.full((len(edges) - 1, len(self._rows[0])), np.nan)
            return nothing, nothing.copy()
        per_column = (edges[-1] - edges[0]) / (len(edges) - 1)
        level = 0
        while (
            level + 1 < len(self._count)
            and per_column >= BLOCKS_PER_COLUMN * FACTOR ** (level + 1)
            # Only whole blocks before the playhead: the rest is read one level down.
            and stop // FACTOR ** (level + 1) > 0
        ):
            level += 1
        return self._columns(edges, level, stop)

    def _columns(self, edges: F64, level: int, stop: int) -> tuple[F64, F64]:
        """Minimum and maximum per column, from the blocks of a level and the frames after the last whole one."""
        size = FACTOR**level
        whole = stop // size
        start = np.floor(np.clip(edges[:-1], 0, stop) / size).astype(np.int64)
        after = np.ceil(np.clip(edges[1:], 0, stop) / size).astype(np.int64)
        begin, end = int(start[0]), max(int(after[-1]), 1)
        ends = self._blocks(level, begin, min(end, whole))
        if whole * size < stop and end > whole:
            tail = slice(whole * size, stop)
            ends = (
                [np.append(b, row[tail].min()) for b, row in zip(ends[0], self._rows[0], strict=True)],
                [np.append(b, row[tail].max()) for b, row in zip(ends[1], self._rows[1], strict=True)],
            )
        there = (edges[1:] > 0) & (edges[:-1] < stop)
        blocks = len(ends[0][0])
        if not blocks:
            nothing = np.full((len(there), len(ends[0])), np.nan)
            return nothing, nothing.copy()
        # From a column's start to the next one's, and the block that it ends in, which may be the next one's too.
        begins = np.minimum(start - begin, blocks - 1)
        last = np.clip(after - begin, 1, blocks) - 1
        least, most = (
            np.stack([extreme(extreme.reduceat(row, begins), row[last]) for row in some])
            for extreme, some in zip((np.minimum, np.maximum), ends, strict=True)
        )
        return np.where(there, least, np.nan).T, np.where(there, most, np.nan).T


def _reduce(
    below: tuple[Sequence[Values], Sequence[Values]], out: Sequence[Array], kept: int, full: int, number: int
) -> None:
    """Write to row `number` of `out`, from `kept` to `full`, the extremes of each block of the same row of `below`.

    Works on one piece at a time, so that temporary arrays stay small and reuse the same memory.
    """
    # `min` and `max` over a short axis are slower.
    begins = np.arange(0, PIECE, FACTOR)
    lower, upper = (rows[number] for rows in below)
    for first in range(kept, full, PIECE // FACTOR):
        last = min(first + PIECE // FACTOR, full)
        values = lower[first * FACTOR : last * FACTOR]
        some = begins[: last - first]
        np.minimum.reduceat(values, some, out=out[0][number, first:last])
        if upper is not lower:
            values = upper[first * FACTOR : last * FACTOR]
        np.maximum.reduceat(values, some, out=out[1][number, first:last])


def run_parallel(work: Callable[[int], object], numbers: Iterable[int], size: int) -> None:
    """Call `work` with every number in any order, each on about `size` elements of an array of its own.

    Large arrays are worked on by threads: numpy releases the interpreter lock meanwhile.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = min(processors, MOST_THREADS) if size >= LARGE else 1
    if threads == 1:
        for number in numbers:
            work(number)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, numbers):
            pass


def _wider(array: Array, used: int, needed: int) -> Array:
    """`array` [series, blocks] with room for as many blocks as are needed."""
    if needed <= array.shape[1]:
        return array
    bigger = np.empty((len(array), max(needed, 2 * array.shape[1])), dtype=array.dtype)
    bigger[:, :used] = array[:, :used]
    return bigger
