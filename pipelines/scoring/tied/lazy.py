"""Lazy scoring in a tied-mixture model: Gaussians for all frames of a block, mixtures for chosen senones.

Senones share their Gaussians, and in nearly every frame some senone of nearly every codebook is wanted
(`python -m tests.bench.constants --only speech` counts them), so that leaving Gaussians out saves less than computing
them for a whole block at once does. The mixtures are what can be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.call_counts import frame_calls
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.dot_products import ROWS
from pipelines.scoring.simd.vector import LANES
from pipelines.scoring.tied import kernels, lazy_kernels
from profiler.arrays import Array
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines.scoring.tied.gmm import Gmm

STAGE = "score.lazy"

STAGES: dict[str, tuple[str, ...]] = {
    "score.exp": ("exponentials",),
    STAGE: ("components", "senones", "weights"),
}
"""`weights`: mixture weights read, once a call however many frames it is for."""


class LazyMixtures:
    """Workspace and weights for the mixtures of chosen senones; one for each `Gmm`."""

    def __init__(self, gmm: Gmm, frames: int) -> None:
        """`frames`: the most that a block has."""
        p = gmm.parameters
        self._gmm = gmm
        self._mixtures: lazy_kernels.Mixtures = p.dots, p.book_of_senone
        width = -(-int(p.senones_per_codebook.max()) // LANES) * LANES
        self._products = np.ones((frames, width + LANES), np.float32)
        self._per_senone = p.n_streams * p.n_densities
        self._g: Array | None = None
        self._shift: Array | None = None

    def begin(self, features: Array, meter: Meter) -> None:
        """Stages `score.gaussians` and `score.exp` for all codebooks and frames."""
        gmm, n = self._gmm, len(features)
        x = gmm.expand(features)
        _, shift = gmm.products(n)

        def part(first: int, last: int, meter: Meter) -> None:
            g = gmm.densities(x, first, last, meter)
            kernels.exponentiate(g, shift, first, last)
            meter.done("score.exp", n * gmm.gaussians_per_frame)
            self._g = g

        gmm.pool.run(part, meter)
        self._shift = shift

    def score(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Stage `score.lazy`: fill scores[first:last, senones] of f32 [n, senones of the model]."""
        assert self._g is not None, "begin comes first"
        assert self._shift is not None
        lazy_kernels.mix_some(
            self._g, self._shift, self._mixtures, senones, first, last, self._products, scores
        )
        weights = len(senones) * self._per_senone
        frames = last - first
        meter.done(STAGE, frames * weights, frames * len(senones), weights)

    def cost(self, frames: int) -> Cost:
        """Cost law of `score.lazy`.

        A multiply-add per component; three products and a logarithm, whole vectors of them, per senone.
        Compulsory: a senone's weights once a call, the score written. At most also the exponentials once
        for every four senones, which lie in the first-level cache, and a line read for every score.
        """
        weights = float(self._mixtures[0].nbytes)
        exponentials = frames * self._gmm.gaussians_per_frame * FLOAT
        factors = FLOAT / ROWS
        return Cost(
            operations={
                "fma": Linear(per_work=(2.0, self._gmm.parameters.n_streams + 1.0, 0.0)),
                "log": Linear(per_work=(0.0, 1.0, 0.0)),
            },
            bytes_min=Linear(per_work=(0.0, FLOAT, FLOAT)),
            bytes_max=Linear(per_work=(factors, 64.0, FLOAT)),
            working_set_bytes=weights + exponentials,
            calls=frame_calls(),
        )
