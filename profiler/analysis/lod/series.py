"""Per-frame rows of a cost track, prepared for drawing and updated with the tail: one `FrameSeries` for all views."""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary, ref

import numpy as np

from profiler.analysis.categories import CATEGORIES
from profiler.analysis.lod.blocks import BlockQuantiles
from profiler.analysis.lod.columns import Extremes, ManyExtremes, RunningSums
from profiler.analysis.per_frame import FrameRow
from profiler.analysis.track import CostTrack
from profiler.arrays import F64
from profiler.session.reader import Session

CHECKED_FRAMES = 1024
"""Frames before the end that are compared on every update: spans of one block arrive one after
the other, so the newest frames of a live track may still grow."""


class FrameSeries:
    """Sums and extremes over a track's frames."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.seen = (0, 0)
        """Spans and frames that were there when it was updated last."""
        self.costs = RunningSums(len(CATEGORIES))
        self.walls = Extremes()
        self.quantiles = BlockQuantiles()
        self._work = WorkSeries(())
        # Weak: the series itself lives as long as its track.
        self._track: ref[CostTrack] | None = None
        self._same = 0
        self._tail = np.empty((0, len(CATEGORIES)))

    def __len__(self) -> int:
        return len(self.costs)

    def update(self, track: CostTrack) -> None:
        """Add what is new in `track`; the cost depends only on what is new."""
        frames = int(track.n_frames)
        costs, walls = track.category_rows, track.wall_row
        known = len(self.costs)
        same = min(known, frames)
        start = known - len(self._tail)
        if same > start:
            alike = np.all(_of_all(costs, start, same) == self._tail[: same - start], axis=1)
            if not alike.all():
                same = start + int(np.argmin(alike))
        if same < start and known:
            same = 0
        self.costs.follow(costs)
        self.walls.follow(walls, same=same)
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
            self._track, self._same = None, len(self.costs)
        return self._work


class WorkSeries:
    """Sums and extremes of the counts of a track, all in one: a chart asks for all of them at once.

    `names`: by series.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.sums = RunningSums(len(names))
        self.extremes = ManyExtremes(len(names))

    def follow(self, rows: list[FrameRow], same: int) -> None:
        """Take one row per name; frames before `same` are as they were."""
        if rows:
            same = min(same, len(self.sums))
            self.sums.follow(rows)
            self.extremes.follow(rows, same=same)


def _of_all(rows: list[FrameRow], first: int, last: int) -> F64:
    """The frames first … last − 1 of all rows, [frames, rows]."""
    return np.stack([row[first:last] for row in rows], axis=1)


_known: WeakKeyDictionary[CostTrack, FrameSeries] = WeakKeyDictionary()


def series_of(session: Session, track: CostTrack) -> FrameSeries:
    """The up-to-date series of a session's track; the same object for every view that asks.

    It is rebuilt when the track's `generation` says that something else is said of earlier frames.
    """
    series = _known.get(track)
    if series is None or series.generation != track.generation:
        series = _known[track] = FrameSeries(track.generation)
    # Four views ask for every update, and the file is read less often than they do.
    seen = (len(session.spans), int(track.n_frames))
    if seen != series.seen:
        series.update(track)
        series.seen = seen
    return series


__all__ = ["CATEGORIES", "FrameSeries", "series_of"]
