"""A layer's product as loops for the lab `simd-int8`: one sum, and several at a time.

Weights float32 [outputs, inputs] and x [inputs] in C order, that the lab makes itself; `out` [outputs] is overwritten.
The compiler may fuse a multiplication with an addition, and neither reorder additions nor use vectors.
"""

from __future__ import annotations

import numba
import numpy as np

from profiler.arrays import F32

SUMS = 4
STEP = 8
"""Vanhoucke, Senior & Mao (2011) unroll by 8 with 4 sums."""


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
