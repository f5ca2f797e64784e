"""Dot products of chosen rows, four rows at once: rows of a net's output layer, mixtures of chosen senones.

Chosen rows lie where no hardware prefetcher expects them, so those that come next are prefetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.byte_products import BYTE_PRODUCTS, PAIR_PRODUCTS, Bytes
from pipelines.scoring.simd.instructions import (
    F32,
    I32,
    I64,
    at,
    constant,
    fma,
    load,
    prefetch,
    shuffle,
    sum_from,
    sum_of_each,
    word,
)
from pipelines.scoring.simd.vector import VECTOR_BYTES, instruction

ROWS = 4
"""Rows at once: they share each load of what they are multiplied with, and hide each other's latency."""
LATER = 8
"""Rows from those computed to those prefetched: at 256 inputs 8 KiB of floats."""

_FOUR = ir.VectorType(F32, ROWS)
_FOUR_INTS = ir.VectorType(I32, ROWS)


class _Floats:
    """Sixteen products of weights and activations, added to as many sums."""

    zero = constant(0.0)
    scaled = False

    def load(self, builder: Any, address: Any) -> Any:
        return load(builder, address)

    def multiply(self, builder: Any, weights: Any, x: Any, total: Any) -> Any:
        return fma(builder, weights, x, total)

    def add(self, builder: Any, x: Any, y: Any) -> Any:
        return builder.fadd(x, y)


def make_float_rows(frames: int) -> Callable[..., None]:
    """Scores of four rows at `frames` frames.

    Called as tile(places, weights, row_bytes, x, out, affine): `places` is the address of the numbers int64 of rows, of
    which the first four are computed and the four from `LATER` on prefetched; rows are whole vectors. `x` and `out`:
    address of a frame or of its scores, and the bytes to the next. `affine`: the addresses of f32 [rows], a bias each,
    and of two arrays that are not read.
    """
    return _make_rows(_Floats(), frames)


def make_byte_rows(
    frames: int, one_instruction: bool = BYTE_PRODUCTS, pairs: bool = PAIR_PRODUCTS
) -> Callable[..., None]:
    """The same of 8-bit integers, as `Bytes` multiplies them.

    `affine` ends in the addresses of f32 [rows], a scale each, and of f32 [frames, 2], scale and, as an integer, 128
    times the sum of the activations.
    """
    return _make_rows(Bytes(one_instruction, pairs), frames)


def _make_rows(kind: Any, frames: int) -> Callable[..., None]:
    """As `make_float_rows`, with the arithmetic of `kind`."""

    rows, three = types.UniTuple(types.intp, 2), types.UniTuple(types.intp, 3)

    @instruction(types.void, *[types.intp] * 3, rows, rows, three)
    def tile(builder: Any, places: Any, weights: Any, row_bytes: Any, x: Any, out: Any, affine: Any) -> None:
        (x, x_stride), (out, out_stride), (bias, scales, frame) = (
            cgutils.unpack_tuple(builder, group) for group in (x, out, affine)
        )

        def number(i: int) -> Any:
            return builder.load(at(builder, builder.add(places, word(8 * i)), I64))

        numbers = [number(r) for r in range(ROWS)]
        rows = [builder.add(weights, builder.mul(row_bytes, n)) for n in numbers]
        later = [builder.add(weights, builder.mul(row_bytes, number(LATER + r))) for r in range(ROWS)]
        xs = [builder.add(x, builder.mul(x_stride, word(f))) for f in range(frames)]
        slots = {}
        for cell in [(f, r) for f in range(frames) for r in range(ROWS)]:
            slots[cell] = sum_from(builder, kind.zero)
        with cgutils.for_range(builder, builder.udiv(row_bytes, word(VECTOR_BYTES))) as loop:
            offset = builder.mul(loop.index, word(VECTOR_BYTES))
            values = [kind.load(builder, builder.add(base, offset)) for base in xs]
            for r in range(ROWS):
                prefetch(builder, builder.add(later[r], offset))
                row = kind.load(builder, builder.add(rows[r], offset))
                for f, value in enumerate(values):
                    slot = slots[f, r]
                    builder.store(kind.multiply(builder, row, value, builder.load(slot)), slot)

        def of_rows(table: Any) -> Any:
            found = ir.Constant(_FOUR, ir.Undefined)
            for r, n in enumerate(numbers):
                place = builder.add(table, builder.mul(n, word(4)))
                value = builder.load(at(builder, place, F32))
                found = builder.insert_element(found, value, ir.Constant(I32, r))
            return found

        def spread(place: Any) -> Any:
            value = builder.load(at(builder, place, F32))
            one = builder.insert_element(ir.Constant(_FOUR, ir.Undefined), value, ir.Constant(I32, 0))
            return shuffle(builder, one, one, [0] * ROWS)

        biases = of_rows(bias)
        row_scales = of_rows(scales) if kind.scaled else None
        for f in range(frames):
            sums = sum_of_each(builder, kind.add, [builder.load(slots[f, r]) for r in range(ROWS)])
            if kind.scaled:
                scale, excess = (spread(builder.add(frame, word(8 * f + 4 * i))) for i in (0, 1))
                sums = builder.sub(sums, builder.bitcast(excess, _FOUR_INTS))
                factor = builder.fmul(scale, row_scales)
                sums = builder.fmul(builder.sitofp(sums, _FOUR), factor)
            scores = builder.fadd(sums, biases)
            base = builder.add(out, builder.mul(out_stride, word(f)))
            for r, n in enumerate(numbers):
                value = builder.extract_element(scores, ir.Constant(I32, r))
                place = builder.add(base, builder.mul(n, word(4)))
                builder.store(value, at(builder, place, F32))

    return tile


def make_stream_products(streams: int) -> Callable[..., None]:
    """Products over the streams of dot products, for four rows of weights at once.

    Called as products(factors, groups, rows, out). `factors`: the address of streams · 16 · groups floats; `rows`: that
    of the addresses of four rows of as many floats, and of four more that will be wanted next; `out`: that of four
    floats.
    """

    @instruction(types.void, *[types.intp] * 4)
    def products(builder: Any, factors: Any, groups: Any, rows: Any, out: Any) -> None:
        addresses = [builder.load(at(builder, builder.add(rows, word(8 * i)), I64)) for i in range(2 * ROWS)]
        bases, following = addresses[:ROWS], addresses[ROWS:]
        result = None
        for s in range(streams):
            sums = [sum_from(builder, constant(0.0)) for _ in range(ROWS)]
            skipped = builder.mul(groups, word(s * VECTOR_BYTES))
            with cgutils.for_range(builder, groups) as loop:
                offset = builder.add(skipped, builder.mul(loop.index, word(VECTOR_BYTES)))
                factor = load(builder, builder.add(factors, offset))
                for base, after, slot in zip(bases, following, sums, strict=True):
                    prefetch(builder, builder.add(after, offset))
                    weights = load(builder, builder.add(base, offset))
                    builder.store(fma(builder, factor, weights, builder.load(slot)), slot)
            total = sum_of_each(builder, lambda to, x, y: to.fadd(x, y), [builder.load(slot) for slot in sums])
            result = total if result is None else builder.fmul(result, total)
        builder.store(result, at(builder, out, _FOUR)).align = 4

    return products
