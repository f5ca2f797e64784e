"""The loops that find the roofs, compiled by numba and kept on disk.

Imported by `cpu` alone, when it measures: numba takes half a second to import. Every kernel repeats
its work inside so that the call itself does not count, and releases the GIL so that threads can share it.
"""

import numba
import numpy as np

from profiler.arrays import Array

HORNER_TERMS = 16  # Multiply-adds per element of `fma_vector`, enough to hide the load and the store
SCALAR_CHAINS = 8  # Independent sums in `fma_scalar`: two FMA units with a latency of four cycles need eight


@numba.njit(cache=True, nogil=True, fastmath=True)
def fma_vector(values: Array, out: Array, repeats: int) -> None:
    """Evaluate a polynomial of 16 multiply-adds on each of `values` (float32 [n]), `repeats` times."""
    a = np.float32(0.5)
    b = np.float32(0.25)
    for _ in range(repeats):
        for i in range(values.size):
            x = values[i]
            y = a
            for _ in range(HORNER_TERMS):
                y = y * x + b
            out[i] = y


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def fma_scalar(values: Array, index: Array, repeats: int) -> np.float32:
    """Sum products over indirect loads (uint32 [n]), 8 chains: 1 multiply-add per element, not vectorisable."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0.0)
    f = np.float32(0.999)
    for _ in range(repeats):
        for i in range(0, index.size, SCALAR_CHAINS):
            s0 = s0 * f + values[index[i]]
            s1 = s1 * f + values[index[i + 1]]
            s2 = s2 * f + values[index[i + 2]]
            s3 = s3 * f + values[index[i + 3]]
            s4 = s4 * f + values[index[i + 4]]
            s5 = s5 * f + values[index[i + 5]]
            s6 = s6 * f + values[index[i + 6]]
            s7 = s7 * f + values[index[i + 7]]
    return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7


@numba.njit(cache=True, nogil=True, fastmath=True)
def exp_loop(values: Array, out: Array, repeats: int) -> None:
    """Take exp of each of `values` (float32 [n]), `repeats` times."""
    for _ in range(repeats):
        for i in range(values.size):
            out[i] = np.exp(values[i])


@numba.njit(cache=True, nogil=True, fastmath=True)
def log_loop(values: Array, out: Array, repeats: int) -> None:
    """Take log of each of `values` (float32 [n]), `repeats` times."""
    for _ in range(repeats):
        for i in range(values.size):
            out[i] = np.log(values[i])


LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)  # ln 2 in two parts, the first of few bits: exact products (Cody and Waite 1980)
ROUNDER = np.float32(12582912.0)  # 1.5·2^23: added to a small float, the lowest bits are the nearest integer
MANTISSA_BITS = 23
LOG_PIVOT = np.int32(0x3F3504F3)  # The bits of √½; mantissas are taken from there to √2, around 1

# Taylor's coefficients: the speed is that of any polynomial of this degree, the accuracy 1e-6.
EXP_2, EXP_3, EXP_4, EXP_5 = (np.float32(1 / f) for f in (2.0, 6.0, 24.0, 120.0))


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp_vector(values: Array, out: Array, repeats: int) -> None:
    """Take exp of each of `values` (float32 [n], −80…80) by a polynomial the compiler can vectorise."""
    one = np.float32(1.0)
    for _ in range(repeats):
        for i in range(values.size):
            x = values[i]
            t = x * LOG2_E + ROUNDER
            n = t - ROUNDER
            r = x - n * LN2_HIGH - n * LN2_LOW
            p = one + r * (one + r * (EXP_2 + r * (EXP_3 + r * (EXP_4 + r * EXP_5))))
            # Adding to the exponent's bits multiplies by a power of two.
            bits = np.float32(p).view(np.int32) + (np.float32(t).view(np.int32) << MANTISSA_BITS)
            out[i] = np.int32(bits).view(np.float32)


# ln(1 + f) = 2·atanh(s), s = f / (2 + f): odd powers of s converge fast for |f| ≤ √2 − 1.
ATANH_3, ATANH_5, ATANH_7, ATANH_9 = (np.float32(2 / d) for d in (3.0, 5.0, 7.0, 9.0))


# Without numpy's error model every division is a branch that might raise.
@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def log_vector(values: Array, out: Array, repeats: int) -> None:
    """Take log of each of `values` (float32 [n], normal and positive) in a form that vectorises."""
    two = np.float32(2.0)
    one = np.float32(1.0)
    for _ in range(repeats):
        for i in range(values.size):
            bits = np.float32(values[i]).view(np.int32)
            exponent = np.int32(bits - LOG_PIVOT) >> MANTISSA_BITS
            f = np.int32(bits - (exponent << MANTISSA_BITS)).view(np.float32) - one
            s = f / (two + f)
            q = s * s
            p = s * (two + q * (ATANH_3 + q * (ATANH_5 + q * (ATANH_7 + q * ATANH_9))))
            n = np.float32(exponent)
            out[i] = n * LN2_HIGH + (n * LN2_LOW + p)


@numba.njit(cache=True, nogil=True, fastmath=True)
def read(values: Array, repeats: int) -> np.float32:
    """Read all of `values` (float32 [n]) `repeats` times and return a sum, so that none is left out."""
    total = np.float32(0.0)
    for r in range(repeats):
        # Each pass begins with another value, so that the compiler cannot read once for all.
        s = np.float32(r)
        for i in range(values.size):
            s += values[i]
        total += s
    return total


@numba.njit(cache=True, nogil=True, fastmath=True)
def write(values: Array, repeats: int) -> None:
    """Write all of `values` (float32 [n]) `repeats` times, with another number each time."""
    for r in range(repeats):
        s = np.float32(r) + np.float32(0.5)
        for i in range(values.size):
            values[i] = s


@numba.njit(cache=True, nogil=True, fastmath=True)
def triad(a: Array, b: Array, c: Array, repeats: int) -> None:
    """a = b + s·c (STREAM's triad) over float32 [n], `repeats` times."""
    for r in range(repeats):
        s = np.float32(r)
        for i in range(a.size):
            a[i] = b[i] + s * c[i]


@numba.njit(cache=True, nogil=True)
def nothing(value: int) -> int:
    """Return `value`: what a call into compiled code costs."""
    return value


@numba.njit(cache=True, nogil=True)
def chase(places: Array, state: Array, accesses: int) -> None:
    """Follow `places` (uint32 [n], each the index of the next) from `state` [1]: each waits for the one before."""
    if places.size == 0:
        return
    at = state[0]
    for _ in range(accesses):
        at = places[at]
    state[0] = at


@numba.njit(cache=True, nogil=True, fastmath=True)
def gather(places: Array, order: Array, state: Array, accesses: int) -> np.uint32:
    """Add up `places` (uint32 [n]) at the indices of `order` from its place `state` [1] on: none waits for another."""
    total = np.uint32(0)
    n = order.size
    if n == 0:
        return total
    i = state[0]
    for _ in range(accesses):
        total += places[order[i]]
        i += 1
        if i == n:
            i = 0
    state[0] = i
    return total


@numba.njit(cache=True, nogil=True)
def some(a: Array, b: Array, c: Array, first: int, last: int) -> None:
    """Nothing: three arrays (float32 [n, m]) and two numbers, as the kernels of a recogniser take them."""
    for i in range(first, last):
        c[i, 0] = a[i, 0] + b[i, 0]
