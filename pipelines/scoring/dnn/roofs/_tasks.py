"""Work to be timed: something repeated, or repeated after so much memory was read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from pipelines.scoring.kernel_work import Numbers, filled
from pipelines.scoring.simd.vector import LANES
from profiler.arrays import Array
from profiler.machine.roofs.timing import Task, Work

HOT_BYTES = 8 << 10
"""Weights or values within the first cache, beside what else a kernel needs there."""


def repeated(once: Callable[[], object]) -> Task:
    """`once` as often as asked, from Python."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            once()

    return task


@njit(nogil=True, cache=True)
def _read(values: Array) -> np.float32:
    """A value of each cache line, added up."""
    total = np.float32(0)
    for i in range(0, len(values), LANES):
        total += values[i]
    return total


def after_reading(passed: int, once: Callable[[], object]) -> Task:
    """`once` as often as asked, each time after `passed` KiB were read."""
    memory = filled((passed << 8,))

    def task(repeats: int) -> None:
        for _ in range(repeats):
            _read(memory)
            once()

    return task


def reading(size: int, numbers: Numbers) -> Work:
    """Reading so many KiB, and nothing else."""
    (passed,) = numbers
    return Work(1.0, lambda: after_reading(passed, lambda: None))
