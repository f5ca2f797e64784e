"""Matrix tiles kept in registers: products of packed matrices, weighted sums of chosen rows, layers of a net.

Of sparse matrices rows of single weights, and panels of blocks of 16 outputs by one input: a number of 16 bits per
weight or block says to which input it belongs.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, instruction, instruction_of


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
        sums = {cell: llvm.slot_with(builder, llvm.constant(0.0)) for cell in cells}
        a_rows = [builder.add(a, builder.mul(a_stride, llvm.word(r))) for r in range(rows)]
        apart = [builder.mul(panel_stride, llvm.word(p)) for p in range(panels)]
        b_panels = [builder.add(b, offset) for offset in apart]

        def add_up(following: list[Any]) -> None:
            with cgutils.for_range(builder, k) as loop:
                offset = builder.mul(loop.index, llvm.word(4))
                weights = [llvm.load(builder, llvm.step(builder, base, loop.index)) for base in b_panels]
                for base in following:
                    llvm.prefetch(builder, llvm.step(builder, base, loop.index), llvm.SECOND_LEVEL)
                for r in range(rows):
                    factor = llvm.broadcast(builder, builder.add(a_rows[r], offset))
                    for p in range(panels):
                        llvm.add_product(builder, factor, weights[p], sums[r, p])

        with builder.if_else(builder.icmp_unsigned("!=", later, llvm.word(0))) as (yes, no):
            with yes:
                add_up([builder.add(later, offset) for offset in apart])
            with no:
                add_up([])
        c_rows = [builder.add(c, builder.mul(c_stride, llvm.word(r))) for r in range(rows)]
        places = ((builder.add(c_rows[r], llvm.word(VECTOR_BYTES * p)), sums[r, p]) for r, p in cells)
        _finish(builder, multiply, places)

    return tile


def _finish(builder: Any, multiply: Any, places: Iterable[tuple[Any, Any]]) -> None:
    """Store each sum at its address, or if `multiply` the product of it and what is there."""
    cells = list(places)
    with builder.if_else(builder.icmp_unsigned("!=", multiply, multiply.type(0))) as (yes, no):
        with yes:
            for address, slot in cells:
                llvm.store(builder, builder.fmul(llvm.load(builder, address), builder.load(slot)), address)
        with no:
            for address, slot in cells:
                llvm.store(builder, builder.load(slot), address)


def make_rows(panels: int) -> Callable[..., None]:
    """A weighted sum of chosen rows: C[16·panels] = Σ factor[i] · B[index[i], 16·panels].

    Called as rows(factors, indices, count, b, b_stride, c, multiply) with float32 factors, int32
    indices and rows of B `b_stride` apart.
    """

    @instruction(types.void, *[types.intp] * 6, types.boolean)
    def rows(builder: Any, factors: Any, indices: Any, count: Any, b: Any, stride: Any, c: Any, multiply: Any) -> None:
        sums = [llvm.slot_with(builder, llvm.constant(0.0)) for _ in range(panels)]
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, llvm.word(4))
            index = llvm.load(builder, builder.add(indices, offset), llvm.I32)
            row = builder.add(b, builder.mul(stride, builder.sext(index, llvm.I64)))
            spread = llvm.broadcast(builder, builder.add(factors, offset))
            for p, slot in enumerate(sums):
                weights = llvm.load(builder, builder.add(row, llvm.word(VECTOR_BYTES * p)))
                llvm.add_product(builder, spread, weights, slot)
        cells = [builder.add(c, llvm.word(VECTOR_BYTES * p)) for p in range(panels)]
        _finish(builder, multiply, zip(cells, sums, strict=True))

    return rows


@instruction(types.void, types.intp, types.intp)
def prefetch_lines(builder: Any, address: Any, lines: Any) -> None:
    """Prefetch `lines` cache lines from `address` on; it need not be mapped."""
    with cgutils.for_range(builder, lines) as loop:
        llvm.prefetch(builder, llvm.step(builder, address, loop.index), llvm.SECOND_LEVEL)


def make_layer_tile(
    numbers: Iterable[int], vectors: int, prefetching: bool = False, chains: Mapping[int, int] = MappingProxyType({})
) -> Callable[..., None]:
    """A tile of a layer: out[frames, P] = x[frames, inputs] · panel f32 [inputs, P], P = 16 · `vectors` outputs.

    Called as tile(frames, x, x_frame, x_input, panel, inputs, later, out) with addresses; `x_frame` and `x_input`:
    bytes from a frame of x to the next, and from an input to the next. `numbers`: of frames that there may be. With
    `prefetching`, as many cache lines as there are inputs are prefetched from `later` on. `chains`: sums of an output
    to which inputs are added in turn, by the number of frames; one if it is not among them.
    """

    @instruction_of(numbers, *[types.intp] * 7)
    def tile(
        builder: Any, frames: int, x: Any, x_frame: Any, x_input: Any, panel: Any, inputs: Any, later: Any, out: Any
    ) -> None:
        rows = [builder.add(x, builder.mul(x_frame, llvm.word(f))) for f in range(frames)]

        def add(index: Any, slots: list[Any]) -> None:
            begin = builder.add(panel, builder.mul(index, llvm.word(vectors * VECTOR_BYTES)))
            weights = [llvm.load(builder, builder.add(begin, llvm.word(v * VECTOR_BYTES))) for v in range(vectors)]
            if prefetching:
                llvm.prefetch(builder, llvm.step(builder, later, index))
            offset = builder.mul(index, x_input)
            for f, row in enumerate(rows):
                factor = llvm.broadcast(builder, builder.add(row, offset))
                for v in range(vectors):
                    llvm.add_product(builder, factor, weights[v], slots[f * vectors + v])

        totals = llvm.summed_in_turn(builder, inputs, chains.get(frames, 1), frames * vectors, add)
        for i, total in enumerate(totals):
            llvm.store(builder, total, builder.add(out, llvm.word(i * VECTOR_BYTES)))

    return tile


SUMS = 4  # Independent sums of a row or a panel, so that a multiplier need not wait for its own result


def make_sparse_row(vectors: int) -> Callable[..., None]:
    """row(values, columns, count, x, x_next, out): out[16·vectors] = Σ values[i] · x[columns[i], 16·vectors].

    Addresses: `values` f32, `columns` uint16; sixteen frames of x are [inputs, 16], the next sixteen `x_next` bytes
    further on.
    """
    sums = max(1, SUMS // vectors)

    @instruction(types.void, *[types.intp] * 6)
    def row(builder: Any, values: Any, columns: Any, count: Any, x: Any, x_next: Any, out: Any) -> None:
        bases = [builder.add(x, builder.mul(x_next, llvm.word(v))) for v in range(vectors)]

        def add(index: Any, slots: list[Any]) -> None:
            offset = builder.mul(_column(builder, columns, index), llvm.word(VECTOR_BYTES))
            factor = llvm.broadcast(builder, builder.add(values, builder.mul(index, llvm.word(4))))
            for base, slot in zip(bases, slots, strict=True):
                llvm.add_product(builder, factor, llvm.load(builder, builder.add(base, offset)), slot)

        for v, total in enumerate(llvm.summed_in_turn(builder, count, sums, vectors, add)):
            llvm.store(builder, total, builder.add(out, llvm.word(v * VECTOR_BYTES)))

    return row


def _column(builder: Any, columns: Any, index: Any) -> Any:
    """Number `index` of `columns` uint16, as a word."""
    place = builder.add(columns, builder.mul(index, llvm.word(2)))
    return builder.zext(llvm.load(builder, place, llvm.I16, 2), llvm.I64)


def make_block_tile(numbers: Iterable[int], outputs_in_lanes: bool) -> Callable[..., None]:
    """tile(frames, blocks, columns, count, x, out): one panel of 16 outputs.

    `numbers`: of frames that there may be. `blocks` f32 [count, 16], `columns` uint16 [count]; `x` its address and the
    bytes from a frame to the next and from an input to the next; `out` its address and the bytes from a vector to the
    next. With the outputs in the lanes these are `frames` vectors of 16 outputs; else frames is 16, the bytes to the
    next are 4, and they are 16 vectors, each an output.
    """

    @instruction_of(numbers, *[types.intp] * 3, types.UniTuple(types.intp, 3), types.UniTuple(types.intp, 2))
    def tile(builder: Any, frames: int, blocks: Any, columns: Any, count: Any, x: Any, out: Any) -> None:
        x, x_frame, x_input = cgutils.unpack_tuple(builder, x)
        out, out_step = cgutils.unpack_tuple(builder, out)
        rows = [builder.add(x, builder.mul(x_frame, llvm.word(f))) for f in range(frames)]

        def add(index: Any, slots: list[Any]) -> None:
            offset = builder.mul(_column(builder, columns, index), x_input)
            block = builder.add(blocks, builder.mul(index, llvm.word(VECTOR_BYTES)))
            if outputs_in_lanes:
                common = llvm.load(builder, block)
                factors = [llvm.broadcast(builder, builder.add(row, offset)) for row in rows]
            else:
                common = llvm.load(builder, builder.add(x, offset))
                factors = [llvm.broadcast(builder, builder.add(block, llvm.word(4 * i))) for i in range(LANES)]
            for factor, slot in zip(factors, slots, strict=True):
                llvm.add_product(builder, factor, common, slot)

        for i, total in enumerate(llvm.summed_in_turn(builder, count, max(1, SUMS // frames), frames, add)):
            llvm.store(builder, total, builder.add(out, builder.mul(out_step, llvm.word(i))))

    return tile
