"""Compiled loops that labs time, each on fitting arrays that its lab makes itself."""

import numba
import numpy as np

from profiler.arrays import F32, I64, U32


@numba.njit(cache=True, nogil=True)
def strided(values: U32, stride: int, state: I64, accesses: int) -> np.int64:
    """Add up `accesses` of `values` (uint32 [n], n a multiple of `stride`), every `stride`-th one.

    It goes on from `state` [2]: the place, and at which of the first `stride` places this round began. The next round
    begins one place further, so that `stride` rounds meet every value once.
    """
    n = values.size
    total = np.int64(0)
    at, first = state[0], state[1]
    left = accesses
    while left > 0:
        count = min((n - at + stride - 1) // stride, left)
        for _ in range(count):
            total += values[at]
            at += stride
        left -= count
        if at >= n:
            first = first + 1 if first + 1 < stride else 0
            at = first
    state[0], state[1] = at, first
    return total


@numba.njit(cache=True, nogil=True)
def add(a: F32, b: F32, out: F32) -> None:
    """out = a + b over float32 [n]."""
    for i in range(out.size):
        out[i] = a[i] + b[i]


# -- clocks-cores: Marsaglia's xorshift ("Xorshift RNGs", Journal of Statistical Software 8, 2003) -

CYCLES = 6
"""Of a step of `chain`, on processors where a shift and an exclusive or take a cycle each, as on all of x86 since
2000."""


@numba.njit(cache=True, nogil=True)
def chain(start: np.uint64, steps: int) -> np.uint64:
    """The number `steps` after `start`, uint64: each operation waits for the one before, so its rate is the clock's."""
    x = np.uint64(start)
    for _ in range(steps):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x


@numba.njit(cache=True, nogil=True, fastmath=True)
def by_element(a: F32, b: F32, out: F32) -> None:
    """Each element as a dot product: the row of `a` lies in order, the column of `b` a row apart."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            total = a[i, 0] * b[0, j]
            for k in range(1, n):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@numba.njit(cache=True, nogil=True, fastmath=True)
def by_column(a: F32, b: F32, out: F32) -> None:
    """Compute `out` column by column; each reads all of `a`."""
    n = a.shape[0]
    for j in range(n):
        for i in range(n):
            out[i, j] = 0
        for k in range(n):
            factor = b[k, j]
            for i in range(n):
                out[i, j] += a[i, k] * factor


@numba.njit(cache=True, nogil=True, fastmath=True)
def by_row(a: F32, b: F32, out: F32) -> None:
    """The whole at once in the order in which memory lies: rows of `b` are added to rows of `out`."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0
        for k in range(n):
            factor = a[i, k]
            for j in range(n):
                out[i, j] += factor * b[k, j]


@numba.njit(cache=True, nogil=True, fastmath=True)
def in_blocks(a: F32, b: F32, out: F32, block: int) -> None:
    """As `by_row`, one square of `block` × `block` of `b` at a time, which stays in a cache meanwhile."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0
    for first_k in range(0, n, block):
        last_k = min(first_k + block, n)
        for first_j in range(0, n, block):
            last_j = min(first_j + block, n)
            for i in range(n):
                row = out[i, first_j:last_j]
                for k in range(first_k, last_k):
                    factor, other = a[i, k], b[k, first_j:last_j]
                    for j in range(last_j - first_j):
                        row[j] += factor * other[j]


# Weights float32 [outputs, inputs] and x [inputs] in C order; `out` [outputs] is overwritten. The compiler may fuse a
# multiplication with an addition, and neither reorder additions nor use vectors.

STEP = 8  # Vanhoucke, Senior & Mao (2011) unroll by 8 with 4 sums


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def plain(weight: F32, x: F32, out: F32) -> None:
    """One sum: each addition waits for the one before."""
    outputs, inputs = weight.shape
    for o in range(outputs):
        total = np.float32(0)
        for i in range(inputs):
            total += weight[o, i] * x[i]
        out[o] = total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def unrolled(weight: F32, x: F32, out: F32) -> None:
    """Eight products a step into four sums, which do not wait for each other."""
    outputs, inputs = weight.shape
    whole = inputs // STEP * STEP
    for o in range(outputs):
        a = b = c = d = np.float32(0)
        for i in range(0, whole, STEP):
            a += weight[o, i] * x[i]
            b += weight[o, i + 1] * x[i + 1]
            c += weight[o, i + 2] * x[i + 2]
            d += weight[o, i + 3] * x[i + 3]
            a += weight[o, i + 4] * x[i + 4]
            b += weight[o, i + 5] * x[i + 5]
            c += weight[o, i + 6] * x[i + 6]
            d += weight[o, i + 7] * x[i + 7]
        for i in range(whole, inputs):
            a += weight[o, i] * x[i]
        out[o] = (a + b) + (c + d)
