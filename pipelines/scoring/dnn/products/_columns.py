"""Rows of a sparse matrix: where each begins, and which input a weight or a block of weights belongs to."""

from __future__ import annotations

import numpy as np

from profiler.arrays import Array, check_indices, check_offsets
from profiler.errors import BadInput

MOST_INPUTS = 1 << 16  # that 16 bits tell apart


def compressed(
    rows: Array, columns: Array, count: int, inputs: int, product: str
) -> tuple[Array, Array]:
    """Where each of `count` rows begins, int64 [count + 1], and the columns as uint16, for kernels that trust them.

    `rows`, `columns` int64 [n]: what is kept, row by row. BadInput, which names the product, for too many inputs.
    """
    if inputs > MOST_INPUTS:
        raise BadInput(
            f"A layer has {inputs - 1} inputs; dnn.product={product} takes at most {MOST_INPUTS - 1}."
        )
    starts, short = np.searchsorted(rows, np.arange(count + 1)), columns.astype(np.uint16)
    check_indices("columns", short, inputs)
    check_offsets("starts", starts, len(short))
    return starts, short
