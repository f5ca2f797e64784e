"""The best component in place of the sum, in a tied-mixture model: no exponentials, no logarithm.

log p ≈ Σ over streams max over densities (log weight + log density). Without a matrix product it is slower than
the exact sum here; it says what the exponentials cost, and what leaving them out does to the words.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.product import NEVER
from pipelines.scoring.tied.kernels import Order, columns_fit, put_in_order, runs_fit
from pipelines.scoring.tied.packing import PackedGmm
from profiler.arrays import Array, ArrayError


def log_rows(p: PackedGmm) -> Array:
    """Logarithms of `PackedGmm.rows`."""
    with np.errstate(divide="ignore"):
        result: Array = np.maximum(np.log(p.rows), np.float32(NEVER))
    return result


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def mix_best(g: Array, log_rows: Array, order: Order, products: Array, scores: Array, first: int, last: int) -> None:
    """scores f32 [n, senones] of the codebooks from log densities `g` [n, B, 3, K]; layouts as in `kernels`."""
    n, books, streams, densities = g.shape
    start, _, _ = order
    if (
        len(products) != n
        or len(scores) != n
        or len(start) != books + 1
        or not columns_fit(start, products, log_rows.size, streams * densities)
        or not 0 <= first <= last <= books
        or not runs_fit(order, scores.shape[1], first, last)
    ):
        raise ArrayError("mix_best: densities, weights and scores do not fit each other")
    width_of_all = start[1:] - start[:-1]
    best = np.empty(width_of_all.max(), np.float32)
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(n):
            out = products[t, start[book] : start[book + 1]]
            out[:] = 0.0
            for s in range(streams):
                begin = (start[book] * streams + s * width) * densities
                some = best[:width]
                some[:] = NEVER
                for d in range(densities):
                    value = g[t, book, s, d]
                    row = log_rows[begin + d * width : begin + (d + 1) * width]
                    for c in range(width):
                        total = value + row[c]
                        some[c] = max(some[c], total)
                for c in range(width):
                    out[c] += some[c]
            put_in_order(products, order, scores, t, book)
