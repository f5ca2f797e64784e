"""No selection: every density of every codebook enters every mixture. Exact.

log p(x|senone) = Σ over streams log Σ over densities weight · N(x; density), with each stream's
best density taken out before the exponential, and one logarithm for the product of the streams.
"""

from collections.abc import Callable, Mapping
from functools import partial

from pipelines import config as settings
from pipelines.scoring.blocks import FLOAT, Meter
from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.continuous.listed import dense_of_bytes
from pipelines.scoring.costs import continuous, tied
from pipelines.scoring.gaussians.int8 import Int8Gaussians, densities_of_bytes, in_int8
from pipelines.scoring.strategy import Made, Need, Strategy
from pipelines.scoring.tied import kernels
from pipelines.scoring.tied.gmm import Gmm, Room
from profiler.arrays import Array
from profiler.costs import Cost

Evaluate = Callable[[int, int, Meter], None]
"""Computes the log densities of a block's workspace for codebooks first … last − 1."""


class Tied(Strategy[Gmm]):
    """Exact scoring; by component: in 8 bits, or with the best component in place of the sum."""

    stages: Mapping[str, tuple[str, ...]] = {"score.exp": ("exponentials",), "score.mixture": ("components",)}
    _bytes: Int8Gaussians | None = None
    _log_rows: Array | None = None

    def needs(self, gmm: settings.Gmm) -> Need | None:
        """8-bit parameters, or logarithms of the weights (under a second)."""
        p = self._family.parameters
        if gmm.component == "int8":
            return Need("int8", lambda *_: in_int8(p.gaussians))
        return Need("max", lambda *_: p.log_rows()) if gmm.component == "max" else None

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._bytes = prepared if gmm.component == "int8" else None
        self._log_rows = prepared if gmm.component == "max" else None

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        gmm, in_bytes, room = self._family, self._bytes, self._family.room[len(features)]
        gmm.expand(features)
        if in_bytes is None:
            self.score_by(partial(gmm.densities, room), room, scores, meter)
            return
        frames = in_bytes.frames(room.x)

        def evaluate(first: int, last: int, meter: Meter) -> None:
            densities_of_bytes(frames, in_bytes.panels, room.g, first, last)
            meter.close("score.gaussians", len(features) * gmm.parameters.n_gaussians)

        self.score_by(evaluate, room, scores, meter)

    def score_by(self, evaluate: Evaluate, room: Room, scores: Array, meter: Meter) -> None:
        """Fill `scores` of frames whose densities `evaluate` computes."""
        gmm, p, n = self._family, self._family.parameters, len(scores)
        g, products = room.g, room.products

        def part(first: int, last: int, meter: Meter) -> None:
            evaluate(first, last, meter)
            if self._log_rows is not None:
                kernels.mix_best(g, self._log_rows, p.order, products, scores, first, last)
                meter.close("score.mixture", n * p.n_weights)
                return
            kernels.exponentiate(g, room.shift, first, last)
            meter.close("score.exp", n * p.n_gaussians)
            kernels.mix(g, p.weights, p.start, products, first, last)
            meter.close("score.mixture", n * p.n_weights)
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        p = self._family.parameters
        costs = self._family.costs(frames)
        if self._bytes is not None:
            costs["score.gaussians"] = continuous.gaussians_in_bytes(self._bytes, stored=2.0 * FLOAT)
        if self._log_rows is not None:
            return costs | {"score.mixture": tied.best_mixtures(p)}
        return costs | {"score.exp": tied.exponentials(p, frames), "score.mixture": tied.mixtures(p, frames)}


class Continuous(Strategy[ContinuousGmm]):
    """Exact scoring where every senone owns its Gaussians; or in 8 bits, or by the best component alone."""

    _bytes: Int8Gaussians | None = None
    _best = False

    def needs(self, gmm: settings.Gmm) -> Need | None:
        """8-bit parameters (a second)."""
        gaussians = self._family.parameters.gaussians
        return Need("int8", lambda *_: in_int8(gaussians)) if gmm.component == "int8" else None

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._bytes, self._best = prepared if gmm.component == "int8" else None, gmm.component == "max"

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        if self._bytes is None:
            self._family.score_all(features, scores, meter, self._best)
            return
        n, p = len(features), self._family.parameters
        x, panels = self._bytes.frames(self._family.expand(features)), self._bytes.panels

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._family.work[first]
            lse_ns = dense_of_bytes(x, panels, work.tile, work.sums, scores, first, last)
            meter.close("score.gaussians", n * p.n_gaussians, later_ns=lse_ns)
            meter.close("score.lse", n * p.n_gaussians, n * p.n_senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        costs = continuous.all_senones(self._family.parameters, frames)
        if self._best:
            costs = continuous.with_best(costs, float(self._family.per_senone))
        if self._bytes is not None:
            costs["score.gaussians"] = continuous.gaussians_in_bytes(self._bytes)
        return costs
