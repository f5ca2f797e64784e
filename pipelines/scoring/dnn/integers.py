"""Exact products of 8-bit integers: a layer's weights by the frames of a block, as sums of 32 bits.

Where the processor adds up products of bytes, or of pairs of 16 bits (`simd.byte_products`), a tile of outputs by
frames is kept in registers while its weights stream past, as in `products.simd`; elsewhere `torch._int_mm` multiplies,
with what oneDNN finds for the processor. The former is the faster in blocks of up to 32 frames (1.4 times, on a Xeon
with AMX): a library lays the weights out anew for every call, and without VNNI oneDNN has no fast product of bytes.
"""

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs.nets import MOVED
from pipelines.scoring.dnn.products.base import FETCHED
from pipelines.scoring.simd.byte_products import BYTE_PRODUCTS, GROUP, OFFSET, PAIR_PRODUCTS, Bytes, make_byte_tile
from pipelines.scoring.simd.vector import LANES, address, address_of_rows, aligned, copy_floats
from pipelines.scoring.thread_pool import shared, worthwhile
from profiler.arrays import Array, ArrayError

TILES = BYTE_PRODUCTS or PAIR_PRODUCTS  # Whether this processor has instructions for tiles of integers
VECTORS = 4 if BYTE_PRODUCTS else 1
"""Vectors of outputs in a panel: with 6 frames 24 sums, which leaves a few of 32 registers for factors. Of AVX2's 16
registers, half as wide, 4 frames take 8 for the sums of one vector."""
PANEL = VECTORS * LANES
RATE = 200e9 if BYTE_PRODUCTS else 60e9  # As `Product.rate`
FRAMES = 6 if BYTE_PRODUCTS else 4


def filled(inputs: int) -> int:
    """`inputs` filled up to GROUP: what an instruction takes. Of one input alone torch 2.13 multiplies wrong."""
    return -(-inputs // GROUP) * GROUP


class Library:
    """The weights of a layer, multiplied by torch on `threads` threads.

    `nbytes`: size of the stored weights; `moved`, at most: bytes of weights in a call, and further bytes of weights and
    activations for each of its frames.
    """

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        import torch

        whole = np.zeros((len(weight), filled(weight.shape[1])), np.int8)
        whole[:, : weight.shape[1]] = weight
        self.nbytes = whole.nbytes
        self.moved = MOVED * whole.nbytes, MOVED * whole.shape[1]
        self._columns = torch.from_numpy(whole).t()
        self._sums = torch.empty((max_frames, len(weight)), dtype=torch.int32)
        self._threads, self._torch = threads, torch

    def threads(self, frames: int) -> int:
        """Number of threads that share a call of `frames` frames."""
        return self._threads

    def sums(self, x: Array) -> Array:
        """Exact products i32 [n, outputs] of frames i8 [n, inputs filled up to GROUP]; valid until the next call."""
        # The number is one of the calling thread as well as of the process, so it is set by who multiplies.
        if self._torch.get_num_threads() != self._threads:
            self._torch.set_num_threads(self._threads)
        sums = self._sums[: len(x)]
        self._torch._int_mm(self._torch.from_numpy(x), self._columns, out=sums)
        return sums.numpy()


class Panels:
    """As `Library`; weights in the order of the loop, uint8 [panel of outputs, four inputs, output, input], 128 more
    than they are.

    The instruction for bytes takes one unsigned and one signed factor.
    """

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        outputs, inputs = weight.shape
        groups = filled(inputs) // GROUP
        count = -(-outputs // PANEL)
        whole = np.zeros((count * PANEL, groups * GROUP), np.int16)
        whole[:outputs, :inputs] = weight
        self._panels = aligned((count, groups, PANEL, GROUP), np.uint8)
        self._panels[:] = (whole + OFFSET).reshape(count, PANEL, groups, GROUP).swapaxes(1, 2)
        self.nbytes = self._panels.nbytes
        # A panel reads a frame again, and a tile of frames its panel.
        self.moved = float(self.nbytes), self.nbytes / FRAMES + float(count * groups * GROUP)
        self._threads = min(threads, count)
        self._sums = np.empty((max_frames, outputs), np.int32)
        self._excess = np.empty(max_frames, np.int32)
        self._tiles = aligned((self._threads, FRAMES, PANEL), np.int32)

    def threads(self, frames: int) -> int:
        return worthwhile(self._threads, self._panels.size * (frames + FETCHED) / RATE)

    def sums(self, x: Array) -> Array:
        sums = self._sums[: len(x)]
        _excess(x, self._excess)

        def part(thread: int, first: int, last: int) -> None:
            _multiply(self._panels, x, self._excess, sums, self._tiles[thread], first, last)

        shared(part, len(self._panels), self.threads(len(x)))
        return sums


def create(weight: Array, threads: int, max_frames: int) -> Panels | Library:
    """The faster one on this processor, for `weight` i8 [outputs, inputs] and at most `max_frames` frames."""
    return (Panels if TILES else Library)(weight, threads, max_frames)


_tile = make_byte_tile(range(1, FRAMES + 1), VECTORS, Bytes())


@njit(nogil=True, cache=True)
def _excess(x, excess):  # type: ignore[no-untyped-def]
    """Fill `excess` i32 [n or more]: the weights' offset in every sum of a frame of x i8 [n, inputs]."""
    if len(excess) < len(x):
        raise ArrayError("_excess: more frames than there is room for")
    for t in range(x.shape[0]):
        total = np.int32(0)
        for i in range(x.shape[1]):
            total += np.int32(x[t, i])
        excess[t] = OFFSET * total


@njit(nogil=True, cache=True)
def _multiply(panels, x, excess, sums, tile, first, last):  # type: ignore[no-untyped-def]
    """Columns of sums i32 [n, outputs] that the panels first … last − 1 make; `tile` is workspace of the thread."""
    count, groups, _, _ = panels.shape
    n, outputs = sums.shape
    if (
        panels.shape != (count, groups, PANEL, GROUP)
        or x.shape != (n, groups * GROUP)
        or x.strides[1] != 1
        or len(excess) < n
        or tile.shape != (FRAMES, PANEL)
        or not 0 <= first <= last <= count
        or (last > first and (last - 1) * PANEL >= outputs)
    ):
        raise ArrayError("_multiply: panels, frames and sums do not fit each other")
    to, x_frame = address(tile, np.int32), x.strides[0]
    for p in range(first, last):
        panel = address(panels[p], np.uint8)
        begin = p * PANEL
        rows = min(PANEL, outputs - begin)
        for t in range(0, n, FRAMES):
            at = address_of_rows(x, np.int8) + t * x_frame
            less = address(excess, np.int32) + t * FLOAT
            frames = min(FRAMES, n - t)
            _tile(frames, at, x_frame, panel, groups, less, to)
            there = address(sums, np.int32) + (t * outputs + begin) * FLOAT
            for f in range(frames):
                # Integers of the same size.
                copy_floats(there + f * outputs * FLOAT, to + f * PANEL * FLOAT, rows)
