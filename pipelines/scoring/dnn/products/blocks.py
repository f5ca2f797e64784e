"""Only the blocks of 16 outputs by one input in which a weight is not zero.

Sixteen weights that are kept or cut together are what one register holds (Narang, Undersander & Diamos 2017 prune
nets in such blocks): what is kept lies in memory in the order of the loop, and a number of 16 bits per block
says to which input it belongs. Up to eight frames the outputs lie in the lanes, beyond that the frames do, and no
result has to be turned. A dense matrix is the case in which all blocks are there.

Against the library's dense product it pays wherever fewer than all blocks are left (`asrscope lab sparse`), and keeps
what the cut promises: the weights need not be put into order in every call, as the library does. At one frame it is
short of that, for a good part of so short a call is Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.dnn.products._sparse import SparseProduct, by_sixteen, frames_fit, sparse_fits
from pipelines.scoring.simd.tiles import make_block_tile
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned, begin_of, copy_floats
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

FEW = 8
"""Frames up to which the outputs lie in the lanes."""


_tile_1, _tile_2, _tile_4, _tile_8 = (make_block_tile(frames, True) for frames in (1, 2, 4, 8))
_tile_16 = make_block_tile(LANES, False)


@njit_part
def _panels_fit(starts: Array, columns: Array, blocks: Array, out: Array, first: int, last: int) -> bool:
    """Whether there are panels first … last − 1 of whole blocks, and these make rows of `out`."""
    return (
        sparse_fits(starts, columns, blocks, first, last)
        and blocks.shape[1] == LANES
        and (last == first or (last - 1) * LANES < len(out))
    )


@njit(nogil=True, cache=True)
def _multiply_few(
    starts: Array, columns: Array, blocks: Array, x: tuple[int, int, int], out: Array, first: int, last: int
) -> None:
    """Rows of out f32 [outputs, n ≤ 8] that the panels first … last − 1 make, from x f32 [inputs, n].

    `x`: its address, and the bytes from a frame to the next and from an input to the next.
    """
    outputs, n = out.shape
    if n > FEW or not _panels_fit(starts, columns, blocks, out, first, last):
        raise ArrayError("_multiply_few: blocks and outputs do not fit each other")
    sums = np.empty((LANES, LANES), np.float32)
    (here, x_frame, x_input), to = x, address(sums, np.float32)
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        t = 0
        while t < n:
            at = here + t * x_frame, x_frame, x_input
            row = to + t * VECTOR_BYTES, VECTOR_BYTES
            if n - t >= 8:
                _tile_8(b, c, count, at, row)
                t += 8
            elif n - t >= 4:
                _tile_4(b, c, count, at, row)
                t += 4
            elif n - t >= 2:
                _tile_2(b, c, count, at, row)
                t += 2
            else:
                _tile_1(b, c, count, at, row)
                t += 1
        for i in range(min(LANES, outputs - p * LANES)):
            for f in range(n):
                out[p * LANES + i, f] = sums[f, i]


@njit(nogil=True, cache=True)
def _multiply_many(
    starts: Array, columns: Array, blocks: Array, inputs: int, frames: Array, out: Array, first: int, last: int
) -> None:
    """The same of any number of frames f32 [n/16, inputs, 16], as `by_sixteen` gives them.

    The columns are below `inputs`.
    """
    outputs, n = out.shape
    if not frames_fit(frames, inputs, n) or not _panels_fit(starts, columns, blocks, out, first, last):
        raise ArrayError("_multiply_many: blocks, frames and outputs do not fit each other")
    sums = np.empty((LANES, LANES), np.float32)
    for p in range(first, last):
        begin = starts[p]
        count = starts[p + 1] - begin
        b = address(blocks, np.float32) + begin * VECTOR_BYTES
        c = address(columns, np.uint16) + begin * 2
        rows = min(LANES, outputs - p * LANES)
        for t in range(0, n, LANES):
            x = address(frames[t // LANES], np.float32), 4, VECTOR_BYTES
            to = address(out, np.float32) + (p * LANES * n + t) * 4
            if rows == LANES and n - t >= LANES:
                _tile_16(b, c, count, x, (to, n * 4))
                continue
            _tile_16(b, c, count, x, (address(sums, np.float32), VECTOR_BYTES))
            for i in range(rows):
                at = address(sums, np.float32) + i * VECTOR_BYTES
                copy_floats(to + i * n * 4, at, min(LANES, n - t))


class Weights(SparseProduct):
    """Panels of 16 outputs, of which zeros fill up the last."""

    rate: ClassVar[float] = 50e9
    at_once: ClassVar[int] = LANES

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """BadInput for more inputs than 16 bits tell apart."""
        super().__init__(weight, threads, max_frames)
        outputs, inputs = self.shape
        count = -(-outputs // LANES)
        padded = np.zeros((count * LANES, inputs), np.float32)
        padded[:outputs] = weight
        panels = padded.reshape(count, LANES, inputs).transpose(0, 2, 1)
        owners, columns = np.nonzero(panels.any(2))
        blocks = aligned((len(columns), LANES))
        blocks[:] = panels[owners, columns]
        self._hold(owners, columns, blocks, count, "blocks")

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        sparse, count, threads = self._sparse, self._count, self.threads(x.shape[1])
        if x.shape[1] <= FEW:
            at, kept = (begin_of(x), x.strides[1], x.strides[0]), x

            def few(thread: int, first: int, last: int) -> None:
                assert kept is not None, "whose address it is"
                _multiply_few(*sparse, at, out, first, last)

            return lambda: shared(few, count, threads)

        def once() -> None:
            frames = by_sixteen(x, self._frames)

            def many(thread: int, first: int, last: int) -> None:
                _multiply_many(*sparse, self.shape[1], frames, out, first, last)

            shared(many, count, threads)

        return once
