"""Frames as the log density of a Gaussian wants them: squares and values, so that it is one matrix product."""

from __future__ import annotations

import numpy as np
from numba import njit

from profiler.arrays import Array, ArrayError

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
