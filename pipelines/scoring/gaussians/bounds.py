"""What a Gaussian's log density can reach at most, known before any frame: for giving up early."""

from __future__ import annotations

import numpy as np

from pipelines.scoring.simd.vector import LANES, aligned
from profiler.arrays import Array

PARTS = 3
"""Steps of a panel, with a look at the bound before each."""


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
