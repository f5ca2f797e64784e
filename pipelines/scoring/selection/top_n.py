"""Top-N: per codebook and stream only the N best densities enter the mixtures (as pocketsphinx).

All Gaussians are still evaluated, since only that tells which are best; what is saved is the exponentials and,
in a tied-mixture model, above all the mixture components. With partial distances a Gaussian is eliminated as
soon as it cannot be among the N best any more, which changes no score. N = 4 is pocketsphinx' default.
"""

from collections.abc import Mapping

import numpy as np

from pipelines import config as settings
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.continuous.kernels import eliminate
from pipelines.scoring.costs import continuous, tied
from pipelines.scoring.gaussians.product import Bounds, rests
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Family, Made, Need, Strategy
from pipelines.scoring.tied import top_n_kernels
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array
from profiler.costs import Cost

DEFAULT_TOP_N = 4
_NO_RESTS = np.zeros((0, 0, 0, 0, 0), np.float32)


class _TopN(Strategy[Family]):
    """Base of both kinds: partial distances, with `follow` in the order of the frame before.

    `follow` is the last top-N of pocketsphinx: neighbouring frames have mostly the same best Gaussians, so these give
    at once a bound that lets most others be eliminated after a few dimensions. The N best, and so the scores, are the
    same.
    """

    def __init__(self, family: Family, follow: bool = False) -> None:
        super().__init__(family)
        self.follow = follow

    def needs(self, gmm: settings.Gmm) -> Need | None:
        gaussians = self._family.parameters.gaussians
        by_bound = self.follow or gmm.component == "partial-distance"
        return Need("rests", lambda *_: rests(gaussians)) if by_bound else None


class Tied(_TopN[Gmm]):
    """The N best densities of each codebook and stream."""

    stages: Mapping[str, tuple[str, ...]] = {
        "score.select": ("selected",),
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, family: Gmm, follow: bool = False) -> None:
        super().__init__(family, follow)
        self._bounds: Bounds | None = None
        self._resize(DEFAULT_TOP_N)

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        wanted = gmm.selection.top_n
        if min(wanted, self._family.parameters.n_densities) != self._keep:
            self._resize(wanted)
        self._bounds = None
        if self.needs(gmm) is not None:
            order = np.tile(np.arange(prepared.shape[2], dtype=np.uint8), (*prepared.shape[:2], 1))
            self._bounds = prepared, order, self._keep, self.follow

    def _resize(self, top_n: int) -> None:
        p = self._family.parameters
        self._keep = keep = min(top_n, p.n_densities)
        padded = -(-p.n_streams * keep // LANES) * LANES
        self._index = np.empty((MAX_FRAMES, p.n_codebooks, p.n_streams, keep), np.int32)
        self._kept = aligned((MAX_FRAMES, p.n_codebooks, padded))
        self._selected = p.n_codebooks * p.n_streams * keep
        self._components = p.n_senones * p.n_streams * keep

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        gmm, p, n = self._family, self._family.parameters, len(features)
        room, index, kept = gmm.room[n], self._index[:n], self._kept[:n]
        gmm.expand(features)

        def part(first: int, last: int, meter: Meter) -> None:
            if self._bounds is None:
                gmm.densities(room, first, last, meter)
            else:
                dimensions = top_n_kernels.bounded(room.x, p.gaussians, self._bounds, room.g, first, last)
                # What was given up counts by the part computed. Counted for the calling thread's codebooks, taken for
                # all where threads share the block.
                share = p.n_codebooks / max(1, last - first)
                meter.close("score.gaussians", round(share * dimensions / (p.expanded // 2)))
            top_n_kernels.select(room.g, index, kept, room.shift, self._keep, first, last)
            meter.close("score.select", n * self._selected)
            top_n_kernels.exponentiate_kept(kept, first, last)
            meter.close("score.exp", n * self._selected)
            top_n_kernels.mix_kept(index, kept, p.rows, p.padded_densities, p.start, room.products, first, last)
            meter.close("score.mixture", n * self._components)
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        p, kept = self._family.parameters, self._kept[0].size
        laws = self._family.costs(frames) | tied.top_n(p, self._keep, frames, kept)
        if self._bounds is not None:
            laws["score.gaussians"] = tied.bounded_gaussians(p, frames)
        return laws


class Continuous(_TopN[ContinuousGmm]):
    """The N best components of each senone and stream."""

    def __init__(self, family: ContinuousGmm, follow: bool = False) -> None:
        super().__init__(family, follow)
        p = family.parameters
        order = np.arange(p.n_components, dtype=np.uint8)
        self._keep = min(DEFAULT_TOP_N, p.n_components)
        self._order = np.tile(order, (p.n_groups, p.n_streams, 1))
        self._rest = _NO_RESTS

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._rest = _NO_RESTS if self.needs(gmm) is None else prepared
        self._keep = min(gmm.selection.top_n, self._family.parameters.n_components)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        p, n = self._family.parameters, len(features)
        x = self._family.expand(features)
        stop = len(self._rest) > 0
        within: Bounds = self._rest, self._order, self._keep, self.follow
        summed = n * p.n_senones * p.n_streams * self._keep

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._family.work[first]
            lse_ns, dimensions = eliminate(x, p.gaussians, within, work.tile, work.sums, scores, first, last)
            # Counted for the calling thread's groups, taken for all where threads share the block.
            share = p.n_groups / max(1, last - first)
            gaussians = round(share * dimensions / (p.expanded // 2)) if stop else n * p.n_gaussians
            meter.close("score.gaussians", gaussians, later_ns=lse_ns)
            meter.close("score.lse", summed, n * p.n_senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        return continuous.best_of_senones(self._family.parameters, frames, self._keep)
