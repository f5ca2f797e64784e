"""A loop of vectors: a tile of outputs by frames is kept in registers while its weights stream past once.

The step that Vanhoucke, Senior & Mao (2011) take first, with today's tools. Outputs lie in the lanes and a value of a
frame is spread over them, so that one frame alone fills the vectors as well as six do. The weights are stored in the
order of the loop, [panel of outputs, input, lane]; a library has to put them into such an order in every call, which
costs it a fifth to two fifths of its speed at blocks of 16 to 64 frames.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs.nets import product
from pipelines.scoring.dnn.products.base import Product
from pipelines.scoring.simd.tiles import make_layer_tile
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, WIDE_REGISTERS, address, aligned, begin_of, copy_floats
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost

VECTORS = 4 if WIDE_REGISTERS else 1
"""Vectors of outputs in a panel: with 6 frames 24 sums, which leaves a few of 32 registers for factors. Three vectors
by 8 frames are as quick in themselves and leave more of a panel empty: 9 % slower at 256 outputs, 1 % at 512."""
PANEL = VECTORS * LANES
FRAMES = 6 if WIDE_REGISTERS else 4
CHAINS = 1 if WIDE_REGISTERS else 2
"""Sums of each output at two or three frames; at one frame twice as many. Those of a panel of AVX2 are else too few for
its multipliers, of which each begins a vector every cycle and ends it four cycles later."""


_prefetching_tile = make_layer_tile([FRAMES], VECTORS, prefetching=True)
_tile = make_layer_tile(range(1, FRAMES + 1), VECTORS, chains={1: CHAINS**2, 2: CHAINS, 3: CHAINS})


Strided = tuple[int, int, int]
"""Of x its address, and the bytes from a frame to the next and from an input to the next; of out the same by outputs.

Without names: numba looks at each name in every call.
"""


@njit(nogil=True, cache=True)
def _multiply(
    panels: Array, x: Strided, out: Strided, shape: tuple[int, int], sums: Array, first: int, last: int
) -> None:
    """Compute the rows of `out` f32 [outputs, n] of the panels first … last − 1 of f32 [panels, inputs, PANEL].

    `shape`: that of out; `sums` f32 [FRAMES, PANEL] is workspace of the thread.
    """
    count, inputs, _ = panels.shape
    here, x_frame, x_input = x
    out_at, out_frame, out_output = out
    outputs, n = shape
    if (
        panels.shape != (count, inputs, PANEL)
        or sums.shape != (FRAMES, PANEL)
        or not 0 <= first <= last <= count
        or (last > first and (last - 1) * PANEL >= outputs)
    ):
        raise ArrayError("_multiply: panels and outputs do not fit each other")
    to = address(sums, np.float32)
    for p in range(first, last):
        panel = address(panels[p], np.float32)
        begin = p * PANEL
        rows = min(PANEL, outputs - begin)
        for t in range(0, n, FRAMES):
            at, frames = here + t * x_frame, min(FRAMES, n - t)
            # The first of many tiles bring the next panel, each one of its vectors per input.
            later = panel + inputs * (PANEL * FLOAT + t // FRAMES * VECTOR_BYTES)
            if n > 2 * FRAMES and frames == FRAMES and t // FRAMES < VECTORS:
                _prefetching_tile(frames, at, x_frame, x_input, panel, inputs, later, to)
            else:
                _tile(frames, at, x_frame, x_input, panel, inputs, later, to)
            there = out_at + begin * out_output + t * out_frame
            for f in range(frames):
                row = to + f * PANEL * FLOAT
                if out_output == FLOAT:
                    copy_floats(there + f * out_frame, row, rows)
                    continue
                for i in range(rows):
                    copy_floats(there + f * out_frame + i * out_output, row + i * FLOAT, 1)


class Simd(Product):
    """Panels of outputs, filled up with zeros."""

    rate: ClassVar[float] = 50e9
    into_rows: ClassVar[bool] = True

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        super().__init__(weight, threads, max_frames)
        outputs, inputs = self.shape
        count = -(-outputs // PANEL)
        self._panels = aligned((count, inputs, PANEL))
        for p, panel in enumerate(self._panels):
            rows = weight[p * PANEL : (p + 1) * PANEL]
            panel[:, : len(rows)] = rows.T
        self.nbytes, self.held = self._panels.nbytes, self._panels.size
        self._threads = min(threads, count)
        self._sums = aligned((self._threads, FRAMES, PANEL))

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        here = begin_of(x), x.strides[1], x.strides[0]
        there = begin_of(out), out.strides[1], out.strides[0]
        panels, shape, sums = self._panels, out.shape, list(self._sums)
        count, threads, kept = len(panels), self.threads(x.shape[1]), (x, out)

        def part(thread: int, first: int, last: int) -> None:
            assert kept, "whose addresses they are"
            _multiply(panels, here, there, shape, sums[thread], first, last)

        return lambda: shared(part, count, threads)

    def cost(self, frame: float, times: float) -> Cost:
        """Law of a product that reads its frames again for each panel, and a panel for each tile of frames, at most."""
        outputs, inputs = self.shape
        again = FLOAT * inputs * (outputs / PANEL) + self.nbytes / FRAMES
        return product(self, frame, times, again + 3.0 * FLOAT * outputs)
