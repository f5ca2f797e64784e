"""Weights as they are, multiplied by the library's matrix product or by a plain loop."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls
from pipelines.scoring.costs.nets import MOVED, product
from pipelines.scoring.dnn.products.base import Product
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost


class Blas(Product):
    """numpy's BLAS: the fastest there is for dense weights in most shapes.

    Frames are columns: with OpenBLAS that takes 0.5 to 0.9 of the time of frames as rows at blocks of 16, and two
    thirds of torch's with the 5 126 rows of an output layer.
    """

    into_rows: ClassVar[bool] = False

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        super().__init__(weight, threads, max_frames)
        self._weight, self.nbytes = weight, weight.nbytes

    def threads(self, frames: int) -> int:
        return self._threads

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        return partial(np.matmul, self._weight, x, out=out)

    def cost(self, frame: float, times: float) -> Cost:
        """Law of a product whose operands are packed in every call."""
        outputs, inputs = self.shape
        most, called = FLOAT * (MOVED * inputs + outputs), calls(times, times)
        return product(self, frame, times, most, packed=MOVED, called=called)


# Neither vectors nor several sums: without leave to reassociate, the compiler keeps to the order of the additions.
@njit(nogil=True, cache=True, fastmath={"contract"})
def _multiply(weight, frames, out, first, last):  # type: ignore[no-untyped-def]
    """out[o, t] = weight[o] · frames[t] for first ≤ o < last; frames f32 [n, inputs + 1], out f32 [outputs, n]."""
    outputs, n = out.shape
    if len(weight) != outputs or frames.shape != (n, weight.shape[1]) or not 0 <= first <= last <= outputs:
        raise ArrayError("_multiply: weights, frames and outputs do not fit each other")
    for t in range(n):
        for o in range(first, last):
            total = np.float32(0)
            for i in range(weight.shape[1]):
                total += weight[o, i] * frames[t, i]
            out[o, t] = total


class Scalar(Product):
    """One multiplication and one addition at a time: what Vanhoucke, Senior & Mao (2011) begin with.

    Every sum waits for the addition before it, about four cycles each, so that even the roof of scalar arithmetic,
    which keeps eight sums going, lies several times higher. Frame by frame, as a recogniser without batching goes
    through them, and added in the order of the inputs.
    """

    rate: ClassVar[float] = 1e9
    into_rows: ClassVar[bool] = True

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        super().__init__(weight, threads, max_frames)
        self._weight, self.nbytes = weight, weight.nbytes
        self._frames = np.empty((max_frames, weight.shape[1]), np.float32)

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        frames = self._frames[: x.shape[1]]
        count, threads = len(self._weight), self.threads(len(frames))

        def part(thread: int, first: int, last: int) -> None:
            _multiply(self._weight, frames, out, first, last)

        def once() -> None:
            frames[:] = x.T
            shared(part, count, threads)

        return once

    def cost(self, frame: float, times: float) -> Cost:
        """Law of weights that are read once per call at least, and at most once per frame."""
        outputs, inputs = self.shape
        return product(self, frame, times, self.nbytes + FLOAT * (3.0 * inputs + outputs), operation="scalar")
