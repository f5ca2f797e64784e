"""Products of sparse matrices: rows of single weights, and panels of blocks of 16 outputs by one input.

Beside each weight or block a number of 16 bits says to which input it belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.instructions import (
    F32,
    F32X16,
    I16,
    I64,
    at,
    constant,
    fma,
    load,
    splat,
    store,
    word,
)
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, intrinsic

SUMS = 4
"""Independent sums of a row or a panel, so that a multiplier need not wait for its own result."""


def make_sparse_row(vectors: int) -> Callable[..., None]:
    """row(values, columns, count, x, x_next, out): out[16·vectors] = Σ values[i] · x[columns[i], 16·vectors].

    Addresses: `values` f32, `columns` uint16; sixteen frames of x are [inputs, 16], the next sixteen `x_next` bytes
    further on.
    """
    sums = max(1, SUMS // vectors)

    @intrinsic
    def row(
        typing_context: Any, values: Any, columns: Any, count: Any, x: Any, x_next: Any, out: Any
    ) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            values, columns, count, x, x_next, out = arguments
            bases = [builder.add(x, builder.mul(x_next, word(v))) for v in range(vectors)]
            slots = [
                [cgutils.alloca_once(builder, F32X16) for _ in range(vectors)] for _ in range(sums)
            ]
            for slot in [one for some in slots for one in some]:
                builder.store(constant(0.0), slot)

            def add(index: Any, which: int) -> None:
                place = builder.add(columns, builder.mul(index, word(2)))
                column = builder.zext(builder.load(at(builder, place, I16)), I64)
                offset = builder.mul(column, word(VECTOR_BYTES))
                place = builder.add(values, builder.mul(index, word(4)))
                factor = splat(builder, builder.load(at(builder, place, F32)))
                for base, slot in zip(bases, slots[which], strict=True):
                    frames = load(builder, builder.add(base, offset))
                    builder.store(fma(builder, factor, frames, builder.load(slot)), slot)

            whole = builder.udiv(count, word(sums))
            with cgutils.for_range(builder, whole) as loop:
                begin = builder.mul(loop.index, word(sums))
                for i in range(sums):
                    add(builder.add(begin, word(i)), i)
            rest = builder.mul(whole, word(sums))
            with cgutils.for_range(builder, builder.sub(count, rest)) as loop:
                add(builder.add(rest, loop.index), 0)
            for v in range(vectors):
                total = builder.load(slots[0][v])
                for some in slots[1:]:
                    total = builder.fadd(total, builder.load(some[v]))
                store(builder, total, builder.add(out, word(v * VECTOR_BYTES)))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    made: Callable[..., None] = row
    return made


def make_block_tile(frames: int, outputs_in_lanes: bool) -> Callable[..., None]:
    """tile(blocks, columns, count, x, x_frame, x_input, out, out_step): one panel of 16 outputs.

    `blocks` f32 [count, 16], `columns` uint16 [count]; x_frame and x_input are bytes from a frame of x to the next
    and from an input to the next; out gets vectors `out_step` bytes apart. With the outputs in the lanes these are
    `frames` vectors of 16 outputs; else frames is 16, x_frame 4, and they are 16 vectors, each an output.
    """
    sums = max(1, SUMS // frames)

    @intrinsic
    def tile(
        typing_context: Any,
        blocks: Any,
        columns: Any,
        count: Any,
        x: Any,
        x_frame: Any,
        x_input: Any,
        out: Any,
        out_step: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            blocks, columns, count, x, x_frame, x_input, out, out_step = arguments
            slots = [
                [cgutils.alloca_once(builder, F32X16) for _ in range(frames)] for _ in range(sums)
            ]
            for slot in [one for some in slots for one in some]:
                builder.store(constant(0.0), slot)
            rows = [builder.add(x, builder.mul(x_frame, word(f))) for f in range(frames)]

            def spread(place: Any) -> Any:
                return splat(builder, builder.load(at(builder, place, F32)))

            def add(index: Any, which: int) -> None:
                place = builder.add(columns, builder.mul(index, word(2)))
                column = builder.zext(builder.load(at(builder, place, I16)), I64)
                offset = builder.mul(column, x_input)
                block = builder.add(blocks, builder.mul(index, word(VECTOR_BYTES)))
                if outputs_in_lanes:
                    common = load(builder, block)
                    factors = [spread(builder.add(row, offset)) for row in rows]
                else:
                    common = load(builder, builder.add(x, offset))
                    factors = [spread(builder.add(block, word(4 * i))) for i in range(LANES)]
                for factor, slot in zip(factors, slots[which], strict=True):
                    builder.store(fma(builder, factor, common, builder.load(slot)), slot)

            whole = builder.udiv(count, word(sums))
            with cgutils.for_range(builder, whole) as loop:
                begin = builder.mul(loop.index, word(sums))
                for i in range(sums):
                    add(builder.add(begin, word(i)), i)
            rest = builder.mul(whole, word(sums))
            with cgutils.for_range(builder, builder.sub(count, rest)) as loop:
                add(builder.add(rest, loop.index), 0)
            for i in range(frames):
                total = builder.load(slots[0][i])
                for some in slots[1:]:
                    total = builder.fadd(total, builder.load(some[i]))
                store(builder, total, builder.add(out, builder.mul(out_step, word(i))))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 8), generate

    made: Callable[..., None] = tile
    return made
