"""Finding codewords and choosing clusters as roofs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.scoring.clustering import clusters, quantiser
from pipelines.scoring.clustering.clusters import CHOOSE
from pipelines.scoring.clustering.quantiser import DESCEND, NEAREST
from pipelines.scoring.kernel_work import Family, Numbers
from pipelines.scoring.roofs_tasks import filled
from pipelines.scoring.simd.vector import LANES
from profiler.arrays import Array
from profiler.machine.roofs.timing import Task, Work


@njit(nogil=True, cache=True)
def _nearest(
    x: Array, panels: Array, size: int, products: Array, found: Array, repeats: int
) -> None:
    for _ in range(repeats):
        quantiser._nearest(x, panels, size, products, found)


@njit(nogil=True, cache=True)
def _descend(x: Array, planes: Array, children: Array, found: Array, repeats: int) -> None:
    for _ in range(repeats):
        quantiser._descend(x, planes, children, found)


@njit(nogil=True, cache=True)
def _choose(
    x: Array, gaussians: Array, expand: int, sizes: Array, found: tuple[Array, Array], repeats: int
) -> None:
    for _ in range(repeats):
        clusters._choose(x, gaussians, expand, sizes, *found)


def nearest(size: int, numbers: Numbers) -> Work:
    """Codewords compared in full: units are codewords at a frame and stream."""
    rows, dim, words = numbers
    groups = -(-words // LANES)

    def make() -> Task:
        rng = np.random.default_rng(0)
        x = filled((rows, 1, 2 * dim + 1))
        x[:, 0, dim:] = rng.normal(size=(rows, dim + 1))
        panels = rng.normal(size=(1, groups, dim + 1, LANES)).astype(np.float32)
        products, found = filled((rows, groups * LANES)), np.zeros((rows, 1), np.int32)
        return lambda repeats: _nearest(x, panels, words, products, found, repeats)

    return Work(float(rows * words), make)


def descend(size: int, numbers: Numbers) -> Work:
    """Ways down a full tree of codewords at random: units are codewords compared, two at a node."""
    dim, words = numbers
    depth, rows = max(1, (words - 1).bit_length()), 64
    nodes = (1 << depth) - 1
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(1, nodes, dim + 1)).astype(np.float32)
    node = np.arange(nodes)
    below = np.stack([2 * node + 1, 2 * node + 2], axis=1)
    leaves = np.where(below < nodes, below, -1).astype(np.int32)[None]
    x = rng.normal(size=(rows, 1, 2 * dim + 1)).astype(np.float32)
    found = np.zeros((rows, 1), np.int32)
    return Work(
        float(rows * 2 * depth),
        lambda: lambda repeats: _descend(x, planes, leaves, found, repeats),
    )


def choose(size: int, numbers: Numbers) -> Work:
    """Cluster Gaussians and the choice of the best `expand`: units are clusters at a frame and stream."""
    rows, depth, count, expand = numbers
    groups = -(-count // LANES)

    def make() -> Task:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(rows, 1, depth)).astype(np.float32)
        gaussians: Array = rng.normal(size=(1, groups, depth, LANES)).astype(np.float32)
        sizes = np.ones((1, count), np.int64)
        densities, expanded = filled((rows, 1, count)), np.zeros((1, count), np.uint64)
        found = densities, expanded
        return lambda repeats: _choose(x, gaussians, expand, sizes, found, repeats)

    return Work(float(rows * count), make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {NEAREST: nearest, DESCEND: descend, CHOOSE: choose}
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
