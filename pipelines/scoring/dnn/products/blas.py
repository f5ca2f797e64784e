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
from pipelines.scoring.call_counts import calls
from pipelines.scoring.dnn.products import Product
from profiler.arrays import Array
from profiler.spans import Cost, Linear

PACKED = 3.0
"""Times that OpenBLAS moves an operand: read, written in the order of its kernel, read from there."""


class Weights(Product):
    """As they are."""

    into_rows: ClassVar[bool] = False

    def __init__(self, weight: Array, threads: int, max_frames: int) -> None:
        super().__init__(weight, threads, max_frames)
        self._weight = weight
        self.nbytes = weight.nbytes

    def threads(self, frames: int) -> int:
        """As many as it may use: the library decides."""
        return self._threads

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        return partial(np.matmul, self._weight, x, out=out)

    def cost(self, frame: float, times: float) -> Cost:
        """Weights once per call, activations in and out."""
        outputs, inputs = self.shape
        least = FLOAT * (inputs + outputs) * frame
        most = FLOAT * (PACKED * inputs + outputs) * frame
        return Cost(
            operations={"gemm": Linear(per_work=(2.0 * inputs * outputs * frame, 0.0, 0.0))},
            bytes_min=Linear(fixed=times * self.nbytes, per_work=(least, 0.0, 0.0)),
            bytes_max=Linear(fixed=PACKED * times * self.nbytes, per_work=(most, 0.0, 0.0)),
            calls=calls(times, times),
        )
