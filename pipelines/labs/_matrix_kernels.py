"""Matrix products as loops in compiled code, in the orders that the lab `matrix-orders` compares.

All take square float32 matrices [n, n] in C order that the lab makes itself, and overwrite `out`.
"""

from __future__ import annotations

import numba

from profiler.arrays import F32


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
    """A column of `out` after the other: all of `a` is gone through for each."""
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
