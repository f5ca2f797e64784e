"""A continuous-density model at work: exact scores of all senones of a block, or of some senones of one frame.

log p(x|senone) = Σ over streams log Σ over components weight · N(x; component). Work counts and cost laws: see
`costs.continuous`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.continuous import kernels
from pipelines.scoring.continuous.listed import EVERY, Queue
from pipelines.scoring.continuous.packing import PackedContinuous
from pipelines.scoring.costs import continuous as laws
from pipelines.scoring.gaussians.product import expand
from pipelines.scoring.simd.panels import AHEAD
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Kind
from pipelines.scoring.thread_pool import WAIT_STAGE, BlockPool
from profiler.arrays import Array
from profiler.costs import Cost


class ContinuousGmm:
    """Parameters and workspace of one continuous model; strategies build on its stages."""

    kind: Kind = "Continuous"
    stages: Mapping[str, tuple[str, ...]] = {
        "score.gaussians": ("gaussians",),
        "score.lse": ("exponentials", "senones"),
        WAIT_STAGE: (),
    }

    def __init__(self, parameters: PackedContinuous, threads: int) -> None:
        p = self.parameters = parameters
        self.n_senones = p.n_senones
        self.dim = p.dim
        self.pool = BlockPool(threads, np.ones(p.n_groups))
        self.per_senone = p.n_streams * p.n_components
        self._x = np.empty((MAX_FRAMES, p.n_streams, p.expanded), np.float32)
        self.work = {first: Workspace(p, first, last) for first, last in self.pool.ranges}
        """Of each thread, by the first of its groups."""

    def small(self) -> ContinuousGmm:
        return ContinuousGmm(self.parameters.small(), threads=1)

    def touch(self) -> None:
        """Make the layout of the parameters that is otherwise made on first use."""
        _ = self.parameters.by_senone

    def expand(self, features: Array) -> Array:
        """[x², x, 1] per stream, f32 [n, streams, K]; its time goes into `score.gaussians`."""
        x = self._x[: len(features)]
        expand(features, self.parameters.centre, x)
        return x

    def score_all(self, features: Array, scores: Array, meter: Meter, best: bool = False) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ MAX_FRAMES.

        With `best` a mixture is as likely as its best component: no exponentials.
        """
        for at in range(0, len(features), self.parameters.frames_per_call):
            call = slice(at, at + self.parameters.frames_per_call)
            self._score(self.expand(features[call]), scores[call], meter, best)

    def _score(self, x: Array, scores: Array, meter: Meter, best: bool) -> None:
        gaussians = len(x) * self.parameters.n_gaussians

        def part(first: int, last: int, meter: Meter) -> None:
            tile, sums = self.work[first].dense
            lse_ns = kernels.dense(x, self.parameters.gaussians, tile, sums, scores, first, last, best)
            meter.close("score.gaussians", gaussians, later_ns=lse_ns)
            meter.close("score.lse", 0 if best else gaussians, len(x) * self.n_senones)

        self.pool.run(part, meter)

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Expand the features of a block for `score_some`: nothing else is shared by senones."""
        self.expand(features)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        x, rows = self._x[first:last], scores[first:last]
        n_active, groups = len(senones), self.parameters.n_groups
        gaussians = (last - first) * n_active * self.per_senone

        def part(first: int, last: int, meter: Meter) -> None:
            share = senones[n_active * first // groups : n_active * last // groups]
            lse_ns = kernels.some(x, self.parameters.by_senone, share, self.work[first].some, rows)
            meter.close("score.gaussians", gaussians, later_ns=lse_ns)
            meter.close("score.lse", gaussians, len(x) * n_active)

        self.pool.run(part, meter)

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        return laws.some_senones(self.parameters, frames)


NO_BACKING: Backing = (
    np.empty((0, 0, 0), np.uint16),
    np.empty((0, 0, 0, 0), np.float32),
    np.empty((0, 0), np.uint64),
    np.empty((0, 0, 0), np.float32),
)
"""For `listed.queued`: what is not computed counts for nothing."""


class Workspace:
    """Arrays of one thread, for its groups first … last − 1."""

    def __init__(self, p: PackedContinuous, first: int, last: int) -> None:
        ends = (last - first) * p.n_streams
        room = ends * p.n_components + AHEAD
        places, frame_bits = np.empty(room, np.int64), np.empty(room, np.uint64)
        groups, lanes = np.arange(first, last), np.full(last - first, EVERY)
        self.queue: Queue = groups, lanes, np.empty(ends, np.int64), places, frame_bits
        self.tile = aligned((p.n_streams * MAX_FRAMES, p.n_components * LANES))
        self.sums = aligned((2, LANES))
        self.dense = aligned((MAX_FRAMES, p.n_components * LANES)), aligned((2, MAX_FRAMES, LANES))
        self.some = aligned((MAX_FRAMES, p.n_streams, -(-p.n_components // LANES) * LANES))
