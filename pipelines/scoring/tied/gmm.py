"""A tied-mixture model at work: a block's workspace, the stages that all strategies share, chosen senones.

Work counts and cost laws: see `costs.tied`. Gaussian selection of mixture components lowers the exponentials and the
components, not the Gaussians.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.costs import WAITING
from pipelines.scoring.costs import tied as laws
from pipelines.scoring.gaussians.product import expand
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Kind
from pipelines.scoring.thread_pool import WAIT_STAGE, BlockPool
from pipelines.scoring.tied import kernels
from pipelines.scoring.tied.packing import PackedGmm
from profiler.arrays import Array
from profiler.costs import Cost

LAZY_STAGE = "score.lazy"
"""Mixtures of chosen senones; the work count `weights`: read once a call, however many frames it is for."""


class Room(NamedTuple):
    """Workspace of a block of n frames, all f32.

    `x` [n, streams, 2·D + 1]: [x², x, 1] per stream; `g` [n, codebooks, streams, padded densities]: log densities;
    `products` [n, columns]: likelihoods; `shift` [n, codebooks]: what was subtracted from them.
    """

    x: Array
    g: Array
    products: Array
    shift: Array


class Gmm:
    """Parameters and workspace of a tied-mixture model; strategies build on its stages.

    Of chosen senones the Gaussians are computed for all frames of a block: in nearly every frame some senone of nearly
    every codebook is wanted (40 of 42 in human speech), so that leaving Gaussians out saves less than computing them
    for a whole block at once does. The mixtures are what can be left out.
    """

    kind: Kind = "Tied"
    stages: Mapping[str, tuple[str, ...]] = {
        "score.gaussians": ("gaussians",),
        "score.log": ("senones",),
        WAIT_STAGE: (),
        "score.exp": ("exponentials",),
        LAZY_STAGE: ("components", "senones", "weights"),
    }

    def __init__(self, parameters: PackedGmm, threads: int) -> None:
        p = self.parameters = parameters
        self.n_senones = p.n_senones
        self.dim = len(p.centre)
        # Multiply-adds of a codebook per density: its Gaussians, and a mixture for each senone.
        self.pool = BlockPool(threads, p.senones_per_codebook + p.expanded)
        of_densities = p.n_codebooks, p.n_streams, p.padded_densities
        shapes = (p.n_streams, p.expanded), of_densities, (p.columns,), (p.n_codebooks,)
        whole = [aligned((MAX_FRAMES, *shape)) for shape in shapes]
        # By frames of a block: making a view takes microseconds after the data of a stage have gone through the caches.
        self.room = [Room(*(array[:n] for array in whole)) for n in range(MAX_FRAMES + 1)]
        self._begun = 0

    def small(self) -> Gmm:
        return Gmm(self.parameters.small(), threads=1)

    def touch(self) -> None:
        """Make the layouts of the parameters that are otherwise made when they are first used."""
        _ = self._some, self.parameters.rows

    def expand(self, features: Array) -> Array:
        """Fill and return `x` of the workspace for these frames; the time goes into `score.gaussians`."""
        x = self.room[len(features)].x
        expand(features, self.parameters.centre, x)
        return x

    def densities(self, room: Room, first: int, last: int, meter: Meter) -> None:
        """Stage `score.gaussians`: the log densities of some codebooks."""
        kernels.evaluate(room.x, self.parameters.gaussians, room.g, first, last)
        meter.close("score.gaussians", len(room.x) * self.parameters.n_gaussians)

    def logarithms(self, scores: Array, first: int, last: int, meter: Meter) -> None:
        """Stage `score.log`: scores f32 [n, senones] from the products of this block."""
        p, room = self.parameters, self.room[len(scores)]
        kernels.logarithms(room.products, room.shift, p.order, scores, first, last)
        meter.close("score.log", len(scores) * p.n_senones)

    @cached_property
    def _some(self) -> tuple[kernels.Mixtures, Array]:
        p = self.parameters
        width = -(-int(p.senones_per_codebook.max()) // LANES) * LANES
        return (p.dots, p.book_of_senone), np.ones((MAX_FRAMES, width + LANES), np.float32)

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Stages `score.gaussians` and `score.exp` of a block, for `score_some`."""
        self._begun = len(features)
        room = self.room[self._begun]
        self.expand(features)

        def part(first: int, last: int, meter: Meter) -> None:
            self.densities(room, first, last, meter)
            kernels.exponentiate(room.g, room.shift, first, last)
            meter.close("score.exp", len(room.x) * self.parameters.n_gaussians)

        self.pool.run(part, meter)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Exact scores of some senones in frames first … last − 1; stage `score.lazy`."""
        p, room, (mixtures, products) = self.parameters, self.room[self._begun], self._some
        kernels.mix_some(room.g, room.shift, mixtures, senones, first, last, products, scores)
        weights, frames = len(senones) * p.n_streams * p.n_densities, last - first
        meter.close(LAZY_STAGE, frames * weights, frames * len(senones), weights)

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        p = self.parameters
        return {
            "score.gaussians": laws.gaussians(p, frames),
            "score.exp": laws.exponentials(p, frames),
            LAZY_STAGE: laws.lazy_mixtures(p, frames),
            WAIT_STAGE: WAITING,
        }

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the common stages for calls of about `frames` frames."""
        p = self.parameters
        return {
            "score.gaussians": laws.gaussians(p, frames),
            "score.log": laws.logarithms(p, frames),
            WAIT_STAGE: WAITING,
        }
