"""Panels of sixteen Gaussians at single frames, for the kernels that do not compute all of them."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
from pipelines.scoring.simd.vector import has_feature, instruction

AHEAD = 2  # Panels between the prefetch of one and its use
_SUMS = 3  # independent sums of a panel, so that a multiplier need not wait for its own result
LEVEL = llvm.SECOND_LEVEL
"""Cache that a panel is prefetched into: the first level has no room for what is two panels ahead."""


def make_panel(rows: int) -> Callable[..., None]:
    """One panel of Gaussians at some frames: target_r[16] = x_r[k] · panel[k, 16] for each of `rows` frames.

    Called as panel(panel, k, later, (x_1 … x_rows, target_1 … target_rows)); the panel at address `later` is
    prefetched, since it lies where no hardware prefetcher expects it.
    """
    sums = max(1, _SUMS // rows)

    words = types.UniTuple(types.intp, 2 * rows)

    @instruction(types.void, types.intp, types.intp, types.intp, words)
    def panel(builder: Any, source: Any, count: Any, later: Any, places: Any) -> None:
        xs = [builder.extract_value(places, r) for r in range(rows)]
        targets = [builder.extract_value(places, rows + r) for r in range(rows)]

        def add(index: Any, slots: list[Any]) -> None:
            values = llvm.load(builder, llvm.step(builder, source, index))
            llvm.prefetch(builder, llvm.step(builder, later, index), LEVEL)
            for x, slot in zip(xs, slots, strict=True):
                factor = llvm.broadcast(builder, builder.add(x, builder.mul(index, llvm.word(4))))
                llvm.add_product(builder, factor, values, slot)

        for target, total in zip(targets, llvm.summed_in_turn(builder, count, sums, rows, add), strict=True):
            llvm.store(builder, total, target)

    return panel


@instruction(types.void, types.intp, types.float32, types.intp)
def add_to(builder: Any, source: Any, value: Any, target: Any) -> None:
    """target[16] = source[16] + value."""
    llvm.store(builder, builder.fadd(llvm.load(builder, source), llvm.splat(builder, value)), target)


@instruction(types.void, *[types.intp] * 2)
def add_vector(builder: Any, target: Any, source: Any) -> None:
    """target[16] += source[16]."""
    llvm.store(builder, builder.fadd(llvm.load(builder, target), llvm.load(builder, source)), target)


@instruction(types.void, *[types.intp] * 6)
def partial(builder: Any, x: Any, source: Any, dim: Any, begin: Any, end: Any, sums: Any) -> None:
    """Dimensions begin … end − 1 of a panel [2·dim + 1, 16] at one frame [x², x, 1], added to sums[16]."""
    slots = [llvm.slot_with(builder, zero) for zero in (llvm.load(builder, sums), llvm.constant(0.0))]
    with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
        d = builder.add(begin, loop.index)
        for slot, index in zip(slots, (d, builder.add(d, dim)), strict=True):
            factor = llvm.broadcast(builder, builder.add(x, builder.mul(index, llvm.word(4))))
            values = llvm.load(builder, llvm.step(builder, source, index))
            llvm.add_product(builder, factor, values, slot)
    llvm.store(builder, builder.fadd(builder.load(slots[0]), builder.load(slots[1])), sums)


WIDE_SHORTS = has_feature("avx512bw")  # Whether 32 short integers are one register
_PAIR = ir.VectorType(ir.IntType(8), 32)
_SHORTS = ir.VectorType(ir.IntType(16), 32)
_INTS = ir.VectorType(llvm.I32, 32)


def _same(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _square_and_add(builder: Any, z: Any) -> Any:
    """Sixteen sums of two squares from 32 short integers; LLVM does not find the one instruction by itself."""
    if WIDE_SHORTS:
        kind = ir.FunctionType(llvm.I32X16, [_SHORTS, _SHORTS])
        name = "llvm.x86.avx512.pmaddw.d.512"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [z, z])
    squares = []
    for begin in (0, 1):
        lanes = ir.Constant(llvm.I32X16, list(range(begin, 32, 2)))
        half = builder.sext(builder.shuffle_vector(z, z, lanes), llvm.I32X16)
        squares.append(builder.mul(half, half))
    return builder.add(*squares)


@instruction(types.void, *[types.intp] * 5)
def panel_of_bytes(builder: Any, x: Any, source: Any, pairs: Any, later: Any, target: Any) -> None:
    """One panel of 8-bit Gaussians at one frame: target[16] = constant[16] − scale[16] · Σ z², in 16-bit arithmetic.

    `x` int16 [2 · pairs]; `source` [pairs, 2, 32]: int8 means and uint8 inverse deviations, two dimensions side
    by side for each of 16 Gaussians; then f32 [2, 16]: constant, scale. z = ((x − 16 · mean) · 128 · inverse)
    / 65536. The panel at address `later` is prefetched. See `scoring.gaussians.int8`.
    """
    total = llvm.slot_with(builder, llvm.integers(0))
    with cgutils.for_range(builder, pairs) as loop:
        two = llvm.load(builder, builder.add(x, builder.mul(loop.index, llvm.word(4))), llvm.I32, 2)
        frame = builder.bitcast(llvm.splat(builder, two), _SHORTS)
        place = llvm.step(builder, source, loop.index)
        llvm.prefetch(builder, llvm.step(builder, later, loop.index), LEVEL)
        loaded = [llvm.load(builder, builder.add(place, llvm.word(offset)), _PAIR, 1) for offset in (0, 32)]
        mean = builder.shl(builder.sext(loaded[0], _SHORTS), _same(_SHORTS, 4))
        inverse = builder.shl(builder.zext(loaded[1], _SHORTS), _same(_SHORTS, 7))
        gap = builder.sub(frame, mean)
        product = builder.mul(builder.sext(gap, _INTS), builder.sext(inverse, _INTS))
        z = builder.trunc(builder.ashr(product, _same(_INTS, 16)), _SHORTS)
        both = _square_and_add(builder, z)
        builder.store(builder.add(builder.load(total), both), total)
    constant, scale = (builder.add(pairs, llvm.word(i)) for i in (0, 1))
    for index in (constant, scale):
        llvm.prefetch(builder, llvm.step(builder, later, index), LEVEL)
    distance = builder.sitofp(builder.load(total), llvm.F32X16)
    scaled = builder.fmul(distance, llvm.load(builder, llvm.step(builder, source, scale)))
    llvm.store(builder, builder.fsub(llvm.load(builder, llvm.step(builder, source, constant)), scaled), target)
