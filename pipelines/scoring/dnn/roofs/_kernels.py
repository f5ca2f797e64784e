"""Products of nets, by the kernels that compute them, and chosen rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn import rows, terms
from pipelines.scoring.dnn.products import blas, blocks, csr, scalar, simd
from pipelines.scoring.dnn.products._frames import by_sixteen, room
from pipelines.scoring.kernel_work import Family, Numbers
from pipelines.scoring.roofs_tasks import HOT_BYTES, THIRD, filled, outputs_of
from pipelines.scoring.simd.dot_products import ROWS
from pipelines.scoring.simd.vector import LANES, address, aligned
from profiler.arrays import Array, ArrayError
from profiler.machine.roofs.timing import Task, Work, repeated

HOT_INPUTS, HOT_PANEL = 48, 12 << 10
"""Inputs, at least, and bytes of weights of a panel within the first cache, and of its frames as far as these go: each
panel begins and ends a loop, so that of few inputs takes longer than it is in a run."""
TENTH = 0.1
FEW_OUTPUTS = 32
"""Of a product that is there for the library's code alone: the same code as that of a layer, and soon done."""


@njit(nogil=True, cache=True)
def _panels(panels: Array, x: Array, out: Array, sums: Array, repeats: int) -> None:
    (n, inputs), (rows_of_out, width) = x.shape, out.shape
    outputs = len(panels) * simd.PANEL
    if rows_of_out != n or panels.shape[1] != inputs or width < outputs:
        raise ArrayError("_panels: panels, frames and outputs do not fit each other")
    here = address(x, np.float32), FLOAT * inputs, FLOAT
    there = address(out, np.float32), FLOAT * width, FLOAT
    for _ in range(repeats):
        simd._multiply(panels, here, there, (outputs, n), sums, 0, len(panels))


@njit(nogil=True, cache=True)
def _one_by_one(weight: Array, frames: Array, out: Array, repeats: int) -> None:
    for _ in range(repeats):
        scalar._multiply(weight, frames, out, 0, len(weight))


