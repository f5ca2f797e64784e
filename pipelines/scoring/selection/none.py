"""No selection: every density of every codebook enters every mixture. Exact.

log p(x|senone) = Σ over streams log Σ over densities weight · N(x; density), with each stream's
best density taken out before the exponential, and one logarithm for the product of the streams.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from pipelines.scoring import kernels
from pipelines.scoring.gmm import FLOAT, Gmm, block_bytes
from pipelines.scoring.kernels import STREAMS
from pipelines.scoring.meter import Meter
from profiler.spans import Cost, Linear

Array = np.ndarray[Any, Any]


class Strategy:
    """Exact scoring."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = {
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, gmm: Gmm) -> None:
        self._gmm = gmm
        p = gmm.parameters
        self._components = p.n_senones * STREAMS * p.n_densities

    def configure(self, selection: Any) -> None:
        """Nothing can be set."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        gmm, p, n = self._gmm, self._gmm.parameters, len(features)
        x = gmm.expand(features)
        products, shift = gmm.products(n)

        def part(first: int, last: int, meter: Meter) -> None:
            g = gmm.densities(x, first, last, meter)
            kernels.exponentiate(g, shift, first, last)
            meter.done("score.exp", n * gmm.gaussians_per_frame)
            kernels.mix(g, p.weights, p.start, products, first, last)
            meter.done("score.mixture", n * self._components)
            gmm.logarithms(scores, first, last, meter)

        gmm.team.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        return self._gmm.costs(frames) | {
            "score.exp": self._exp_cost(frames),
            "score.mixture": self._mixture_cost(frames),
        }

    def _exp_cost(self, frames: int) -> Cost:
        """A comparison, a subtraction and an exponential per density, read and written in place.

        The second pass over a stream's 128 densities finds them in the first-level cache.
        """
        traffic = Linear(per_work=(2.0 * FLOAT, 0.0, 0.0))
        return Cost(
            operations={
                "exp.scorer": Linear(per_work=(1.0, 0.0, 0.0)),
                "fma": Linear(per_work=(2.0, 0.0, 0.0)),
            },
            bytes_min=traffic,
            bytes_max=traffic,
            working_set_bytes=float(frames * self._gmm.gaussians_per_frame * FLOAT),
        )

    def _mixture_cost(self, frames: int) -> Cost:
        """One product [n, densities] × [densities, senones] per codebook and stream.

        Compulsory: the weights once per call, the exponentials and the likelihoods. The tiling
        streams the padded weights once per call: 32 senones' weights and likelihoods stay in the
        nearest caches for all frames, a codebook's exponentials for all its senones. A line of
        results is read before it is overwritten.
        """
        p = self._gmm.parameters
        weights = float(STREAMS * p.n_densities * p.n_senones * FLOAT)
        exponentials = self._gmm.gaussians_per_frame * FLOAT
        results = p.n_senones * FLOAT
        least = (exponentials + results) / self._components
        most = (exponentials + 2 * results * p.columns / p.n_senones) / self._components
        return Cost(
            operations={
                "gemm": Linear(per_work=(2.0, 0.0, 0.0)),
                "fma": Linear(per_work=((STREAMS - 1) * p.n_senones / self._components, 0.0, 0.0)),
            },
            bytes_min=Linear(fixed=weights, per_work=(least, 0.0, 0.0)),
            bytes_max=Linear(fixed=float(p.weights.nbytes), per_work=(most, 0.0, 0.0)),
            working_set_bytes=block_bytes(p, frames),
        )
