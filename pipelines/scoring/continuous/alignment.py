"""The components of sixteen senones put in such an order that the Gaussians of one panel lie near each other.

Gaussian selection takes or leaves whole panels (one component of each of the 16 senones of a group: 27 or 79
contiguous vectors), because scattered Gaussians cost more to gather than to compute. Which component of a
senone stands in which panel is free, so each senone's components are matched to those of its neighbours:
the slots have centres, every senone hands each slot its nearest component that is left, exchanges pairs while
that brings them nearer, and the centres move to the means of what they hold, as in k-means with sizes fixed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

ROUNDS = 2
"""Passes over the senones of a group; more change the number of panels selected by less than 1 %."""

WINDOW = 128
"""Components that are matched with each other; larger mixtures are divided into windows of this size, since memory and
time are quadratic in it."""


def align(gaussians: Array) -> None:
    """Reorder the components within each senone, in place: `gaussians` f32 [G, streams, M, K, 16].

    Scores do not change but for the order of summation. Layout: see `packing`.
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
