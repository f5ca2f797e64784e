"""The kernels of continuous-density scoring as roofs, at their tile shapes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.continuous.kernels import add_stream, finish, log_of_one
from pipelines.scoring.kernel_work import FIRST_CACHE, Family, Numbers
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address
from profiler.arrays import Array, ArrayError
from profiler.kernel_spans import now_ns
from profiler.machine.roofs.timing import Task, Work

SUM, BEST, SUM_OF_SOME = "continuous sum", "continuous best", "continuous sum of some"


@njit(nogil=True, cache=True)
def _sums(
    tile: Array,
    sums: Array,
    scores: Array,
    streams: int,
    together: int,
    components: int,
    best: bool,
    repeats: int,
) -> int:
    """What `kernels.dense` does with a group's log densities, whose rows f32 [rows, M·16] serve again and again."""
    n, senones = scores.shape
    row = components * VECTOR_BYTES
    rows = len(tile)
    if tile.shape[1] != components * LANES or sums.shape != (2, n, LANES) or senones < LANES:
        raise ArrayError("_sums: log densities and scores do not fit each other")
    products, shifts = address(sums[0], np.float32), address(sums[1], np.float32)
    spent = 0
    for _ in range(repeats):
        sums[0] = 1.0
        sums[1] = 0.0
        for stream in range(0, streams, together):
            begin = now_ns()
            for i in range(together):
                for t in range(n):
                    at = address(tile, np.float32) + (i * n + t) % rows * row
                    add_stream(at, components, products, shifts, t, best)
            if stream + together >= streams:
                for t in range(n):
                    target = address(scores, np.float32) + t * senones * 4
                    finish(products, shifts, t, target, min(LANES, senones))
            spent += now_ns() - begin
    return spent


@njit(nogil=True, cache=True)
def _sums_of_some(densities: Array, scores: Array, repeats: int) -> None:
    """What `kernels.some` does with the log densities f32 [senones, streams, n, P·16] of its senones."""
    count, streams, n, width = densities.shape
    panels = width // LANES
    if scores.shape != (n, count) or panels == 0:
        raise ArrayError("_sums_of_some: log densities and scores do not fit each other")
    row = panels * VECTOR_BYTES
    for _ in range(repeats):
        for i in range(count):
            for t in range(n):
                at = address(densities, np.float32) + (i * streams * n + t) * row
                scores[t, i] = log_of_one(at, streams, n * row, panels)


def _of_tile(best: bool) -> Family:
    def family(size: int, numbers: Numbers) -> Work:
        rows, streams, components, together = numbers
        row = components * VECTOR_BYTES
        room = max(1, (size or FIRST_CACHE) // row)

        def make() -> Task:
            tile = filled((min(room, rows * together), components * LANES))
            sums, scores = filled((2, rows, LANES)), filled((rows, LANES))
            return lambda repeats: _sums(
                tile, sums, scores, streams, together, components, best, repeats
            )

        return Work(float(rows * streams * components * LANES), make)

    return family


def sums_of_some(size: int, numbers: Numbers) -> Work:
    """Log-sum-exp of single senones: units are Gaussians, padding among them."""
    rows, streams, panels = numbers
    each = rows * streams * panels * VECTOR_BYTES
    count = max(1, (size or FIRST_CACHE) // each)

    def make() -> Task:
        densities = filled((count, streams, rows, panels * LANES))
        scores = filled((rows, count))
        return lambda repeats: _sums_of_some(densities, scores, repeats)

    return Work(float(count * rows * streams * panels * LANES), make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {SUM: _of_tile(best=False), BEST: _of_tile(best=True), SUM_OF_SOME: sums_of_some}
)
"""Family of roofs → what makes its work from a size and the numbers of its name.

`SUM` and `BEST`: log-sum-exp of a group of senones (or its best alone) from the tile of the product, in `rows` frames,
`together` streams at a time: units are Gaussians.
"""
