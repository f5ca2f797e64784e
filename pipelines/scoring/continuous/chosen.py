"""What strategies share that compute some of a continuous model's Gaussians: workspace, stages, cost laws."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES, WAITS
from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.continuous.dense import ContinuousGmm
from pipelines.scoring.continuous.queue import EVERY, Queue
from pipelines.scoring.gaussians.int8 import Int8Gaussians
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.panels import AHEAD
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.thread_pool import WAIT_STAGE
from profiler.costs import Cost, Linear

NO_BACKING: Backing = (
    np.empty((0, 0, 0), np.uint16),
    np.empty((0, 0, 0, 0), np.float32),
    np.empty((0, 0), np.uint64),
    np.empty((0, 0, 0), np.float32),
)
"""For `listed.queued`: what is not computed counts for nothing."""


def best_of_some(per_senone: float, full: Cost) -> Cost:
    """Law of `score.lse` when a senone takes its best: a comparison for each of so many Gaussians.

    Then a logarithm (of one) and an addition: laws by senone. `full`: the law of the sum.
    """
    return Cost(
        operations={
            "fma": Linear(per_work=(0.0, per_senone + 2.0, 0.0)),
            "log": Linear(per_work=(0.0, 1.0, 0.0)),
        },
        bytes_min=Linear(per_work=(0.0, FLOAT * (per_senone + 1.0), 0.0)),
        bytes_max=Linear(per_work=(0.0, FLOAT * (per_senone + 2.0), 0.0)),
        working_set_bytes=full.working_set_bytes,
    )


class Workspace:
    """Of one thread, for its groups first … last − 1."""

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


class Chosen:
    """Base of those strategies."""

    def __init__(self, family: ContinuousGmm) -> None:
        self._family = family
        self._work = {first: Workspace(family, first, last) for first, last in family.pool.ranges}

    def done(self, gaussians: int, summed: int, senones: int, lse_ns: int, meter: Meter) -> None:
        """Close the two stages of the family: `gaussians` computed, `summed` densities summed."""
        meter.done("score.gaussians", gaussians, later_ns=lse_ns)
        meter.done("score.lse", summed, senones)

    def chosen_costs(
        self,
        frames: int,
        kept: float,
        called: Mapping[str, Linear],
        eight: Int8Gaussians | None = None,
    ) -> dict[str, Cost]:
        """Laws of the family's stages when a part `kept` of the Gaussians is computed.

        Compulsory: the parameters of what one frame keeps, once a call, should all frames keep the same; at most
        each frame's for itself. `eight`: where they are in 8 bits. `called`: calls that the Gaussians take.
        """
        p = self._family.parameters
        each = float(p.expanded * FLOAT) if eight is None else eight.bytes_each
        of_a_frame = kept * p.n_gaussians * each
        working_set = min(frames * of_a_frame, p.n_gaussians * each)
        costs = self._family.costs_of_all(frames)
        operations = {"fma": Linear(per_work=(2.0 * p.expanded, 0.0, 0.0))}
        return {
            "score.gaussians": Cost(
                operations=operations if eight is None else eight.operations,
                bytes_min=Linear(per_work=(each / frames, 0.0, 0.0)),
                bytes_max=Linear(per_work=(each, 0.0, 0.0)),
                working_set_bytes=working_set,
                calls=called,
            ),
            "score.lse": costs["score.lse"],
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }
