"""Sixteen-lane vector steps for the scoring kernels, written as LLVM instructions for numba.

numba's own loops do not keep a matrix tile in registers and have no vector `exp` or `log` (those
would need Intel's SVML). Vectors of 16 floats are legal on every target: LLVM splits them into
what the processor has (one AVX-512 register, two of AVX, four of NEON). Addresses are bytes.

An address forgets what it is of. So kernels take it by `address`, which compiles for the array that they were
written for and no other, and say in their first lines how large each array has to be (`ArrayError`): beyond these
lines nothing is checked.

numba's cache looks only at the file of the kernel: after a change here, touch `kernels.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic as _untyped_intrinsic

from profiler.arrays import Array

# numba's type hints take the typing context for a parameter of the call.
intrinsic: Any = _untyped_intrinsic

LANES = 16
VECTOR_BYTES = 4 * LANES


def has_feature(name: str) -> bool:
    """Whether this processor has what LLVM calls `name`."""
    try:
        return bool(llvm.get_host_cpu_features().get(name, False))
    except RuntimeError:  # llvmlite does not know this processor
        return False


WIDE_REGISTERS = has_feature("avx512f")
"""Whether a vector of 16 floats is one of at least 32 registers."""

_F32 = ir.FloatType()
_I16 = ir.IntType(16)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_FV = ir.VectorType(_F32, LANES)
_IV = ir.VectorType(_I32, LANES)

# exp(-87) is the last value above float32's smallest normal number.
_LOWEST_EXPONENT = -87.0
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


def aligned(shape: tuple[int, ...], kind: Any = np.float32) -> Array:
    """Zeros of `kind` that begin with a cache line: a vector then lies in one line and not across two."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    space = np.zeros(size + VECTOR_BYTES, np.uint8)
    # The last line that there is room for: what reads on beyond the array leaves what was allocated.
    begin = VECTOR_BYTES - space.ctypes.data % VECTOR_BYTES
    return space[begin : begin + size].view(kind).reshape(shape)


@intrinsic
def address(typing_context: Any, array: Any, kind: Any) -> Any:
    """Where an array of `kind` (np.float32, …) begins; for one of another type or not in C order nothing compiles."""
    _must_be(array, kind)
    if array.layout != "C":
        raise TypingError(f"{array}: the kernel reads it in C order")
    return types.intp(array, kind), _begin


@intrinsic
def address_of_rows(typing_context: Any, array: Any, kind: Any) -> Any:
    """The same of an array in any order: the kernel goes by its strides, or compares them first."""
    _must_be(array, kind)
    return types.intp(array, kind), _begin


def _must_be(array: Any, kind: Any) -> None:
    wanted = kind.instance_type
    if not isinstance(array, types.Array) or array.dtype != wanted or not array.aligned:
        raise TypingError(f"{array}: the kernel wants aligned {wanted}")


