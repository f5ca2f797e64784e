"""Cluster Gaussians for hierarchical evaluation: panels of sixteen Gaussians clustered, a Gaussian for each cluster.

A panel belongs to a cluster as a whole, so that what is expanded are contiguous runs. A cluster's Gaussian has the
mean and variance of all the Gaussians of its panels together. The panels are those of `shortlists`.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.scoring import cache
from pipelines.scoring.clustering import quantiser
from pipelines.scoring.clustering.quantiser import SEED
from pipelines.scoring.clustering.shortlists import NOWHERE, means_and_variances
from pipelines.scoring.gaussians.product import NEVER, NOTHING, multiply
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.strategy import Cancelling, Progress
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

STAGE = "score.clusters"
"""Stage: cluster Gaussians and the choice of the best; work `clusters`: how many were evaluated."""

Backing = tuple[Array, Array, Array, Array]
"""Weight and cluster that stand for the Gaussians of a block that are not computed: (of_panel, log_weights, expanded,
densities).

The first two as in `Clusters`; `expanded` uint64 [streams, K]: the frames (bit by frame) that expand each cluster;
`densities` f32 [n, streams, K]: of the cluster Gaussians.
"""


@njit_part
def backing_fits(backing: Backing, gaussians: Array, n: int) -> bool:
    """Whether it is that of `gaussians` f32 [groups, streams, slots, 2·D + 1, 16] in n frames."""
    groups, streams, slots, _, _ = gaussians.shape
    of_panel, log_weights, expanded, densities = backing
    of_gaussians = of_panel.shape == (groups, streams, slots) and log_weights.shape == (groups, streams, slots, LANES)
    of_frames = len(expanded) == streams and densities.shape == (n, streams, expanded.shape[1])
    return of_gaussians and of_frames  # type: ignore[no-any-return]


class Clusters(NamedTuple):
    """`of_panel` uint16 [groups, streams, slots]; `gaussians` f32 [streams, K/16, 2·D + 1, 16]; `log_weights` f32
    [groups, streams, slots, 16]: the part of each Gaussian's constant that is its weight; `sizes` int64
    [streams, K]: panels in each cluster."""

    of_panel: Array
    gaussians: Array
    log_weights: Array
    sizes: Array

    @property
    def number(self) -> int:
        return int(self.sizes.shape[1])


def cluster(panels: Array, identity: str, size: int, progress: Progress, cancelled: Cancelling) -> Clusters:
    """The clusters of a model, from the cache or made now: `panels` f32 [groups, streams, slots, 2·D + 1, 16]."""

    def make() -> dict[str, Array]:
        rng = np.random.default_rng(SEED)
        means, average = means_and_variances(panels)
        groups, streams, slots, dim, _ = means.shape
        number = min(size, groups * slots)
        of_panel = np.empty((groups, streams, slots), np.uint16)
        gaussians = np.zeros((streams, -(-number // LANES), 2 * dim + 1, LANES), np.float32)
        gaussians[:, :, -1] = NEVER
        sizes = np.empty((streams, number), np.int64)
        for s in range(streams):
            progress("clustering the Gaussians", s / streams)
            real = means[:, s, :, :1] < NOWHERE
            count = np.maximum(real.sum(axis=(2, 3)), 1).reshape(-1, 1)
            some = np.where(real, means[:, s], 0).astype(np.float64)
            first = some.sum(axis=3).reshape(-1, dim)
            centres = (first / count / np.sqrt(average[s])).astype(np.float32)
            words = quantiser.kmeans(centres, number, rng, cancelled)
            label = quantiser.assign(centres, words)[0]
            of_panel[:, s] = label.reshape(groups, slots)
            precision = -2.0 * panels[:, s, :, :dim].astype(np.float64)
            variance = np.divide(1, precision, out=np.zeros_like(precision), where=real)
            second = (variance + some**2).sum(axis=3).reshape(-1, dim)
            sizes[s] = np.bincount(label, minlength=number)
            _moments_of_clusters(label, number, count, first, second, average[s], gaussians[s])
        log_weights = _log_weights(panels, means)
        return {"of_panel": of_panel, "gaussians": gaussians, "log_weights": log_weights, "sizes": sizes}

    return Clusters(**cache.prepared("clusters", (identity, size), make))


def _moments_of_clusters(
    label: Array, number: int, count: Array, first: Array, second: Array, average: Array, out: Array
) -> None:
    """Put the Gaussian of each cluster into panels `out` f32 [K/16, 2·D + 1, 16]."""
    total = np.maximum(np.bincount(label, count[:, 0], number), 1)
    panel, lane = np.divmod(np.arange(number), LANES)
    out[panel, -1, lane] = 0
    for d in range(first.shape[1]):
        mean = np.bincount(label, first[:, d], number) / total
        variance = np.bincount(label, second[:, d], number) / total - mean**2
        variance = np.maximum(variance, 1e-3 * average[d])
        out[panel, d, lane] = -0.5 / variance
        out[panel, first.shape[1] + d, lane] = mean / variance
        out[panel, -1, lane] += -0.5 * (np.log(2 * math.pi * variance) + mean**2 / variance)
    empty = np.bincount(label, minlength=number) == 0
    out[panel[empty], -1, lane[empty]] = NEVER


def _log_weights(panels: Array, means: Array) -> Array:
    """Each Gaussian's constant without that of its density."""
    dim = means.shape[3]
    precision = -2.0 * panels[:, :, :, :dim].astype(np.float64)
    real = precision > 0
    logs = np.log(precision, out=np.zeros_like(precision), where=real)
    density = 0.5 * (logs - math.log(2 * math.pi) - np.where(real, means, 0.0) ** 2 * precision)
    constant = panels[:, :, :, 2 * dim].astype(np.float64)
    return (constant - np.where(real, density, 0.0).sum(axis=3)).astype(np.float32)  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def _least_kept(values: Array, number: int, keep: int) -> float:
    """The `keep`-th largest of the first `number` of `values`, which are brought into another order.

    Hoare's FIND (1961). `np.partition` would do, and takes numba five seconds to compile.
    """
    if not 0 < keep <= number <= len(values):
        raise ArrayError("_least_kept: more are kept than there are")
    first, last, at = 0, number - 1, keep - 1
    while first < last:
        pivot, i, j = values[at], first, last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < at:
            first = i
        if at < i:
            last = j
    return values[at]  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def choose(x: Array, gaussians: Array, expand: int, sizes: Array, densities: Array, expanded: Array) -> int:
    """Evaluate the cluster Gaussians at frames `x` f32 [n ≤ 64, streams, 2·D + 1] and mark the best `expand`.

    Fills `densities` f32 [n, streams, K + padding] and `expanded` uint64 [streams, K] (bit by frame); returns how many
    panels are expanded, over all frames.
    """
    n, streams, depth = x.shape
    groups, number = gaussians.shape[1], sizes.shape[1]
    row = densities.shape[2]
    if (
        n > 64
        or expand < 1
        or gaussians.shape != (streams, groups, depth, LANES)
        or sizes.shape != (streams, number)
        or expanded.shape != (streams, number)
        or densities.shape != (n, streams, row)
        or not 0 < number <= row <= groups * LANES
    ):
        raise ArrayError("choose: frames, clusters and densities do not fit each other")
    products = np.empty((n, groups * LANES), np.float32)
    keep = min(expand, number)
    expanded[:] = 0
    panels = 0
    for s in range(streams):
        frames, panel = address(x, np.float32) + s * depth * 4, groups * depth * LANES * 4
        clusters, to = address(gaussians, np.float32) + s * panel, address(products, np.float32)
        multiply(frames, streams * depth * 4, n, clusters, groups, depth, to, NOTHING)
        for t in range(n):
            for k in range(row):
                densities[t, s, k] = products[t, k]
            worst = _least_kept(products[t], number, keep)
            left = keep
            for k in range(number):
                if densities[t, s, k] >= worst and left > 0:
                    left -= 1
                    expanded[s, k] |= np.uint64(1) << np.uint64(t)
                    panels += sizes[s, k]
    return panels
