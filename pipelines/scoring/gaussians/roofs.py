"""Products of few frames with panels as roofs: what continuous models, codewords and clusters compute, and in bytes.

Panels that come one after the other through memory; their results go to rows that are written again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.int8 import row_of_bytes
from pipelines.scoring.gaussians.product import NOTHING, multiply
from pipelines.scoring.kernel_work import AT_ONCE, FIRST_CACHE, Family, Numbers
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address
from profiler.arrays import Array, ArrayError
from profiler.machine.roofs.timing import Task, Work

PRODUCT, BYTES = "product in order", "product in bytes"

FEW = 4
"""Panels of a product within the first cache: 7 kB of Gaussians of 27 numbers."""
FEW_IN_BYTES = 8


@njit(nogil=True, cache=True)
def _products(x: Array, panels: Array, out: Array, turn: Array, some: int, repeats: int) -> None:
    """Some groups of panels [groups, panels, depth, 16] at x [rows, depth], into one place of `out` after the other.

    `turn` int64 [1]: where the next begin.
    """
    rows, depth = x.shape
    groups, count, _, _ = panels.shape
    if panels.shape != (groups, count, depth, LANES) or out.shape[1:] != (rows, count * LANES):
        raise ArrayError("_products: frames, panels and products do not fit each other")
    for _ in range(repeats):
        for _ in range(some):
            group = turn[0] % groups
            turn[0] = group + 1
            first, each = address(panels, np.float32), count * depth * VECTOR_BYTES
            multiply(
                address(x, np.float32),
                4 * depth,
                rows,
                first + group * each,
                count,
                depth,
                address(out[group % len(out)], np.float32),
                first + (group + 1) % groups * each if rows > 1 else NOTHING,
            )


@njit(nogil=True, cache=True)
def _in_bytes(x: Array, panels: Array, out: Array, turn: Array, some: int, repeats: int) -> None:
    """As `_products` with 8-bit panels uint8 [groups, slots, size] at x int16 [rows, 2 · pairs]."""
    rows, depth = x.shape
    groups, slots, size = panels.shape
    if size != VECTOR_BYTES * (depth // 2 + 2) or out.shape[1:] != (rows, slots * LANES):
        raise ArrayError("_in_bytes: frames, panels and products do not fit each other")
    for _ in range(repeats):
        for _ in range(some):
            # The last group is there to be asked for ahead.
            group = turn[0] % (groups - 1)
            turn[0] = group + 1
            for t in range(rows):
                row_of_bytes(
                    address(x, np.int16) + t * depth * 2,
                    address(panels, np.uint8) + group * slots * size,
                    slots,
                    depth // 2,
                    address(out[group % len(out)], np.float32) + t * slots * VECTOR_BYTES,
                )


def product(size: int, numbers: Numbers) -> Work:
    """Products of `rows` frames with groups of `panels`, of which `places` are kept: units are lanes at a frame."""
    rows, depth, panels, places = numbers
    groups = 1
    if size:
        groups = max(1, size // (panels * depth * VECTOR_BYTES))
    else:
        panels, places = min(panels, FEW), 1

    def make() -> Task:
        x, b = filled((rows, depth)), filled((groups, panels, depth, LANES))
        out = filled((places, rows, panels * LANES))
        turn = np.zeros(1, np.int64)
        return lambda repeats: _products(x, b, out, turn, some, repeats)

    some = max(1, min(groups, AT_ONCE // (panels * depth * VECTOR_BYTES)))
    return Work(float(rows * some * panels * LANES), make, to_pass=-(-groups // some))


def in_bytes(size: int, numbers: Numbers) -> Work:
    """The same with 8-bit Gaussians of `pairs` of dimensions, `slots` panels a group: units are as many."""
    rows, pairs, slots, places = numbers
    each = VECTOR_BYTES * (pairs + 2)
    groups = 1
    if size:
        groups = max(1, size // (slots * each))
    else:
        slots, places = min(slots, FEW_IN_BYTES), 1
        rows = min(rows, FIRST_CACHE // (slots * VECTOR_BYTES))

    def make() -> Task:
        x = np.ones((rows, 2 * pairs), np.int16)
        b = np.ones((groups + 1, slots, each), np.uint8)
        out = filled((places, rows, slots * LANES))
        turn = np.zeros(1, np.int64)
        return lambda repeats: _in_bytes(x, b, out, turn, some, repeats)

    some = max(1, min(groups, AT_ONCE // (slots * each)))
    return Work(float(rows * some * slots * LANES), make, to_pass=-(-groups // some))


FAMILIES: Mapping[str, Family] = MappingProxyType({PRODUCT: product, BYTES: in_bytes})
"""Family of roofs → what makes its work from a size and the numbers of its name."""
