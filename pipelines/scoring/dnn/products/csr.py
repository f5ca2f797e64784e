"""Only the weights that are not zero, row by row: a sparse net (Yu, Seide, Li & Deng 2012).

Compressed sparse rows: for each output its weights side by side, and for each of them in 16 bits the input that it
belongs to. Frames lie in the lanes, so that one weight meets sixteen frames in one multiplication and no sum has to
be folded; one frame alone is gathered value by value, which no vector helps.

From what share of weights on it beats the library's dense product: `asrscope lab sparse`. One frame alone pays least,
since each weight costs an index, a gathered value and a multiplication where the dense row is read as fast as memory
gives it. At four frames twelve of sixteen lanes are idle, and the library is weak, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.dnn.products._sparse import SparseProduct, by_sixteen, frames_fit, sparse_fits
from pipelines.scoring.simd.tiles import SUMS, make_sparse_row
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array, ArrayError

VECTORS = 2
"""Vectors of sixteen frames at once; four find less of their frames in the first cache."""


_row_1, _row_2 = make_sparse_row(1), make_sparse_row(VECTORS)


@njit(nogil=True, cache=True)
def _multiply(
    starts: Array, columns: Array, values: Array, inputs: int, frames: Array, out: Array, first: int, last: int
) -> None:
    """Rows first … last − 1 of out f32 [outputs, n], from `frames` f32 [n/16, inputs, 16] as `by_sixteen` gives them.

    The columns are below `inputs`.
    """
    outputs, n = out.shape
    if (
        len(starts) != outputs + 1
        or not sparse_fits(starts, columns, values, first, last)
        or not frames_fit(frames, inputs, n)
    ):
        raise ArrayError("_multiply: rows, frames and outputs do not fit each other")
    rest = np.empty(VECTORS * LANES, np.float32)
    x_next = frames.shape[1] * VECTOR_BYTES
    for t in range(0, n, VECTORS * LANES):
        x, left = address(frames[t // LANES], np.float32), n - t
        for o in range(first, last):
            begin = starts[o]
            count = starts[o + 1] - begin
            v = address(values, np.float32) + 4 * begin
            c = address(columns, np.uint16) + 2 * begin
            to = address(out, np.float32) + (o * n + t) * 4
            if left >= VECTORS * LANES:
                _row_2(v, c, count, x, x_next, to)
            elif left == LANES:
                _row_1(v, c, count, x, x_next, to)
            else:
                if left > LANES:
                    _row_2(v, c, count, x, x_next, address(rest, np.float32))
                else:
                    _row_1(v, c, count, x, x_next, address(rest, np.float32))
                copy_floats(to, address(rest, np.float32), left)


# No leave to reassociate: of four loads LLVM would make one gather, which here takes thrice as long.
@njit(nogil=True, cache=True, fastmath={"contract"})
def _multiply_one(
    starts: Array, columns: Array, values: Array, inputs: int, x: Array, out: Array, first: int, last: int
) -> None:
    """The same at one frame: x f32 [inputs], out f32 [outputs]."""
    if len(x) != inputs or len(starts) != len(out) + 1 or not sparse_fits(starts, columns, values, first, last):
        raise ArrayError("_multiply_one: rows and outputs do not fit each other")
    for o in range(first, last):
        begin, end = np.uint64(starts[o]), np.uint64(starts[o + 1])
        a = b = c = d = np.float32(0)
        i = begin
        while i + np.uint64(SUMS) <= end:
            a += values[i] * x[columns[i]]
            b += values[i + np.uint64(1)] * x[columns[i + np.uint64(1)]]
            c += values[i + np.uint64(2)] * x[columns[i + np.uint64(2)]]
            d += values[i + np.uint64(3)] * x[columns[i + np.uint64(3)]]
            i += np.uint64(SUMS)
        while i < end:
            a += values[i] * x[columns[i]]
            i += np.uint64(1)
        out[o] = (a + b) + (c + d)


class Weights(SparseProduct):
    """Those that are not zero."""

    rate: ClassVar[float] = 28e9
    at_once: ClassVar[int] = VECTORS * LANES

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """BadInput for more inputs than 16 bits tell apart."""
        super().__init__(weight, threads, max_frames)
        rows, columns = np.nonzero(weight)
        self._hold(rows, columns, weight[rows, columns], len(weight), "csr")

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        sparse, count = (*self._sparse, self.shape[1]), self._count
        threads = self.threads(x.shape[1])
        if x.shape[1] == 1:
            one, found = x[:, 0], out[:, 0]

            def of_one(thread: int, first: int, last: int) -> None:
                _multiply_one(*sparse, one, found, first, last)

            return lambda: shared(of_one, count, threads)

        def once() -> None:
            frames = by_sixteen(x, self._frames)

            def of_many(thread: int, first: int, last: int) -> None:
                _multiply(*sparse, frames, out, first, last)

            shared(of_many, count, threads)

        return once
