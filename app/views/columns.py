"""Level of detail: per-frame numbers reduced to one value per pixel column, at bounded cost.

Two structures that only grow at the end, so a live tail is paid for once:

- `RunningSums`: prefix sums, from which the *exact* mean over any stretch of time is two look-ups.
- `Extremes`: a pyramid of block minima and maxima (factor 16), so that a spike one frame long still
  shows when an hour lies in a thousand pixels.

Both give the same numbers bit for bit whether they were fed at once or in pieces: sums are
accumulated strictly in order, and minima and maxima are exact.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FACTOR = 16
"""Blocks of one level that make a block of the next."""

BLOCKS_PER_COLUMN = 2
"""A level is used while at least this many of its blocks fall into a column (edge error < 1/2)."""


def column_edges(first: float, last: float, columns: int) -> Floats:
    """Edges in frames [columns + 1] of equally wide columns over [first, last]."""
    return first + (last - first) * (np.arange(columns + 1) / columns)


def _grown(array: NDArray, used: int, needed: int) -> NDArray:
    if needed <= len(array):
        return array
    bigger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    bigger[:used] = array[:used]
    return bigger


class RunningSums:
    """Prefix sums of [frames, series] values, appended at the end."""

    def __init__(self, series: int) -> None:
        self._sums = np.zeros((1024, series))
        self._frames = 0

    def __len__(self) -> int:
        return self._frames

    def truncate(self, frames: int) -> None:
        """Forget everything from frame `frames` on."""
        self._frames = min(self._frames, max(0, frames))

    def append(self, values: Floats) -> None:
        """Add the next frames, values [m, series]."""
        n, m = self._frames, len(values)
        if not m:
            return
        self._sums = _grown(self._sums, n + 1, n + m + 1)
        # Starting the accumulation at the last sum keeps the order of additions, hence the bits.
        piece = self._sums[n : n + m + 1]
        piece[1:] = values
        np.add.accumulate(piece, axis=0, out=piece)
        self._frames = n + m

    def total(self, first: int, last: int) -> Floats:
        """Sum over frames [first, last) per series."""
        first, last = max(0, first), min(last, self._frames)
        if last <= first:
            return np.zeros(self._sums.shape[1])
        return self._sums[last] - self._sums[first]

    def means(self, edges: Floats, end: int | None = None) -> Floats:
        """Mean per column [columns, series]; NaN where a column holds no frame.

        Args:
            edges: column edges in frames [columns + 1], fractions allowed: the mean is of the
                piecewise constant curve, so nothing shimmers while the range moves.
            end: frames from here on count as not there (the playhead).
        """
        stop = self._frames if end is None else min(end, self._frames)
        at = np.clip(edges, 0.0, stop)
        whole = np.minimum(at.astype(np.int64), max(stop - 1, 0))
        part = (at - whole)[:, None]
        sums = self._sums
        if stop == 0:
            return np.full((len(edges) - 1, sums.shape[1]), np.nan)
        area = sums[whole] + part * (sums[whole + 1] - sums[whole])
        width = np.diff(at)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            # The difference of two large sums may fall a rounding error below zero.
            return np.where(width > 0, np.maximum(np.diff(area, axis=0), 0.0) / width, np.nan)


class Extremes:
    """Minima and maxima of one series over frames, as a pyramid that grows at the end."""

    def __init__(self) -> None:
        self._low = [np.empty(1024)]
        # The same array as long as every frame is given as one value.
        self._high = [self._low[0]]
        self._count = [0]

    def __len__(self) -> int:
        return self._count[0]

    def truncate(self, frames: int) -> None:
        """Forget everything from frame `frames` on."""
        size = max(0, frames)
        for level in range(len(self._count)):
            self._count[level] = min(self._count[level], size)
            size //= FACTOR

    def append(self, low: Floats, high: Floats | None = None) -> None:
        """Add the next frames: values [m], or lower and upper ends [m] each."""
        if len(low):
            self._append(0, low, low if high is None else high)

    def _append(self, level: int, low: Floats, high: Floats) -> None:
        if level == len(self._count):
            self._low.append(np.empty(1024))
            self._high.append(np.empty(1024))
            self._count.append(0)
        n = self._count[level]
        end = n + len(low)
        one = self._high[level] is self._low[level]
        if one and low is not high:
            self._high[level], one = self._low[level].copy(), False
        self._low[level] = _grown(self._low[level], n, end)
        self._high[level] = self._low[level] if one else _grown(self._high[level], n, end)
        self._low[level][n:end] = low
        if not one:
            self._high[level][n:end] = high
        self._count[level] = end
        done = self._count[level + 1] if level + 1 < len(self._count) else 0
        full = end // FACTOR
        if full > done:
            part = slice(done * FACTOR, full * FACTOR)
            self._append(
                level + 1,
                self._low[level][part].reshape(-1, FACTOR).min(axis=1),
                self._high[level][part].reshape(-1, FACTOR).max(axis=1),
            )

    def columns(self, edges: Floats, end: int | None = None) -> tuple[Floats, Floats]:
        """Minimum and maximum per column, each [columns]; NaN where a column holds no frame.

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
        low, high = self._low[level][:whole], self._high[level][:whole]
        if whole * size < stop:
            tail = slice(whole * size, stop)
            low = np.append(low, self._low[0][tail].min())
            high = np.append(high, self._high[0][tail].max())
        blocks = len(low)
        empty = np.full(len(edges) - 1, np.nan)
        if not blocks:
            return empty, empty.copy()
        start = np.floor(np.clip(edges[:-1], 0, stop) / size).astype(np.int64)
        after = np.ceil(np.clip(edges[1:], 0, stop) / size).astype(np.int64)
        there = (edges[1:] > 0) & (edges[:-1] < stop)
        # reduceat over [start, after): the odd entries are the gaps and are thrown away.
        pairs = np.empty(2 * len(start), dtype=np.int64)
        pairs[0::2] = np.minimum(start, blocks - 1)
        pairs[1::2] = np.clip(after, 1, blocks)
        # A stopper lets an interval end at the very end of the array.
        least = np.minimum.reduceat(np.append(low, np.inf), pairs)[0::2]
        most = np.maximum.reduceat(np.append(high, -np.inf), pairs)[0::2]
        return np.where(there, least, np.nan), np.where(there, most, np.nan)
