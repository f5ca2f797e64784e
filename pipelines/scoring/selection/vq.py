"""VQ shortlists (Bocchieri 1993): only the Gaussians near the frame's codeword are computed.

Each stream has a codebook of its own, made of the model's means; the nearest codeword says which Gaussians are
computed (`scoring.clustering`). A senone, or a codebook, of which nothing is near keeps its likeliest.

Chosen senones of a continuous model are computed as in Sphinx-3 (Chan 2004), by the groups of 16 that they are in:
those of one parent are neighbours, so groups are mostly requested in full.
"""

from collections.abc import Mapping

import numpy as np

from pipelines import config as settings
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.clustering.quantiser import QUANTISE
from pipelines.scoring.clustering.shortlists import Shortlists, build, codebook_of
from pipelines.scoring.continuous import ContinuousGmm, listed
from pipelines.scoring.continuous.dense import NO_BACKING
from pipelines.scoring.continuous.listed import queued_of_bytes
from pipelines.scoring.costs import calls, continuous, tied
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.costs.tied import LIST_CALLS
from pipelines.scoring.gaussians.int8 import Int8Gaussians, in_int8
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Cancelling, Family, Made, Need, Progress, Strategy
from pipelines.scoring.tied import listed as listed_densities
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array
from profiler.costs import Cost


class _Quantised(Strategy[Family]):
    """Base of both kinds: the codebook, and finding the codewords of a block, in full or down its tree.

    The tree is the dictionary that lectures on VQ describe: going down it compares 2·log₂ K codewords and not K, and
    mostly, but not always, arrives at the nearest.
    """

    _lists: Shortlists

    def __init__(self, family: Family, by_tree: bool = False) -> None:
        super().__init__(family)
        self._by_tree = by_tree
        self._words = np.zeros((MAX_FRAMES, family.parameters.n_streams), np.int32)

    def needs(self, gmm: settings.Gmm) -> Need:
        """Codebook and shortlists, from the cache or made now (seconds)."""
        p, size, threshold = self._family.parameters, gmm.selection.codewords, gmm.selection.threshold
        shared = self._family.kind == "Tied"

        def make(progress: Progress, cancelled: Cancelling) -> Shortlists:
            book = codebook_of(p.gaussians, p.identity, size, progress, cancelled)
            return build(p.gaussians, book, p.identity, threshold, progress, cancelled, shared)

        return Need((size, threshold), make)

    def _quantise(self, x: Array, meter: Meter) -> Array:
        words, book = self._words[: len(x)], self._lists.codebook
        if self._by_tree:
            compared = book.descend(x, words)
        else:
            book.nearest(x, words)
            compared = words.size * book.size
        meter.close(QUANTISE, compared)
        return words

    def _items(self, words: Array) -> int:
        start = self._lists.start
        streams = np.arange(words.shape[1])
        return int((start[streams, words, -1] - start[streams, words, 0]).sum(dtype=np.int64))


