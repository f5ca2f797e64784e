"""The largest of many floats, the best of each lane, and which floats reach a bound: as bits."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
from pipelines.scoring.simd.vector import instruction, intrinsic


@instruction(types.float32, types.intp, types.intp)
def largest(builder: Any, source: Any, groups: Any) -> Any:
    """The largest of 16·groups floats at address `source`."""
    return llvm.reduce_max(builder, lane_maxima(builder, source, groups))


def lane_maxima(builder: Any, source: Any, groups: Any) -> Any:
    """Lane by lane the largest of the `groups` vectors at `source`."""
    best = llvm.slot_with(builder, llvm.load(builder, source))
    with cgutils.for_range(builder, groups) as loop:
        value = llvm.load(builder, llvm.step(builder, source, loop.index))
        builder.store(llvm.larger(builder, value, builder.load(best)), best)
    return builder.load(best)


@intrinsic
def bound_of_nth(typing_context: Any, source: Any, groups: Any, n: Any) -> Any:
    """A number that at least n ≤ 16 of the 16·groups floats at `source` reach: (n-th best, max).

    The n-th largest of the 16 lane maxima; equal maxima leave together, which only lowers it.
    """
    pair = types.UniTuple(types.float32, 2)
    signature = pair(types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, groups, n = arguments
        lanes = llvm.slot_with(builder, lane_maxima(builder, source, groups))
        best = llvm.reduce_max(builder, builder.load(lanes))
        bound = llvm.slot_with(builder, best)
        with cgutils.for_range(builder, builder.sub(n, llvm.word(1))):
            current = builder.load(lanes)
            taken = builder.fcmp_ordered(">=", current, llvm.splat(builder, builder.load(bound)))
            left = builder.select(taken, llvm.constant(-3.0e38), current)
            builder.store(left, lanes)
            builder.store(llvm.reduce_max(builder, left), bound)
        return context.make_tuple(builder, pair, [builder.load(bound), best])

    return signature, generate


@instruction(types.uint64, types.intp, types.float32)
def reached(builder: Any, source: Any, bound: Any) -> Any:
    """Bit i: whether float i of the 16 at address `source` is at least `bound`."""
    hits = builder.fcmp_ordered(">=", llvm.load(builder, source), llvm.splat(builder, bound))
    return builder.zext(builder.bitcast(hits, llvm.I16), llvm.I64)


@instruction(types.int64, types.uint64)
def lowest_bit(builder: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set; 64 when none is."""
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 0))


@instruction(types.int64, types.uint64)
def count_bits(builder: Any, bits: Any) -> Any:
    return builder.ctpop(bits)


@instruction(types.void, *[types.intp] * 3)
def max_down(builder: Any, source: Any, count: Any, shifts: Any) -> None:
    """Lane by lane over `count` vectors of 16: shifts += the largest."""
    best = lane_maxima(builder, source, count)
    llvm.store(builder, builder.fadd(llvm.load(builder, shifts), best), shifts)


@instruction(types.void, *[types.intp] * 3)
def insert_down(builder: Any, value: Any, best: Any, keep: Any) -> None:
    """Put the vector at `value` into `best` [keep, 16], sorted from the best down in every lane."""
    carried = llvm.slot_with(builder, llvm.load(builder, value))
    with cgutils.for_range(builder, keep) as loop:
        place = llvm.step(builder, best, loop.index)
        here, new = llvm.load(builder, place), builder.load(carried)
        above = builder.fcmp_ordered(">", new, here)
        llvm.store(builder, builder.select(above, new, here), place)
        builder.store(builder.select(above, here, new), carried)


@instruction(types.boolean, *[types.intp] * 3)
def can_reach(builder: Any, sums: Any, rest: Any, bounds: Any) -> Any:
    """Whether sums + rest exceeds bounds in any of 16 lanes."""
    sums, rest, bounds = (llvm.load(builder, address) for address in (sums, rest, bounds))
    above = builder.fcmp_ordered(">", builder.fadd(sums, rest), bounds)
    return builder.icmp_unsigned("!=", builder.bitcast(above, llvm.I16), ir.Constant(llvm.I16, 0))
