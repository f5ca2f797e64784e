"""A cost track's per-frame arrays made ready for drawing, kept up with the tail.

One `FrameSeries` per track, shared by all views: prefix sums of the categories and of the work
counts, and extremes of the wall time and of each count. No Qt in here.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

import numpy as np

from app.views.columns import Extremes, RunningSums
from profiler.analysis.track import CATEGORIES, CostTrack
from profiler.session.reader import Session

CHECKED_FRAMES = 1024
"""Frames before the end that are compared on every update: spans of one block arrive one after
the other, so the newest frames of a live track may still grow."""


class FrameSeries:
    """Sums and extremes over a track's frames."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.costs = RunningSums(len(CATEGORIES))
        self.wall = RunningSums(1)
        self.walls = Extremes()
        self._work: dict[str, tuple[RunningSums, Extremes]] = {}
        # Weakly: the series is itself kept for as long as its track lives.
        self._track: ref[CostTrack] | None = None
        self._kept = 0
        self._tail = np.empty((0, len(CATEGORIES)))

    def __len__(self) -> int:
        return len(self.costs)

    def update(self, track: CostTrack) -> None:
        """Take over what is new in `track`; costs what is new, not what there is."""
        frames = int(track.n_frames)
        costs = track.categories_ns
        known = len(self.costs)
        kept = min(known, frames)
        start = known - len(self._tail)
        if kept > start:
            same = np.all(costs[start:kept] == self._tail[: kept - start], axis=1)
            if not same.all():
                kept = start + int(np.argmin(same))
        if kept < start and known:
            kept = 0
        if kept < known:
            self._truncate(kept)
        if frames > kept:
            self.costs.append(np.asarray(costs[kept:frames], dtype=np.float64))
            walls = np.asarray(track.wall_ns[kept:frames], dtype=np.float64)
            self.wall.append(walls[:, None])
            self.walls.append(walls)
        self._tail = np.array(costs[max(0, frames - CHECKED_FRAMES) : frames])
        self._track, self._kept = ref(track), min(self._kept, kept)

    @property
    def work(self) -> dict[str, tuple[RunningSums, Extremes]]:
        """Sums and extremes of each count, brought up to date when somebody asks for them."""
        track = None if self._track is None else self._track()
        if track is not None:
            frames = len(self.costs)
            for name, values in track.work.items():
                sums, extremes = self._work.setdefault(name, (RunningSums(1), Extremes()))
                done = min(len(sums), self._kept)
                sums.truncate(done)
                extremes.truncate(done)
                fresh = np.asarray(values[done:frames], dtype=np.float64)
                sums.append(fresh[:, None])
                extremes.append(fresh)
            self._track, self._kept = None, frames
        return self._work

    def _truncate(self, frames: int) -> None:
        self.costs.truncate(frames)
        self.wall.truncate(frames)
        self.walls.truncate(frames)
        self._kept = min(self._kept, frames)


_known: WeakKeyDictionary[CostTrack, FrameSeries] = WeakKeyDictionary()


def series_of(session: Session, track: CostTrack) -> FrameSeries:
    """The up-to-date series of a session's track; the same object for every view that asks.

    It starts again when the session's `generation` says that what was read has another meaning now.
    """
    series = _known.get(track)
    if series is None or series.generation != session.generation:
        series = _known[track] = FrameSeries(session.generation)
    series.update(track)
    return series


__all__ = ["CATEGORIES", "FrameSeries", "series_of"]
