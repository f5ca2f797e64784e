"""exp and log of vectors, and sums of exponentials."""

import math
from typing import Any

from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
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
    x = llvm.larger(builder, x, llvm.constant(LOWEST_EXPONENT))
    rounded = llvm.fma(builder, x, llvm.constant(1 / math.log(2.0)), llvm.constant(_ROUND))
    power = builder.sub(builder.bitcast(rounded, llvm.I32X16), llvm.integers(_ROUND_BITS))
    whole = builder.fsub(rounded, llvm.constant(_ROUND))
    rest = llvm.fma(builder, whole, llvm.constant(-_LN2_HIGH), x)
    rest = llvm.fma(builder, whole, llvm.constant(-_LN2_LOW), rest)
    series = llvm.constant(_EXP_SERIES[0])
    for factor in _EXP_SERIES[1:]:
        series = llvm.fma(builder, series, rest, llvm.constant(factor))
    bits = builder.shl(builder.add(power, llvm.integers(_BIAS)), llvm.integers(23))
    return builder.fmul(series, builder.bitcast(bits, llvm.F32X16))


def _logarithm(builder: Any, x: Any) -> Any:
    """log(x) of a vector of positive normal numbers."""
    bits = builder.bitcast(x, llvm.I32X16)
    power = builder.ashr(builder.sub(bits, llvm.integers(_SQRT_HALF_BITS)), llvm.integers(23))
    scaled = builder.sub(bits, builder.shl(power, llvm.integers(23)))
    m = builder.bitcast(scaled, llvm.F32X16)
    ratio = builder.fdiv(builder.fsub(m, llvm.constant(1.0)), builder.fadd(m, llvm.constant(1.0)))
    square = builder.fmul(ratio, ratio)
    series = llvm.constant(_LOG_SERIES[0])
    for factor in _LOG_SERIES[1:]:
        series = llvm.fma(builder, series, square, llvm.constant(factor))
    whole = builder.sitofp(power, llvm.F32X16)
    return llvm.fma(builder, whole, llvm.constant(math.log(2.0)), builder.fmul(ratio, series))


@instruction(types.void, types.intp, types.intp, types.intp, types.float32)
def exp_shifted(builder: Any, source: Any, target: Any, groups: Any, shift: Any) -> None:
    """target[i] = exp(max(source[i] − shift, LOWEST_EXPONENT)) for 16·groups floats; source[i] ≤ shift."""
    shifts = llvm.splat(builder, shift)
    with cgutils.for_range(builder, groups) as loop:
        x = builder.fsub(llvm.load(builder, llvm.step(builder, source, loop.index)), shifts)
        llvm.store(builder, _exponential(builder, x), llvm.step(builder, target, loop.index))


@instruction(types.void, types.intp, types.intp, types.intp, types.float32)
def log_shifted(builder: Any, source: Any, target: Any, groups: Any, shift: Any) -> None:
    """target[i] = log(source[i]) + shift for 16·groups positive normal floats."""
    shifts = llvm.splat(builder, shift)
    with cgutils.for_range(builder, groups) as loop:
        result = _logarithm(builder, llvm.load(builder, llvm.step(builder, source, loop.index)))
        llvm.store(builder, builder.fadd(result, shifts), llvm.step(builder, target, loop.index))


def _sum_exp(builder: Any, source: Any, groups: Any, shifts: Any) -> Any:
    """Lane by lane Σ exp(value − shift) over `groups` vectors."""
    total = llvm.slot_with(builder, llvm.constant(0.0))
    with cgutils.for_range(builder, groups) as loop:
        x = builder.fsub(llvm.load(builder, llvm.step(builder, source, loop.index)), shifts)
        builder.store(builder.fadd(builder.load(total), _exponential(builder, x)), total)
    return builder.load(total)


@instruction(types.void, *[types.intp] * 4)
def sum_exp_down(builder: Any, source: Any, count: Any, products: Any, shifts: Any) -> None:
    """Lane by lane over `count` vectors of 16: products *= Σ exp(value − best), shifts += best."""
    best = lane_maxima(builder, source, count)
    total = _sum_exp(builder, source, count, best)
    llvm.store(builder, builder.fmul(llvm.load(builder, products), total), products)
    llvm.store(builder, builder.fadd(llvm.load(builder, shifts), best), shifts)


@instruction(types.float32, types.intp, types.intp, types.float32)
def sum_exp(builder: Any, source: Any, groups: Any, shift: Any) -> Any:
    """Σ exp(source[i] − shift) over 16·groups floats; source[i] ≤ shift."""
    total = _sum_exp(builder, source, groups, llvm.splat(builder, shift))
    return llvm.reduce(builder, builder.fadd, total)


@instruction(types.void, *[types.intp] * 3)
def log_plus(builder: Any, source: Any, shifts: Any, target: Any) -> None:
    """target[lane] = log(source[lane]) + shifts[lane] for 16 positive normal floats."""
    result = _logarithm(builder, llvm.load(builder, source))
    llvm.store(builder, builder.fadd(result, llvm.load(builder, shifts)), target)
