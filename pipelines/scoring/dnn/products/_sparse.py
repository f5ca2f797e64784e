"""Base of products of sparse weights: starts of rows, the input of each weight, frames by sixteens."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs.nets import product
from pipelines.scoring.dnn.products import Product
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned, copy_floats
from profiler.arrays import Array, ArrayError, check_indices, check_offsets
from profiler.errors import BadInput
from profiler.process.numba_flags import njit_part
from profiler.spans import Cost

MAX_INPUTS = 1 << 16  # that 16 bits tell apart


@njit_part
def sparse_fits(starts: Array, columns: Array, values: Array, first: int, last: int) -> bool:
    """Whether rows first … last − 1 begin at `starts` in `columns` and `values`, of which there are as many."""
    count = len(starts) - 1
    if count < 0 or not 0 <= first <= last <= count:
        return False
    return starts[count] == len(columns) and len(columns) == len(values)


class SparseProduct(Product):
    """Base of products that store only some of the weights."""

    into_rows: ClassVar[bool] = False
    at_once: ClassVar[int]
    """Frames for which the weights are read once."""

    def _hold(self, rows: Array, columns: Array, values: Array, count: int, name: str) -> None:
        """Keep what there is, row by row: `rows`, `columns` int64 [n], `values` f32 [n, …], of `count` rows.

        BadInput, which names the product, for more inputs than 16 bits tell apart.
        """
        inputs = self.shape[1]
        if inputs > MAX_INPUTS:
            raise BadInput(f"A layer has {inputs - 1} inputs; dnn.product={name} takes at most {MAX_INPUTS - 1}.")
        self._starts = np.searchsorted(rows, np.arange(count + 1))
        self._columns, self._values = columns.astype(np.uint16), values
        # For kernels that trust them.
        check_indices("columns", self._columns, inputs)
        check_offsets("starts", self._starts, len(self._columns))
        self.nbytes = self._columns.nbytes + values.nbytes + self._starts.nbytes
        self.held, self._count = values.size, count
        self._frames = room(self._max_frames, inputs)

    @property
    def _sparse(self) -> tuple[Array, Array, Array]:
        """`starts` int64 [rows + 1]: where a row begins in `columns` uint16 and `values`, numbers or vectors."""
        return self._starts, self._columns, self._values

    def cost(self, frame: float, times: float) -> Cost:
        """Law of the weights that there are, zeros of blocks among them, and their columns.

        At most the weights once per tile of frames; activations also put side by side, and a value of each frame read
        again for each weight, or block of them.
        """
        outputs, inputs = self.shape
        there = float(len(self._columns))
        most = self.nbytes / self.at_once + FLOAT * (3.0 * inputs + there + 3.0 * outputs)
        multiplied = self._values.size
        return product(self.shape, self.nbytes, frame, times, most, multiplied=multiplied)


def room(max_frames: int, inputs: int) -> Array:
    """For `by_sixteen`: zeros f32 [max_frames/16, inputs, 16]."""
    return aligned((-(-max_frames // LANES), inputs, LANES))


def by_sixteen(x: Array, room: Array) -> Array:
    """x f32 [inputs, n], in C or F order, as f32 [n/16, inputs, 16] in `room`; what lies beyond n stays as it was."""
    if x.flags.c_contiguous:
        _move(x, room)
    else:
        _turn(np.ascontiguousarray(x.T), room)
    return room


@njit_part
def frames_fit(frames: Array, inputs: int, n: int) -> bool:
    """Whether f32 [n/16, inputs, 16] has room for n frames."""
    return frames.shape[1:] == (inputs, LANES) and len(frames) * LANES >= n


@njit(nogil=True, cache=True)
def _move(x, room):  # type: ignore[no-untyped-def]
    """From [inputs, n]."""
    inputs, n = x.shape
    if not frames_fit(room, inputs, n):
        raise ArrayError("_move: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        to = address(room[begin // LANES], np.float32)
        for i in range(inputs):
            source = address(x, np.float32) + (i * n + begin) * 4
            copy_floats(to + i * VECTOR_BYTES, source, min(LANES, n - begin))


@njit(nogil=True, cache=True)
def _turn(x, room):  # type: ignore[no-untyped-def]
    """From [n, inputs]."""
    n, inputs = x.shape
    if not frames_fit(room, inputs, n):
        raise ArrayError("_turn: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        for i in range(inputs):
            for t in range(begin, min(begin + LANES, n)):
                room[begin // LANES, i, t - begin] = x[t, i]
