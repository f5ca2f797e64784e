"""Hierarchical evaluation: cluster Gaussians first, the Gaussians of the best clusters then.

All Gaussians are clustered (`scoring.clustering`), the cluster Gaussians are evaluated, and only the `expand` best
clusters have their own Gaussians evaluated; every other Gaussian gets its weight and its cluster's density.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.scoring.blocks import FLOAT, MAX_FRAMES
from pipelines.scoring.call_counts import calls
from pipelines.scoring.clustering import clusters
from pipelines.scoring.continuous import ContinuousGmm, PackedContinuous, listed, queue
from pipelines.scoring.continuous.chosen import Chosen
from pipelines.scoring.meter import Meter
from pipelines.scoring.selection import none
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Progress
from pipelines.scoring.tied import kernels
from pipelines.scoring.tied import listed as listed_densities
from pipelines.scoring.tied.gmm import Gmm, exponentials_cost
from pipelines.scoring.tied.packing import PackedGmm
from profiler.arrays import Array
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines import config as settings


class _Clustered:
    """What both kinds share: the clusters, and choosing the best of them."""

    _parameters: PackedGmm | PackedContinuous
    """Of the family: its panels `gaussians`, and the `identity` that its clusters are kept under."""
    _clusters: clusters.Clusters
    _expand: int

    def __init__(self, family: Gmm | ContinuousGmm) -> None:
        self._parameters = family.parameters

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        raise NotImplementedError

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """Number of clusters."""
        return gmm.selection.codewords

    def prepare(
        self, gmm: settings.Gmm, progress: Progress, cancelled: Callable[[], bool]
    ) -> clusters.Clusters:
        """The clusters, from the cache or made now (seconds)."""
        p = self._parameters
        return clusters.cluster(
            p.gaussians, p.identity, gmm.selection.codewords, progress, cancelled
        )

    def configure(self, gmm: settings.Gmm, prepared: clusters.Clusters | None = None) -> None:
        """Take over the clusters, and how many are expanded."""
        assert prepared is not None, "needs said so"
        self._take(prepared, gmm.selection.expand)

    @classmethod
    def warm_up(cls, family: Gmm | ContinuousGmm, features: Array, scores: Array) -> None:
        """Score with one cluster for all panels of a stream."""
        strategy = cls(family)
        strategy._take(clusters.one_cluster(family.parameters.gaussians.shape), 1)
        strategy.score(features, scores, Meter())

    def _take(self, found: clusters.Clusters, expand: int) -> None:
        found.check_for(self._parameters.gaussians)
        self._clusters, self._expand = found, expand
        self._densities = aligned((MAX_FRAMES, *found.sizes.shape))
        self._expanded = np.zeros(found.sizes.shape, np.uint64)

    def _choose(self, x: Array, meter: Meter) -> tuple[int, clusters.Backing]:
        """(panels expanded, what stands for the others)."""
        found = self._clusters
        densities = self._densities[: len(x)]
        panels = found.choose(x, self._expand, densities, self._expanded)
        meter.done(clusters.STAGE, len(x) * found.sizes.size)
        return panels, (found.of_panel, found.log_weights, self._expanded, densities)

    def _share(self) -> float:
        """Part of the panels expanded, if all clusters were of the same size."""
        return min(1.0, self._expand / self._clusters.count)


class Continuous(_Clustered, Chosen):
    """Clusters of panels of one Gaussian of each of 16 senones."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = {clusters.STAGE: ("clusters",)}

    def __init__(self, family: ContinuousGmm) -> None:
        _Clustered.__init__(self, family)
        Chosen.__init__(self, family)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        p, n = self._family.parameters, len(features)
        x = self._family.expand(features)
        panels, backing = self._choose(x, meter)

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._work[first]
            size, of_panel = p.gaussians[0, 0, 0].nbytes, self._clusters.of_panel
            queue.gather_clusters(size, of_panel, self._expanded, work.queue)
            lse_ns = listed.queued(
                x, work.queue, p.gaussians, backing, work.tile, work.sums, scores, False
            )
            self.done(panels * LANES, n * p.n_gaussians, n * p.n_senones, lse_ns, meter)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""
        chosen = self.chosen_costs(frames, self._share(), calls(2))
        return chosen | {clusters.STAGE: self._clusters.cost()}


class Tied(_Clustered):
    """Clusters of panels of a shared codebook: saves Gaussians, and no mixture component."""

    stages: ClassVar[dict[str, tuple[str, ...]]] = none.Tied.stages | {
        clusters.STAGE: ("clusters",)
    }

    def __init__(self, gmm: Gmm) -> None:
        super().__init__(gmm)
        self._gmm = gmm
        self._exact = none.Tied(gmm)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        gmm, p, n = self._gmm, self._gmm.parameters, len(features)
        x = gmm.expand(features)
        panels, backing = self._choose(x, meter)
        products, shift = gmm.products(n)
        g = gmm.workspace(n)
        components = n * p.n_senones * p.n_streams * p.n_densities

        def part(first: int, last: int, meter: Meter) -> None:
            listed_densities.evaluate_expanded(x, p.gaussians, backing, g, first, last)
            meter.done("score.gaussians", panels * LANES)
            kernels.exponentiate(g, shift, first, last)
            meter.done("score.exp", n * gmm.gaussians_per_frame)
            kernels.mix(g, p.weights, p.start, products, first, last)
            meter.done("score.mixture", components)
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames: but for the Gaussians those of exact scoring."""
        p, per_frame = self._gmm.parameters, self._gmm.gaussians_per_frame
        each = float(p.expanded * FLOAT)
        return self._exact.costs(frames) | {
            clusters.STAGE: self._clusters.cost(),
            "score.exp": exponentials_cost(per_frame, frames),
            "score.gaussians": Cost(
                operations={"fma": Linear(per_work=(2.0 * p.expanded, 0.0, 0.0))},
                bytes_min=Linear(per_work=(each / frames, 0.0, 0.0)),
                bytes_max=Linear(per_work=(each, 0.0, 0.0), per_frame=2.0 * FLOAT * per_frame),
                working_set_bytes=self._share() * per_frame * each,
                calls=calls(1),
            ),
        }
