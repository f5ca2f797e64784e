"""Top-N: per codebook and stream only the N best densities enter the mixtures (pocketsphinx' way).

All Gaussians are still evaluated, since only that tells which are best; what is saved is the
exponentials and, above all, the mixture components. N = 4 is pocketsphinx' default.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from pipelines.scoring import kernels
from pipelines.scoring.gmm import FLOAT, MAX_FRAMES, Gmm, block_bytes
from pipelines.scoring.kernels import LANES, STREAMS
from pipelines.scoring.meter import Meter
from profiler.spans import Cost, Linear

Array = np.ndarray[Any, Any]

DEFAULT_TOP_N = 4


class Strategy:
    """The N best densities of each codebook and stream."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = {
        "score.select": ("selected",),
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, gmm: Gmm) -> None:
        self._gmm = gmm
        self._resize(DEFAULT_TOP_N)

    def configure(self, selection: Any) -> None:
        """Take over `top_n`."""
        if min(selection.top_n, self._gmm.parameters.n_densities) != self._keep:
            self._resize(selection.top_n)

    def _resize(self, top_n: int) -> None:
        p = self._gmm.parameters
        self._keep = keep = min(top_n, p.n_densities)
        padded = -(-STREAMS * keep // LANES) * LANES
        self._index = np.empty((MAX_FRAMES, p.n_codebooks, STREAMS, keep), np.int32)
        self._kept = np.empty((MAX_FRAMES, p.n_codebooks, padded), np.float32)
        self._selected = p.n_codebooks * STREAMS * keep
        self._components = p.n_senones * STREAMS * keep

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        gmm, p, n = self._gmm, self._gmm.parameters, len(features)
        x = gmm.expand(features)
        products, shift = gmm.products(n)
        index, kept = self._index[:n], self._kept[:n]

        def part(first: int, last: int, meter: Meter) -> None:
            g = gmm.densities(x, first, last, meter)
            kernels.select(g, index, kept, shift, self._keep, first, last)
            meter.done("score.select", n * self._selected)
            kernels.exponentiate_kept(kept, first, last)
            meter.done("score.exp", n * self._selected)
            kernels.mix_kept(
                index, kept, p.rows, p.padded_densities, p.start, products, first, last
            )
            meter.done("score.mixture", n * self._components)
            gmm.logarithms(scores, first, last, meter)

        gmm.team.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        return self._gmm.costs(frames) | {
            "score.select": self._select_cost(frames),
            "score.exp": self._exp_cost(frames),
            "score.mixture": self._mixture_cost(frames),
        }

    def _select_cost(self, frames: int) -> Cost:
        """Two comparisons per density (lane maxima, threshold), and the survivors one by one."""
        per_selected = self._gmm.gaussians_per_frame / self._selected
        return Cost(
            operations={
                "fma": Linear(per_work=(2.0 * per_selected, 0.0, 0.0)),
                "scalar": Linear(per_work=(2.0, 0.0, 0.0)),
            },
            bytes_min=Linear(per_work=(FLOAT * (per_selected + 2), 0.0, 0.0)),
            bytes_max=Linear(per_work=(FLOAT * (per_selected + 4), 0.0, 0.0)),
            working_set_bytes=float(frames * self._gmm.gaussians_per_frame * FLOAT),
        )

    def _exp_cost(self, frames: int) -> Cost:
        """An exponential per density kept, in place."""
        return Cost(
            operations={"exp.scorer": Linear(per_work=(1.0, 0.0, 0.0))},
            bytes_min=Linear(per_work=(2.0 * FLOAT, 0.0, 0.0)),
            bytes_max=Linear(
                per_work=(2.0 * FLOAT * self._kept[0].size / self._selected, 0.0, 0.0)
            ),
            working_set_bytes=float(frames * self._kept[0].nbytes),
        )

    def _mixture_cost(self, frames: int) -> Cost:
        """A weighted sum of N rows of weights per codebook and stream.

        Compulsory: the rows of one frame, if all frames of the call kept the same densities; the
        kernel reads the rows of every frame anew. No matrix product: each weight is used once.
        """
        p = self._gmm.parameters
        rows = float(self._components * FLOAT)
        results = FLOAT * p.n_senones / self._components
        padding = p.columns / p.n_senones
        return Cost(
            operations={
                "fma": Linear(
                    per_work=(2.0 + (STREAMS - 1) * p.n_senones / self._components, 0.0, 0.0)
                )
            },
            bytes_min=Linear(fixed=rows, per_work=(results, 0.0, 0.0)),
            bytes_max=Linear(per_work=((FLOAT + 2 * results) * padding, 0.0, 0.0)),
            working_set_bytes=block_bytes(p, frames),
        )
