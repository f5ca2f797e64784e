"""The hot replays of a session: what stages took of blocks that were run again, under the same law, with their data
hot.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.recorded import Recorded
from profiler.arrays import Array

REPLAYED: Final = "replay."
"""Stages whose spans are hot times of the stage named after it, their count the time that the same block had taken."""

LATEST: Final = 256
"""Replays of a stage that are used together, the latest ones: more do not make the result more certain."""


class Pairs(NamedTuple):
    """Replays of a stage: what each took, and what its block had taken, float64 [n] in ns each."""

    hot: Array
    timed: Array

    def __len__(self) -> int:
        return len(self.hot)

    @property
    def ratio(self) -> float:
        return float(self.hot.sum() / self.timed.sum())

    @property
    def error(self) -> float:
        """The standard error of `ratio`, of two replays or more: of a ratio of sums (Cochran 1977, 2.11)."""
        n = len(self.hot)
        off = self.hot - self.ratio * self.timed
        return float(np.sqrt(n / (n - 1) * (off**2).sum()) / self.timed.sum())


class HotReplays:
    """Kept up with a session by `update`."""

    def __init__(self) -> None:
        self._consumed = 0
        self._found: dict[str, list[Array]] = {}

    def update(self, session: Recorded) -> None:
        """Take in the replays among the spans read since the last call."""
        fresh = session.spans[self._consumed :]
        self._consumed = len(session.spans)
        stages = np.ascontiguousarray(fresh["stage"])
        for number, stage in session.stages.items():
            if not stage.name.startswith(REPLAYED):
                continue
            mine = fresh[stages == number]
            mine = mine[mine["work0"] > 0]
            if len(mine):
                rows = np.stack([mine["duration_ns"], mine["work0"], mine["epoch"]], axis=1)
                found = self._found.setdefault(stage.name.removeprefix(REPLAYED), [])
                found.append(rows.astype(np.float64))

    def of(self, session: Recorded, number: int, epoch: int) -> Pairs:
        """The latest replays of a stage under the law that it has in `epoch`."""
        found = self._found.get(session.stages[number].name)
        if not found:
            return Pairs(np.zeros(0), np.zeros(0))
        if len(found) > 1:
            found[:] = [np.concatenate(found)]
        rows, law = found[0], session.costs.get((number, epoch))
        epochs = [each for each in np.unique(rows[:, 2]).tolist() if session.costs.get((number, int(each))) == law]
        hot, timed, _ = rows[np.isin(rows[:, 2], epochs)][-LATEST:].T
        return Pairs(hot, timed)
