"""The kernels of tied-mixture scoring as roofs, at their tile shapes: within the first cache, or over as many bytes.

Each is called as scoring calls it; its units are those of the cost law that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.frontend.parameters import STREAMS
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.kernel_work import (
    FIRST_CACHE,
    KEPT,
    KERNEL_CALL,
    START,
    Family,
    Numbers,
)
from pipelines.scoring.roofs_tasks import (
    CALLED,
    after_reading,
    after_writing,
    filled,
    read,
    recording,
)
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.tied import kernels
from pipelines.scoring.tied.kernels import EXPANDED
from profiler.arrays import Array, ArrayError
from profiler.machine.roofs.timing import Task, Work, each_after, repeated

GAUSSIANS, EXP, MIXTURE, LOG = "tied Gaussians", "tied exp", "tied mixture", "tied log"
FIRST_LOG_CALL = "first tied log call"

SOME = 64
"""Densities of a codebook for data within the first cache: 7 kB of Gaussians a stream, four panels."""
PANELS = 2
"""Of a tile of the mixture, 32 senones: their weights, 16 kB a stream, fit the first cache."""


@njit(nogil=True, cache=True)
def _tile(a: Array, b: Array, c: Array, times: bool, repeats: int) -> None:
    rows, depth = a.shape
    panels = len(b)
    if b.shape != (panels, depth, LANES) or c.shape != (rows, panels * LANES):
        raise ArrayError("_tile: factors and product do not fit each other")
    for _ in range(repeats):
        kernels._multiply(
            (address(a, np.float32), 4 * depth),
            rows,
            (address(b, np.float32), 4 * depth * LANES),
            panels,
            depth,
            (address(c, np.float32), 4 * panels * LANES),
            times,
            address(b, np.float32),
        )


@njit(nogil=True, cache=True)
def _exponentials(g: Array, shift: Array, repeats: int) -> None:
    for _ in range(repeats):
        kernels.exponentiate(g, shift, START, g.shape[1])


@njit(nogil=True, cache=True)
def _logarithms(
    products: Array, shift: Array, order: kernels.Order, scores: Array, repeats: int
) -> None:
    for _ in range(repeats):
        kernels.logarithms(products, shift, order, scores, START, shift.shape[1])


def _product(rows: int, depth: int, panels: int, units: float, times: bool) -> Work:
    def make() -> Task:
        a = np.ones((rows, depth), np.float32)
        # Their product is 1, so that multiplying by it again and again leads nowhere.
        b = filled((panels, depth, LANES), 1.0 / depth)
        c = filled((rows, panels * LANES))
        return lambda repeats: _tile(a, b, c, times, repeats)

    return Work(units, make)


def numbers(streams: int, expanded: int) -> tuple[int, ...]:
    """What a roof is named by besides, where a model has other streams than most."""
    return () if (streams, expanded) == (STREAMS, EXPANDED) else (streams, expanded)


def gaussians(size: int, numbers: Numbers) -> Work:
    """Gaussians of `rows` frames: `streams`, each of `depth` expanded values. Units are Gaussians."""
    rows, streams, depth = (*numbers, STREAMS, EXPANDED)[:3] if len(numbers) == 1 else numbers
    if not size:
        return _product(rows, depth, SOME // LANES, float(rows * SOME), False)
    book = streams * SOME * (depth + rows) * FLOAT
    books = max(1, size // book)

    def make() -> Task:
        x = np.ones((rows, streams, depth), np.float32)
        packed = filled((books, streams, SOME // LANES, depth, LANES))
        g = filled((rows, books, streams, SOME))
        # What a call needs, here and below, has been fetched by one that has nothing to do; it is a roof of its own.
        return each_after(
            partial(kernels.evaluate, x, packed, g, 0, 0),
            partial(kernels.evaluate, x, packed, g, 0, books),
        )

    return Work(float(rows * books * streams * SOME), make)


def exponentials(size: int, numbers: Numbers) -> Work:
    """The best of a stream's densities taken off and the exponential of all: units are densities."""
    rows, densities = numbers
    books = max(1, size // (rows * STREAMS * densities * FLOAT))

    def make() -> Task:
        g = filled((rows, books, STREAMS, densities))
        shift = np.zeros((rows, books), np.float32)
        if size > KEPT:
            # Codebook by codebook, where the exponentials go frame by frame.
            x = np.ones((rows, STREAMS, EXPANDED), np.float32)
            packed = filled((books, STREAMS, densities // LANES, EXPANDED, LANES))
            write = partial(kernels.evaluate, x, packed, g, 0, books)
            return after_writing(rows, write, partial(kernels.exponentiate, g, shift, 0, books))
        return lambda repeats: _exponentials(g, shift, repeats)

    return Work(float(rows * books * STREAMS * densities), make, size > KEPT)


def mixtures(size: int, numbers: Numbers) -> Work:
    """Mixtures of `rows` frames, `columns` of weights a call: units are components.

    Over more weights than a call has, other ones come each time; densities and products stay where they are, as those
    of a block do.
    """
    rows, densities, columns = numbers
    if not size:
        panels = kernels.panels_together(rows)
        # As many densities of these panels as fit the first cache: 16 kB of weights.
        depth = densities * PANELS // panels
        return _product(rows, depth, panels, float(rows * depth * panels * LANES), True)
    width = 4 * PANELS * LANES
    books = max(1, columns // width)
    book = width * STREAMS * densities
    turns = max(1, round(size / (books * book * FLOAT)))

    def make() -> Task:
        g = filled((rows, books, STREAMS, densities))
        weights = cycle(filled((turns, books * book)))
        start = np.arange(books + 1) * width
        products = filled((rows, books * width))
        idle = next(weights)
        return each_after(
            lambda: kernels.mix(g, idle, start, products, 0, 0),
            lambda: kernels.mix(g, next(weights), start, products, 0, books),
        )

    return Work(float(rows * books * width * STREAMS * densities), make)


def logarithms(size: int, numbers: Numbers) -> Work:
    """Logarithms of codebooks of `width` senones and their copies in `runs` pieces: units are senones."""
    rows, width, runs = numbers
    books = max(1, (size or FIRST_CACHE) // (2 * rows * width * FLOAT))

    def make() -> Task:
        products, shift, order, scores = _frames_of(rows, books, width, runs)

        if size:
            arrays = products, shift, order, scores
            return each_after(
                partial(kernels.logarithms, *arrays, 0, 0),
                partial(kernels.logarithms, *arrays, 0, books),
            )
        return lambda repeats: _logarithms(products, shift, order, scores, repeats)

    return Work(float(rows * books * width), make)


def _frames_of(
    rows: int, books: int, width: int, runs: int
) -> tuple[Array, Array, kernels.Order, Array]:
    """Products, what was subtracted, order and scores of `rows` frames, each codebook's senones in `runs` pieces."""
    padded = -(-width // LANES) * LANES
    start = np.arange(books + 1) * padded
    ends = np.linspace(0, width, runs + 1).astype(np.int64)
    pieces = np.empty((books, runs, 3), np.int64)
    for book in range(books):
        pieces[book, :, 0] = book * width + ends[:-1]
        pieces[book, :, 1] = book * padded + ends[:-1]
        pieces[book, :, 2] = np.diff(ends)
    order = start, pieces.reshape(-1, 3), np.arange(books + 1) * runs
    # log(1) + 1 = 1: the logarithms take the place of the products, and are such again.
    products, shift = filled((rows, books * padded)), filled((rows, books))
    return products, shift, order, filled((rows, books * width))


def call(size: int, numbers: Numbers) -> Work:
    """A call of a compiled kernel with its arrays and numbers, and the close of its span."""
    return Work(1.0, lambda: after_reading(size, _call()) if size else repeated(_call()))


def first_log_call(size: int, numbers: Numbers) -> Work:
    """A call of the kernel of logarithms, which has more arrays: `size` after its last, some KiB after another call.

    Of the latter, what every call needs is still near; of the former, what its own does has been pushed out.
    """
    (since,) = numbers
    products, shift, order, scores = _frames_of(1, 1, LANES, 1)
    meter, other, between = recording(), _call(), filled((since << 8,))

    def before() -> None:
        other()
        read(between)

    def once() -> None:
        kernels.logarithms(products, shift, order, scores, 0, 0)
        meter.done(CALLED, 1)

    return Work(1.0, lambda: after_reading(size, once, before))


def _call() -> Callable[[], None]:
    x = np.ones((1, STREAMS, EXPANDED), np.float32)
    packed = filled((1, STREAMS, 1, EXPANDED, LANES))
    g = filled((1, 1, STREAMS, LANES))
    meter = recording()

    def once() -> None:
        kernels.evaluate(x, packed, g, 0, 0)
        meter.done(CALLED, 1)

    return once


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        GAUSSIANS: gaussians,
        EXP: exponentials,
        MIXTURE: mixtures,
        LOG: logarithms,
        KERNEL_CALL: call,
        FIRST_LOG_CALL: first_log_call,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
