"""No selection: every density of every codebook enters every mixture. Exact.

log p(x|senone) = Σ over streams log Σ over densities weight · N(x; density), with each stream's
best density taken out before the exponential, and one logarithm for the product of the streams.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipelines.scoring.blocks import Meter
from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.continuous.chosen import Workspace
from pipelines.scoring.continuous.listed import dense_of_bytes
from pipelines.scoring.costs import continuous, tied
from pipelines.scoring.gaussians.int8 import Int8Gaussians, in_int8
from pipelines.scoring.strategy import Cancelling, Progress, Strategy
from pipelines.scoring.tied import kernels, max_approximation
from pipelines.scoring.tied.evaluation import Bytes, Evaluate, Evaluation, Floats
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array, check
from profiler.costs import Cost

if TYPE_CHECKING:
    from pipelines import config as settings


class Tied(Strategy[Gmm]):
    """Exact scoring; by component: in 8 bits, or with the best component in place of the sum."""

    stages: Mapping[str, tuple[str, ...]] = {
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, family: Gmm) -> None:
        super().__init__(family)
        self._evaluate: Evaluation = Floats(family)
        self._log_rows: Array | None = None

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """8-bit parameters, or logarithms of the weights."""
        return gmm.component if gmm.component in ("int8", "max") else None

    def prepare(self, gmm: settings.Gmm, progress: Progress, cancelled: Cancelling) -> Int8Gaussians | Array | None:
        """8-bit parameters or logarithms of the weights (under a second)."""
        if gmm.component == "int8":
            return in_int8(self._family.parameters.gaussians)
        if gmm.component == "max":
            return max_approximation.log_rows(self._family.parameters)
        return None

    def configure(self, gmm: settings.Gmm, prepared: Int8Gaussians | Array | None = None) -> None:
        assert self.needs(gmm) is None or prepared is not None, "needs said so"
        self._take(prepared if self.needs(gmm) else None)

    def _take(self, prepared: Int8Gaussians | Array | None) -> None:
        """Compute by 8-bit Gaussians, by logarithms of the weights, or exactly."""
        self._evaluate, self._log_rows = Floats(self._family), None
        if isinstance(prepared, Int8Gaussians):
            self._evaluate = Bytes(self._family, prepared)
        elif prepared is not None:
            check("log_rows", prepared, np.float32, self._family.parameters.weights.shape)
            self._log_rows = prepared

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        self.score_by(self._evaluate, self._family.expand(features), scores, meter)

    def score_by(self, evaluate: Evaluate, x: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` from expanded frames `x`, whose densities `evaluate` computes."""
        gmm, p, n = self._family, self._family.parameters, len(x)
        products, shift = gmm.products(n)

        def part(first: int, last: int, meter: Meter) -> None:
            g = evaluate(x, first, last, meter)
            if self._log_rows is not None:
                max_approximation.mix_best(g, self._log_rows, p.order, products, scores, first, last)
                meter.close("score.mixture", n * p.n_weights)
                return
            kernels.exponentiate(g, shift, first, last)
            meter.close("score.exp", n * p.n_gaussians)
            kernels.mix(g, p.weights, p.start, products, first, last)
            meter.close("score.mixture", n * p.n_weights)
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        p = self._family.parameters
        costs = self._family.costs(frames) | self._evaluate.costs(frames)
        if self._log_rows is not None:
            return costs | {"score.mixture": tied.best_mixtures(p)}
        return costs | {
            "score.exp": tied.exponentials(p, frames),
            "score.mixture": tied.mixtures(p, frames),
        }


class Continuous(Strategy[ContinuousGmm]):
    """Exact scoring where every senone owns its Gaussians; or in 8 bits, or by the best component alone."""

    def __init__(self, family: ContinuousGmm) -> None:
        super().__init__(family)
        self._work = {first: Workspace(family, first, first) for first, _ in family.pool.ranges}
        self._bytes: Int8Gaussians | None = None
        self._best = False

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """8-bit parameters."""
        return gmm.component if gmm.component == "int8" else None

    def prepare(self, gmm: settings.Gmm, progress: Progress, cancelled: Cancelling) -> Int8Gaussians | None:
        """The 8-bit parameters, if they are needed (a second)."""
        return in_int8(self._family.parameters.gaussians) if self.needs(gmm) else None

    def configure(self, gmm: settings.Gmm, prepared: Int8Gaussians | None = None) -> None:
        assert self.needs(gmm) is None or prepared is not None, "needs said so"
        self._take(prepared if self.needs(gmm) else None, gmm.component == "max")

    def _take(self, in_bytes: Int8Gaussians | None, best: bool) -> None:
        if in_bytes is not None:
            in_bytes.check_for(self._family.parameters.gaussians)
        self._bytes, self._best = in_bytes, best

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        if self._bytes is None:
            self._family.score_all(features, scores, meter, self._best)
            return
        n, p = len(features), self._family.parameters
        x, panels = self._bytes.frames(self._family.expand(features)), self._bytes.panels

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._work[first]
            lse_ns = dense_of_bytes(x, panels, work.tile, work.sums, scores, first, last)
            meter.close("score.gaussians", n * p.n_gaussians, later_ns=lse_ns)
            meter.close("score.lse", n * p.n_gaussians, n * p.n_senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        costs = continuous.all_senones(self._family.parameters, self._family.rows(frames))
        if self._best:
            costs = continuous.with_best(costs, float(self._family.per_senone))
        if self._bytes is not None:
            costs["score.gaussians"] = continuous.gaussians_in_bytes(self._bytes)
        return costs
