"""The library's matrix product (numpy's BLAS): the fastest there is for dense weights in most shapes.

Frames are columns: with OpenBLAS that takes 0.5 to 0.9 of the time of frames as rows at blocks of 16, and two
thirds of torch's with the 5 126 rows of an output layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls
from pipelines.scoring.costs.nets import MOVED, product
from pipelines.scoring.dnn.products import Product
from profiler.arrays import Array
from profiler.spans import Cost


class Weights(Product):
    """As they are."""

    into_rows: ClassVar[bool] = False

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        super().__init__(weight, threads, max_frames)
        self._weight = weight
        self.nbytes = weight.nbytes

    def threads(self, frames: int) -> int:
        return self._threads

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        return partial(np.matmul, self._weight, x, out=out)

    def cost(self, frame: float, times: float) -> Cost:
        """Law of a product whose operands are packed in every call."""
        outputs, inputs = self.shape
        return product(
            self.shape,
            self.nbytes,
            frame,
            times,
            FLOAT * (MOVED * inputs + outputs),
            multiplied=inputs * outputs,
            packed=MOVED,
            called=calls(times, times),
        )
