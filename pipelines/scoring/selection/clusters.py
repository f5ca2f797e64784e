"""Hierarchical evaluation: cluster Gaussians first, the Gaussians of the best clusters then.

All Gaussians are clustered (`scoring.clustering`), the cluster Gaussians are evaluated, and only the `expand` best
clusters have their own Gaussians evaluated; every other Gaussian gets its weight and its cluster's density.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pipelines import config as settings
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.clustering import clusters
from pipelines.scoring.continuous import ContinuousGmm, listed
from pipelines.scoring.costs import calls, continuous, tied
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.selection import none
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Family, Made, Need, Strategy
from pipelines.scoring.tied.gmm import Gmm
from pipelines.scoring.tied.listed import evaluate_expanded
from profiler.arrays import Array
from profiler.costs import Cost


class _Clustered(Strategy[Family]):
    """Base of both kinds: the clusters, and choosing the best of them."""

    _clusters: clusters.Clusters
    _expand: int

    def needs(self, gmm: settings.Gmm) -> Need:
        """The clusters, from the cache or made now (seconds)."""
        p, size = self._family.parameters, gmm.selection.codewords
        return Need(size, partial(clusters.cluster, p.gaussians, p.identity, size))

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._clusters, self._expand = prepared, min(gmm.selection.expand, prepared.number)
        self._densities = aligned((MAX_FRAMES, *prepared.sizes.shape))
        self._expanded = np.zeros(prepared.sizes.shape, np.uint64)

    def _choose(self, x: Array, meter: Meter) -> tuple[int, clusters.Backing]:
        """(panels expanded, what stands for the others)."""
        found, densities = self._clusters, self._densities[: len(x)]
        panels = clusters.choose(x, found.gaussians, self._expand, found.sizes, densities, self._expanded)
        meter.close(clusters.STAGE, len(x) * found.sizes.size)
        return panels, (found.of_panel, found.log_weights, self._expanded, densities)

    def _share(self) -> float:
        return self._expand / self._clusters.number


class Continuous(_Clustered[ContinuousGmm]):
    """Clusters of panels of one Gaussian of each of 16 senones."""

    stages: Mapping[str, tuple[str, ...]] = {clusters.STAGE: ("clusters",)}

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        p, n = self._family.parameters, len(features)
        x = self._family.expand(features)
        panels, backing = self._choose(x, meter)

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._family.work[first]
            size, of_panel = p.gaussians[0, 0, 0].nbytes, self._clusters.of_panel
            listed.gather_clusters(size, of_panel, self._expanded, work.queue)
            lse_ns = listed.queued(x, work.queue, p.gaussians, backing, work.tile, work.sums, scores, False)
            meter.close("score.gaussians", panels * LANES, later_ns=lse_ns)
            meter.close("score.lse", n * p.n_gaussians, n * p.n_senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        chosen = continuous.chosen(self._family.parameters, frames, self._share(), calls(2))
        return chosen | {clusters.STAGE: laws.clusters(self._clusters)}


class Tied(_Clustered[Gmm]):
    """Clusters of panels of a shared codebook: saves Gaussians, and no mixture component."""

    stages: Mapping[str, tuple[str, ...]] = {**none.Tied.stages, clusters.STAGE: ("clusters",)}

    def __init__(self, family: Gmm) -> None:
        super().__init__(family)
        self._exact = none.Tied(family)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        gmm, room = self._family, self._family.room[len(features)]
        panels, backing = self._choose(gmm.expand(features), meter)

        def evaluate(first: int, last: int, meter: Meter) -> None:
            evaluate_expanded(room.x, gmm.parameters.gaussians, backing, room.g, first, last)
            meter.close("score.gaussians", panels * LANES)

        self._exact.score_by(evaluate, room, scores, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        return self._exact.costs(frames) | {
            clusters.STAGE: laws.clusters(self._clusters),
            "score.gaussians": tied.expanded_gaussians(self._family.parameters, self._share(), frames),
        }