class Continuous(_Quantised[ContinuousGmm]):
    """Panels of one Gaussian of each of 16 senones."""

    stages: Mapping[str, tuple[str, ...]] = {QUANTISE: ("codewords",)}
    _bytes: Int8Gaussians | None
    _best: bool

    def __init__(self, family: ContinuousGmm, by_tree: bool = False) -> None:
        super().__init__(family, by_tree)
        self._lanes = np.zeros(family.parameters.n_groups, np.uint16)

    def needs(self, gmm: settings.Gmm) -> Need:
        """Also 8-bit parameters, if the settings want them."""
        need, gaussians, int8 = super().needs(gmm), self._family.parameters.gaussians, gmm.component == "int8"

        def make(progress: Progress, cancelled: Cancelling) -> tuple[Shortlists, Int8Gaussians | None]:
            return need.make(progress, cancelled), in_int8(gaussians) if int8 else None

        return Need((need.key, int8), make)

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        (self._lists, self._bytes), self._best = prepared, gmm.component == "max"

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Quantise the frames of a block for `score_some`."""
        self._x = self._family.expand(features)
        self._quantise(self._x, meter)
        if self._bytes is not None:
            self._x = self._bytes.frames(self._x)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        n = len(features)
        self.begin_some(features, meter)
        self._lanes[:] = listed.EVERY
        gaussians = self._items(self._words[:n]) * LANES
        self._groups(0, n, gaussians, n * self._family.n_senones, scores, meter)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Scores of some senones in frames first … last − 1."""
        self._lanes[:] = 0
        listed.mark(senones, self._lanes)
        active, start = np.flatnonzero(self._lanes), self._lists.start
        streams = np.arange(start.shape[0])[:, None]
        words = self._words[first:last, :, None]
        panels = start[streams, words, active + 1] - start[streams, words, active]
        gaussians = int(panels.sum(dtype=np.int64)) * LANES
        self._groups(first, last, gaussians, (last - first) * len(senones), scores[first:last], meter)

    def _groups(self, first: int, last: int, gaussians: int, senones: int, scores: Array, meter: Meter) -> None:
        """Score the marked lanes in some frames; `gaussians` and `senones` are how many that takes."""
        lists, p = self._lists, self._family.parameters
        x, words = self._x[first:last], self._words[first:last]
        panels = p.gaussians if self._bytes is None else self._bytes.panels
        size = panels[0, 0, 0].nbytes

        def part(first: int, last: int, meter: Meter) -> None:
            work = self._family.work[first]
            groups = first + np.flatnonzero(self._lanes[first:last])
            here = groups, self._lanes[groups], *work.queue[2:]
            listed.gather_lists(size, p.n_components, lists.start, lists.items, words, here)
            if self._bytes is None:
                lse_ns = listed.queued(x, here, panels, NO_BACKING, work.tile, work.sums, scores, self._best)
            else:
                lse_ns = queued_of_bytes(x, here, panels, work.tile, work.sums, scores)
            meter.close("score.gaussians", gaussians, later_ns=lse_ns)
            meter.close("score.lse", 0 if self._best else gaussians, senones)

        self._family.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        family, lists = self._family, self._lists
        share = lists.mean_panels / family.parameters.n_components
        called = calls(2, LIST_CALLS)
        costs = continuous.chosen(family.parameters, frames, share, called, self._bytes)
        if self._best:
            costs = continuous.with_best(costs, share * family.per_senone)
        return costs | {QUANTISE: laws.quantise(lists.codebook, self._by_tree, frames)}

    costs_of_some = costs


class Tied(_Quantised[Gmm]):
    """Gaussians of shared codebooks: those listed are computed, and only they enter the mixtures."""

    stages: Mapping[str, tuple[str, ...]] = {
        QUANTISE: ("codewords",),
        "score.exp": ("exponentials",),
        "score.mixture": ("components",),
    }

    def __init__(self, family: Gmm, by_tree: bool = False) -> None:
        super().__init__(family, by_tree)
        p = family.parameters
        shape = (MAX_FRAMES, p.n_codebooks, p.n_streams)
        self._index = np.empty((*shape, p.padded_densities), np.int32)
        self._kept = aligned((*shape, p.padded_densities + LANES))
        self._count = np.zeros(shape, np.int64)

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._lists = prepared

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        gmm, p, lists, n = self._family, self._family.parameters, self._lists, len(features)
        room, words = gmm.room[n], self._quantise(gmm.expand(features), meter)
        gaussians = self._items(words) * LANES
        kept, count = self._kept[:n], self._count[:n]
        listed, all_lists = (self._index[:n], kept, count), (lists.start, lists.items, lists.lanes)

        def part(first: int, last: int, meter: Meter) -> None:
            listed_densities.evaluate_listed(room.x, p.gaussians, all_lists, words, listed, first, last)
            meter.close("score.gaussians", gaussians)
            listed_densities.exponentiate_listed(kept, count, room.shift, first, last)
            # Of the calling thread's codebooks, taken for all where threads share the block.
            share = n * p.n_codebooks / max(1, (last - first) * n)
            listing = count[:, first:last].sum(axis=(0, 2))
            meter.close("score.exp", round(share * int(listing.sum())))
            listed_densities.mix_listed(listed, p.rows, p.padded_densities, p.start, room.products, first, last)
            components = int(listing @ p.senones_per_codebook[first:last])
            meter.close("score.mixture", round(share * components))
            gmm.logarithms(scores, first, last, meter)

        gmm.pool.run(part, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        p, lists = self._family.parameters, self._lists
        costs = self._family.costs(frames) | tied.listed(p, lists.mean_lanes, frames)
        return costs | {QUANTISE: laws.quantise(lists.codebook, self._by_tree, frames)}
