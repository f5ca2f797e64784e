"""What lies between the products of an nnet3 net: inputs put side by side or added up, ReLU, scale and shift."""

from __future__ import annotations

import numpy as np
from numba import njit

from profiler.arrays import Array, ArrayError


@njit(nogil=True, cache=True, fastmath={"contract"})
def gather(source, first, width, rows, scale, into, column, added):  # type: ignore[no-untyped-def]
    """Put `scale` × source[rows, first : first + width] into f32 [n, …] from `column` on, or add it if `added`.

    `source` f32 [m, values], `rows` int64 [n].
    """
    n = len(rows)
    if (
        len(into) != n
        or first < 0
        or column < 0
        or width < 0
        or first + width > source.shape[1]
        or column + width > into.shape[1]
    ):
        raise ArrayError("gather: values and the input that they are for do not fit each other")
    for t in range(n):
        row = rows[t]
        if not 0 <= row < len(source):
            raise ArrayError("gather: a frame that there is none")
        if added:
            for i in range(width):
                into[t, column + i] += scale * source[row, first + i]
        elif scale == np.float32(1):
            for i in range(width):
                into[t, column + i] = source[row, first + i]
        else:
            for i in range(width):
                into[t, column + i] = scale * source[row, first + i]


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "contract"})
def finish(values: Array, relu: bool, scale: Array, shift: Array) -> None:
    """ReLU if `relu`, then scale and shift f32 [k], in place of `values` f32 [n, k]; none where they are empty."""
    n, k = values.shape
    scaled = len(scale) > 0
    if scaled and (len(scale) != k or len(shift) != k):
        raise ArrayError("finish: values and their scales do not fit each other")
    for t in range(n):
        if relu:
            for i in range(k):
                values[t, i] = max(values[t, i], np.float32(0))
        if scaled:
            for i in range(k):
                values[t, i] = values[t, i] * scale[i] + shift[i]


def softmax(values: Array, *, log: bool) -> None:
    """Softmax of each row of f32 [n, k], or its logarithm, in place."""
    values -= values.max(axis=1, keepdims=True)
    sums = np.exp(values).sum(axis=1, keepdims=True)
    if log:
        values -= np.log(sums)
    else:
        np.exp(values, out=values)
        values /= sums
