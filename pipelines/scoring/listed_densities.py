"""Kernels for a tied-mixture model of which each frame has its own list of densities in each codebook.

Layouts as in `kernels`; besides, `index` int32 [n, B, 3, K], `kept` f32 [n, B, 3, K + 16] and `count` int64
[n, B, 3] hold the listed densities' numbers, their log densities (then exponentials) and how many they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pipelines.scoring.clusters import Clusters
from pipelines.scoring.continuous.steps import add_to, make_panel
from pipelines.scoring.kernels import STREAMS
from pipelines.scoring.packing import NEVER
from pipelines.scoring.quantiser import Codebook
from pipelines.scoring.shortlists import Shortlists
from pipelines.scoring.vector import (
    LANES,
    exp_shifted,
    largest,
    lowest_bit,
    make_rows,
)

MADE_WITH = "629fc0a128f0"  # see tests/kernel_sources.py

_panel = make_panel(1)
_rows_8, _rows_2, _rows_1 = make_rows(8), make_rows(2), make_rows(1)

Array = np.ndarray[Any, Any]


def trivial(shape: tuple[int, ...]) -> Shortlists:
    """Lists of one codeword and one panel a group, for panels of this shape: for compiling, not for scoring."""
    groups, streams, _, depth, _ = shape
    dim = depth // 2
    book = Codebook(
        np.zeros((streams, 1, dim), np.float32),
        np.ones((streams, dim), np.float32),
        np.zeros((streams, 1, dim + 1, LANES), np.float32),
        np.zeros((streams, 1, dim + 1), np.float32),
        np.full((streams, 1, 2), -1, np.int32),
    )
    start = np.arange(groups + 1, dtype=np.int32) + np.zeros((streams, 1, 1), np.int32)
    return Shortlists(book, start, np.zeros(groups, np.uint8), np.ones(groups, np.uint16))


@njit(nogil=True, cache=True)
def evaluate_listed(
    x: Array,
    gaussians: Array,
    start: Array,
    items: Array,
    lanes: Array,
    words: Array,
    index: Array,
    kept: Array,
    count: Array,
    first: int,
    last: int,
) -> None:
    """Fill `index`, `kept` and `count` of the codebooks first … last − 1 by the lists of `shortlists`."""
    slots, depth = gaussians.shape[2], gaussians.shape[3]
    panel = depth * LANES * 4
    values = np.empty(LANES, np.float32)
    for book in range(first, last):
        for s in range(STREAMS):
            base = gaussians.ctypes.data + (book * STREAMS + s) * slots * panel
            for t in range(x.shape[0]):
                frame = x.ctypes.data + (t * STREAMS + s) * depth * 4
                k = words[t, s]
                found = 0
                for i in range(start[s, k, book], start[s, k, book + 1]):
                    at = base + items[i] * panel
                    _panel(at, depth, at, (frame, values.ctypes.data))
                    bits = np.uint64(lanes[i])
                    while bits:
                        lane = lowest_bit(bits)
                        bits &= bits - np.uint64(1)
                        index[t, book, s, found] = items[i] * LANES + lane
                        kept[t, book, s, found] = values[lane]
                        found += 1
                count[t, book, s] = found
                for i in range(found, -(-found // LANES) * LANES):
                    kept[t, book, s, i] = NEVER


@njit(nogil=True, cache=True)
def exponentiate_listed(kept: Array, count: Array, shift: Array, first: int, last: int) -> None:
    """kept = exp(kept − best), in place; `shift` = Σ best over the streams."""
    for t in range(kept.shape[0]):
        for book in range(first, last):
            total = np.float32(0)
            for s in range(STREAMS):
                at = (
                    kept.ctypes.data
                    + ((t * kept.shape[1] + book) * STREAMS + s) * kept.shape[3] * 4
                )
                groups = -(-count[t, book, s] // LANES)
                best = largest(at, groups)
                exp_shifted(at, at, groups, best)
                total += best
            shift[t, book] = total


@njit(nogil=True, cache=True)
def mix_listed(
    index: Array,
    kept: Array,
    count: Array,
    rows: Array,
    densities: int,
    start: Array,
    products: Array,
    first: int,
    last: int,
) -> None:
    """products = Π over streams Σ over the listed densities weight · exponential."""
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(index.shape[0]):
            for s in range(STREAMS):
                which = (t * index.shape[1] + book) * STREAMS + s
                factors = kept.ctypes.data + which * kept.shape[3] * 4
                places = index.ctypes.data + which * index.shape[3] * 4
                row = rows.ctypes.data + (start[book] * STREAMS + s * width) * densities * 4
                out = products.ctypes.data + (t * products.shape[1] + start[book]) * 4
                column = 0
                while column < width:
                    left = width - column
                    at, to = row + column * 4, out + column * 4
                    if left >= 8 * LANES:
                        _rows_8(factors, places, count[t, book, s], at, width * 4, to, s > 0)
                        column += 8 * LANES
                    elif left >= 2 * LANES:
                        _rows_2(factors, places, count[t, book, s], at, width * 4, to, s > 0)
                        column += 2 * LANES
                    else:
                        _rows_1(factors, places, count[t, book, s], at, width * 4, to, s > 0)
                        column += LANES


def one_cluster(shape: tuple[int, ...]) -> Clusters:
    """All panels of this shape in one cluster per stream: for compiling, not for scoring."""
    groups, streams, slots, depth, _ = shape
    return Clusters(
        np.zeros((groups, streams, slots), np.uint16),
        np.zeros((streams, 1, depth, LANES), np.float32),
        np.zeros((groups, streams, slots, LANES), np.float32),
        np.full((streams, 1), groups * slots),
    )


@njit(nogil=True, cache=True)
def evaluate_expanded(
    x: Array,
    gaussians: Array,
    of_panel: Array,
    log_weights: Array,
    expanded: Array,
    densities: Array,
    g: Array,
    first: int,
    last: int,
) -> None:
    """Log densities `g` f32 [n, B, 3, K]: of the panels in expanded clusters; the others get their cluster's.

    `expanded` uint64 [3, clusters], bit by frame; `densities` f32 [n, 3, clusters]; others as in `clusters`.
    """
    slots, depth = gaussians.shape[2], gaussians.shape[3]
    for book in range(first, last):
        for s in range(STREAMS):
            for m in range(slots):
                which = (book * STREAMS + s) * slots + m
                panel = gaussians.ctypes.data + which * depth * LANES * 4
                backing = log_weights.ctypes.data + which * LANES * 4
                k = of_panel[book, s, m]
                for t in range(x.shape[0]):
                    row = (t * g.shape[1] + book) * STREAMS + s
                    to = g.ctypes.data + (row * slots + m) * LANES * 4
                    if (expanded[s, k] >> np.uint64(t)) & np.uint64(1):
                        frame = x.ctypes.data + (t * STREAMS + s) * depth * 4
                        _panel(panel, depth, panel, (frame, to))
                    else:
                        add_to(backing, densities[t, s, k], to)
