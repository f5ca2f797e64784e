"""Panels of sixteen Gaussians at single frames, for the kernels that do not compute all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.instructions import (
    F32X16,
    I32,
    SECOND_LEVEL,
    at,
    broadcast,
    constant,
    fma,
    load,
    prefetch,
    splat,
    step,
    store,
    word,
)
from pipelines.scoring.simd.vector import has_feature, intrinsic

AHEAD = 2
"""Panels between asking for one and using it."""

_SUMS = 3  # independent sums of a panel, so that a multiplier need not wait for its own result
LEVEL = SECOND_LEVEL
"""Where a panel is brought to meanwhile: the first level has no room for what is two panels ahead."""


def make_panel(rows: int) -> Callable[..., None]:
    """One panel of Gaussians at some frames: target_r[16] = x_r[k] · panel[k, 16] for each of `rows` frames.

    Called as panel(panel, k, later, x_1 … x_rows, target_1 … target_rows); the panel at address `later` is asked
    for meanwhile, since it lies where no prefetcher expects it.
    """
    sums = max(1, _SUMS // rows)

    @intrinsic
    def panel(typing_context: Any, source: Any, count: Any, later: Any, places: Any) -> Any:
        words = types.UniTuple(types.intp, 2 * rows)
        signature = types.void(types.intp, types.intp, types.intp, words)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            source, count, later, places = arguments
            xs = [builder.extract_value(places, r) for r in range(rows)]
            targets = [builder.extract_value(places, rows + r) for r in range(rows)]
            slots = [
                [cgutils.alloca_once(builder, F32X16) for _ in range(sums)] for _ in range(rows)
            ]
            for slot in [one for some in slots for one in some]:
                builder.store(constant(0.0), slot)

            def add(index: Any, which: int) -> None:
                values = load(builder, step(builder, source, index))
                prefetch(builder, step(builder, later, index), LEVEL)
                for x, some in zip(xs, slots, strict=True):
                    factor = broadcast(builder, builder.add(x, builder.mul(index, word(4))))
                    slot = some[which]
                    builder.store(fma(builder, factor, values, builder.load(slot)), slot)

            whole = builder.udiv(count, word(sums))
            with cgutils.for_range(builder, whole) as loop:
                base = builder.mul(loop.index, word(sums))
                for i in range(sums):
                    add(builder.add(base, word(i)), i)
            rest = builder.mul(whole, word(sums))
            with cgutils.for_range(builder, builder.sub(count, rest)) as loop:
                add(builder.add(rest, loop.index), 0)
            for target, some in zip(targets, slots, strict=True):
                total = builder.load(some[0])
                for slot in some[1:]:
                    total = builder.fadd(total, builder.load(slot))
                store(builder, total, target)
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = panel
    return made


@intrinsic
def add_to(typing_context: Any, source: Any, value: Any, target: Any) -> Any:
    """target[16] = source[16] + value."""
    signature = types.void(types.intp, types.float32, types.intp)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, value, target = arguments
        store(builder, builder.fadd(load(builder, source), splat(builder, value)), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_vector(typing_context: Any, target: Any, source: Any) -> Any:
    """target[16] += source[16]."""
    signature = types.void(*[types.intp] * 2)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source = arguments
        store(builder, builder.fadd(load(builder, target), load(builder, source)), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def partial(
    typing_context: Any, x: Any, source: Any, dim: Any, begin: Any, end: Any, sums: Any
) -> Any:
    """Dimensions begin … end − 1 of a panel [2·dim + 1, 16] at one frame [x², x, 1], added to sums[16]."""
    signature = types.void(*[types.intp] * 6)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, source, dim, begin, end, sums = arguments
        slots = [cgutils.alloca_once(builder, F32X16) for _ in range(2)]
        builder.store(load(builder, sums), slots[0])
        builder.store(constant(0.0), slots[1])
        with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
            d = builder.add(begin, loop.index)
            for slot, index in zip(slots, (d, builder.add(d, dim)), strict=True):
                factor = broadcast(builder, builder.add(x, builder.mul(index, word(4))))
                values = load(builder, step(builder, source, index))
                builder.store(fma(builder, factor, values, builder.load(slot)), slot)
        store(builder, builder.fadd(builder.load(slots[0]), builder.load(slots[1])), sums)
        return context.get_dummy_value()

    return signature, generate


WIDE_SHORTS = has_feature("avx512bw")
"""Whether 32 short integers are one register."""
_PAIR = ir.VectorType(ir.IntType(8), 32)
_SHORTS = ir.VectorType(ir.IntType(16), 32)
_INTS = ir.VectorType(I32, 32)
_HALF = ir.VectorType(I32, 16)


def _same(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _square_and_add(builder: Any, z: Any) -> Any:
    """Sixteen sums of two squares from 32 short integers; LLVM does not find the one instruction by itself."""
    if WIDE_SHORTS:
        kind = ir.FunctionType(_HALF, [_SHORTS, _SHORTS])
        name = "llvm.x86.avx512.pmaddw.d.512"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [z, z])
    squares = []
    for begin in (0, 1):
        lanes = ir.Constant(_HALF, list(range(begin, 32, 2)))
        half = builder.sext(builder.shuffle_vector(z, z, lanes), _HALF)
        squares.append(builder.mul(half, half))
    return builder.add(*squares)


@intrinsic
def panel_of_bytes(
    typing_context: Any, x: Any, source: Any, pairs: Any, later: Any, target: Any
) -> Any:
    """One panel of 8-bit Gaussians at one frame: target[16] = constant[16] − scale[16] · Σ z², in 16-bit arithmetic.

    `x` int16 [2 · pairs]; `source` [pairs, 2, 32]: int8 means and uint8 inverse deviations, two dimensions side
    by side for each of 16 Gaussians; then f32 [2, 16]: constant, scale. z = ((x − 16 · mean) · 128 · inverse)
    / 65536. The panel at address `later` is asked for meanwhile. See `scoring.gaussians.int8`.
    """
    signature = types.void(*[types.intp] * 5)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, source, pairs, later, target = arguments
        total = cgutils.alloca_once(builder, _HALF)
        builder.store(_same(_HALF, 0), total)
        undefined = ir.Constant(_HALF, ir.Undefined)
        with cgutils.for_range(builder, pairs) as loop:
            two = builder.load(at(builder, builder.add(x, builder.mul(loop.index, word(4))), I32))
            two.align = 2
            spread = builder.insert_element(undefined, two, ir.Constant(I32, 0))
            spread = builder.shuffle_vector(spread, undefined, _same(_HALF, 0))
            frame = builder.bitcast(spread, _SHORTS)
            place = step(builder, source, loop.index)
            prefetch(builder, step(builder, later, loop.index), LEVEL)
            loaded = []
            for offset in (0, 32):
                value = builder.load(at(builder, builder.add(place, word(offset)), _PAIR))
                value.align = 1
                loaded.append(value)
            mean = builder.shl(builder.sext(loaded[0], _SHORTS), _same(_SHORTS, 4))
            inverse = builder.shl(builder.zext(loaded[1], _SHORTS), _same(_SHORTS, 7))
            gap = builder.sub(frame, mean)
            product = builder.mul(builder.sext(gap, _INTS), builder.sext(inverse, _INTS))
            z = builder.trunc(builder.ashr(product, _same(_INTS, 16)), _SHORTS)
            both = _square_and_add(builder, z)
            builder.store(builder.add(builder.load(total), both), total)
        constant, scale = (builder.add(pairs, word(i)) for i in (0, 1))
        for index in (constant, scale):
            prefetch(builder, step(builder, later, index), LEVEL)
        distance = builder.sitofp(builder.load(total), F32X16)
        scaled = builder.fmul(distance, load(builder, step(builder, source, scale)))
        store(builder, builder.fsub(load(builder, step(builder, source, constant)), scaled), target)
        return context.get_dummy_value()

    return signature, generate
