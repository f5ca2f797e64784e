"""Exact scoring of a continuous-density model: all senones of a block, or some senones of one frame.

log p(x|senone) = Σ over streams log Σ over components weight · N(x; component). Work counts: `gaussians` are
Gaussians evaluated (one senone, stream and component), `exponentials` calls of exp, `senones` senones given a
score.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES, WAITS
from pipelines.scoring.call_counts import calls, frame_calls
from pipelines.scoring.continuous import kernels
from pipelines.scoring.continuous.packing import PackedContinuous
from pipelines.scoring.gaussians.expansion import expand
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Kind
from pipelines.scoring.thread_pool import WAIT_STAGE, BlockPool
from profiler.arrays import Array
from profiler.costs import Cost, Linear

USUAL = 42  # components of which MAX_FRAMES are some 30 ms of work for one thread


class ContinuousGmm:
    """Parameters and workspace of one continuous model; a `scoring.family.Family`."""

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
        # The same Gaussians per call, at most: a call stays below 50 ms, so that others get their turn.
        self.frames_per_call = min(
            MAX_FRAMES, max(8, MAX_FRAMES * USUAL // p.n_components // 8 * 8)
        )
        self._x = np.empty((MAX_FRAMES, p.n_streams, p.expanded), np.float32)
        lanes = -(-p.n_components // LANES) * LANES
        self._workspace = {
            first: (
                aligned((MAX_FRAMES, p.n_components * LANES)),
                aligned((2, MAX_FRAMES, LANES)),
                aligned((MAX_FRAMES, p.n_streams, lanes)),
            )
            for first, _ in self.pool.ranges
        }

    def small(self) -> ContinuousGmm:
        """The same of sixteen senones, for compiling."""
        return ContinuousGmm(self.parameters.small(), threads=1)

    def touch(self) -> None:
        """Make the layout of the parameters that is otherwise made when it is first asked for."""
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
        for at in range(0, len(features), self.frames_per_call):
            call = slice(at, at + self.frames_per_call)
            self._score(self.expand(features[call]), scores[call], meter, best)

    def _score(self, x: Array, scores: Array, meter: Meter, best: bool) -> None:
        gaussians = len(x) * self.parameters.n_gaussians

        def part(first: int, last: int, meter: Meter) -> None:
            tile, sums, _ = self._workspace[first]
            gaussians_at = self.parameters.gaussians
            lse_ns = kernels.dense(x, gaussians_at, tile, sums, scores, first, last, best)
            meter.done("score.gaussians", gaussians, later_ns=lse_ns)
            meter.done("score.lse", 0 if best else gaussians, len(x) * self.n_senones)

        self.pool.run(part, meter)

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Expand the features of a block for `score_some`: nothing else is shared by senones."""
        self.expand(features)

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Exact scores of some senones in frames first … last − 1: see `family.Family`."""
        x, rows = self._x[first:last], scores[first:last]
        panels = self.parameters.by_senone
        n_active, groups = len(senones), self.parameters.n_groups
        gaussians = (last - first) * n_active * self.per_senone

        def part(first: int, last: int, meter: Meter) -> None:
            _, _, densities = self._workspace[first]
            share = senones[n_active * first // groups : n_active * last // groups]
            lse_ns = kernels.some(x, panels, share, densities, rows)
            meter.done("score.gaussians", gaussians, later_ns=lse_ns)
            meter.done("score.lse", gaussians, len(x) * n_active)

        self.pool.run(part, meter)

    def costs_of_all(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `score_all` for calls of about `frames` frames."""
        p = self.parameters
        rows = min(frames, self.frames_per_call)
        together = self._together(rows)
        tile = float(rows * together * p.n_components * LANES * FLOAT)
        parameters = float(p.gaussians.nbytes)
        return {
            "score.gaussians": self._gaussians_cost(
                Linear(fixed=parameters),
                Linear(fixed=parameters),
                self._padding,
                parameters,
                calls(2),
            ),
            "score.lse": self._lse_cost(self._padding, tile),
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `begin_some` and `score_some`: the parameters of each senone asked for, once per call."""
        p = self.parameters
        panels = -(-p.n_components // LANES)
        padding = panels * LANES / p.n_components
        per_gaussian = p.expanded * FLOAT * padding
        row = float(p.n_streams * panels * LANES * FLOAT)
        parameters = p.n_gaussians * per_gaussian
        return {
            "score.gaussians": self._gaussians_cost(
                Linear(per_work=(per_gaussian / frames, 0.0, 0.0)),
                Linear(per_work=(per_gaussian, 0.0, 0.0)),
                padding,
                parameters,
                frame_calls(),
            ),
            "score.lse": self._lse_cost(padding, MAX_FRAMES * row),
            WAIT_STAGE: Cost(unmodelled=WAITS),
        }

    def _together(self, rows: int) -> int:
        """Streams whose log densities of so many frames fit the tile at once: see `kernels.dense`."""
        streams = self.parameters.n_streams
        return streams if rows * streams <= MAX_FRAMES else 1

    @property
    def _padding(self) -> float:
        """Lanes computed per lane used: the last group of senones may not be full."""
        return self.parameters.n_groups * LANES / self.n_senones

    def _gaussians_cost(
        self,
        least: Linear,
        most: Linear,
        padding: float,
        working_set: float,
        called: Mapping[str, Linear],
    ) -> Cost:
        """One product [n, K] × [K, components] per senones' tile and stream.

        Of all senones, the parameters come from memory once per call, which is compulsory; the log densities
        stay in the second-level cache until log-sum-exp takes them. Of some senones, once per call for
        `frames` frames at best, and once per frame where frames are asked for one by one.
        """
        return Cost(
            operations={
                "gemm": Linear(per_work=(2.0 * self.parameters.expanded * padding, 0.0, 0.0))
            },
            bytes_min=least,
            bytes_max=most,
            working_set_bytes=working_set,
            calls=called,
        )

    def _lse_cost(self, padding: float, tile: float) -> Cost:
        """A maximum, a subtraction, an exponential and a sum per Gaussian; a logarithm per senone.

        Each log density is read from the cache; the second pass over a senone's finds them in the first level.
        """
        p = self.parameters
        return Cost(
            operations={
                "exp": Linear(per_work=(padding, 0.0, 0.0)),
                "fma": Linear(per_work=(3.0 * padding, 2.0 * p.n_streams, 0.0)),
                "log": Linear(per_work=(0.0, 1.0, 0.0)),
            },
            bytes_min=Linear(per_work=(FLOAT, FLOAT, 0.0)),
            bytes_max=Linear(per_work=(FLOAT * padding, 2.0 * FLOAT, 0.0)),
            working_set_bytes=tile,
        )
