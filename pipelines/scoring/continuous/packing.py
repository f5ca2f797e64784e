"""A continuous-density model laid out for the kernels: lanes are senones, or the components of one senone.

As for tied mixtures, a diagonal Gaussian's log density is linear in the squares and values of the features: a
product with [x², x, 1], K = 2·dim + 1 numbers per Gaussian and stream. The logarithm of the mixture weight is
part of the constant, so log-sum-exp over a senone's components is its log-likelihood.

- `gaussians` f32 [G, streams, M, K, 16]: **dense**. Senone 16·g + lane lies in lane `lane` of group g, so that
  log-sum-exp over the M components of 16 senones is vertical: no padding of M, no sums across lanes. All
  components of a group and stream are one contiguous [K, 16·M] of a matrix product (M = 42: 73 kB).
- `by_senone` f32 [S, streams, P, K, 16]: **some senones**. Panels of 16 components of one senone, P = ⌈M/16⌉;
  a senone is one contiguous stretch. Made on first use: as large again.

`centre` f32 [streams · dim] is subtracted from the features first (smaller squares cancel with less rounding).
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import cache
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.gaussians.product import NEVER
from pipelines.scoring.simd.vector import LANES, aligned
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

USUAL = 42  # components of which MAX_FRAMES are some 30 ms of work for one thread


@dataclass(frozen=True, eq=False)
class PackedContinuous:
    """The parameters of one continuous model in the layouts of this module."""

    n_senones: int
    n_components: int
    centre: Array
    gaussians: Array

    def small(self) -> PackedContinuous:
        senones = min(LANES, self.n_senones)
        return PackedContinuous(senones, self.n_components, self.centre, self.gaussians[:1])

    @property
    def n_groups(self) -> int:
        return int(self.gaussians.shape[0])

    @property
    def n_streams(self) -> int:
        """Feature streams: 3 of 13 dimensions, or 1 of 39."""
        return int(self.gaussians.shape[1])

    @property
    def expanded(self) -> int:
        """K: numbers per Gaussian and stream, 2·dim + 1."""
        return int(self.gaussians.shape[3])

    @property
    def n_gaussians(self) -> int:
        return self.n_senones * self.n_streams * self.n_components

    @property
    def dim(self) -> int:
        return len(self.centre)

    @property
    def frames_per_call(self) -> int:
        """For the same Gaussians in a call, at most: one stays below 50 ms, so that others get their turn."""
        return min(MAX_FRAMES, max(8, MAX_FRAMES * USUAL // self.n_components // 8 * 8))

    @cached_property
    def identity(self) -> str:
        return cache.digest(self.centre, self.gaussians)

    @cached_property
    def by_senone(self) -> Array:
        """Panels of 16 components of one senone, f32 [S, streams, P, K, 16]."""
        panels = -(-self.n_components // LANES)
        result = aligned((self.n_senones, self.n_streams, panels, self.expanded, LANES))
        result[:, :, -1, -1, self.n_components - (panels - 1) * LANES :] = NEVER
        for group, senones in zip(self.gaussians, range(0, self.n_senones, LANES), strict=True):
            for first in range(0, self.n_components, LANES):
                part = group[:, first : first + LANES].transpose(3, 0, 2, 1)
                made = result[senones : senones + LANES, :, first // LANES, :, : part.shape[3]]
                made[:] = part[: len(made)]
        return result


def pack(model: AcousticModel) -> PackedContinuous:
    """Lay out a model of which each senone has a codebook of its own."""
    senones, streams, components, dim = model.means.shape
    groups = -(-senones // LANES)
    # Float64 sums of views: no copy of a means file that is mapped into memory.
    centre = model.means.mean(axis=(0, 2), dtype=np.float64).astype(np.float32)
    gaussians = aligned((groups, streams, components, 2 * dim + 1, LANES))
    _pack(model.means, model.variances, model.weights, centre, gaussians)
    align(gaussians)
    for array in (model.means, model.variances):
        # Where the model is mapped from a file, its pages need not stay in memory any longer.
        if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            array.base.madvise(mmap.MADV_DONTNEED)
    return PackedContinuous(senones, components, centre.ravel(), gaussians)


LOG_2PI = math.log(2 * math.pi)


@njit(nogil=True, cache=True)
def _pack(means: Array, variances: Array, weights: Array, centre: Array, gaussians: Array) -> None:
    """Fill `gaussians` from means and variances [S, streams, M, dim] and weights [streams, M, S]."""
    senones, streams, components, dim = means.shape
    groups = -(-senones // LANES)
    if (
        variances.shape != means.shape
        or weights.shape != (streams, components, senones)
        or centre.shape != (streams, dim)
        or gaussians.shape != (groups, streams, components, 2 * dim + 1, LANES)
    ):
        raise ArrayError("_pack: the arrays of the model do not fit each other")
    for senone in range(senones):
        group, lane = senone // LANES, senone % LANES
        for s in range(streams):
            for m in range(components):
                weight = weights[s, m, senone]
                if not weight > 0:
                    # Fills the mixture up, as the lanes behind the last component do.
                    gaussians[group, s, m, :, lane] = 0.0
                    gaussians[group, s, m, 2 * dim, lane] = NEVER
                    continue
                constant = math.log(weight) - 0.5 * dim * LOG_2PI
                for d in range(dim):
                    precision = 1.0 / np.float64(variances[senone, s, m, d])
                    mean = np.float64(means[senone, s, m, d]) - np.float64(centre[s, d])
                    gaussians[group, s, m, d, lane] = -0.5 * precision
                    gaussians[group, s, m, dim + d, lane] = mean * precision
                    constant -= 0.5 * (mean * mean * precision - math.log(precision))
                gaussians[group, s, m, 2 * dim, lane] = constant


ROUNDS = 2  # Passes over the senones of a group; more change the number of panels selected by less than 1 %

WINDOW = 128
"""Components that are matched with each other; larger mixtures are divided into windows of this size, since memory and
time are quadratic in it."""


def align(gaussians: Array) -> None:
    """Reorder the components within each senone, in place: `gaussians` f32 [G, streams, M, K, 16].

    Gaussian selection takes or leaves whole panels (one component of each of the 16 senones of a group), because
    scattered Gaussians cost more to gather than to compute. Which component of a senone stands in which panel is free,
    so each senone's components are matched to those of its neighbours: the slots have centres, every senone hands each
    slot its nearest component that is left, exchanges pairs while that brings them nearer, and the centres move to the
    means of what they hold, as in k-means with sizes fixed. Scores change in the order of summation alone.
    """
    dim = gaussians.shape[3] // 2
    precision = -2.0 * gaussians[:, :, :, :dim].mean(axis=(0, 2, 4), dtype=np.float64)
    scale = np.sqrt(precision).astype(np.float32)
    for group in gaussians:
        for stream, of_stream in zip(group, scale, strict=True):
            for first in range(0, len(stream), WINDOW):
                _align_window(stream[first : first + WINDOW], of_stream)


@njit(nogil=True, cache=True, fastmath=True)
def _align_window(window: Array, scale: Array) -> None:
    """Some components of the senones of a group and stream, f32 [m, K, 16]."""
    components, expanded, lanes = window.shape
    dim = expanded // 2
    if scale.shape != (dim,) or expanded != 2 * dim + 1:
        raise ArrayError("_align_window: Gaussians and their scale do not fit each other")
    points = np.empty((lanes, components, dim), np.float32)
    centres = np.empty((components, dim), np.float32)
    order = np.empty((lanes, components), np.int64)
    cost = np.empty((components, components), np.float32)
    taken = np.empty(components, np.bool_)
    for lane in range(lanes):
        for m in range(components):
            order[lane, m] = m
            for d in range(dim):
                precision = -2 * window[m, d, lane]
                mean = np.float32(0)
                if precision > 0:  # not the padding of the last group
                    mean = window[m, dim + d, lane] / precision
                points[lane, m, d] = mean * scale[d]
    for m in range(components):
        for d in range(dim):
            centres[m, d] = points[0, m, d]
    for _ in range(ROUNDS):
        for lane in range(lanes):
            for i in range(components):
                for m in range(components):
                    total = np.float32(0)
                    for d in range(dim):
                        gap = centres[i, d] - points[lane, m, d]
                        total += gap * gap
                    cost[i, m] = total
            _match(cost, order[lane], taken)
        for i in range(components):
            for d in range(dim):
                total = np.float32(0)
                for lane in range(lanes):
                    total += points[lane, order[lane, i], d]
                centres[i, d] = total / lanes
    panel = window.copy()
    for i in range(components):
        for k in range(expanded):
            for lane in range(lanes):
                window[i, k, lane] = panel[order[lane, i], k, lane]


@njit_part
def _match(cost: Array, order: Array, taken: Array) -> None:
    """order[slot] = component: nearest first, then exchanges of two while they lower the total cost."""
    components = len(order)
    if cost.shape != (components, components) or len(taken) != components:
        raise ArrayError("_match: costs and slots do not fit each other")
    taken[:] = False
    for i in range(components):
        best = -1
        for m in range(components):
            if not taken[m] and (best < 0 or cost[i, m] < cost[i, best]):
                best = m
        order[i] = best
        taken[best] = True
    moved = True
    while moved:
        moved = False
        for i in range(components):
            for j in range(i):
                now = cost[i, order[i]] + cost[j, order[j]]
                if cost[i, order[j]] + cost[j, order[i]] < now * np.float32(0.9999):
                    order[i], order[j] = order[j], order[i]
                    moved = True
