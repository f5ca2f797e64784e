"""Which input a weight or a block of weights belongs to, as a number of 16 bits."""

from __future__ import annotations

import numpy as np

from profiler.arrays import Array
from profiler.errors import BadInput

MOST_INPUTS = 1 << 16  # that 16 bits tell apart


def numbers(columns: Array, inputs: int, product: str) -> Array:
    """`columns` int64, each below `inputs`, as uint16; BadInput, which names the product, for too many inputs."""
    if inputs > MOST_INPUTS:
        raise BadInput(
            f"A layer has {inputs - 1} inputs; dnn.product={product} takes at most {MOST_INPUTS - 1}."
        )
    return columns.astype(np.uint16)
