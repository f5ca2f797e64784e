"""Per-frame rows of a cost track, prepared for drawing and updated with the tail: one `FrameSeries` for all views.

Blocks of frames that a chart draws as one, and the envelope of the audio, are here too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np

from profiler.analysis.categories import CATEGORIES
from profiler.analysis.lod.columns import Extremes
from profiler.analysis.per_frame import FrameRow
from profiler.analysis.track import MAX_FRAMES, CostTrack
from profiler.arrays import F64, I64, Array, Bool
from profiler.session.reader import Session

if TYPE_CHECKING:
    from profiler.session.model import Utterance

BLOCK_COLUMNS = 4  # Least pixel columns of a block: seen as a level, narrow enough to show a step
QUANTILE = 0.95

ROUNDED = 1e-9  # Share of a doubling by which the frames of a column may be off
KEPT_FROM = 64  # Frames of a block whose quantile is kept; smaller ones are few enough to compute anew
AT_ONCE_FRAMES = 1 << 16  # Frames whose quantiles are worked out in one go: less than a millisecond


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


CHECKED_FRAMES = 1024  # Compared on every update: the newest frames of a live track may still grow


class FrameSeries:
    """Sums and extremes over a track's frames."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.seen = (-1, -1)  # Spans and frames that were there when it was updated last; before the first time, none
        self.costs: Sequence[FrameRow] = ()  # By category
        self.walls = Extremes()
        self.quantiles = BlockQuantiles()
        self._work = WorkSeries(())
        # Weak: the series itself lives as long as its track.
        self._track: ref[CostTrack] | None = None
        self._same = 0
        self._tail = np.empty((0, len(CATEGORIES)))

    def __len__(self) -> int:
        return len(self.costs[0]) if self.costs else 0

    def update(self, track: CostTrack) -> None:
        """Add what is new in `track`; the cost depends only on what is new."""
        frames = int(track.n_frames)
        costs, walls = track.category_rows, track.wall_row
        known = len(self)
        same = min(known, frames)
        start = known - len(self._tail)
        if same > start:
            alike = np.all(_of_all(costs, start, same) == self._tail[: same - start], axis=1)
            if not alike.all():
                same = start + int(np.argmin(alike))
        if same < start and known:
            same = 0
        self.costs = costs
        self.walls.follow([walls], same=same)
        self.quantiles.follow(walls, same)
        self._tail = _of_all(costs, max(0, frames - CHECKED_FRAMES), frames)
        self._track, self._same = ref(track), min(self._same, same)

    def work(self, names: Collection[str]) -> WorkSeries:
        """Sums and extremes of those of the counts `names` that there are, updated on access."""
        track = None if self._track is None else self._track()
        if track is not None:
            counts = {name: row for name, row in track.work_rows.items() if name in names}
            if tuple(counts) != self._work.names:
                self._work, self._same = WorkSeries(tuple(counts)), 0
            self._work.follow(list(counts.values()), self._same)
            self._track, self._same = None, len(self)
        return self._work


class WorkSeries:
    """Rows and extremes of the counts `names` of a track, all in one: a chart asks for all of them at once."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.rows: Sequence[FrameRow] = ()
        self.extremes = Extremes(len(names))

    def follow(self, rows: list[FrameRow], same: int) -> None:
        """Take one row per name; frames before `same` are as they were."""
        if rows:
            same = min(same, len(self.rows[0]) if self.rows else 0)
            self.rows = rows
            self.extremes.follow(rows, same=same)


def _of_all(rows: list[FrameRow], first: int, last: int) -> F64:
    """The frames first … last − 1 of all rows, [frames, rows]."""
    return np.stack([row[first:last] for row in rows], axis=1)


_known: WeakKeyDictionary[CostTrack, FrameSeries] = WeakKeyDictionary()


def series_of(session: Session, track: CostTrack) -> FrameSeries:
    """The up-to-date series of a track, one for every view; rebuilt when the track's `generation` has changed."""
    series = _known.get(track)
    if series is None or series.generation != track.generation:
        series = _known[track] = FrameSeries(track.generation)
    # Four views ask for every update, and the file is read less often than they do.
    seen = (len(session.spans), int(track.n_frames))
    if seen != series.seen:
        series.update(track)
        series.seen = seen
    return series


class Envelope:
    """Lowest and highest sample per run-global frame as int8, kept up with a session's utterances."""

    def __init__(self) -> None:
        self._extremes = Extremes()
        self._peaks = np.zeros((2, 1024), np.int8)
        self._taken = 0

    def update(self, utterances: Sequence[Utterance]) -> Extremes:
        """Take over utterances that were not there before, in order of time."""
        if len(utterances) == self._taken:
            return self._extremes
        same = end = len(self._extremes)
        for utterance in utterances[self._taken :]:
            first = int(utterance.first_frame)
            peaks = np.empty((0, 2)) if utterance.peaks is None else utterance.peaks
            # Between utterances, silence; what an earlier one said of these frames no longer holds.
            if first + len(peaks) > MAX_FRAMES:
                continue  # no track has such a frame
            low, end = min(first, end), first + len(peaks)
            same = min(same, low)
            if end > self._peaks.shape[1]:
                wider = np.zeros((2, 2 * end), np.int8)
                wider[:, :low] = self._peaks[:, :low]
                self._peaks = wider
            self._peaks[:, low:first] = 0
            self._peaks[:, first:end] = peaks.T
        self._taken = len(utterances)
        self._extremes.follow([self._peaks[0, :end]], [self._peaks[1, :end]], same)
        return self._extremes


_envelopes: WeakKeyDictionary[Session, Envelope] = WeakKeyDictionary()


def envelope_of(session: Session) -> Extremes:
    return _envelopes.setdefault(session, Envelope()).update(session.utterances)
