"""Sparse weights: where the rows of a matrix begin, and which input a weight or a block of weights belongs to."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs.nets import product
from pipelines.scoring.dnn.products import Product
from pipelines.scoring.dnn.products._frames import room
from profiler.arrays import Array, check_indices, check_offsets
from profiler.errors import BadInput
from profiler.spans import Cost

MAX_INPUTS = 1 << 16  # that 16 bits tell apart


@njit(nogil=True, cache=True)
def sparse_fits(starts: Array, columns: Array, values: Array, first: int, last: int) -> bool:
    """Whether rows first … last − 1 begin at `starts` in `columns` and `values`, of which there are as many."""
    count = len(starts) - 1
    if count < 0 or not 0 <= first <= last <= count:
        return False
    return starts[count] == len(columns) and len(columns) == len(values)


class SparseProduct(Product):
    """What a product holds of which only some weights are there."""

    into_rows: ClassVar[bool] = False
    at_once: ClassVar[int]
    """Frames for which the weights are read once."""
    few: ClassVar[int]
    """Frames up to which they are taken as they come; more are put side by side."""

    def _hold(self, rows: Array, columns: Array, values: Array, count: int, name: str) -> None:
        """Keep what there is, row by row: `rows`, `columns` int64 [n], `values` f32 [n, …], of `count` rows.

        BadInput, which names the product, for more inputs than 16 bits tell apart.
        """
        inputs = self.shape[1]
        if inputs > MAX_INPUTS:
            raise BadInput(
                f"A layer has {inputs - 1} inputs; dnn.product={name} takes at most {MAX_INPUTS - 1}."
            )
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
