"""Blocks of frames on a fixed grid: a chart of block means does not shimmer while it scrolls.

`BlockQuantiles` has the value that 95 % of a block's frames do not exceed. Those of each block size are computed for
the blocks in view and kept; a tail that grows costs only its own blocks.
"""

import math
from dataclasses import dataclass

import numpy as np

from profiler.analysis.per_frame import FrameRow
from profiler.arrays import F64, I64, Array, Bool

BLOCK_COLUMNS = 4
"""Pixel columns that a block takes at least: wide enough to be seen as a level, narrow enough to show a step."""

QUANTILE = 0.95

ROUNDED = 1e-9
"""Share of a doubling by which the frames of a column may be off."""

KEPT_FROM = 64
"""Frames of a block whose quantile is kept; of smaller ones a chart shows so few that they may be worked out anew."""


AT_ONCE_FRAMES = 1 << 16
"""Frames whose quantiles are worked out in one go: less than a millisecond."""


def block_frames(frames: float, columns: int) -> int:
    """Frames of a block if `frames` are shown in `columns` pixel columns: a power of two, so that grids nest."""
    wanted = frames / max(1, columns) * BLOCK_COLUMNS
    # Widths of columns are rounded: those of a range that is a little wider must not take other blocks.
    return 1 << max(0, math.ceil(math.log2(wanted) - ROUNDED)) if wanted > 1 else 1


@dataclass(frozen=True)
class Under:
    """What lies under the columns of a chart: blocks of frames, or each column by itself.

    `size`: frames of a block, 0 where every column stands for itself. `first`: number of the first block. `grid`: edges
    in frames [blocks + 1]. `at` [columns]: the block under each column's middle, counted from the first. `there`
    [columns]: whether its middle is a frame.
    """

    size: int
    first: int
    grid: F64
    at: I64
    there: Bool

    def spread(self, values: F64) -> F64:
        """Values per block [blocks, …], each in all of its columns [columns, …]; NaN where there is no frame."""
        found = values[self.at]
        found[~self.there] = np.nan
        return found

    def spread_rows(self, values: F64) -> F64:
        """`spread` of values [blocks, series], by series [series, columns]."""
        found: F64 = np.take(values.T, self.at, axis=1)
        found[:, ~self.there] = np.nan
        return found


def under(edges: F64, end: int, size: int) -> Under:
    """The blocks of `size` frames under columns of these edges [columns + 1]; frames from `end` on are not there."""
    columns = len(edges) - 1
    if not size:
        return Under(0, 0, edges, np.arange(columns), np.ones(columns, np.bool_))
    middle = (edges[1:] + edges[:-1]) / 2
    block = np.floor(middle / size).astype(np.int64)
    first, last = int(block[0]), int(block[-1]) + 1
    grid = np.arange(first, last + 1, dtype=np.float64) * size
    return Under(size, first, grid, block - first, (middle >= 0) & (middle < end))


def _quantiles(values: Array) -> Array:
    """Nearest-rank quantile of each row [blocks, frames]."""
    rank = max(0, math.ceil(QUANTILE * values.shape[1]) - 1)
    return np.partition(values, rank, axis=1)[:, rank]


class BlockQuantiles:
    """The quantile of each block of one series over frames, for any block size."""

    def __init__(self) -> None:
        self._values: Array | FrameRow = np.empty(0)
        # By size, of all blocks as far as they were asked for: NaN where nobody has yet.
        self._known: dict[int, F64] = {}

    def follow(self, values: Array | FrameRow, same: int | None = None) -> None:
        """Take one value per frame [frames], by reference; the first `same` frames are as they were (default: all there
        were).
        """
        kept = len(self._values) if same is None else same
        self._values = values
        self._known = {size: found[: kept // size] for size, found in self._known.items()}

    def blocks(self, size: int, first: int, last: int, end: int) -> F64:
        """Quantile of blocks [first, last) of `size` frames; frames from `end` on are not there (NaN)."""
        end = min(end, len(self._values))
        whole = min(last, end // size)
        found = np.full(max(0, last - first), np.nan)
        low, high = max(0, first), max(0, first, whole)
        found[low - first : high - first] = self._complete(size, low, high)
        if first <= whole < last and whole * size < end:
            found[whole - first] = _quantiles(self._values[whole * size : end][None])[0]
        return found

    def _complete(self, size: int, low: int, high: int) -> F64:
        """Return the quantile of the complete blocks [low, high); only those in view are computed."""
        if size < KEPT_FROM:
            return self._fresh(size, low, high)
        known = self._known.get(size, np.empty(0))
        if len(known) < high:
            known = np.concatenate([known, np.full(high - len(known), np.nan)])
            self._known[size] = known
        unknown = np.flatnonzero(np.isnan(known[low:high]))
        if len(unknown):
            begin, after = low + int(unknown[0]), low + int(unknown[-1]) + 1
            known[begin:after] = self._fresh(size, begin, after)
        return known[low:high]

    def _fresh(self, size: int, low: int, high: int) -> F64:
        found = np.empty(max(0, high - low))
        step = max(1, AT_ONCE_FRAMES // size)
        for begin in range(low, high, step):
            end = min(begin + step, high)
            frames = self._values[begin * size : end * size].reshape(-1, size)
            found[begin - low : end - low] = _quantiles(frames)
        return found
