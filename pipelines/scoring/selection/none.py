"""No selection: every density of every codebook enters every mixture. Exact.

log p(x|senone) = Σ over streams log Σ over densities weight · N(x; density), with each stream's
best density taken out before the exponential, and one logarithm for the product of the streams.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.call_counts import calls
from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.continuous.chosen import Workspace, best_of_some
from pipelines.scoring.continuous.int8 import dense_of_bytes
from pipelines.scoring.gaussians.int8 import Int8Gaussians, in_int8
from pipelines.scoring.meter import Meter
from pipelines.scoring.strategy import Progress
from pipelines.scoring.tied import kernels, max_approximation
from pipelines.scoring.tied.evaluation import Bytes, Evaluation, Floats
from pipelines.scoring.tied.gmm import Gmm, block_bytes, exponentials_cost
from profiler.arrays import Array, check
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines import config as settings


class Tied:
    """Exact scoring; by component: in 8 bits, or with the best component in place of the sum."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = {
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, gmm: Gmm) -> None:
        self._gmm = gmm
        p = gmm.parameters
        self._components = p.n_senones * p.n_streams * p.n_densities
        self._evaluate: Evaluation = Floats(gmm)
        self._log_rows: Array | None = None

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """8-bit parameters, or logarithms of the weights."""
        return gmm.component if gmm.component in ("int8", "max") else None

    def prepare(
        self, gmm: settings.Gmm, progress: Progress, cancelled: Callable[[], bool]
    ) -> Int8Gaussians | Array | None:
        """What the component needs (under a second)."""
        if gmm.component == "int8":
            return in_int8(self._gmm.parameters.gaussians)
        if gmm.component == "max":
            return max_approximation.log_rows(self._gmm.parameters)
        return None

    def configure(self, gmm: settings.Gmm, prepared: Int8Gaussians | Array | None = None) -> None:
        """Take over the component."""
        self._take(gmm.component, prepared)

    def _take(self, component: str, prepared: Int8Gaussians | Array | None) -> None:
        rows = None
        if component == "max":
            assert isinstance(prepared, np.ndarray), "needs said so"
            check("log_rows", prepared, np.float32, self._gmm.parameters.weights.shape)
            rows = prepared
        evaluate: Evaluation = Floats(self._gmm)
        if component == "int8":
            assert isinstance(prepared, Int8Gaussians), "needs said so"
            evaluate = Bytes(self._gmm, prepared)
        self._evaluate, self._log_rows = evaluate, rows

    @classmethod
    def warm_up(cls, family: Gmm, features: Array, scores: Array) -> None:
        """Score in every way."""
        p, strategy = family.parameters, cls(family)
        ways = (
            ("exact", None),
            ("int8", in_int8(p.gaussians)),
            ("max", max_approximation.log_rows(p)),
        )
        for component, prepared in ways:
            strategy._take(component, prepared)
            strategy.score(features, scores, Meter())

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        gmm, p, n = self._gmm, self._gmm.parameters, len(features)
        x = gmm.expand(features)
        products, shift = gmm.products(n)

        def part(first: int, last: int, meter: Meter) -> None:
            g = self._evaluate(x, first, last, meter)
            if self._log_rows is not None:
                max_approximation.mix_best(
                    g, self._log_rows, p.order, products, scores, first, last
                )
                meter.done("score.mixture", n * self._components)
                return
            kernels.exponentiate(g, shift, first, last)
            meter.done("score.exp", n * gmm.gaussians_per_frame)
            kernels.mix(g, p.weights, p.start, products, first, last)
            meter.done("score.mixture", n * self._components)
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        costs = self._gmm.costs(frames) | self._evaluate.costs(frames)
        if self._log_rows is not None:
            return costs | {"score.mixture": max_approximation.cost(self._gmm.parameters, frames)}
        return costs | {
            "score.exp": exponentials_cost(self._gmm.gaussians_per_frame, frames),
            "score.mixture": self._mixture_cost(frames),
        }

    def _mixture_cost(self, frames: int) -> Cost:
        """One product [n, densities] × [densities, senones] per codebook and stream.

        Compulsory: the weights once per call, the exponentials and the likelihoods. The tiling
        streams the padded weights once per call: 32 senones' weights and likelihoods stay in the
        nearest caches for all frames, a codebook's exponentials for all its senones. A line of
        results is read before it is overwritten.
        """
        p = self._gmm.parameters
        weights = float(p.n_streams * p.n_densities * p.n_senones * FLOAT)
        exponentials = self._gmm.gaussians_per_frame * FLOAT
        results = p.n_senones * FLOAT
        least = (exponentials + results) / self._components
        most = (exponentials + 2 * results * p.columns / p.n_senones) / self._components
        return Cost(
            operations={
                "gemm": Linear(per_work=(2.0, 0.0, 0.0)),
                "fma": Linear(
                    per_work=((p.n_streams - 1) * p.n_senones / self._components, 0.0, 0.0)
                ),
            },
            bytes_min=Linear(fixed=weights, per_work=(least, 0.0, 0.0)),
            bytes_max=Linear(fixed=float(p.weights.nbytes), per_work=(most, 0.0, 0.0)),
            working_set_bytes=block_bytes(p, frames),
            calls=calls(1),
        )


class Continuous:
    """Exact scoring where every senone owns its Gaussians; or in 8 bits, or by the best component alone."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __init__(self, family: ContinuousGmm) -> None:
        self._family = family
        self._work = {first: Workspace(family, first, first) for first, _ in family.pool.ranges}
        self._bytes: Int8Gaussians | None = None
        self._best = False

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """8-bit parameters."""
        return gmm.component if gmm.component == "int8" else None

    def prepare(
        self, gmm: settings.Gmm, progress: Progress, cancelled: Callable[[], bool]
    ) -> Int8Gaussians | None:
        """The 8-bit parameters, if they are asked for (a second)."""
        return in_int8(self._family.parameters.gaussians) if gmm.component == "int8" else None

    def configure(self, gmm: settings.Gmm, prepared: Int8Gaussians | None = None) -> None:
        """Take over the component."""
        self._take(prepared if gmm.component == "int8" else None, gmm.component == "max")

    def _take(self, in_bytes: Int8Gaussians | None, best: bool) -> None:
        if in_bytes is not None:
            in_bytes.check_for(self._family.parameters.gaussians)
        self._bytes, self._best = in_bytes, best

    @classmethod
    def warm_up(cls, family: ContinuousGmm, features: Array, scores: Array) -> None:
        """Score in floats and in 8 bits."""
        strategy = cls(family)
        for in_bytes in (None, in_int8(family.parameters.gaussians)):
            strategy._take(in_bytes, False)
            strategy.score(features, scores, Meter())

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
            meter.done("score.gaussians", n * p.n_gaussians, later_ns=lse_ns)
            meter.done("score.lse", n * p.n_gaussians, n * p.n_senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        costs = self._family.costs_of_all(frames)
        if self._best:
            lse = costs["score.lse"]
            costs["score.lse"] = best_of_some(float(self._family.per_senone), lse)
        if self._bytes is not None:
            costs["score.gaussians"] = self._bytes.cost()
        return costs
