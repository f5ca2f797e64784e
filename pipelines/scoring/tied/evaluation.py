"""Other ways to compute a tied-mixture model's densities and mixtures: by partial distances, by the best component.

Partial distance elimination computes only the densities that can be among the N best. The best component in place of
the sum takes no exponential and no logarithm: log p ≈ Σ over streams max over densities (log weight + log density).
Without a matrix product it is slower than the exact sum here; it says what the exponentials cost, and what leaving them
out does to the words.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.product import NEVER, PARTS, Bounds, bring_forward
from pipelines.scoring.simd.maxima import bound_of_nth, can_reach
from pipelines.scoring.simd.panels import partial
from pipelines.scoring.simd.vector import LANES, address, copy_floats
from pipelines.scoring.tied.kernels import Order, columns_fit, put_in_order, runs_fit
from pipelines.scoring.tied.packing import PackedGmm
from profiler.arrays import Array, ArrayError

MAX_BOUNDED = 16
"""Densities kept of which the worst is found quickly; with more, no density is eliminated."""


@njit(nogil=True, cache=True)
def bounded(x: Array, gaussians: Array, within: Bounds, g: Array, first: int, last: int) -> int:
    """Log densities `g` f32 [n, codebooks, 3, padded densities] of what can be among the best; NEVER for the others.

    Returns how many dimensions of a Gaussian were computed.
    """
    rest, order, keep, follow = within
    books, streams, slots, depth, _ = gaussians.shape
    n, dim = len(x), depth // 2
    if (
        gaussians.shape != (books, streams, slots, 2 * dim + 1, LANES)
        or slots == 0
        or x.shape != (n, streams, depth)
        or rest.shape != (books, streams, slots, PARTS, LANES)
        or order.shape != (books, streams, slots)
        or g.shape != (n, books, streams, slots * LANES)
        or keep < 1
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("bounded: frames, Gaussians and densities do not fit each other")
    vector, computed = LANES * 4, 0
    bounds, entered = np.empty(LANES, np.float32), np.empty(slots, np.int64)
    for book in range(first, last):
        for s in range(streams):
            which = book * streams + s
            for t in range(n):
                frame = address(x, np.float32) + (t * streams + s) * depth * 4
                row = address(g, np.float32) + (t * books * streams + which) * slots * vector
                g[t, book, s] = NEVER
                bounds[:] = NEVER
                winners = np.int64(0)  # a literal is a type, for which `bring_forward` would be compiled once more
                for i in range(slots):
                    m = order[book, s, i]
                    panel = address(gaussians, np.float32) + (which * slots + m) * depth * vector
                    parts = address(rest, np.float32) + (which * slots + m) * PARTS * vector
                    to = row + m * vector
                    copy_floats(to, panel + 2 * dim * vector, LANES)
                    alive = True
                    for part in range(PARTS):
                        if not can_reach(to, parts + part * vector, address(bounds, np.float32)):
                            alive = False
                            break
                        begin, end = part * dim // PARTS, (part + 1) * dim // PARTS
                        partial(frame, panel, dim, begin, end, to)
                        computed += end - begin
                    if not alive:
                        g[t, book, s, m * LANES : (m + 1) * LANES] = NEVER
                        continue
                    entered[winners] = i
                    winners += 1
                    if keep <= MAX_BOUNDED:
                        bounds[:] = bound_of_nth(row, slots, keep)[0]
                if follow:
                    bring_forward(order[book, s], entered, winners)
    return computed * LANES


def log_rows(p: PackedGmm) -> Array:
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
