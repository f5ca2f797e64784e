"""Layers in 8-bit integers: their products, and what scales and rounds what goes in and comes out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn import integers, quantised, terms
from pipelines.scoring.dnn.integers import FRAMES, PANEL
from pipelines.scoring.dnn.roofs._layers import before_layer
from pipelines.scoring.kernel_work import Family, Numbers
from pipelines.scoring.roofs_tasks import (
    CALLED,
    HOT_BYTES,
    after_reading,
    filled,
    outputs_of,
    recording,
)
from pipelines.scoring.simd.byte_products import GROUP
from pipelines.scoring.simd.vector import aligned
from profiler.arrays import Array
from profiler.machine.roofs.timing import Task, Work, repeated

HOT_GROUPS, HOT_PANEL = 48, 12 << 10
"""Groups of inputs, at least, and bytes of weights of a panel within the first cache, and of its frames as far as these
go: as in `_kernels`."""
HOT_FRAMES = 4 * FRAMES
"""Frames of whole tiles."""
LIBRARY_AT_BEST = (64, 256, 256)
"""Frames, inputs and outputs of a product large enough that the library's preparations hardly count."""


@njit(nogil=True, cache=True)
def _panels(panels: Array, x: Array, excess: Array, sums: Array, tile: Array, repeats: int) -> None:
    for _ in range(repeats):
        integers._multiply(panels, x, excess, sums, tile, 0, len(panels))


@njit(nogil=True, cache=True)
def _added(x: Array, excess: Array, repeats: int) -> None:
    for _ in range(repeats):
        integers._excess(x, excess)


@njit(nogil=True, cache=True)
def _quantised(values: Array, out: Array, scales: Array, repeats: int) -> None:
    for _ in range(repeats):
        quantised._quantise(values, out, scales)


@njit(nogil=True, cache=True)
def _requantised(
    sums: Array, scales: Array, row_scales: Array, bias: Array, out: Array, repeats: int
) -> None:
    for _ in range(repeats):
        # A scale that only grew would soon be none.
        scales[:] = np.float32(1)
        quantised._requantise(sums, scales, row_scales, bias, True, out)


@njit(nogil=True, cache=True)
def _restored(
    sums: Array, scales: Array, row_scales: Array, bias: Array, scores: Array, repeats: int
) -> None:
    for _ in range(repeats):
        quantised._restore(sums, scales, row_scales, bias, scores)


def panels(size: int, numbers: Numbers) -> Work:
    """Panels of outputs; units are multiply-adds of integers."""
    n, groups = numbers
    if not size:
        groups = min(groups, max(HOT_GROUPS, HOT_PANEL // (max(PANEL, n) * GROUP)))
    count = max(1, size // (groups * GROUP * PANEL))

    def make() -> Task:
        weights = aligned((count, groups, PANEL, GROUP), np.uint8)
        weights[:] = 1
        x, excess = np.ones((n, groups * GROUP), np.int8), np.zeros(n, np.int32)
        sums, tile = np.ones((n, count * PANEL), np.int32), aligned((FRAMES, PANEL), np.int32)
        return lambda repeats: _panels(weights, x, excess, sums, tile, repeats)

    return Work(float(n * groups * GROUP * count * PANEL), make)


def best(size: int, numbers: Numbers) -> Work:
    """The product of integers at its best: whole tiles, their weights in the first cache; units are operations."""
    work = panels(0, (HOT_FRAMES, HOT_PANEL)) if integers.TILES else library(0, LIBRARY_AT_BEST)
    return Work(2.0 * work.operations, work.make)


def library(size: int, numbers: Numbers) -> Work:
    """The library's product of integers; units are multiply-adds. Without a size as much of a matrix as the nearest
    caches keep."""
    n, inputs, outputs = numbers
    outputs = outputs_of(size, outputs, inputs)
    count = max(1, size // (inputs * outputs))

    def make() -> Task:
        weight, x = np.ones((outputs, inputs), np.int8), np.ones((n, inputs), np.int8)
        made = [integers.Library(weight, 1, n) for _ in range(count)]

        def once() -> None:
            for each in made:
                each.sums(x)

        return repeated(once)

    return Work(float(count * n * inputs * outputs), make)


def excess(size: int, numbers: Numbers) -> Work:
    """The sum of a frame's inputs; units are inputs."""
    (inputs,) = numbers

    def make() -> Task:
        x, found = np.ones((1, inputs), np.int8), np.zeros(1, np.int32)
        return lambda repeats: _added(x, found, repeats)

    return Work(float(inputs), make)


def quantise(size: int, numbers: Numbers) -> Work:
    """Features of a frame in 8 bits; units are inputs."""
    (inputs,) = numbers

    def make() -> Task:
        values, out = filled((1, inputs)), np.ones((1, inputs), np.int8)
        scales = filled((1,))
        return lambda repeats: _quantised(values, out, scales, repeats)

    return Work(float(inputs), make)


def requantise(size: int, numbers: Numbers) -> Work:
    """Sums of a frame as the next layer's input; units are outputs."""
    (outputs,) = numbers

    def make() -> Task:
        sums, out = np.ones((1, outputs), np.int32), np.ones((1, outputs), np.int8)
        scales, each = filled((1,)), (filled((outputs,)), filled((outputs,)))
        return lambda repeats: _requantised(sums, scales, *each, out, repeats)

    return Work(float(outputs), make)


def restore(size: int, numbers: Numbers) -> Work:
    """Sums of frames as scores; units are outputs, the size is that of sums and scores."""
    (outputs,) = numbers
    rows = max(1, size // (2 * FLOAT * outputs))
    if not size:
        outputs = min(outputs, HOT_BYTES // FLOAT // 4)

    def make() -> Task:
        sums, scores = np.ones((rows, outputs), np.int32), filled((rows, outputs))
        scales, each = filled((rows,)), (filled((outputs,)), filled((outputs,)))
        return lambda repeats: _restored(sums, scales, *each, scores, repeats)

    return Work(float(rows * outputs), make)


def layer_call(size: int, numbers: Numbers) -> Work:
    """A layer of one weight, after `size` bytes were read: the first, any other or the last."""
    (place,) = numbers

    def make() -> Task:
        product = quantised.Quantised(filled((1, 1)), filled((1,)), True, 1, 1)
        if not integers.TILES:
            # The call of the library belongs to its product.
            sums = np.ones((1, 1), np.int32)
            product.sums = lambda x: sums
        room, scales, scores, meter = (
            np.ones((1, 4), np.int8),
            filled((1,)),
            filled((1, 1)),
            recording(),
        )
        values, y = filled((1, 1)), np.ones((1, 4), np.int8)

        def once() -> None:
            x = room[:1]
            if place == terms.FIRST:
                quantised._quantise(values, x[:, :1], scales)
            if place == terms.LAST:
                quantised._restore(product.sums(x), scales, product.scale, product.bias, scores)
            else:
                quantised.apply(product, x, scales, y[:1, :1])
            meter.done(CALLED, 1)

        return after_reading(size, once, before_layer(size))

    return Work(1.0, make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        quantised.OPERATION: best,
        terms.INT8: panels,
        terms.INT8_LIBRARY: library,
        terms.EXCESS: excess,
        terms.QUANTISED: quantise,
        terms.REQUANTISED: requantise,
        terms.RESTORED: restore,
        terms.INT8_CALL: layer_call,
    }
)
