"""Base of strategies that compute some of a continuous model's Gaussians, and their workspace."""

from __future__ import annotations

import numpy as np

from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.continuous.dense import ContinuousGmm
from pipelines.scoring.continuous.queue import EVERY, Queue
from pipelines.scoring.simd.panels import AHEAD
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Strategy

NO_BACKING: Backing = (
    np.empty((0, 0, 0), np.uint16),
    np.empty((0, 0, 0, 0), np.float32),
    np.empty((0, 0), np.uint64),
    np.empty((0, 0, 0), np.float32),
)
"""For `listed.queued`: what is not computed counts for nothing."""


class Workspace:
    """Arrays of one thread, for its groups first … last − 1."""

    def __init__(self, family: ContinuousGmm, first: int, last: int) -> None:
        p = family.parameters
        most = (last - first) * p.n_streams * p.n_components
        self.queue: Queue = (
            np.arange(first, last),
            np.full(last - first, EVERY),
            np.empty((last - first) * p.n_streams, np.int64),
            np.empty(most + AHEAD, np.int64),
            np.empty(most + AHEAD, np.uint64),
        )
        self.tile = aligned((p.n_streams * MAX_FRAMES, p.n_components * LANES))
        self.sums = aligned((2, LANES))


class Chosen(Strategy[ContinuousGmm]):
    """Base of strategies that compute some of the Gaussians."""

    def __init__(self, family: ContinuousGmm) -> None:
        super().__init__(family)
        self._work = {first: Workspace(family, first, last) for first, last in family.pool.ranges}

    def close(self, gaussians: int, summed: int, senones: int, lse_ns: int, meter: Meter) -> None:
        """Close the two stages of the family: `gaussians` computed, `summed` densities summed."""
        meter.close("score.gaussians", gaussians, later_ns=lse_ns)
        meter.close("score.lse", summed, senones)
