"""Reading memory in strides for the lab `access-orders`; whoever calls gives fitting arrays."""

from __future__ import annotations

import numba
import numpy as np

from profiler.arrays import I64, U32


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
