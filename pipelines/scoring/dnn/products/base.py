"""The interface of products, and what all of them compare before a kernel gets addresses."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.thread_pool import worthwhile
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost

FLOAT32 = np.dtype(np.float32)
FETCHED = 2  # Frames that take as long as fetching the weights (`python -m tests.bench.constants --only products`)


class Product(ABC):
    """The weights of a layer, ready to be multiplied."""

    rate: ClassVar[float]
    """Multiply-adds a second of one thread at blocks of 16, about: whether a call is worth being shared follows.
    Measured by `python -m tests.bench.constants --only products`."""
    into_rows: ClassVar[bool]
    """Whether `out` may be a transposed view of rows (F order) at no cost; otherwise it is in C order alone."""
    shape: tuple[int, int]  # Outputs, inputs + 1
    nbytes: int  # Size of the stored parameters
    held: int  # Weights that are multiplied

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        """`weight` f32 [outputs, inputs + 1], the bias in the last column; it may be kept, never written.

        Made on any thread while others compute.
        """
        self.shape = weight.shape[0], weight.shape[1]
        self.held = weight.size
        self._threads = threads
        self._max_frames = max_frames

    def multiply(self, x: Array, out: Array) -> None:
        """out = weight · x: x f32 [inputs + 1, n] whose last row is ones, out f32 [outputs, n].

        Frames are columns, 1 ≤ n ≤ max_frames; `x` in C order, or in F order (a transposed view of rows). What does
        not fit is an `ArrayError`: kernels get addresses and strides.
        """
        self.bind(x, out)()

    def bind(self, x: Array, out: Array) -> Callable[[], None]:
        """`multiply` of these arrays as often as it is called, whatever they hold then.

        What depends on the arrays alone is done once: at one frame it takes longer than many a layer's product.
        """
        (inputs, n), (outputs, columns) = x.shape, out.shape
        # Dense along one axis, so that no row is longer than its stride.
        dense = x.strides[0] == FLOAT or x.strides[1] == FLOAT or n == 1
        if (
            (outputs, inputs) != self.shape
            or not 1 <= n == columns <= self._max_frames
            or x.dtype != FLOAT32
            or out.dtype != FLOAT32
            or not dense
            or not (out.flags.c_contiguous or self.into_rows)
            or not out.flags.writeable
        ):
            raise ArrayError(
                f"weights {self.shape} by frames {x.shape} {x.dtype} into {out.shape} {out.dtype}: they do not fit"
            )
        return self._bind(x, out)

    def threads(self, frames: int) -> int:
        return worthwhile(self._threads, self.held * (frames + FETCHED) / self.rate)

    @abstractmethod
    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        """As `bind`, for arrays that fit; the result keeps them alive."""

    @abstractmethod
    def cost(self, frame: float, times: float) -> Cost:
        """Cost law of one call, by work count.

        `frame`: frames per work count (1 for a layer, 1/outputs where outputs are counted); `times`: how many
        products of this size share the call. The net says the working set, all of its layers together, and the threads.
        """
