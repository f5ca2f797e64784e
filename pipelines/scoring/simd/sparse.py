"""Products of sparse matrices: rows of single weights, and panels of blocks of 16 outputs by one input.

A number of 16 bits per weight or block says to which input it belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.instructions import (
    I16,
    I64,
    at,
    broadcast,
    fma,
    load,
    store,
    summed_in_turn,
    word,
)
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, instruction

SUMS = 4
"""Independent sums of a row or a panel, so that a multiplier need not wait for its own result."""


def make_sparse_row(vectors: int) -> Callable[..., None]:
    """row(values, columns, count, x, x_next, out): out[16·vectors] = Σ values[i] · x[columns[i], 16·vectors].

    Addresses: `values` f32, `columns` uint16; sixteen frames of x are [inputs, 16], the next sixteen `x_next` bytes
    further on.
    """
    sums = max(1, SUMS // vectors)

    @instruction(types.void, *[types.intp] * 6)
    def row(builder: Any, values: Any, columns: Any, count: Any, x: Any, x_next: Any, out: Any) -> None:
        bases = [builder.add(x, builder.mul(x_next, word(v))) for v in range(vectors)]

        def add(index: Any, slots: list[Any]) -> None:
            offset = builder.mul(_column(builder, columns, index), word(VECTOR_BYTES))
            place = builder.add(values, builder.mul(index, word(4)))
            factor = broadcast(builder, place)
            for base, slot in zip(bases, slots, strict=True):
                frames = load(builder, builder.add(base, offset))
                builder.store(fma(builder, factor, frames, builder.load(slot)), slot)

        for v, total in enumerate(summed_in_turn(builder, count, sums, vectors, add)):
            store(builder, total, builder.add(out, word(v * VECTOR_BYTES)))

    return row


def _column(builder: Any, columns: Any, index: Any) -> Any:
    """Number `index` of `columns` uint16, as a word."""
    place = builder.add(columns, builder.mul(index, word(2)))
    return builder.zext(builder.load(at(builder, place, I16)), I64)


def make_block_tile(frames: int, outputs_in_lanes: bool) -> Callable[..., None]:
    """tile(blocks, columns, count, x, out): one panel of 16 outputs.

    `blocks` f32 [count, 16], `columns` uint16 [count]; `x` its address and the bytes from a frame to the next and from
    an input to the next; `out` its address and the bytes from a vector to the next. With the outputs in the lanes these
    are `frames` vectors of 16 outputs; else frames is 16, the bytes to the next are 4, and they are 16 vectors, each an
    output.
    """
    sums = max(1, SUMS // frames)

    words = types.UniTuple(types.intp, 3), types.UniTuple(types.intp, 2)

    @instruction(types.void, *[types.intp] * 3, *words)
    def tile(builder: Any, blocks: Any, columns: Any, count: Any, x: Any, out: Any) -> None:
        x, x_frame, x_input = cgutils.unpack_tuple(builder, x)
        out, out_step = cgutils.unpack_tuple(builder, out)
        rows = [builder.add(x, builder.mul(x_frame, word(f))) for f in range(frames)]

        def add(index: Any, slots: list[Any]) -> None:
            offset = builder.mul(_column(builder, columns, index), x_input)
            block = builder.add(blocks, builder.mul(index, word(VECTOR_BYTES)))
            if outputs_in_lanes:
                common = load(builder, block)
                factors = [broadcast(builder, builder.add(row, offset)) for row in rows]
            else:
                common = load(builder, builder.add(x, offset))
                factors = [broadcast(builder, builder.add(block, word(4 * i))) for i in range(LANES)]
            for factor, slot in zip(factors, slots, strict=True):
                builder.store(fma(builder, factor, common, builder.load(slot)), slot)

        for i, total in enumerate(summed_in_turn(builder, count, sums, frames, add)):
            store(builder, total, builder.add(out, builder.mul(out_step, word(i))))

    return tile
