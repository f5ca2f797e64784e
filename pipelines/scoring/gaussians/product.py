"""Log densities as a matrix product: expanded frames, Gaussians read in order of memory, and upper bounds of them."""

from typing import Final, cast

import numpy as np
from numba import njit

from pipelines.scoring.simd.tiles import make_tile
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, WIDE_REGISTERS, aligned
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

LIMIT = 1e4  # features are clamped here: keeps every log density finite in float32
NEVER = -1e30  # log density of the padding: no mixture ever notices it


@njit(nogil=True, cache=True)
def expand(features: Array, centre: Array, x: Array) -> None:
    """x[n, streams, 2·dim + 1] from features [n, streams · dim]: squares and values about `centre`, and one."""
    n, streams, expanded = x.shape
    dim = expanded // 2
    if features.shape != (n, streams * dim) or centre.shape != (streams * dim,) or expanded != 2 * dim + 1:
        raise ArrayError("expand: features, their centre and x do not fit each other")
    for t in range(n):
        for s in range(streams):
            for d in range(dim):
                value = features[t, s * dim + d]
                # A comparison with NaN is false, so NaN becomes zero.
                if value > LIMIT:
                    value = np.float32(LIMIT)
                elif not value >= -LIMIT:
                    value = np.float32(-LIMIT) if value < 0 else np.float32(0)
                value -= centre[s * dim + d]
                x[t, s, d] = value * value
                x[t, s, dim + d] = value
            x[t, s, 2 * dim] = 1.0


# One panel at a time: a processor prefetches one stream of memory well and four short ones badly, and eight rows give
# enough independent sums to keep its multipliers busy.
_tile_8, _tile_4, _tile_1 = make_tile(8, 1), make_tile(4, 1), make_tile(1, 1)

NOTHING: Final = cast(int, np.int64(0))
"""No address to prefetch: numba would compile `multiply` anew for a zero that is written out."""


@njit(nogil=True, cache=True)
def multiply(a: int, a_stride: int, n: int, b: int, panels: int, k: int, c: int, later: int) -> None:
    """C[n, 16·panels] = A[n, k] · B, whose panels [k, 16] are read once per eight rows, in order of memory.

    Addresses, `a_stride` in bytes. As many panels are prefetched from the address `later` on, which need not be mapped,
    some in each pass over B; none where it is 0.
    """
    panel, row = k * VECTOR_BYTES, panels * VECTOR_BYTES
    eights = n // 8 if WIDE_REGISTERS else 0
    fours = (n - 8 * eights) // 4
    ones = n - 8 * eights - 4 * fours
    passes = eights + fours + ones
    t = 0
    for turn in range(passes):
        at, to = (a + t * a_stride, a_stride), c + t * row
        for p in range(panels):
            here, there = (b + p * panel, 0), (to + p * VECTOR_BYTES, row)
            ahead = later + p * panel if later != 0 and p % passes == turn else 0
            if turn < eights:
                _tile_8(at, here, k, there, False, ahead)
            elif turn < eights + fours:
                _tile_4(at, here, k, there, False, ahead)
            else:
                _tile_1(at, here, k, there, False, ahead)
        t += 8 if turn < eights else 4 if turn < eights + fours else 1


PARTS = 3  # Steps of a panel, with a look at the bound before each

Bounds = tuple[Array, Array, int, bool]
"""Bounds for eliminating Gaussians, and the order of panels: (rest, order, keep, follow).

`rest` as `rests` makes it; `order` uint8 [groups, streams, slots]. A Gaussian that cannot be among the `keep`
best is eliminated; with `follow` the panels that held the best of a frame come first in the next.
"""


@njit_part
def bring_forward(order: Array, entered: Array, count: int | np.int64) -> None:
    """Move the last panel that entered the best to the front of `order` [slots], one after the other.

    `entered`: the places of the `count` panels that were among the best, in ascending order.
    """
    for w in range(count):
        i = entered[w]
        m = order[i]
        for j in range(i, 0, -1):
            order[j] = order[j - 1]
        order[0] = m


def rests(gaussians: Array) -> Array:
    """f32 [groups, streams, slots, PARTS, 16]: the most that the parts from each one on can add."""
    dim = gaussians.shape[3] // 2
    result = aligned((*gaussians.shape[:3], PARTS, LANES))
    for part in range(PARTS):
        d = slice(part * dim // PARTS, (part + 1) * dim // PARTS)
        square, linear = (gaussians[:, :, :, begin : begin + dim][:, :, :, d] for begin in (0, dim))
        most = np.zeros_like(square)
        np.divide(linear**2, -4 * square, out=most, where=square < 0)
        result[:, :, :, : part + 1] += most.sum(axis=3)[:, :, :, None]
    return result
