"""Dot products of chosen rows, four rows at once: rows of a net's output layer, mixtures of chosen senones.

Chosen rows lie where no hardware prefetcher expects them, so those that come next are prefetched.
"""

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
from pipelines.scoring.simd.byte_products import Bytes
from pipelines.scoring.simd.vector import VECTOR_BYTES, instruction_of

ROWS = 4  # Rows at once: they share each load of what they are multiplied with, and hide each other's latency
LATER = 8  # Rows from those computed to those prefetched: at 256 inputs 8 KiB of floats

_FOUR = ir.VectorType(llvm.F32, ROWS)
_FOUR_INTS = ir.VectorType(llvm.I32, ROWS)


class Floats:
    """Sixteen products of weights and activations, added to as many sums."""

    zero, scaled = llvm.constant(0.0), False
    load, multiply = staticmethod(llvm.load), staticmethod(llvm.fma)

    @staticmethod
    def add(builder: Any, x: Any, y: Any) -> Any:
        return builder.fadd(x, y)


def make_chosen_rows(kind: Floats | Bytes, numbers: Iterable[int]) -> Callable[..., None]:
    """Scores of four rows at one of these `numbers` of frames, in the arithmetic of `kind`.

    Called as tile(frames, places, weights, row_bytes, x, out, affine): `places` is the address of the numbers int64 of
    rows, of which the first four are computed and the four from `LATER` on prefetched; rows are whole vectors. `x` and
    `out`: address of a frame or of its scores, and the bytes to the next. `affine`: the addresses of f32 [rows], a bias
    each; and for integers of f32 [rows], a scale each, and of f32 [frames, 2], scale and, as an integer, 128 times the
    sum of the activations.
    """
    two, three = types.UniTuple(types.intp, 2), types.UniTuple(types.intp, 3)

    @instruction_of(numbers, *[types.intp] * 3, two, two, three)
    def tile(
        builder: Any, frames: int, places: Any, weights: Any, row_bytes: Any, x: Any, out: Any, affine: Any
    ) -> None:
        (x, x_stride), (out, out_stride), (bias, scales, frame) = (
            cgutils.unpack_tuple(builder, group) for group in (x, out, affine)
        )

        def number(i: int) -> Any:
            return llvm.load(builder, builder.add(places, llvm.word(8 * i)), llvm.I64, 8)

        numbers = [number(r) for r in range(ROWS)]
        rows = [builder.add(weights, builder.mul(row_bytes, n)) for n in numbers]
        later = [builder.add(weights, builder.mul(row_bytes, number(LATER + r))) for r in range(ROWS)]
        xs = [builder.add(x, builder.mul(x_stride, llvm.word(f))) for f in range(frames)]
        slots = {(f, r): llvm.slot_with(builder, kind.zero) for f in range(frames) for r in range(ROWS)}
        with cgutils.for_range(builder, builder.udiv(row_bytes, llvm.word(VECTOR_BYTES))) as loop:
            offset = builder.mul(loop.index, llvm.word(VECTOR_BYTES))
            values = [kind.load(builder, builder.add(base, offset)) for base in xs]
            for r in range(ROWS):
                llvm.prefetch(builder, builder.add(later[r], offset))
                row = kind.load(builder, builder.add(rows[r], offset))
                for f, value in enumerate(values):
                    slot = slots[f, r]
                    builder.store(kind.multiply(builder, row, value, builder.load(slot)), slot)

        def of_rows(table: Any) -> Any:
            found = ir.Constant(_FOUR, ir.Undefined)
            for r, n in enumerate(numbers):
                value = llvm.load(builder, builder.add(table, builder.mul(n, llvm.word(4))), llvm.F32)
                found = builder.insert_element(found, value, ir.Constant(llvm.I32, r))
            return found

        biases = of_rows(bias)
        row_scales = of_rows(scales) if kind.scaled else None
        for f in range(frames):
            sums = llvm.sum_of_each(builder, kind.add, [builder.load(slots[f, r]) for r in range(ROWS)])
            if kind.scaled:
                places_of_frame = (builder.add(frame, llvm.word(8 * f + 4 * i)) for i in (0, 1))
                scale, excess = (llvm.splat(builder, llvm.load(builder, p, llvm.F32), ROWS) for p in places_of_frame)
                sums = builder.sub(sums, builder.bitcast(excess, _FOUR_INTS))
                sums = builder.fmul(builder.sitofp(sums, _FOUR), builder.fmul(scale, row_scales))
            scores = builder.fadd(sums, biases)
            base = builder.add(out, builder.mul(out_stride, llvm.word(f)))
            for r, n in enumerate(numbers):
                value = builder.extract_element(scores, ir.Constant(llvm.I32, r))
                llvm.store(builder, value, builder.add(base, builder.mul(n, llvm.word(4))))

    return tile


def make_stream_products(most: int) -> Callable[..., None]:
    """Products over at most `most` streams of dot products, for four rows of weights at once.

    Called as products(streams, factors, groups, rows, out). `factors`: the address of streams · 16 · groups floats;
    `rows`: that of the addresses of four rows of as many floats, and of four more that will be wanted next; `out`: that
    of four floats.
    """

    @instruction_of(range(1, most + 1), *[types.intp] * 4)
    def products(builder: Any, streams: int, factors: Any, groups: Any, rows: Any, out: Any) -> None:
        addresses = [llvm.load(builder, builder.add(rows, llvm.word(8 * i)), llvm.I64, 8) for i in range(2 * ROWS)]
        bases, following = addresses[:ROWS], addresses[ROWS:]
        result = None
        for s in range(streams):
            sums = [llvm.slot_with(builder, llvm.constant(0.0)) for _ in range(ROWS)]
            skipped = builder.mul(groups, llvm.word(s * VECTOR_BYTES))
            with cgutils.for_range(builder, groups) as loop:
                offset = builder.add(skipped, builder.mul(loop.index, llvm.word(VECTOR_BYTES)))
                factor = llvm.load(builder, builder.add(factors, offset))
                for base, after, slot in zip(bases, following, sums, strict=True):
                    llvm.prefetch(builder, builder.add(after, offset))
                    weights = llvm.load(builder, builder.add(base, offset))
                    llvm.add_product(builder, factor, weights, slot)
            total = llvm.sum_of_each(builder, lambda to, x, y: to.fadd(x, y), [builder.load(slot) for slot in sums])
            result = total if result is None else builder.fmul(result, total)
        llvm.store(builder, result, out)

    return products