def _begin(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    made = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.ptrtoint(made.data, _I64)


def _at(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _load(builder: Any, address: Any) -> Any:
    value = builder.load(_at(builder, address, _FV))
    value.align = 4
    return value


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, _at(builder, address, _FV)).align = 4


def _constant(value: float) -> Any:
    return ir.Constant(_FV, [value] * LANES)


def _integers(value: int) -> Any:
    return ir.Constant(_IV, [value] * LANES)


def _bytes(value: int) -> Any:
    return ir.Constant(_I64, value)


def _splat(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(_FV, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, ir.Constant(_FV, ir.Undefined), _integers(0))


def _fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    kind = ir.FunctionType(_FV, [_FV, _FV, _FV])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
    return builder.call(function, [x, y, z])


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _reduce(builder: Any, combine: Callable[[Any, Any], Any], value: Any) -> Any:
    width = LANES // 2
    while width:
        order = ir.Constant(_IV, [(lane + width) % LANES for lane in range(LANES)])
        value = combine(value, builder.shuffle_vector(value, value, order))
        width //= 2
    return builder.extract_element(value, ir.Constant(_I32, 0))


def _reduce_max(builder: Any, value: Any) -> Any:
    return _reduce(builder, lambda x, y: _larger(builder, x, y), value)


def _step(builder: Any, address: Any, index: Any) -> Any:
    return builder.add(address, builder.mul(index, _bytes(VECTOR_BYTES)))


def make_tile(rows: int, panels: int) -> Callable[..., None]:
    """A matrix tile: C[rows, 16·panels] = A[rows, k] · B[k, 16·panels], kept in registers.

    Called as tile(a, a_stride, b, panel_stride, k, c, c_stride, multiply): rows of A and C lie
    `a_stride` and `c_stride` apart; a panel of B is k contiguous vectors of 16; `multiply`
    multiplies what C holds by the result instead of replacing it.
    """

    @intrinsic
    def tile(
        typing_context: Any,
        a: Any,
        a_stride: Any,
        b: Any,
        panel_stride: Any,
        k: Any,
        c: Any,
        c_stride: Any,
        multiply: Any,
    ) -> Any:
        signature = types.void(*[types.intp] * 7, types.boolean)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            a, a_stride, b, panel_stride, k, c, c_stride, multiply = arguments
            cells = [(r, p) for r in range(rows) for p in range(panels)]
            sums = {cell: cgutils.alloca_once(builder, _FV) for cell in cells}
            for slot in sums.values():
                builder.store(_constant(0.0), slot)
            a_rows = [builder.add(a, builder.mul(a_stride, _bytes(r))) for r in range(rows)]
            b_panels = [builder.add(b, builder.mul(panel_stride, _bytes(p))) for p in range(panels)]
            with cgutils.for_range(builder, k) as loop:
                offset = builder.mul(loop.index, _bytes(4))
                weights = [_load(builder, _step(builder, base, loop.index)) for base in b_panels]
                for r in range(rows):
                    scalar = builder.load(_at(builder, builder.add(a_rows[r], offset), _F32))
                    factor = _splat(builder, scalar)
                    for p in range(panels):
                        slot = sums[r, p]
                        total = _fma(builder, factor, weights[p], builder.load(slot))
                        builder.store(total, slot)

            _finish(builder, multiply, [(_cell(builder, c, c_stride, *x), sums[x]) for x in cells])
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = tile
    return made


def _cell(builder: Any, c: Any, c_stride: Any, row: int, panel: int) -> Any:
    base = builder.add(c, builder.mul(c_stride, _bytes(row)))
    return builder.add(base, _bytes(VECTOR_BYTES * panel))


def _finish(builder: Any, multiply: Any, cells: list[tuple[Any, Any]]) -> None:
    with builder.if_else(builder.icmp_unsigned("!=", multiply, multiply.type(0))) as (yes, no):
        with yes:
            for address, slot in cells:
                product = builder.fmul(_load(builder, address), builder.load(slot))
                _store(builder, product, address)
        with no:
            for address, slot in cells:
                _store(builder, builder.load(slot), address)


def make_rows(panels: int) -> Callable[..., None]:
    """A weighted sum of chosen rows: C[16·panels] = Σ factor[i] · B[index[i], 16·panels].

    Called as rows(factors, indices, count, b, b_stride, c, multiply) with float32 factors, int32
    indices and rows of B `b_stride` apart.
    """

    @intrinsic
    def rows(
        typing_context: Any,
        factors: Any,
        indices: Any,
        count: Any,
        b: Any,
        b_stride: Any,
        c: Any,
        multiply: Any,
    ) -> Any:
        signature = types.void(*[types.intp] * 6, types.boolean)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            factors, indices, count, b, b_stride, c, multiply = arguments
            sums = [cgutils.alloca_once(builder, _FV) for _ in range(panels)]
            for slot in sums:
                builder.store(_constant(0.0), slot)
            with cgutils.for_range(builder, count) as loop:
                offset = builder.mul(loop.index, _bytes(4))
                factor = builder.load(_at(builder, builder.add(factors, offset), _F32))
                index = builder.load(_at(builder, builder.add(indices, offset), _I32))
                row = builder.add(b, builder.mul(b_stride, builder.sext(index, _I64)))
                spread = _splat(builder, factor)
                for p, slot in enumerate(sums):
                    weights = _load(builder, builder.add(row, _bytes(VECTOR_BYTES * p)))
                    builder.store(_fma(builder, spread, weights, builder.load(slot)), slot)
            _finish(
                builder,
                multiply,
                [(_cell(builder, c, _bytes(0), 0, p), slot) for p, slot in enumerate(sums)],
            )
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = rows
    return made


@intrinsic
def largest(typing_context: Any, source: Any, groups: Any) -> Any:
    """The largest of 16·groups floats at address `source`."""
    signature = types.float32(types.intp, types.intp)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _reduce_max(builder, _lane_maxima(builder, *arguments))

    return signature, generate


def _lane_maxima(builder: Any, source: Any, groups: Any) -> Any:
    best = cgutils.alloca_once(builder, _FV)
    builder.store(_load(builder, source), best)
    with cgutils.for_range(builder, groups) as loop:
        value = _load(builder, _step(builder, source, loop.index))
        builder.store(_larger(builder, value, builder.load(best)), best)
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
        lanes = cgutils.alloca_once(builder, _FV)
        builder.store(_lane_maxima(builder, source, groups), lanes)
        best = _reduce_max(builder, builder.load(lanes))
        bound = cgutils.alloca_once(builder, _F32)
        builder.store(best, bound)
        with cgutils.for_range(builder, builder.sub(n, _bytes(1))):
            current = builder.load(lanes)
            taken = builder.fcmp_ordered(">=", current, _splat(builder, builder.load(bound)))
            left = builder.select(taken, _constant(-3.0e38), current)
            builder.store(left, lanes)
            builder.store(_reduce_max(builder, left), bound)
        return context.make_tuple(builder, pair, [builder.load(bound), best])

    return signature, generate


@intrinsic
def reached(typing_context: Any, source: Any, bound: Any) -> Any:
    """Bit i tells whether float i of the 16 at address `source` is at least `bound`."""
    signature = types.uint64(types.intp, types.float32)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, bound = arguments
        hits = builder.fcmp_ordered(">=", _load(builder, source), _splat(builder, bound))
        return builder.zext(builder.bitcast(hits, _I16), _I64)

    return signature, generate


@intrinsic
def copy_floats(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy `count` floats from one address to another; the stretches must not overlap."""
    signature = types.void(types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, count = arguments
        byte = ir.IntType(8)
        size = builder.mul(count, _bytes(4))
        cgutils.raw_memcpy(builder, _at(builder, target, byte), _at(builder, source, byte), size, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set; 64 when none is."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return signature, generate


@intrinsic
def count_bits(typing_context: Any, bits: Any) -> Any:
    """How many bits are set."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return signature, generate


def _exponential(builder: Any, x: Any) -> Any:
    """exp(max(x, −87)) of a vector x ≤ 0."""
    x = _larger(builder, x, _constant(_LOWEST_EXPONENT))
    rounded = _fma(builder, x, _constant(1 / math.log(2.0)), _constant(_ROUND))
    power = builder.sub(builder.bitcast(rounded, _IV), _integers(_ROUND_BITS))
    whole = builder.fsub(rounded, _constant(_ROUND))
    rest = _fma(builder, whole, _constant(-_LN2_HIGH), x)
    rest = _fma(builder, whole, _constant(-_LN2_LOW), rest)
    series = _constant(_EXP_SERIES[0])
    for factor in _EXP_SERIES[1:]:
        series = _fma(builder, series, rest, _constant(factor))
    bits = builder.shl(builder.add(power, _integers(_BIAS)), _integers(23))
    return builder.fmul(series, builder.bitcast(bits, _FV))


def _logarithm(builder: Any, x: Any) -> Any:
    """log(x) of a vector of positive normal numbers."""
    bits = builder.bitcast(x, _IV)
    power = builder.ashr(builder.sub(bits, _integers(_SQRT_HALF_BITS)), _integers(23))
    scaled = builder.sub(bits, builder.shl(power, _integers(23)))
    m = builder.bitcast(scaled, _FV)
    ratio = builder.fdiv(builder.fsub(m, _constant(1.0)), builder.fadd(m, _constant(1.0)))
    square = builder.fmul(ratio, ratio)
    series = _constant(_LOG_SERIES[0])
    for factor in _LOG_SERIES[1:]:
        series = _fma(builder, series, square, _constant(factor))
    whole = builder.sitofp(power, _FV)
    return _fma(builder, whole, _constant(math.log(2.0)), builder.fmul(ratio, series))


@intrinsic
def exp_shifted(typing_context: Any, source: Any, target: Any, groups: Any, shift: Any) -> Any:
    """target[i] = exp(max(source[i] − shift, −87)) for 16·groups floats; source[i] ≤ shift."""
    signature = types.void(types.intp, types.intp, types.intp, types.float32)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, target, groups, shift = arguments
        shifts = _splat(builder, shift)
        with cgutils.for_range(builder, groups) as loop:
            x = builder.fsub(_load(builder, _step(builder, source, loop.index)), shifts)
            _store(builder, _exponential(builder, x), _step(builder, target, loop.index))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def log_shifted(typing_context: Any, source: Any, target: Any, groups: Any, shift: Any) -> Any:
    """target[i] = log(source[i]) + shift for 16·groups positive normal floats."""
    signature = types.void(types.intp, types.intp, types.intp, types.float32)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, target, groups, shift = arguments
        shifts = _splat(builder, shift)
        with cgutils.for_range(builder, groups) as loop:
            result = _logarithm(builder, _load(builder, _step(builder, source, loop.index)))
            _store(builder, builder.fadd(result, shifts), _step(builder, target, loop.index))
        return context.get_dummy_value()

    return signature, generate


def _sum_exp(builder: Any, source: Any, groups: Any, shifts: Any) -> Any:
    """Lane by lane Σ exp(value − shift) over `groups` vectors."""
    total = cgutils.alloca_once(builder, _FV)
    builder.store(_constant(0.0), total)
    with cgutils.for_range(builder, groups) as loop:
        x = builder.fsub(_load(builder, _step(builder, source, loop.index)), shifts)
        builder.store(builder.fadd(builder.load(total), _exponential(builder, x)), total)
    return builder.load(total)


@intrinsic
def sum_exp_down(typing_context: Any, source: Any, count: Any, products: Any, shifts: Any) -> Any:
    """Lane by lane over `count` vectors of 16: products *= Σ exp(value − best), shifts += best."""
    signature = types.void(*[types.intp] * 4)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, count, products, shifts = arguments
        best = _lane_maxima(builder, source, count)
        total = _sum_exp(builder, source, count, best)
        _store(builder, builder.fmul(_load(builder, products), total), products)
        _store(builder, builder.fadd(_load(builder, shifts), best), shifts)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def sum_exp(typing_context: Any, source: Any, groups: Any, shift: Any) -> Any:
    """Σ exp(source[i] − shift) over 16·groups floats; source[i] ≤ shift."""
    signature = types.float32(types.intp, types.intp, types.float32)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, groups, shift = arguments
        total = _sum_exp(builder, source, groups, _splat(builder, shift))
        return _reduce(builder, builder.fadd, total)

    return signature, generate


@intrinsic
def log_plus(typing_context: Any, source: Any, shifts: Any, target: Any) -> Any:
    """target[lane] = log(source[lane]) + shifts[lane] for 16 positive normal floats."""
    signature = types.void(*[types.intp] * 3)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, shifts, target = arguments
        result = _logarithm(builder, _load(builder, source))
        _store(builder, builder.fadd(result, _load(builder, shifts)), target)
        return context.get_dummy_value()

    return signature, generate