@njit(nogil=True, cache=True)
def _rows_of_one(
    starts: Array,
    columns: Array,
    values: Array,
    inputs: int,
    x: Array,
    out: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        csr._multiply_one(starts, columns, values, inputs, x, out, 0, len(out))


@njit(nogil=True, cache=True)
def _rows_of_many(
    starts: Array,
    columns: Array,
    values: Array,
    inputs: int,
    frames: Array,
    out: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        csr._multiply(starts, columns, values, inputs, frames, out, 0, len(out))


@njit(nogil=True, cache=True)
def _blocks_of_few(
    starts: Array, columns: Array, values: Array, x: Array, out: Array, repeats: int
) -> None:
    inputs, n = x.shape
    if out.shape[1] != n or (columns >= inputs).any():
        raise ArrayError("_blocks_of_few: blocks, frames and outputs do not fit each other")
    at = address(x, np.float32), FLOAT, FLOAT * n
    for _ in range(repeats):
        blocks._multiply_few(starts, columns, values, at, out, 0, len(starts) - 1)


@njit(nogil=True, cache=True)
def _blocks_of_many(
    starts: Array,
    columns: Array,
    values: Array,
    inputs: int,
    frames: Array,
    out: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        blocks._multiply_many(starts, columns, values, inputs, frames, out, 0, len(starts) - 1)


@njit(nogil=True, cache=True)
def _float_rows(
    weights: Array, bias: Array, hidden: Array, chosen: Array, scores: Array, repeats: int
) -> None:
    for _ in range(repeats):
        rows.float_rows(weights, bias, hidden, 0, len(hidden), chosen, scores)


@njit(nogil=True, cache=True)
def _byte_rows(
    weights: Array,
    affine: Array,
    hidden: Array,
    scales: Array,
    chosen: Array,
    scores: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        rows.byte_rows(weights, affine, hidden, scales, 0, len(hidden), chosen, scores)


def panels(size: int, numbers: Numbers) -> Work:
    """Panels of outputs; units are multiply-adds."""
    n, inputs = numbers
    if not size:
        inputs = min(inputs, max(HOT_INPUTS, HOT_PANEL // (max(simd.PANEL, n) * FLOAT)))
    count = max(1, size // (inputs * simd.PANEL * FLOAT))
    outputs = count * simd.PANEL

    def make() -> Task:
        weights = aligned((count, inputs, simd.PANEL))
        weights[:] = 1.0
        # As between two layers: rows of all outputs and the bias.
        x, out = filled((n, inputs)), filled((n, outputs + 1))
        sums = aligned((simd.FRAMES, simd.PANEL))
        return lambda repeats: _panels(weights, x, out, sums, repeats)

    return Work(float(n * inputs * outputs), make)


def library(size: int, numbers: Numbers) -> Work:
    """The library's product; units are multiply-adds. Without a size as much of a matrix as the nearest caches keep."""
    n, inputs, outputs, in_rows = numbers
    outputs = outputs_of(size, outputs, inputs * FLOAT)
    count = max(1, size // (inputs * outputs * FLOAT))

    def make() -> Task:
        weights = [filled((outputs, inputs)) for _ in range(count)]
        x = filled((n, inputs)).T if in_rows else filled((inputs, n))
        out = filled((outputs, n))
        few, of_few = filled((FEW_OUTPUTS, inputs)), filled((FEW_OUTPUTS, n))

        def task(repeats: int) -> None:
            if not repeats:
                # What the library itself needs for a call, its code among it, is there from the layer before.
                np.matmul(few, x, out=of_few)
            for _ in range(repeats):
                for weight in weights:
                    np.matmul(weight, x, out=out)

        return task

    return Work(float(count * n * inputs * outputs), make)


def one_by_one(size: int, numbers: Numbers) -> Work:
    """One multiplication and one addition at a time, at one frame; units are multiply-adds."""
    (inputs,) = numbers
    outputs = max(1, (size or HOT_BYTES) // (inputs * FLOAT))

    def make() -> Task:
        weight, x = filled((outputs, inputs)), filled((1, inputs))
        out = filled((1, outputs + 1)).T[:-1]
        return lambda repeats: _one_by_one(weight, x, out, repeats)

    return Work(float(outputs * inputs), make)


def _sparse(
    size: int, inputs: int, tenths: int, lanes: int
) -> tuple[int, tuple[Array, Array, Array]]:
    """(inputs, (starts, columns, values)) of rows of which so many tenths are there, in cache or of `size` bytes."""
    kept = max(1, round(TENTH * tenths * inputs))
    count = max(1, (size or HOT_BYTES) // (kept * (FLOAT * lanes + 2)))
    rng = np.random.default_rng(0)
    each = np.sort(rng.permuted(np.tile(np.arange(inputs), (count, 1)), axis=1)[:, :kept], axis=1)
    if not size:
        # As many weights, of fewer inputs.
        inputs = min(inputs, HOT_INPUTS)
        each = each % inputs
    values = aligned((each.size, lanes)) if lanes > 1 else aligned((each.size,))
    values[:] = 1.0
    return inputs, (np.arange(count + 1) * kept, each.ravel().astype(np.uint16), values)


def sparse_rows(size: int, numbers: Numbers) -> Work:
    """Rows of single weights; units are multiply-adds."""
    n, inputs, tenths = numbers
    inputs, sparse = _sparse(size, inputs, tenths, 1)
    count = len(sparse[0]) - 1

    def make() -> Task:
        if n == 1:
            x, out = filled((inputs,)), filled((count,))
            return lambda repeats: _rows_of_one(*sparse, inputs, x, out, repeats)
        frames, many = room(n, inputs), filled((count, n))
        frames[:] = 1.0
        return lambda repeats: _rows_of_many(*sparse, inputs, frames, many, repeats)

    return Work(float(n * len(sparse[1])), make)


def sparse_blocks(size: int, numbers: Numbers) -> Work:
    """Blocks of 16 outputs by one input; units are multiply-adds."""
    n, inputs, tenths = numbers
    inputs, sparse = _sparse(size, inputs, tenths, LANES)
    outputs = LANES * (len(sparse[0]) - 1)

    def make() -> Task:
        out = filled((outputs, n))
        if n <= blocks.FEW:
            x = filled((inputs, n))
            return lambda repeats: _blocks_of_few(*sparse, x, out, repeats)
        frames = room(n, inputs)
        frames[:] = 1.0
        return lambda repeats: _blocks_of_many(*sparse, inputs, frames, out, repeats)

    return Work(float(n * sparse[2].size), make)


def side_by_side(turned: bool) -> Family:
    """Frames as rows or columns put side by side by sixteens; units are floats, at their own size."""

    def family(size: int, numbers: Numbers) -> Work:
        n, inputs = numbers

        def make() -> Task:
            x, to = filled((n, inputs)).T if turned else filled((inputs, n)), room(n, inputs)
            return repeated(lambda: by_sixteen(x, to))

        return Work(float(n * inputs), make)

    return family


def chosen_rows(size: int, numbers: Numbers) -> Work:
    """A third of all rows, in order, for so many frames: about what speech asks for; units are rows."""
    weight_bytes, frames, width = numbers
    count = max(ROWS, (size or HOT_BYTES) // (width * weight_bytes))
    chosen = (
        np.flatnonzero(np.random.default_rng(0).random(count) < THIRD) if size else np.arange(count)
    )

    def make() -> Task:
        scores = filled((frames, count))
        if weight_bytes == 1:
            weights, affine = np.ones((count, width), np.uint8), filled((2, count))
            x, scales = np.ones((frames, width), np.int8), filled((frames,))
            return lambda repeats: _byte_rows(weights, affine, x, scales, chosen, scores, repeats)
        floats, bias, hidden = filled((count, width)), filled((count,)), filled((frames, width))
        return lambda repeats: _float_rows(floats, bias, hidden, chosen, scores, repeats)

    return Work(float(len(chosen)), make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        simd.KERNEL: panels,
        blas.KERNEL: library,
        scalar.KERNEL: one_by_one,
        csr.KERNEL: sparse_rows,
        blocks.KERNEL: sparse_blocks,
        terms.MOVED: side_by_side(False),
        terms.TURNED: side_by_side(True),
        terms.ROWS: chosen_rows,
    }
)
