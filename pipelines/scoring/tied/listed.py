"""Kernels for a tied-mixture model of which each frame has its own list of densities in each codebook.

Layouts as in `kernels`; besides, `index` int32 [n, B, 3, K], `kept` f32 [n, B, 3, K + 16] and `count` int64
[n, B, 3] hold the listed densities' numbers, their log densities (then exponentials) and how many they are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.frontend.parameters import STREAMS
from pipelines.scoring.clustering.clusters import Clusters
from pipelines.scoring.clustering.quantiser import Codebook
from pipelines.scoring.clustering.shortlists import Shortlists
from pipelines.scoring.gaussians.expansion import NEVER
from pipelines.scoring.simd.exponential import exp_shifted
from pipelines.scoring.simd.maxima import largest, lowest_bit
from pipelines.scoring.simd.panels import add_to, make_panel
from pipelines.scoring.simd.tiles import make_rows
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.tied.kernels import columns_fit
from profiler.arrays import Array, ArrayError

_panel = make_panel(1)
_rows_8, _rows_2, _rows_1 = make_rows(8), make_rows(2), make_rows(1)


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
    n, depth = len(x), x.shape[2]
    books, _, slots, _, _ = gaussians.shape
    if (
        x.shape[1] != STREAMS
        or gaussians.shape != (books, STREAMS, slots, depth, LANES)
        or start.shape != (STREAMS, start.shape[1], books + 1)
        or len(lanes) != len(items)
        or words.shape != (n, STREAMS)
        or index.shape != (n, books, STREAMS, slots * LANES)
        or kept.shape != (n, books, STREAMS, (slots + 1) * LANES)
        or count.shape != (n, books, STREAMS)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("evaluate_listed: lists, Gaussians and densities do not fit each other")
    for t in range(n):
        for s in range(STREAMS):
            if not 0 <= words[t, s] < start.shape[1]:
                raise ArrayError("evaluate_listed: a codeword that has no list")
    panel = depth * LANES * 4
    values = np.empty(LANES, np.float32)
    for book in range(first, last):
        for s in range(STREAMS):
            base = address(gaussians, np.float32) + (book * STREAMS + s) * slots * panel
            for t in range(n):
                frame = address(x, np.float32) + (t * STREAMS + s) * depth * 4
                k = words[t, s]
                found = 0
                begin, end = start[s, k, book], start[s, k, book + 1]
                if not 0 <= begin <= end <= len(items) or end - begin > slots:
                    raise ArrayError("evaluate_listed: a list beyond the items or the panels")
                for i in range(begin, end):
                    at = base + items[i] * panel
                    _panel(at, depth, at, (frame, address(values, np.float32)))
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
    n, books, streams, size = kept.shape
    if (
        streams != STREAMS
        or size < LANES
        or size % LANES
        or count.shape != (n, books, STREAMS)
        or shift.shape != (n, books)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("exponentiate_listed: densities and shift do not fit each other")
    for t in range(n):
        for book in range(first, last):
            total = np.float32(0)
            for s in range(STREAMS):
                at = address(kept, np.float32) + ((t * books + book) * STREAMS + s) * size * 4
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
    n, books, streams, most = index.shape
    if (
        streams != STREAMS
        or kept.shape != (n, books, STREAMS, most + LANES)
        or count.shape != (n, books, STREAMS)
        or most != densities
        or len(products) != n
        or len(start) != books + 1
        or not columns_fit(start, products, rows.size, densities)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("mix_listed: densities, weights and products do not fit each other")
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(n):
            for s in range(STREAMS):
                which = (t * books + book) * STREAMS + s
                factors = address(kept, np.float32) + which * (most + LANES) * 4
                places = address(index, np.int32) + which * most * 4
                row = (
                    address(rows, np.float32) + (start[book] * STREAMS + s * width) * densities * 4
                )
                out = address(products, np.float32) + (t * products.shape[1] + start[book]) * 4
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
    n, depth = len(x), x.shape[2]
    books, _, slots, _, _ = gaussians.shape
    if (
        n > 64
        or x.shape[1] != STREAMS
        or gaussians.shape != (books, STREAMS, slots, depth, LANES)
        or of_panel.shape != (books, STREAMS, slots)
        or log_weights.shape != (books, STREAMS, slots, LANES)
        or len(expanded) != STREAMS
        or densities.shape != (n, STREAMS, expanded.shape[1])
        or g.shape != (n, books, STREAMS, slots * LANES)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError(
            "evaluate_expanded: clusters, Gaussians and densities do not fit each other"
        )
    for book in range(first, last):
        for s in range(STREAMS):
            for m in range(slots):
                which = (book * STREAMS + s) * slots + m
                panel = address(gaussians, np.float32) + which * depth * LANES * 4
                backing = address(log_weights, np.float32) + which * LANES * 4
                k = of_panel[book, s, m]
                if k >= expanded.shape[1]:
                    raise ArrayError("evaluate_expanded: a cluster that there is none")
                for t in range(n):
                    row = (t * books + book) * STREAMS + s
                    to = address(g, np.float32) + (row * slots + m) * LANES * 4
                    if (expanded[s, k] >> np.uint64(t)) & np.uint64(1):
                        frame = address(x, np.float32) + (t * STREAMS + s) * depth * 4
                        _panel(panel, depth, panel, (frame, to))
                    else:
                        add_to(backing, densities[t, s, k], to)
