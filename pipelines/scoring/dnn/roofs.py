"""The kernels of nets as roofs, at their tile shapes: within the first cache, or over as many bytes of weights.

Each is called as scoring calls it; its units are those of the cost law that names it. Products that a library computes
are timed as the library's own at that shape, with one matrix of weights of its own size in place of the first cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.models.nets import FORMAT, Card, Net
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn import products, rows, terms
from pipelines.scoring.dnn.dense import DenseNet, Splicer, apply, rectify
from pipelines.scoring.dnn.products import Product, blas, blocks, csr, scalar, simd
from pipelines.scoring.dnn.products._frames import by_sixteen, room
from pipelines.scoring.dnn.rows import ByteRows, FloatRows
from pipelines.scoring.dnn.terms import Call
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.tied.roofs import Family, Numbers, filled
from profiler.arrays import Array
from profiler.costs import Term
from profiler.machine.roofs.timing import Task, Work
from profiler.spans import Cost

HOT_INPUTS = 48
"""Inputs of a panel within the first cache: 12 KiB of weights, beside as much of 64 frames."""
HOT_BYTES = 8 << 10
"""Weights of other kernels within the first cache."""
TENTH = 0.1
THIRD = 1 / 3
"""A frame of speech asks for 37 % of all senones (5 000 words, beam 13)."""


def repeated(once: Callable[[], object]) -> Task:
    """`once` as often as asked, from Python."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            once()

    return task


@njit(nogil=True, cache=True)
def _panels(
    panels: Array,
    x: simd.Strided,
    out: simd.Strided,
    shape: tuple[int, int],
    sums: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        simd._multiply(panels, x, out, shape, sums, 0, len(panels))


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
    starts: Array,
    columns: Array,
    values: Array,
    x: simd.Strided,
    out: Array,
    repeats: int,
) -> None:
    for _ in range(repeats):
        blocks._multiply_few(starts, columns, values, x, out, 0, len(starts) - 1)


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


@njit(nogil=True, cache=True)
def _read(values: Array) -> np.float32:
    """A value of each cache line, added up."""
    total = np.float32(0)
    for i in range(0, len(values), LANES):
        total += values[i]
    return total


@njit(nogil=True, cache=True)
def _rectified(values: Array, repeats: int) -> None:
    for _ in range(repeats):
        rectify(values)


