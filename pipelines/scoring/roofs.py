"""The scorer's own exp, log and matrix product as roofs of the machine, at their best: on data within the first cache.

Handed to `roofs.calibration.load_or_measure`, which knows no workload. With them no scoring stage can
run above the "exp", "log" or "gemm" that it is judged by: its tiles beat the BLAS library by some percent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.product import NOTHING, multiply
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.exponential import exp_shifted, log_shifted
from pipelines.scoring.simd.vector import LANES, address, aligned_copy
from profiler.arrays import ArrayError
from profiler.machine.roofs.timing import Task, Work

SIZE = 2048
"""Floats a pass: two arrays of 8 KiB."""
ROWS, DEPTH, PANELS = 64, 48, 3
"""A product [64, 48] × [48, 48]: three arrays of 9 to 12 KiB."""


@njit(nogil=True, cache=True)
def _exp(source: Any, target: Any, repeats: int) -> None:
    if target.shape != source.shape:
        raise ArrayError("_exp: source and target do not fit each other")
    here, there = address(source, np.float32), address(target, np.float32)
    for _ in range(repeats):
        exp_shifted(here, there, source.size // LANES, np.float32(0))


@njit(nogil=True, cache=True)
def _log(source: Any, target: Any, repeats: int) -> None:
    if target.shape != source.shape:
        raise ArrayError("_log: source and target do not fit each other")
    here, there = address(source, np.float32), address(target, np.float32)
    for _ in range(repeats):
        log_shifted(here, there, source.size // LANES, np.float32(0))


@njit(nogil=True, cache=True)
def _product(a: Any, b: Any, c: Any, repeats: int) -> None:
    rows, depth = a.shape
    panels = len(b)
    if b.shape != (panels, depth, LANES) or c.shape != (rows, panels * LANES):
        raise ArrayError("_product: factors and product do not fit each other")
    x, y, z = address(a, np.float32), address(b, np.float32), address(c, np.float32)
    for _ in range(repeats):
        multiply(x, 4 * depth, rows, y, panels, depth, z, NOTHING)


def _multiplied() -> Task:
    a, b = filled((ROWS, DEPTH)), filled((PANELS, DEPTH, LANES))
    c = filled((ROWS, PANELS * LANES))
    return lambda repeats: _product(a, b, c, repeats)


def _over(function: Callable[..., None], first: float, last: float) -> Callable[[], Task]:
    def make() -> Task:
        source = aligned_copy(np.linspace(first, last, SIZE, dtype=np.float32))
        target = filled((SIZE,))
        return lambda repeats: function(source, target, repeats)

    return make


KERNELS: Mapping[str, Work] = MappingProxyType(
    {
        "exp.scorer": Work(float(SIZE), _over(_exp, -8.0, 0.0)),
        "log.scorer": Work(float(SIZE), _over(_log, 0.1, 5.0)),
        "gemm.scorer": Work(2.0 * ROWS * DEPTH * PANELS * LANES, _multiplied),
    }
)
"""Name of the roof → work."""
