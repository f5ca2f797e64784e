"""What every GMM strategy shares: the block's workspace, the common stages and their cost laws.

Work counts, each on the one stage where it arises: `gaussians` are Gaussians evaluated (one
codebook, stream and density; 13 dimensions), `exponentials` are calls of exp, `components` are
mixture components summed (a weight times a density, per senone and stream), `senones` are senones
given a score. Gaussian selection of mixture components lowers the second and third, not the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES, WAITS
from pipelines.scoring.call_counts import calls
from pipelines.scoring.gaussians.expansion import expand
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.vector import aligned
from pipelines.scoring.strategy import Kind
from pipelines.scoring.thread_pool import WAIT_STAGE, BlockPool
from pipelines.scoring.tied import kernels
from pipelines.scoring.tied.lazy import STAGE as LAZY_STAGE
from pipelines.scoring.tied.lazy import STAGES as LAZY_STAGES
from pipelines.scoring.tied.lazy import LazyMixtures
from pipelines.scoring.tied.packing import PackedGmm
from profiler.arrays import Array, ArrayError
from profiler.costs import Cost, Linear

STAGES: dict[str, tuple[str, ...]] = {
    "score.gaussians": ("gaussians",),
    "score.log": ("senones",),
    WAIT_STAGE: (),
}


class _Room(NamedTuple):
    """Workspace of a block, see `Gmm.expand`, `workspace` and `products`."""

    x: Array
    g: Array
    products: tuple[Array, Array]


class Gmm:
    """Parameters and workspace of a tied-mixture model (`family.Family`); strategies build on its stages."""

    kind: Kind = "Tied"
    stages: Mapping[str, tuple[str, ...]] = STAGES | LAZY_STAGES

    def __init__(self, parameters: PackedGmm, threads: int) -> None:
        p = self.parameters = parameters
        self.n_senones = p.n_senones
        self.dim = len(p.centre)
        # Multiply-adds of a codebook per density: its Gaussians, and a mixture for each senone.
        self.pool = BlockPool(threads, p.senones_per_codebook + p.expanded)
        x = np.empty((MAX_FRAMES, p.n_streams, p.expanded), np.float32)
        g = aligned((MAX_FRAMES, p.n_codebooks, p.n_streams, p.padded_densities))
        products = aligned((MAX_FRAMES, p.columns))
        shift = np.empty((MAX_FRAMES, p.n_codebooks), np.float32)
        # By frames of a block: making a view takes microseconds after the data of a stage have gone through the caches.
        self._room = [_Room(x[:n], g[:n], (products[:n], shift[:n])) for n in range(MAX_FRAMES + 1)]

    def small(self) -> Gmm:
        """The same of one codebook, for compiling."""
        return Gmm(self.parameters.small(), threads=1)

    def touch(self) -> None:
        """Make the layouts of the parameters that are otherwise made when they are first asked for."""
        _ = self._lazy, self.parameters.rows

    @property
    def gaussians_per_frame(self) -> int:
        """Gaussians of the whole model."""
        p = self.parameters
        return p.n_codebooks * p.n_streams * p.n_densities

    def products(self, n: int) -> tuple[Array, Array]:
        """Workspace for n frames: likelihoods [n, columns], what was subtracted [n, codebooks]."""
        return self._room[n].products

    def expand(self, features: Array) -> Array:
        """[x², x, 1] per stream, f32 [n, 3, 27]; its time goes into `score.gaussians`."""
        if len(features) > MAX_FRAMES:
            raise ArrayError(
                f"expand: {len(features)} frames, where there is room for {MAX_FRAMES}"
            )
        x = self._room[len(features)].x
        expand(features, self.parameters.centre, x)
        return x

    def workspace(self, n: int) -> Array:
        """Room for the log densities of n frames, f32 [n, codebooks, 3, padded densities]."""
        return self._room[n].g

    def densities(self, x: Array, first: int, last: int, meter: Meter) -> Array:
        """Stage `score.gaussians`: log densities f32 [n, codebooks, 3, padded densities]."""
        g = self.workspace(len(x))
        kernels.evaluate(x, self.parameters.gaussians, g, first, last)
        meter.done("score.gaussians", len(x) * self.gaussians_per_frame)
        return g

    def logarithms(self, scores: Array, first: int, last: int, meter: Meter) -> None:
        """Stage `score.log`: scores f32 [n, senones] from the products of this block."""
        p = self.parameters
        products, shift = self.products(len(scores))
        kernels.logarithms(products, shift, p.order, scores, first, last)
        meter.done("score.log", len(scores) * p.n_senones)

    @cached_property
    def _lazy(self) -> LazyMixtures:
        return LazyMixtures(self, MAX_FRAMES)

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Gaussians and exponentials of a block, for `score_some`."""
        self._lazy.begin(features, meter)

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Exact scores of some senones in frames first … last − 1: see `family.Family`."""
        self._lazy.score(first, last, senones, scores, meter)

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `begin_some` and `score_some` record."""
        return {
            "score.gaussians": gaussians_cost(self.parameters, frames),
            "score.exp": exponentials_cost(self.gaussians_per_frame, frames),
            LAZY_STAGE: self._lazy.cost(frames),
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the common stages for calls of about `frames` frames."""
        return {
            "score.gaussians": gaussians_cost(self.parameters, frames),
            "score.log": log_cost(self.parameters, frames),
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }


def gaussians_cost(p: PackedGmm, frames: int) -> Cost:
    """One product [n, 27] × [27, densities] per codebook and stream.

    Compulsory: the parameters once per call, each log density written. A codebook's parameters of
    one stream (14 kB) stay in the first-level cache for all frames, so the tiling adds only that
    a line is read before it is overwritten.
    """
    parameters = float(p.gaussians.nbytes)
    per_frame = p.n_codebooks * p.n_streams * p.n_densities
    expanded = p.n_streams * p.expanded * FLOAT
    least = Linear(fixed=parameters, per_work=(FLOAT + expanded / per_frame, 0.0, 0.0))
    most = Linear(fixed=parameters, per_work=(2 * FLOAT + expanded / per_frame, 0.0, 0.0))
    return Cost(
        operations={
            "gemm": Linear(per_work=(2.0 * p.expanded, 0.0, 0.0)),
            "fma": Linear(per_work=(2.0 * len(p.centre) / per_frame, 0.0, 0.0)),
        },
        bytes_min=least,
        bytes_max=most,
        working_set_bytes=block_bytes(p, frames),
        calls=calls(2),
    )


def exponentials_cost(per_frame: int, frames: int) -> Cost:
    """A comparison, a subtraction and an exponential per density, read and written in place.

    The second pass over a stream's 128 densities finds them in the first-level cache.
    """
    traffic = Linear(per_work=(2.0 * FLOAT, 0.0, 0.0))
    return Cost(
        operations={
            "exp": Linear(per_work=(1.0, 0.0, 0.0)),
            "fma": Linear(per_work=(2.0, 0.0, 0.0)),
        },
        bytes_min=traffic,
        bytes_max=traffic,
        working_set_bytes=float(frames * per_frame * FLOAT),
        calls=calls(1),
    )


def block_bytes(p: PackedGmm, frames: int) -> float:
    """What the scoring of a block goes through: Gaussians, weights, the densities between them.

    The parameters of a stage are read again only after all of it, so this, and not the parameters
    alone, says from which level of memory they come.
    """
    densities = frames * p.n_codebooks * p.n_streams * p.padded_densities * FLOAT
    return float(p.gaussians.nbytes + p.weights.nbytes + densities)


def log_cost(p: PackedGmm, frames: int) -> Cost:
    """One logarithm and one addition per senone; likelihood read, score written.

    The kernel writes the logarithms back before it puts them into senone order: twice the traffic.
    """
    return Cost(
        operations={
            "log": Linear(per_work=(1.0, 0.0, 0.0)),
            "fma": Linear(per_work=(1.0, 0.0, 0.0)),
        },
        bytes_min=Linear(per_work=(2.0 * FLOAT, 0.0, 0.0)),
        bytes_max=Linear(per_work=(4.0 * FLOAT, 0.0, 0.0)),
        working_set_bytes=2.0 * FLOAT * frames * p.n_senones,
        calls=calls(1),
    )
