"""Kernels for a tied-mixture model of which each frame has its own list of densities in each codebook.

Layouts as in `kernels`.
"""

import numpy as np
from numba import njit

from pipelines.scoring.clustering.clusters import Backing, backing_fits
from pipelines.scoring.gaussians.product import NEVER
from pipelines.scoring.simd.exponential import exp_shifted
from pipelines.scoring.simd.maxima import largest, lowest_bit
from pipelines.scoring.simd.panels import add_to, make_panel
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.tied.kernels import columns_fit, mix_rows
from profiler.arrays import Array, ArrayError

_panel = make_panel(1)

Lists = tuple[Array, Array, Array]  # `start`, `items` and `lanes` of `shortlists`
Listed = tuple[Array, Array, Array]
"""The listed densities of each frame, codebook and stream: (index, kept, count).

`index` int32 [n, B, 3, K] and `kept` f32 [n, B, 3, K + 16]: their numbers and their log densities, then exponentials;
`count` int64 [n, B, 3]: how many they are.
"""


@njit(nogil=True, cache=True)
def evaluate_listed(
    x: Array, gaussians: Array, lists: Lists, words: Array, listed: Listed, first: int, last: int
) -> None:
    """Fill `listed` of the codebooks first … last − 1 by the lists of codewords `words` int32 [n, 3]."""
    start, items, lanes = lists
    index, kept, count = listed
    n, streams, depth = x.shape
    books, _, slots, _, _ = gaussians.shape
    if (
        gaussians.shape != (books, streams, slots, depth, LANES)
        or start.shape != (streams, start.shape[1], books + 1)
        or len(lanes) != len(items)
        or words.shape != (n, streams)
        or index.shape != (n, books, streams, slots * LANES)
        or kept.shape != (n, books, streams, (slots + 1) * LANES)
        or count.shape != (n, books, streams)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("evaluate_listed: lists, Gaussians and densities do not fit each other")
    for t in range(n):
        for s in range(streams):
            if not 0 <= words[t, s] < start.shape[1]:
                raise ArrayError("evaluate_listed: a codeword that has no list")
    panel = depth * LANES * 4
    values = np.empty(LANES, np.float32)
    for book in range(first, last):
        for s in range(streams):
            base = address(gaussians, np.float32) + (book * streams + s) * slots * panel
            for t in range(n):
                frame = address(x, np.float32) + (t * streams + s) * depth * 4
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
        size < LANES
        or size % LANES
        or count.shape != (n, books, streams)
        or shift.shape != (n, books)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("exponentiate_listed: densities and shift do not fit each other")
    for t in range(n):
        for book in range(first, last):
            total = np.float32(0)
            for s in range(streams):
                at = address(kept, np.float32) + ((t * books + book) * streams + s) * size * 4
                groups = -(-count[t, book, s] // LANES)
                best = largest(at, groups)
                exp_shifted(at, at, groups, best)
                total += best
            shift[t, book] = total


@njit(nogil=True, cache=True)
def mix_listed(
    listed: Listed, rows: Array, densities: int, start: Array, products: Array, first: int, last: int
) -> None:
    """products = Π over streams Σ over the listed densities weight · exponential."""
    index, kept, count = listed
    n, books, streams, most = index.shape
    if (
        kept.shape != (n, books, streams, most + LANES)
        or count.shape != (n, books, streams)
        or most != densities
        or len(products) != n
        or len(start) != books + 1
        or not columns_fit(start, products, rows.size, streams * densities)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("mix_listed: densities, weights and products do not fit each other")
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(n):
            for s in range(streams):
                which = (t * books + book) * streams + s
                factors = address(kept, np.float32) + which * (most + LANES) * 4
                places = address(index, np.int32) + which * most * 4
                row = address(rows, np.float32) + (start[book] * streams + s * width) * densities * 4
                out = address(products, np.float32) + (t * products.shape[1] + start[book]) * 4
                mix_rows(factors, places, count[t, book, s], row, width, out, s > 0)


@njit(nogil=True, cache=True)
def evaluate_expanded(x: Array, gaussians: Array, backing: Backing, g: Array, first: int, last: int) -> None:
    """Log densities `g` f32 [n, B, 3, K]: of the panels in expanded clusters; the others get their cluster's."""
    n, streams, depth = x.shape
    books, _, slots, _, _ = gaussians.shape
    if (
        n > 64
        or gaussians.shape != (books, streams, slots, depth, LANES)
        or not backing_fits(backing, gaussians, n)
        or g.shape != (n, books, streams, slots * LANES)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("evaluate_expanded: clusters, Gaussians and densities do not fit each other")
    of_panel, log_weights, expanded, cluster_densities = backing
    for book in range(first, last):
        for s in range(streams):
            for m in range(slots):
                which = (book * streams + s) * slots + m
                panel = address(gaussians, np.float32) + which * depth * LANES * 4
                log_weight = address(log_weights, np.float32) + which * LANES * 4
                k = of_panel[book, s, m]
                if k >= expanded.shape[1]:
                    raise ArrayError("evaluate_expanded: a cluster that there is none")
                for t in range(n):
                    row = (t * books + book) * streams + s
                    to = address(g, np.float32) + (row * slots + m) * LANES * 4
                    if (expanded[s, k] >> np.uint64(t)) & np.uint64(1):
                        frame = address(x, np.float32) + (t * streams + s) * depth * 4
                        _panel(panel, depth, panel, (frame, to))
                    else:
                        add_to(log_weight, cluster_densities[t, s, k], to)