def panels(size: int, numbers: Numbers) -> Work:
    """Panels of outputs; units are multiply-adds."""
    n, inputs = numbers
    if not size:
        inputs = min(inputs, HOT_INPUTS)
    count = max(1, size // (inputs * simd.PANEL * FLOAT))
    outputs = count * simd.PANEL

    def make() -> Task:
        weights = aligned((count, inputs, simd.PANEL))
        weights[:] = 1.0
        # As between two layers: rows of all outputs and the bias.
        x, out = filled((n, inputs)), filled((n, outputs + 1))
        sums = aligned((simd.FRAMES, simd.PANEL))
        here = x.ctypes.data, x.strides[0], x.strides[1]
        there = out.ctypes.data, out.strides[0], out.strides[1]

        def task(repeats: int, _: object = (x, out)) -> None:
            _panels(weights, here, there, (outputs, n), sums, repeats)

        return task

    return Work(float(n * inputs * outputs), make)


def library(size: int, numbers: Numbers) -> Work:
    """The library's product; units are multiply-adds. Without a size one matrix alone."""
    n, inputs, outputs, in_rows = numbers
    count = max(1, size // (inputs * outputs * FLOAT))

    def make() -> Task:
        weights = [filled((outputs, inputs)) for _ in range(count)]
        x = filled((n, inputs)).T if in_rows else filled((inputs, n))
        out = filled((outputs, n))

        def once() -> None:
            for weight in weights:
                np.matmul(weight, x, out=out)

        return repeated(once)

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
            at = x.ctypes.data, x.strides[1], x.strides[0]

            def task(repeats: int, _: object = x) -> None:
                _blocks_of_few(*sparse, at, out, repeats)

            return task
        frames = room(n, inputs)
        frames[:] = 1.0
        return lambda repeats: _blocks_of_many(*sparse, inputs, frames, out, repeats)

    return Work(float(n * sparse[2].size), make)


def side_by_side(order: str) -> Family:
    """Frames f32 [inputs, frames] of that order put side by side by sixteens; units are floats, at their own size."""

    def family(size: int, numbers: Numbers) -> Work:
        n, inputs = numbers

        def make() -> Task:
            x, to = np.ones((inputs, n), np.float32, order=order), room(n, inputs)
            return repeated(lambda: by_sixteen(x, to))

        return Work(float(n * inputs), make)

    return family


def turned_scores(size: int, numbers: Numbers) -> Work:
    """Products [outputs, frames] written as rows of scores; units are floats, at their own size."""
    n, outputs = numbers

    def make() -> Task:
        logits, scores = filled((outputs, n)), filled((n, outputs))

        def once() -> None:
            scores[:] = logits.T

        return repeated(once)

    return Work(float(n * outputs), make)


def relu(size: int, numbers: Numbers) -> Work:
    """ReLU in place; units are values."""

    def make() -> Task:
        values = filled((HOT_BYTES // FLOAT,))
        return lambda repeats: _rectified(values, repeats)

    return Work(float(HOT_BYTES // FLOAT), make)


def windows(size: int, numbers: Numbers) -> Work:
    """Windows of so many inputs over rows of features copied beside each other; units are floats, at 64 frames."""
    inputs, features = numbers
    n, before = 64, inputs // features - 1

    def make() -> Task:
        splicer, padded = Splicer(_card(features, before), n), filled((n + before, features))
        to = filled((n, inputs + 1))

        def once() -> None:
            to[:, :-1] = splicer.windows(padded)

        return repeated(once)

    return Work(float(n * inputs), make)


def splice_call(size: int, numbers: Numbers) -> Work:
    """The input of one frame of one feature, after reading so many KiB."""
    (passed,) = numbers

    def make() -> Task:
        splicer, padded, meter = Splicer(_card(1, 0), 1), filled((1, 1)), Meter()
        return after_reading(passed, lambda: splicer.splice(padded, meter))

    return Work(1.0, make)


class _Nothing(Product):
    """A product of one weight that is not computed: what is left is Python's."""

    into_rows: ClassVar[bool] = True

    def _product(self, x: Array, out: Array) -> None:
        """Nothing."""

    def cost(self, frame: float, times: float) -> Cost:
        """Nothing."""
        return Cost()

    def terms(self, call: Call) -> tuple[Term, ...]:
        """None."""
        return ()


def layer_call(name: str) -> Family:
    """A layer of one output and one weight by so many frames, after reading so many KiB; "": without its product."""

    def family(size: int, numbers: Numbers) -> Work:
        n, passed = numbers

        def make() -> Task:
            weight, meter = filled((1, 2)), Meter()
            layer = products.create(name, weight, 1, n) if name else _Nothing(weight, 1, n)
            x, values = filled((2, n)), filled((2 * n,))

            def once() -> None:
                apply(layer, True, x, values)
                meter.done("", n)

            return after_reading(passed, once)

        return Work(1.0, make)

    return family


def heads_call(size: int, numbers: Numbers) -> Work:
    """One senone by so many heads, each for as many frames and without its product, after reading so many KiB."""
    heads, frames, passed = numbers

    def make() -> Task:
        card = _card(1, 0, heads)
        tensors = {name: filled(shape) for name, shape in card.shapes.items()}
        n = heads * frames
        net, scores, meter = DenseNet(Net("", card, tensors), 1, n), filled((n, 1)), Meter()
        net._heads = [_Nothing(filled((1, 2)), 1, n) for _ in range(heads)]
        net.begin_some(filled((frames, 2)), meter)
        source, since = np.arange(n) // heads, np.arange(n) % heads
        return after_reading(passed, lambda: net.score_by_heads(source, since, scores, meter))

    return Work(1.0, make)


def rows_call(size: int, numbers: Numbers) -> Work:
    """The active output of a frame that has one, after reading so many KiB."""
    weight_bytes, passed = numbers

    def make() -> Task:
        asked, scores, meter = np.zeros(1, np.int64), filled((1, 1)), Meter()
        of_bytes = ByteRows(np.ones((1, 1), np.int8), filled((1,)), filled((1,)))
        of_floats, scales = FloatRows(filled((1, 2))), filled((1,))
        floats, small = rows.room(1, 1), rows.room(1, 1, np.int8)

        def once() -> None:
            if weight_bytes == 1:
                of_bytes.score(small, scales, 0, 1, asked, scores)
            else:
                of_floats.score(floats, 0, 1, asked, scores)
            meter.done("", 1, 1)

        return after_reading(passed, once)

    return Work(1.0, make)


def chosen_rows(size: int, numbers: Numbers) -> Work:
    """A third of all rows, in order, for so many frames: about what speech asks for; units are rows."""
    weight_bytes, frames, width = numbers
    count = max(rows.ROWS, (size or HOT_BYTES) // (width * weight_bytes))
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


def reading(size: int, numbers: Numbers) -> Work:
    """Reading so many KiB, and nothing else."""
    (passed,) = numbers
    return Work(1.0, lambda: after_reading(passed, lambda: None))


def after_reading(passed: int, once: Callable[[], object]) -> Task:
    """`once` as often as asked, each time after `passed` KiB were read."""
    memory = filled((passed << 8,))

    def task(repeats: int) -> None:
        for _ in range(repeats):
            _read(memory)
            once()

    return task


def _card(features: int, before: int, heads: int = 1) -> Card:
    """A net of no layers and one senone, with so many frames of context."""
    ones = [1.0] * features
    return Card(FORMAT, before, 0, ones, ones, 1, [], heads)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        simd.KERNEL: panels,
        simd.CALL: layer_call("simd"),
        blas.KERNEL: library,
        blas.CALL: layer_call(""),
        scalar.KERNEL: one_by_one,
        scalar.CALL: layer_call("scalar"),
        csr.KERNEL: sparse_rows,
        f"{csr.KERNEL} layer": layer_call("csr"),
        blocks.KERNEL: sparse_blocks,
        f"{blocks.KERNEL} layer": layer_call("blocks"),
        terms.MOVED: side_by_side("C"),
        terms.TURNED: side_by_side("F"),
        terms.SCORES: turned_scores,
        terms.RELU: relu,
        terms.WINDOWS: windows,
        terms.SPLICE: splice_call,
        terms.HEADS: heads_call,
        terms.ROWS: chosen_rows,
        terms.ROWS_CALL: rows_call,
        terms.READ: reading,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
