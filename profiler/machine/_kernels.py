"""The loops that find the roofs, compiled by numba and kept on disk.

Imported by `measuring` alone, when it measures: numba takes half a second to import. Every kernel repeats
its work inside so that the call itself does not count, and releases the GIL so that threads can share it.
"""

import numba
import numpy as np

HORNER_TERMS = 16
"""Multiply-adds per element of `fma_vector`, enough to hide the load and the store."""

SCALAR_CHAINS = 8
"""Independent sums in `fma_scalar`: two FMA units with a latency of four cycles need eight."""


@numba.njit(cache=True, nogil=True, fastmath=True)
def fma_vector(values: np.ndarray, repeats: int) -> np.float32:
    """Evaluate a polynomial of 16 multiply-adds on each of `values` (float32 [n]), `repeats` times."""
    a = np.float32(0.5)
    b = np.float32(0.25)
    for _ in range(repeats):
        for i in range(values.size):
            x = values[i]
            y = a
            for _ in range(HORNER_TERMS):
                y = y * x + b
            values[i] = y
    return values[0]


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def fma_scalar(values: np.ndarray, index: np.ndarray, repeats: int) -> np.float32:
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
def exp_loop(values: np.ndarray, out: np.ndarray, repeats: int) -> None:
    """Take exp of each of `values` (float32 [n]), `repeats` times."""
    for _ in range(repeats):
        for i in range(values.size):
            out[i] = np.exp(values[i])


@numba.njit(cache=True, nogil=True, fastmath=True)
def log_loop(values: np.ndarray, out: np.ndarray, repeats: int) -> None:
    """Take log of each of `values` (float32 [n]), `repeats` times."""
    for _ in range(repeats):
        for i in range(values.size):
            out[i] = np.log(values[i])


@numba.njit(cache=True, nogil=True, fastmath=True)
def read(values: np.ndarray, repeats: int) -> np.float32:
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
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray, repeats: int) -> None:
    """a = b + s·c (STREAM's triad) over float32 [n], `repeats` times."""
    for r in range(repeats):
        s = np.float32(r)
        for i in range(a.size):
            a[i] = b[i] + s * c[i]


@numba.njit(cache=True, nogil=True)
def nothing(value: int) -> int:
    """Return `value`: what a call into compiled code costs."""
    return value
