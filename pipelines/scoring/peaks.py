"""Products that no library measures for us, as rates of the machine: those of 8-bit integers.

For `roofs.calibration.load_or_measure`, which knows no workload: without them such a layer would have no best rate.
"""

import numpy as np
from numba import njit

from pipelines.config import Config
from pipelines.scoring.dnn import integers, quantised
from pipelines.scoring.dnn.integers import FRAMES, PANEL
from pipelines.scoring.simd.byte_products import GROUP
from pipelines.scoring.simd.vector import aligned
from profiler.arrays import Array
from profiler.machine.roofs.timing import Task, Work

INT8 = quantised.OPERATION.replace(":", ".scorer:")

HOT_FRAMES, HOT_GROUPS = 4 * FRAMES, 48
"""Whole tiles of frames, and groups of inputs: one panel of weights lies within the first cache."""
SHAPE = (64, 256, 256)
"""Frames, inputs and outputs of a product large enough that the library's preparations hardly count."""


def of(config: Config) -> dict[str, Work]:
    """Return the work to measure for a run under `config`, by the name of the rate."""
    if config.model == "ctc":
        return everywhere() if config.ctc.dtype == "int8" else {}
    if config.model != "dnn" or integers.TILES:
        return everywhere() if config.model == "dnn" else {}
    return {INT8: _library()} if config.dnn.dtype == "int8" else {}


def everywhere() -> dict[str, Work]:
    return {INT8: _integers()} if integers.TILES else {}


@njit(nogil=True, cache=True)
def _panels(panels: Array, x: Array, excess: Array, sums: Array, tile: Array, repeats: int) -> None:
    for _ in range(repeats):
        integers._multiply(panels, x, excess, sums, tile, 0, len(panels))


def _integers() -> Work:
    """Whole tiles, their weights in the first cache."""

    def make() -> Task:
        weights = aligned((1, HOT_GROUPS, PANEL, GROUP), np.uint8)
        weights[:] = 1
        x = np.ones((HOT_FRAMES, HOT_GROUPS * GROUP), np.int8)
        excess, sums = np.zeros(HOT_FRAMES, np.int32), np.ones((HOT_FRAMES, PANEL), np.int32)
        tile = aligned((FRAMES, PANEL), np.int32)
        return lambda repeats: _panels(weights, x, excess, sums, tile, repeats)

    return Work(2.0 * HOT_FRAMES * HOT_GROUPS * GROUP * PANEL, make)


def _library() -> Work:
    """The library's product of integers."""
    n, inputs, outputs = SHAPE

    def make() -> Task:
        made, x = integers.Library(np.ones((outputs, inputs), np.int8), 1, n), np.ones((n, inputs), np.int8)

        def task(repeats: int) -> None:
            for _ in range(repeats):
                made.sums(x)

        return task

    return Work(2.0 * n * inputs * outputs, make)
