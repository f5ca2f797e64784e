"""What strategies share that compute some of a continuous model's Gaussians: workspace, stages, cost laws."""

from __future__ import annotations

import dataclasses

import numpy as np

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES, WAITS
from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.continuous import roofs_of_chosen as roofs
from pipelines.scoring.continuous.dense import ContinuousGmm
from pipelines.scoring.continuous.queue import EVERY, Queue
from pipelines.scoring.gaussians.int8 import Int8Gaussians
from pipelines.scoring.kernel_work import units
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.panels import AHEAD
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.thread_pool import WAIT_STAGE
from profiler.costs import KERNEL, Cost, Linear, Term

NO_BACKING: Backing = (
    np.empty((0, 0, 0), np.uint16),
    np.empty((0, 0, 0, 0), np.float32),
    np.empty((0, 0), np.uint64),
    np.empty((0, 0, 0), np.float32),
)
"""For `listed.queued`: what is not computed counts for nothing."""


def best_of_some(per_senone: float, full: Cost, terms: tuple[Term, ...]) -> Cost:
    """Law of `score.lse` when a senone takes its best: a comparison for each of so many Gaussians.

    Then a logarithm (of one) and an addition: laws by senone. `full`: the law of the sum.
    """
    return Cost(
        operations={
            "fma": Linear(per_work=(0.0, per_senone + 2.0, 0.0)),
            "log.scorer": Linear(per_work=(0.0, 1.0, 0.0)),
        },
        bytes_min=Linear(per_work=(0.0, FLOAT * (per_senone + 1.0), 0.0)),
        bytes_max=Linear(per_work=(0.0, FLOAT * (per_senone + 2.0), 0.0)),
        working_set_bytes=full.working_set_bytes,
        terms=terms,
    )


def percent(share: float) -> int:
    """A share in per cent as roofs name it: rounded, so that few different ones are measured."""
    return max(STEP, min(100, round(share * 100 / STEP) * STEP))


STEP = 10
"""Per cent."""
TOGETHER = 4
"""Frames at which a panel is computed at once, at most: see `listed`."""


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
        terms: tuple[Term, ...],
        eight: Int8Gaussians | None = None,
        summed: int = 0,
        best: bool = False,
    ) -> dict[str, Cost]:
        """Laws of the family's stages when a part `kept` of the Gaussians is computed.

        Compulsory: the parameters of what one frame keeps, once a call, should all frames keep the same; at most
        each frame's for itself. `eight`: where they are in 8 bits. `terms`: what the strategy adds to the Gaussians;
        `summed`: components that enter a sum, if not those kept alone.
        """
        p = self._family.parameters
        each = float(p.expanded * FLOAT) if eight is None else eight.bytes_each
        of_a_frame = kept * p.n_gaussians * each
        working_set = min(frames * of_a_frame, p.n_gaussians * each)
        costs = self._family.costs_of_all(frames)
        components = summed or max(1, round(kept * p.n_components))
        sums = roofs.SUM, frames, p.n_streams, components, int(best)
        operations = {"fma": Linear(per_work=(2.0 * p.expanded, 0.0, 0.0))}
        return {
            "score.gaussians": Cost(
                operations=operations if eight is None else eight.operations,
                bytes_min=Linear(per_work=(each / frames, 0.0, 0.0)),
                bytes_max=Linear(per_work=(each, 0.0, 0.0)),
                working_set_bytes=working_set,
                terms=(*self._panels(frames, kept, eight), *terms),
            ),
            "score.lse": dataclasses.replace(costs["score.lse"], terms=(units(*sums),)),
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }

    def _panels(self, frames: int, kept: float, eight: Int8Gaussians | None) -> tuple[Term, ...]:
        """A panel comes from memory for the first frame that wants it; the others of a call find it near.

        At least as many panels as one frame keeps, at most as if frames chose independently of each other.
        """
        p = self._family.parameters
        wanted = 1.0 - (1.0 - kept) ** frames
        fewest, most = 1.0 / frames, wanted / (kept * frames)
        share = percent((kept + wanted) / 2)
        if eight is None:
            family, size = roofs.PANELS, float(p.gaussians.nbytes)
            shape: tuple[int, ...] = p.expanded, p.n_components, share
        else:
            family, size = roofs.BYTES, float(eight.panels.nbytes)
            shape = eight.pairs, share
        name = "/".join(map(str, ("", *shape)))
        first = Term(
            KERNEL,
            f"{family}/1{name}",
            Linear(per_work=(fewest, 0.0, 0.0)),
            size,
            Linear(per_work=(most, 0.0, 0.0)),
        )
        if frames == 1:
            return (first,)
        others = Term(
            KERNEL,
            f"{family}/{min(frames, TOGETHER)}{name}",
            Linear(per_work=(1.0 - most, 0.0, 0.0)),
            0.0,
            Linear(per_work=(1.0 - fewest, 0.0, 0.0)),
        )
        return first, others
