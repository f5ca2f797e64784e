"""exp and log of vectors, and sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd.instructions import (
    F32X16,
    I32X16,
    constant,
    fma,
    integers,
    larger,
    load,
    reduce,
    splat,
    step,
    store,
)
from pipelines.scoring.simd.maxima import lane_maxima
from pipelines.scoring.simd.vector import instruction

LOWEST_EXPONENT = -60.0
"""Smaller exponents are taken for this one: 1e-26 of the best density, beyond what float32 adds to it.

Down to -87 the exponential itself is a normal number, but its product with a weight need not be, nor a sum that begins
with such products; arithmetic on subnormal numbers takes some processors a hundred cycles and more."""
# Adding 1.5·2²³ rounds a float32 to an integer and leaves it in the low bits.
_ROUND = 12_582_912.0
_ROUND_BITS = 0x4B400000
# ln 2 split so that n·high is exact for |n| < 2¹¹ (Cody and Waite).
_LN2_HIGH = 0.693359375
_LN2_LOW = math.log(2.0) - _LN2_HIGH
# Taylor series of exp to degree 6: relative error 1.2e-7 for |r| ≤ ln(2)/2.
_EXP_SERIES = [1.0 / math.factorial(k) for k in range(6, -1, -1)]
# log m = 2·artanh((m−1)/(m+1)) to degree 7: absolute error 3e-8 for √½ ≤ m < √2.
_LOG_SERIES = [2.0 / k for k in (7, 5, 3, 1)]
_SQRT_HALF_BITS = 0x3F3504F3
_BIAS = 127


def _exponential(builder: Any, x: Any) -> Any:
    """exp(max(x, LOWEST_EXPONENT)) of a vector x ≤ 0."""
    x = larger(builder, x, constant(LOWEST_EXPONENT))
    rounded = fma(builder, x, constant(1 / math.log(2.0)), constant(_ROUND))
    power = builder.sub(builder.bitcast(rounded, I32X16), integers(_ROUND_BITS))
    whole = builder.fsub(rounded, constant(_ROUND))
    rest = fma(builder, whole, constant(-_LN2_HIGH), x)
    rest = fma(builder, whole, constant(-_LN2_LOW), rest)
    series = constant(_EXP_SERIES[0])
    for factor in _EXP_SERIES[1:]:
        series = fma(builder, series, rest, constant(factor))
    bits = builder.shl(builder.add(power, integers(_BIAS)), integers(23))
    return builder.fmul(series, builder.bitcast(bits, F32X16))


def _logarithm(builder: Any, x: Any) -> Any:
    """log(x) of a vector of positive normal numbers."""
    bits = builder.bitcast(x, I32X16)
    power = builder.ashr(builder.sub(bits, integers(_SQRT_HALF_BITS)), integers(23))
    scaled = builder.sub(bits, builder.shl(power, integers(23)))
    m = builder.bitcast(scaled, F32X16)
    ratio = builder.fdiv(builder.fsub(m, constant(1.0)), builder.fadd(m, constant(1.0)))
    square = builder.fmul(ratio, ratio)
    series = constant(_LOG_SERIES[0])
    for factor in _LOG_SERIES[1:]:
        series = fma(builder, series, square, constant(factor))
    whole = builder.sitofp(power, F32X16)
    return fma(builder, whole, constant(math.log(2.0)), builder.fmul(ratio, series))


@instruction(types.void, types.intp, types.intp, types.intp, types.float32)
def exp_shifted(builder: Any, source: Any, target: Any, groups: Any, shift: Any) -> None:
    """target[i] = exp(max(source[i] − shift, LOWEST_EXPONENT)) for 16·groups floats; source[i] ≤ shift."""
    shifts = splat(builder, shift)
    with cgutils.for_range(builder, groups) as loop:
        x = builder.fsub(load(builder, step(builder, source, loop.index)), shifts)
        store(builder, _exponential(builder, x), step(builder, target, loop.index))


@instruction(types.void, types.intp, types.intp, types.intp, types.float32)
def log_shifted(builder: Any, source: Any, target: Any, groups: Any, shift: Any) -> None:
    """target[i] = log(source[i]) + shift for 16·groups positive normal floats."""
    shifts = splat(builder, shift)
    with cgutils.for_range(builder, groups) as loop:
        result = _logarithm(builder, load(builder, step(builder, source, loop.index)))
        store(builder, builder.fadd(result, shifts), step(builder, target, loop.index))


def _sum_exp(builder: Any, source: Any, groups: Any, shifts: Any) -> Any:
    """Lane by lane Σ exp(value − shift) over `groups` vectors."""
    total = cgutils.alloca_once(builder, F32X16)
    builder.store(constant(0.0), total)
    with cgutils.for_range(builder, groups) as loop:
        x = builder.fsub(load(builder, step(builder, source, loop.index)), shifts)
        builder.store(builder.fadd(builder.load(total), _exponential(builder, x)), total)
    return builder.load(total)


@instruction(types.void, *[types.intp] * 4)
def sum_exp_down(builder: Any, source: Any, count: Any, products: Any, shifts: Any) -> None:
    """Lane by lane over `count` vectors of 16: products *= Σ exp(value − best), shifts += best."""
    best = lane_maxima(builder, source, count)
    total = _sum_exp(builder, source, count, best)
    store(builder, builder.fmul(load(builder, products), total), products)
    store(builder, builder.fadd(load(builder, shifts), best), shifts)


@instruction(types.float32, types.intp, types.intp, types.float32)
def sum_exp(builder: Any, source: Any, groups: Any, shift: Any) -> Any:
    """Σ exp(source[i] − shift) over 16·groups floats; source[i] ≤ shift."""
    total = _sum_exp(builder, source, groups, splat(builder, shift))
    return reduce(builder, builder.fadd, total)


@instruction(types.void, *[types.intp] * 3)
def log_plus(builder: Any, source: Any, shifts: Any, target: Any) -> None:
    """target[lane] = log(source[lane]) + shifts[lane] for 16 positive normal floats."""
    result = _logarithm(builder, load(builder, source))
    store(builder, builder.fadd(result, load(builder, shifts)), target)
