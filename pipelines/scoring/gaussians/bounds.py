"""Upper bounds of Gaussians' log densities, known before any frame, for partial distance elimination."""

from __future__ import annotations

import numpy as np

from pipelines.scoring.simd.vector import LANES, aligned
from profiler.arrays import Array
from profiler.process.numba_flags import njit_part

PARTS = 3
"""Steps of a panel, with a look at the bound before each."""


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
        square, linear = (
            gaussians[:, :, :, :dim][:, :, :, d],
            gaussians[:, :, :, dim : 2 * dim][:, :, :, d],
        )
        most = np.zeros_like(square)
        np.divide(linear**2, -4 * square, out=most, where=square < 0)
        result[:, :, :, : part + 1] += most.sum(axis=3)[:, :, :, None]
    return result
