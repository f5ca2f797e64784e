"""Only the blocks of 16 outputs by one input in which a weight is not zero.

Sixteen weights that are kept or cut together are what one register holds (Narang, Undersander & Diamos 2017 prune
nets in such blocks): what is kept lies in memory in the order of the loop, and a number of 16 bits beside each block
says to which input it belongs. Up to eight frames the outputs lie in the lanes, beyond that the frames do, and no
result has to be turned. A dense matrix is the case in which all blocks are there.

Measured against the library's dense product (as `csr` was, blocks cut at random): times as fast, by frames at once

    kept     1 frame    4          16         64
    10 %     3.0–5.6    10–16      9.3–12     9.0
    20 %     2.6–3.6    7.3–11     5.7–6.6    5.1–5.5
    30 %     2.2–2.6    6.2–7.6    4.2–4.5    3.6–3.8
    50 %     1.5–1.9    4.4–5.4    2.6–3.4    2.2–2.4

So it pays wherever fewer than all blocks are left, and keeps what the cut promises: above 1/kept because the weights
need not be put into order in every call, as the library does (at four frames that is most of its time). At one
frame it is short of 1/kept: calls of some 5 µs, of which 1 to 2 are Python's.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn.products import Product
from pipelines.scoring.dnn.products._columns import compressed
from pipelines.scoring.dnn.products._frames import by_sixteen, room
from pipelines.scoring.simd.sparse import make_block_tile
from pipelines.scoring.simd.vector import (
    LANES,
    VECTOR_BYTES,
    address,
    aligned,
    copy_floats,
)
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost, Linear

FEW = 8
"""Frames up to which the outputs lie in the lanes."""


_tile_1, _tile_2, _tile_4, _tile_8 = (make_block_tile(frames, True) for frames in (1, 2, 4, 8))
_tile_16 = make_block_tile(LANES, False)


@njit(nogil=True, cache=True)
def _multiply_few(starts, columns, blocks, x, x_input, x_frame, out, sums, first, last):  # type: ignore[no-untyped-def]
    """Rows of out f32 [outputs, n ≤ 8] that the panels first … last − 1 make, from x f32 [inputs, n].

    `x`, `x_input`, `x_frame`: its address, and bytes from an input to the next and from a frame to the next.
    `starts` int64 [panels + 1]: where a panel begins in `columns` uint16 and `blocks` f32 [blocks, 16]; `sums` f32
    [16, 16] is workspace of the thread.
    """
    outputs, n = out.shape
    if (
        n > FEW
        or blocks.shape != (len(columns), LANES)
        or len(starts) == 0
        or starts[-1] != len(columns)
        or sums.shape != (LANES, LANES)
        or not 0 <= first <= last <= len(starts) - 1
        or (last > first and (last - 1) * LANES >= outputs)
    ):
        raise ArrayError("_multiply_few: blocks and outputs do not fit each other")
    to = address(sums, np.float32)
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        t = 0
        while t < n:
            at, row = x + t * x_frame, to + t * VECTOR_BYTES
            if n - t >= 8:
                _tile_8(b, c, count, at, x_frame, x_input, row, VECTOR_BYTES)
                t += 8
            elif n - t >= 4:
                _tile_4(b, c, count, at, x_frame, x_input, row, VECTOR_BYTES)
                t += 4
            elif n - t >= 2:
                _tile_2(b, c, count, at, x_frame, x_input, row, VECTOR_BYTES)
                t += 2
            else:
                _tile_1(b, c, count, at, x_frame, x_input, row, VECTOR_BYTES)
                t += 1
        for i in range(min(LANES, outputs - p * LANES)):
            for f in range(n):
                out[p * LANES + i, f] = sums[f, i]


@njit(nogil=True, cache=True)
def _multiply_many(starts, columns, blocks, inputs, frames, out, sums, first, last):  # type: ignore[no-untyped-def]
    """The same of any number of frames f32 [n/16, inputs, 16], as `by_sixteen` gives them.

    The columns are below `inputs`.
    """
    outputs, n = out.shape
    if (
        blocks.shape != (len(columns), LANES)
        or len(starts) == 0
        or starts[-1] != len(columns)
        or frames.shape[1:] != (inputs, LANES)
        or len(frames) * LANES < n
        or sums.shape != (LANES, LANES)
        or not 0 <= first <= last <= len(starts) - 1
        or (last > first and (last - 1) * LANES >= outputs)
    ):
        raise ArrayError("_multiply_many: blocks, frames and outputs do not fit each other")
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        rows = min(LANES, outputs - p * LANES)
        for t in range(0, n, LANES):
            x = address(frames[t // LANES], np.float32)
            to = address(out, np.float32) + (p * LANES * n + t) * 4
            if rows == LANES and n - t >= LANES:
                _tile_16(b, c, count, x, 4, VECTOR_BYTES, to, n * 4)
                continue
            _tile_16(b, c, count, x, 4, VECTOR_BYTES, address(sums, np.float32), VECTOR_BYTES)
            for i in range(rows):
                at = address(sums, np.float32) + i * VECTOR_BYTES
                copy_floats(to + i * n * 4, at, min(LANES, n - t))


class Weights(Product):
    """Panels of 16 outputs, of which zeros fill up the last."""

    into_rows: ClassVar[bool] = False

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """BadInput for more inputs than 16 bits tell apart."""
        super().__init__(weight, threads, max_frames)
        outputs, inputs = self.shape
        count = -(-outputs // LANES)
        padded = np.zeros((count * LANES, inputs), np.float32)
        padded[:outputs] = weight
        panels = padded.reshape(count, LANES, inputs).transpose(0, 2, 1)
        owners, columns = np.nonzero(panels.any(2))
        self._starts, self._columns = compressed(owners, columns, count, inputs, "blocks")
        self._blocks = aligned((len(columns), LANES))
        self._blocks[:] = panels[owners, columns]
        self.nbytes = self._columns.nbytes + self._blocks.nbytes + self._starts.nbytes
        self._threads, self._panels = min(threads, count), count
        self._frames = room(max_frames, inputs)
        self._sums = aligned((self._threads, LANES, LANES))

    def _product(self, x: Array, out: Array) -> None:
        sparse = self._starts, self._columns, self._blocks
        if x.shape[1] <= FEW:
            at, (x_input, x_frame) = x.ctypes.data, x.strides

            def part(thread: int, first: int, last: int) -> None:
                sums = self._sums[thread]
                _multiply_few(*sparse, at, x_input, x_frame, out, sums, first, last)
        else:
            frames = by_sixteen(x, self._frames)

            def part(thread: int, first: int, last: int) -> None:
                _multiply_many(*sparse, self.shape[1], frames, out, self._sums[thread], first, last)

        shared(part, self._panels, self._threads)

    def cost(self, frame: float, times: float) -> Cost:
        """What blocks there are, once per call, activations in and out; the zeros within a block are multiplied, too.

        At most the blocks once per sixteen frames; activations also put side by side, and their values read once for
        each block, or the block's once for each of them.
        """
        outputs, inputs = self.shape
        count = float(len(self._columns))
        least = FLOAT * (inputs + outputs) * frame
        most = (self.nbytes / LANES + FLOAT * (3.0 * inputs + count + 3.0 * outputs)) * frame
        return Cost(
            operations={"gemm": Linear(per_work=(2.0 * LANES * count * frame, 0.0, 0.0))},
            bytes_min=Linear(fixed=times * self.nbytes, per_work=(least, 0.0, 0.0)),
            bytes_max=Linear(fixed=times * self.nbytes, per_work=(most, 0.0, 0.0)),
            threads=self._threads,
        )
