"""Vector steps over panels of sixteen Gaussians, for the kernels that do not compute all of them.

Written like those of `vector`, whose conventions hold here: addresses are bytes, vectors are 16 floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.vector import (
    _F32,
    _FV,
    _at,
    _bytes,
    _constant,
    _fma,
    _lane_maxima,
    _load,
    _splat,
    _step,
    _store,
    has_feature,
    intrinsic,
)

_I32 = ir.IntType(32)
AHEAD = 2
"""Panels between asking for one and using it."""

_BYTE = ir.IntType(8)
LOCALITY = 2
"""Of a prefetch: into the second level; the first has no room for what is two panels ahead."""
_SUMS = 3  # independent sums of a panel, so that a multiplier need not wait for its own result


def _prefetch(builder: Any, address: Any) -> None:
    """Ask for the cache line of `address`, which need not be readable, for reading soon."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    flags = [ir.Constant(_I32, flag) for flag in (0, LOCALITY, 1)]  # read, data
    builder.call(function, [_at(builder, address, _BYTE), *flags])


def _broadcast(builder: Any, address: Any) -> Any:
    return _splat(builder, builder.load(_at(builder, address, _F32)))


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
            slots = [[cgutils.alloca_once(builder, _FV) for _ in range(sums)] for _ in range(rows)]
            for slot in [one for some in slots for one in some]:
                builder.store(_constant(0.0), slot)

            def add(index: Any, which: int) -> None:
                values = _load(builder, _step(builder, source, index))
                _prefetch(builder, _step(builder, later, index))
                for x, some in zip(xs, slots, strict=True):
                    factor = _broadcast(builder, builder.add(x, builder.mul(index, _bytes(4))))
                    slot = some[which]
                    builder.store(_fma(builder, factor, values, builder.load(slot)), slot)

            whole = builder.udiv(count, _bytes(sums))
            with cgutils.for_range(builder, whole) as loop:
                base = builder.mul(loop.index, _bytes(sums))
                for i in range(sums):
                    add(builder.add(base, _bytes(i)), i)
            rest = builder.mul(whole, _bytes(sums))
            with cgutils.for_range(builder, builder.sub(count, rest)) as loop:
                add(builder.add(rest, loop.index), 0)
            for target, some in zip(targets, slots, strict=True):
                total = builder.load(some[0])
                for slot in some[1:]:
                    total = builder.fadd(total, builder.load(slot))
                _store(builder, total, target)
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = panel
    return made


@intrinsic
def max_down(typing_context: Any, source: Any, count: Any, shifts: Any) -> Any:
    """Lane by lane over `count` vectors of 16: shifts += the largest."""
    signature = types.void(*[types.intp] * 3)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, count, shifts = arguments
        best = _lane_maxima(builder, source, count)
        _store(builder, builder.fadd(_load(builder, shifts), best), shifts)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_to(typing_context: Any, source: Any, value: Any, target: Any) -> Any:
    """target[16] = source[16] + value."""
    signature = types.void(types.intp, types.float32, types.intp)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, value, target = arguments
        _store(builder, builder.fadd(_load(builder, source), _splat(builder, value)), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_vector(typing_context: Any, target: Any, source: Any) -> Any:
    """target[16] += source[16]."""
    signature = types.void(*[types.intp] * 2)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source = arguments
        _store(builder, builder.fadd(_load(builder, target), _load(builder, source)), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def insert_down(typing_context: Any, value: Any, best: Any, keep: Any) -> Any:
    """Put the vector at `value` into `best` [keep, 16], sorted from the best down in every lane."""
    signature = types.void(*[types.intp] * 3)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value, best, keep = arguments
        carried = cgutils.alloca_once(builder, _FV)
        builder.store(_load(builder, value), carried)
        with cgutils.for_range(builder, keep) as loop:
            place = _step(builder, best, loop.index)
            here, new = _load(builder, place), builder.load(carried)
            above = builder.fcmp_ordered(">", new, here)
            _store(builder, builder.select(above, new, here), place)
            builder.store(builder.select(above, here, new), carried)
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
        slots = [cgutils.alloca_once(builder, _FV) for _ in range(2)]
        builder.store(_load(builder, sums), slots[0])
        builder.store(_constant(0.0), slots[1])
        with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
            d = builder.add(begin, loop.index)
            for slot, index in zip(slots, (d, builder.add(d, dim)), strict=True):
                factor = _broadcast(builder, builder.add(x, builder.mul(index, _bytes(4))))
                values = _load(builder, _step(builder, source, index))
                builder.store(_fma(builder, factor, values, builder.load(slot)), slot)
        _store(builder, builder.fadd(builder.load(slots[0]), builder.load(slots[1])), sums)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def can_reach(typing_context: Any, sums: Any, rest: Any, bounds: Any) -> Any:
    """Whether sums + rest exceeds bounds in any of 16 lanes."""
    signature = types.boolean(*[types.intp] * 3)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sums, rest, bounds = (_load(builder, address) for address in arguments)
        above = builder.fcmp_ordered(">", builder.fadd(sums, rest), bounds)
        bits = builder.bitcast(above, ir.IntType(16))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(16), 0))

    return signature, generate


WIDE_SHORTS = has_feature("avx512bw")
"""Whether 32 short integers are one register."""
_PAIR = ir.VectorType(ir.IntType(8), 32)
_SHORTS = ir.VectorType(ir.IntType(16), 32)
_INTS = ir.VectorType(_I32, 32)
_HALF = ir.VectorType(_I32, 16)


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
            two = builder.load(
                _at(builder, builder.add(x, builder.mul(loop.index, _bytes(4))), _I32)
            )
            two.align = 2
            spread = builder.insert_element(undefined, two, ir.Constant(_I32, 0))
            spread = builder.shuffle_vector(spread, undefined, _same(_HALF, 0))
            frame = builder.bitcast(spread, _SHORTS)
            place = _step(builder, source, loop.index)
            _prefetch(builder, _step(builder, later, loop.index))
            loaded = []
            for offset in (0, 32):
                value = builder.load(_at(builder, builder.add(place, _bytes(offset)), _PAIR))
                value.align = 1
                loaded.append(value)
            mean = builder.shl(builder.sext(loaded[0], _SHORTS), _same(_SHORTS, 4))
            inverse = builder.shl(builder.zext(loaded[1], _SHORTS), _same(_SHORTS, 7))
            gap = builder.sub(frame, mean)
            product = builder.mul(builder.sext(gap, _INTS), builder.sext(inverse, _INTS))
            z = builder.trunc(builder.ashr(product, _same(_INTS, 16)), _SHORTS)
            both = _square_and_add(builder, z)
            builder.store(builder.add(builder.load(total), both), total)
        constant, scale = (builder.add(pairs, _bytes(i)) for i in (0, 1))
        for index in (constant, scale):
            _prefetch(builder, _step(builder, later, index))
        distance = builder.sitofp(builder.load(total), _FV)
        scaled = builder.fmul(distance, _load(builder, _step(builder, source, scale)))
        _store(
            builder, builder.fsub(_load(builder, _step(builder, source, constant)), scaled), target
        )
        return context.get_dummy_value()

    return signature, generate
