"""Matrix tiles kept in registers: products of packed matrices, weighted sums of chosen rows, layers of a net.

Of sparse matrices rows of single weights, and panels of blocks of 16 outputs by one input: a number of 16 bits per
weight or block says to which input it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.instructions import (
    I16,
    I32,
    I64,
    SECOND_LEVEL,
    at,
    broadcast,
    constant,
    fma,
    load,
    prefetch,
    step,
    store,
    sum_from,
    summed_in_turn,
    word,
)
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, instruction


def make_tile(rows: int, panels: int) -> Callable[..., None]:
    """A matrix tile: C[rows, 16·panels] = A[rows, k] · B[k, 16·panels], kept in registers.

    Called as tile(a, b, k, c, multiply, later), each matrix as its address and the bytes from a row of A or C or from a
    panel of B to the next; a panel of B is k contiguous vectors of 16; `multiply` multiplies what C holds by the result
    instead of replacing it. Meanwhile as much as B is prefetched from the address `later` on, which need
    not be mapped, in panels as far apart; nothing where it is 0.
    """

    matrix = types.UniTuple(types.intp, 2)

    @instruction(types.void, matrix, matrix, types.intp, matrix, types.boolean, types.intp)
    def tile(builder: Any, a: Any, b: Any, k: Any, c: Any, multiply: Any, later: Any) -> None:
        (a, a_stride), (b, panel_stride), (c, c_stride) = (
            cgutils.unpack_tuple(builder, matrix) for matrix in (a, b, c)
        )
        cells = [(r, p) for r in range(rows) for p in range(panels)]
        sums = {cell: sum_from(builder, constant(0.0)) for cell in cells}
        a_rows = [builder.add(a, builder.mul(a_stride, word(r))) for r in range(rows)]
        apart = [builder.mul(panel_stride, word(p)) for p in range(panels)]
        b_panels = [builder.add(b, offset) for offset in apart]

        def add_up(following: list[Any]) -> None:
            with cgutils.for_range(builder, k) as loop:
                offset = builder.mul(loop.index, word(4))
                weights = [load(builder, step(builder, base, loop.index)) for base in b_panels]
                for base in following:
                    prefetch(builder, step(builder, base, loop.index), SECOND_LEVEL)
                for r in range(rows):
                    factor = broadcast(builder, builder.add(a_rows[r], offset))
                    for p in range(panels):
                        slot = sums[r, p]
                        total = fma(builder, factor, weights[p], builder.load(slot))
                        builder.store(total, slot)

        with builder.if_else(builder.icmp_unsigned("!=", later, word(0))) as (yes, no):
            with yes:
                add_up([builder.add(later, offset) for offset in apart])
            with no:
                add_up([])
        _finish(builder, multiply, [(_cell(builder, c, c_stride, *x), sums[x]) for x in cells])

    return tile


def _cell(builder: Any, c: Any, c_stride: Any, row: int, panel: int) -> Any:
    base = builder.add(c, builder.mul(c_stride, word(row)))
    return builder.add(base, word(VECTOR_BYTES * panel))


def _finish(builder: Any, multiply: Any, cells: list[tuple[Any, Any]]) -> None:
    with builder.if_else(builder.icmp_unsigned("!=", multiply, multiply.type(0))) as (yes, no):
        with yes:
            for address, slot in cells:
                product = builder.fmul(load(builder, address), builder.load(slot))
                store(builder, product, address)
        with no:
            for address, slot in cells:
                store(builder, builder.load(slot), address)


def make_rows(panels: int) -> Callable[..., None]:
    """A weighted sum of chosen rows: C[16·panels] = Σ factor[i] · B[index[i], 16·panels].

    Called as rows(factors, indices, count, b, b_stride, c, multiply) with float32 factors, int32
    indices and rows of B `b_stride` apart.
    """

    @instruction(types.void, *[types.intp] * 6, types.boolean)
    def rows(
        builder: Any, factors: Any, indices: Any, count: Any, b: Any, b_stride: Any, c: Any, multiply: Any
    ) -> None:
        sums = [sum_from(builder, constant(0.0)) for _ in range(panels)]
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, word(4))
            index = builder.load(at(builder, builder.add(indices, offset), I32))
            row = builder.add(b, builder.mul(b_stride, builder.sext(index, I64)))
            spread = broadcast(builder, builder.add(factors, offset))
            for p, slot in enumerate(sums):
                weights = load(builder, builder.add(row, word(VECTOR_BYTES * p)))
                builder.store(fma(builder, spread, weights, builder.load(slot)), slot)
        _finish(builder, multiply, [(_cell(builder, c, word(0), 0, p), slot) for p, slot in enumerate(sums)])

    return rows


@instruction(types.void, types.intp, types.intp)
def prefetch_lines(builder: Any, address: Any, lines: Any) -> None:
    """Prefetch `lines` cache lines from `address` on; it need not be mapped."""
    with cgutils.for_range(builder, lines) as loop:
        prefetch(builder, step(builder, address, loop.index), SECOND_LEVEL)


def make_layer_tile(frames: int, vectors: int, prefetching: bool = False, chains: int = 1) -> Callable[..., None]:
    """A tile of a layer: out[frames, P] = x[frames, inputs] · panel f32 [inputs, P], P = 16 · `vectors` outputs.

    Called as tile(x, x_frame, x_input, panel, inputs, later, out) with addresses; `x_frame` and `x_input`: bytes from a
    frame of x to the next, and from an input to the next. With `prefetching`, as many cache lines as there are
    inputs are prefetched from `later` on. `chains`: sums of an output to which inputs are added in turn, and which are
    added up at the end: an addition waits for the one before it to the same sum.
    """

    @instruction(types.void, *[types.intp] * 7)
    def tile(builder: Any, x: Any, x_frame: Any, x_input: Any, panel: Any, inputs: Any, later: Any, out: Any) -> None:
        cells = [(f, v) for f in range(frames) for v in range(vectors)]
        sums = [{cell: sum_from(builder, constant(0.0)) for cell in cells} for _ in range(chains)]
        rows = [builder.add(x, builder.mul(x_frame, word(f))) for f in range(frames)]

        def add(index: Any, to: dict[tuple[int, int], Any]) -> None:
            begin = builder.add(panel, builder.mul(index, word(vectors * VECTOR_BYTES)))
            weights = [load(builder, builder.add(begin, word(v * VECTOR_BYTES))) for v in range(vectors)]
            if prefetching:
                line = builder.mul(index, word(VECTOR_BYTES))
                prefetch(builder, builder.add(later, line))
            offset = builder.mul(index, x_input)
            for f, row in enumerate(rows):
                factor = broadcast(builder, builder.add(row, offset))
                for v in range(vectors):
                    slot = to[f, v]
                    total = fma(builder, factor, weights[v], builder.load(slot))
                    builder.store(total, slot)

        turns = builder.sdiv(inputs, word(chains))
        with cgutils.for_range(builder, turns) as loop:
            index = builder.mul(loop.index, word(chains))
            for chain, to in enumerate(sums):
                add(builder.add(index, word(chain)), to)
        done = builder.mul(turns, word(chains))
        with cgutils.for_range(builder, builder.sub(inputs, done)) as loop:
            add(builder.add(done, loop.index), sums[0])
        for (f, v), slot in sums[0].items():
            total = builder.load(slot)
            for more in sums[1:]:
                total = builder.fadd(total, builder.load(more[f, v]))
            where = builder.add(out, word((f * vectors + v) * VECTOR_BYTES))
            store(builder, total, where)

    return tile


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
