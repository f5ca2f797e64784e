"""The kernels of tied-mixture scoring that leave something out, as roofs: lists, the best, chosen senones.

Data are at random where the way of a kernel depends on them, and always the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.frontend.parameters import STREAMS
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.clustering.clusters import Backing
from pipelines.scoring.gaussians.bounds import rests
from pipelines.scoring.kernel_work import FIRST_CACHE, START, Family, Numbers
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.vector import LANES
from pipelines.scoring.tied import kernels, lazy_kernels, listed, max_approximation, top_n_kernels
from pipelines.scoring.tied.evaluation import BOUNDED, bounded
from pipelines.scoring.tied.kernels import EXPANDED
from pipelines.scoring.tied.lazy import LAZY
from pipelines.scoring.tied.max_approximation import BEST
from profiler.arrays import I32, Array
from profiler.machine.roofs.timing import Task, Work, repeated

SELECT, EXP_KEPT, MIX_KEPT = "tied selection", "tied exp of kept", "tied mixture of kept"
LISTED, EXP_LISTED, MIX_LISTED = "tied listed", "tied exp of listed", "tied mixture of listed"
CLUSTERED = "tied clusters"

WIDTH = 128
"""Senones of a codebook, padded: the shipped model has 122 on average."""
SENONES = 16
"""Chosen senones within the first cache."""
WORDS, CLUSTERS = 64, 512
HUNDRED = 100
OTHERS = 8
"""Choices of densities for a block that take turns, so that no choice stays in the cache."""
STAYS = 0.4
"""Part of the four best densities of a codebook and stream that are among those of the next frame, in speech
(`python -m tests.bench.constants --only speech`)."""


@njit(nogil=True, cache=True)
def _lazy(
    g: Array,
    shift: Array,
    mixtures: lazy_kernels.Mixtures,
    senones: Array,
    products: Array,
    scores: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        lazy_kernels.mix_some(g, shift, mixtures, senones, START, len(g), products, scores)


@njit(nogil=True, cache=True)
def _best(
    g: Array, rows: Array, order: kernels.Order, products: Array, scores: Array, repeats: int
) -> None:
    for _ in range(repeats):
        max_approximation.mix_best(g, rows, order, products, scores, START, g.shape[1])


@njit(nogil=True, cache=True)
def _select(g: Array, index: Array, kept: Array, shift: Array, keep: int, repeats: int) -> None:
    for _ in range(repeats):
        top_n_kernels.select(g, index, kept, shift, keep, START, g.shape[1])


@njit(nogil=True, cache=True)
def _exp_kept(kept: Array, repeats: int) -> None:
    for _ in range(repeats):
        # An exponential of an exponential would soon be no number.
        kept[:] = np.float32(0)
        top_n_kernels.exponentiate_kept(kept, START, kept.shape[1])


@njit(nogil=True, cache=True)
def _exp_listed(kept: Array, count: Array, shift: Array, repeats: int) -> None:
    for _ in range(repeats):
        listed.exponentiate_listed(kept, count, shift, START, kept.shape[1])


@njit(nogil=True, cache=True)
def _mix_kept(
    index: Array,
    kept: Array,
    weights: Array,
    densities: int,
    start: Array,
    products: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        top_n_kernels.mix_kept(
            index, kept, weights, densities, start, products, START, kept.shape[1]
        )


@njit(nogil=True, cache=True)
def _mix_listed(found, weights, densities, start, products, repeats):  # type: ignore[no-untyped-def]
    for _ in range(repeats):
        listed.mix_listed(
            found, weights, densities, start, products, START, products.shape[1] // WIDTH
        )


@njit(nogil=True, cache=True)
def _evaluate_listed(x, gaussians, lists, words, found, repeats):  # type: ignore[no-untyped-def]
    for _ in range(repeats):
        listed.evaluate_listed(x, gaussians, lists, words, found, START, len(gaussians))


def _books(size: int, each: int) -> int:
    return max(1, size // each)


def chosen(rng: np.random.Generator, frames: int, shape: tuple[int, ...], densities: int) -> I32:
    """Which of so many densities are kept, i32 [frames, *shape]: in each frame STAYS of them as in the one before."""
    found = rng.integers(0, densities, (frames, *shape), dtype=np.int32)
    stay = rng.random(found.shape) < STAYS
    for frame in range(1, frames):
        np.copyto(found[frame], found[frame - 1], where=stay[frame])
    return found


def lazy(size: int, numbers: Numbers) -> Work:
    """Chosen senones in `rows` frames: units are components."""
    rows, densities = numbers
    senone = STREAMS * densities * FLOAT
    books = _books(size, SENONES * senone)
    senones = np.arange(books * SENONES)

    def make() -> Task:
        g, shift = filled((rows, books, STREAMS, densities)), np.zeros((rows, books), np.float32)
        dots = filled((len(senones), STREAMS, densities))
        mixtures = dots, (senones // SENONES).astype(np.int32)
        products, scores = filled((rows, 2 * SENONES)), filled((rows, len(senones)))
        return lambda repeats: _lazy(g, shift, mixtures, senones, products, scores, repeats)

    return Work(float(rows * len(senones) * STREAMS * densities), make)


def best(size: int, numbers: Numbers) -> Work:
    """The best component alone: units are components."""
    rows, densities = numbers
    if not size:
        densities = LANES // 2
    books = _books(size, STREAMS * densities * WIDTH * FLOAT)

    def make() -> Task:
        g = filled((rows, books, STREAMS, densities))
        weights = filled((books * WIDTH * STREAMS * densities,))
        start = np.arange(books + 1) * WIDTH
        runs = np.stack([start[:-1], start[:-1], np.full(books, WIDTH)], axis=1)
        order = start, runs, np.arange(books + 1)
        products, scores = filled((rows, books * WIDTH)), filled((rows, books * WIDTH))
        return lambda repeats: _best(g, weights, order, products, scores, repeats)

    return Work(float(rows * books * WIDTH * STREAMS * densities), make)


def select(size: int, numbers: Numbers) -> Work:
    """The `keep` best densities: units are those kept."""
    densities, keep = numbers
    books = _books(size or FIRST_CACHE, STREAMS * densities * FLOAT)

    def make() -> Task:
        rng = np.random.default_rng(0)
        g = rng.normal(size=(1, books, STREAMS, densities)).astype(np.float32)
        index = np.zeros((1, books, STREAMS, keep), np.int32)
        kept, shift = filled((1, books, _padded(STREAMS * keep))), filled((1, books))
        return lambda repeats: _select(g, index, kept, shift, keep, repeats)

    return Work(float(books * STREAMS * keep), make)


def exp_kept(size: int, numbers: Numbers) -> Work:
    """Exponentials of the densities kept: units are these, the padding of a codebook is computed with them."""
    (keep,) = numbers
    width = _padded(STREAMS * keep)
    books = _books(FIRST_CACHE, width * FLOAT)

    def make() -> Task:
        kept = filled((1, books, width))
        return lambda repeats: _exp_kept(kept, repeats)

    return Work(float(books * STREAMS * keep), make)


def mix_kept(size: int, numbers: Numbers) -> Work:
    """Mixtures of the densities kept: units are components, padding among them. Others are kept in each repeat."""
    rows, keep, densities = numbers
    if not size:
        densities = keep = min(keep, LANES // 2)
    books = _books(size, STREAMS * densities * WIDTH * FLOAT)

    def make() -> Task:
        rng = np.random.default_rng(0)
        found = chosen(rng, OTHERS * rows, (books, STREAMS, keep), densities)
        indices = cycle(found.reshape(OTHERS, rows, books, STREAMS, keep))
        kept = filled((rows, books, _padded(STREAMS * keep)))
        weights, products = (
            filled((books * WIDTH * STREAMS * densities,)),
            filled((rows, books * WIDTH)),
        )
        start = np.arange(books + 1) * WIDTH

        def task(repeats: int) -> None:
            if not size:
                # Less work than a call of it from Python.
                _mix_kept(next(indices), kept, weights, densities, start, products, repeats)
                return
            for _ in range(repeats):
                _mix_kept(next(indices), kept, weights, densities, start, products, 1)

        return task

    return Work(float(rows * books * WIDTH * STREAMS * keep), make)


def evaluate_listed(size: int, numbers: Numbers) -> Work:
    """Gaussians on lists, a `percent` of the panels on each, `lanes` of a panel: units are Gaussians of the panels."""
    rows, slots, percent, lanes = numbers
    books = max(1, size // (STREAMS * slots * EXPANDED * LANES * FLOAT))
    length = max(1, slots * percent // HUNDRED)

    def make() -> Task:
        rng = np.random.default_rng(0)
        x, gaussians = (
            filled((rows, STREAMS, EXPANDED)),
            filled((books, STREAMS, slots, EXPANDED, LANES)),
        )
        number = STREAMS * WORDS * books
        first = np.arange(STREAMS * WORDS).reshape(STREAMS, WORDS, 1) * books
        start = ((first + np.arange(books + 1)) * length).astype(np.int32)
        order = rng.permuted(np.tile(np.arange(slots, dtype=np.uint8), (number, 1)), axis=1)
        items = np.sort(order[:, :length], axis=1).ravel()
        bits = rng.permuted(np.tile(np.arange(LANES) < lanes, (len(items), 1)), axis=1)
        which = (bits << np.arange(LANES)).sum(axis=1).astype(np.uint16)
        words = rng.integers(0, WORDS, (rows, STREAMS)).astype(np.int32)
        found = (
            np.zeros((rows, books, STREAMS, slots * LANES), np.int32),
            filled((rows, books, STREAMS, (slots + 1) * LANES)),
            np.zeros((rows, books, STREAMS), np.int64),
        )
        lists = start, items, which
        return lambda repeats: _evaluate_listed(x, gaussians, lists, words, found, repeats)

    return Work(float(rows * books * STREAMS * length * LANES), make)


def exp_listed(size: int, numbers: Numbers) -> Work:
    """Exponentials of lists of `count` densities: units are these."""
    (count,) = numbers
    width = _padded(count) + LANES
    books = _books(FIRST_CACHE, STREAMS * width * FLOAT)

    def make() -> Task:
        kept, shift = filled((1, books, STREAMS, width)), filled((1, books))
        counts = np.full((1, books, STREAMS), count)
        return lambda repeats: _exp_listed(kept, counts, shift, repeats)

    return Work(float(books * STREAMS * count), make)


def mix_listed(size: int, numbers: Numbers) -> Work:
    """Mixtures of lists of `count` densities: units are components, padding among them."""
    rows, count, densities = numbers
    if not size:
        densities = LANES
        count = min(count, densities)
    books = _books(size, STREAMS * densities * WIDTH * FLOAT)

    def make() -> Task:
        rng = np.random.default_rng(0)
        found = (
            rng.integers(0, densities, (rows, books, STREAMS, densities)).astype(np.int32),
            filled((rows, books, STREAMS, densities + LANES)),
            np.full((rows, books, STREAMS), count),
        )
        weights, products = (
            filled((books * WIDTH * STREAMS * densities,)),
            filled((rows, books * WIDTH)),
        )
        start = np.arange(books + 1) * WIDTH
        return lambda repeats: _mix_listed(found, weights, densities, start, products, repeats)

    return Work(float(rows * books * WIDTH * STREAMS * count), make)


def clustered(size: int, numbers: Numbers) -> Work:
    """Gaussians of expanded clusters, `percent` of all, and what stands for the others: units are all Gaussians."""
    rows, slots, percent = numbers
    books = _books(size, STREAMS * slots * LANES * (EXPANDED + rows) * FLOAT)

    def make() -> Task:
        rng = np.random.default_rng(0)
        expanded = np.zeros((STREAMS, CLUSTERS), np.uint64)
        for t in range(rows):
            chosen = rng.random(expanded.shape) * HUNDRED < percent
            expanded |= chosen.astype(np.uint64) << np.uint64(t)
        backing: Backing = (
            rng.integers(0, CLUSTERS, (books, STREAMS, slots)).astype(np.uint16),
            filled((books, STREAMS, slots, LANES)),
            expanded,
            filled((rows, STREAMS, CLUSTERS)),
        )
        x, gaussians = (
            filled((rows, STREAMS, EXPANDED)),
            filled((books, STREAMS, slots, EXPANDED, LANES)),
        )
        g = filled((rows, books, STREAMS, slots * LANES))
        return repeated(lambda: listed.evaluate_expanded(x, gaussians, backing, g, 0, books))

    return Work(float(rows * books * STREAMS * slots * LANES), make)


def given_up(size: int, numbers: Numbers) -> Work:
    """Partial distance elimination for the `keep` best: units are dimensions computed / those of a Gaussian."""
    rows, slots, keep, follow = numbers
    dim = EXPANDED // 2
    books = _books(size, STREAMS * slots * LANES * (EXPANDED + rows) * FLOAT)
    rng = np.random.default_rng(0)
    means = rng.normal(size=(books, STREAMS, slots, dim, LANES)).astype(np.float32)
    gaussians = filled((books, STREAMS, slots, EXPANDED, LANES))
    gaussians[..., :dim, :], gaussians[..., dim : 2 * dim, :] = -0.5, means
    gaussians[..., 2 * dim, :] = -0.5 * (means**2).sum(axis=3)
    x = np.ones((rows, STREAMS, EXPANDED), np.float32)
    x[..., dim : 2 * dim] = rng.normal(size=(rows, STREAMS, dim))
    x[..., :dim] = x[..., dim : 2 * dim] ** 2
    order = np.tile(np.arange(slots, dtype=np.uint8), (books, STREAMS, 1))
    within = rests(gaussians), order, keep, bool(follow)
    g = filled((rows, books, STREAMS, slots * LANES))

    def once() -> int:
        computed: int = bounded(x, gaussians, within, g, 0, books)
        return computed

    once()
    return Work(once() / dim, lambda: repeated(once))


def _padded(count: int) -> int:
    return -(-count // LANES) * LANES


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        LAZY: lazy,
        BEST: best,
        SELECT: select,
        EXP_KEPT: exp_kept,
        MIX_KEPT: mix_kept,
        LISTED: evaluate_listed,
        EXP_LISTED: exp_listed,
        MIX_LISTED: mix_listed,
        CLUSTERED: clustered,
        BOUNDED: given_up,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
