"""The kernels of top-N selection in a tied-mixture model: the best densities, and the mixtures of those alone.

Partial distance elimination (`bounded`) computes only the densities that can be among the N best.

Layouts as in `kernels`.
"""

from typing import Any

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.product import NEVER, PARTS, Bounds, bring_forward
from pipelines.scoring.simd.exponential import exp_shifted
from pipelines.scoring.simd.maxima import bound_of_nth, can_reach, count_bits, lowest_bit, reached
from pipelines.scoring.simd.panels import partial
from pipelines.scoring.simd.tiles import prefetch_lines
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, copy_floats
from pipelines.scoring.tied.kernels import columns_fit, mix_rows
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

LANE_BOUND = 6  # Up to this many are found by lane maxima: beyond, their bound lets too many through


@njit_part
def _threshold(at: int, groups: int, keep: int, best: float) -> Any:
    """A number that `keep` or a few more of the floats at `at` reach, by bisection."""
    step = np.float32(16.0)
    low = np.float32(best)
    while True:
        low = np.float32(best - step)
        count = 0
        for i in range(groups):
            count += count_bits(reached(at + i * 4 * LANES, low))
        if count >= keep or step > 1e30:
            break
        step *= np.float32(2.0)
    high = np.float32(best)
    while count > keep:
        middle = np.float32((low + high) * np.float32(0.5))
        if not low < middle < high:
            break
        hits = 0
        for i in range(groups):
            hits += count_bits(reached(at + i * 4 * LANES, middle))
        if hits >= keep:
            low, count = middle, hits
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def select(g: Array, index: Array, kept: Array, shift: Array, keep: int, first: int, last: int) -> None:
    """The `keep` best densities of each codebook and stream.

    index int32 [n, B, 3, keep]: which. kept f32 [n, B, 3·keep rounded up to 16]: their log density
    less the best one's.
    """
    n, books, streams, densities = g.shape
    groups = densities // LANES
    if (
        densities != groups * LANES
        or not 1 <= keep <= densities
        or index.shape != (n, books, streams, keep)
        or kept.shape[:2] != (n, books)
        or kept.shape[2] < streams * keep
        or shift.shape != (n, books)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("select: densities and those kept do not fit each other")
    values = np.empty(densities, np.float32)
    places = np.empty(densities, np.int32)
    for t in range(n):
        for book in range(first, last):
            total = np.float32(0)
            for s in range(streams):
                at = address(g, np.float32) + ((t * books + book) * streams + s) * densities * 4
                bound, best = bound_of_nth(at, groups, min(keep, LANE_BOUND))
                if keep > LANE_BOUND:
                    bound = _threshold(at, groups, keep, best)
                total += best
                found = 0
                # Sixty-four densities at a time: few branches that depend on the data.
                for i in range(0, groups, 4):
                    bits = np.uint64(0)
                    for j in range(i, min(i + 4, groups)):
                        bits |= reached(at + j * 4 * LANES, bound) << np.uint64((j - i) * LANES)
                    while bits:
                        place = i * LANES + lowest_bit(bits)
                        bits &= bits - np.uint64(1)
                        places[found] = place
                        values[found] = g[t, book, s, place]
                        found += 1
                # Of numbers that are none too few reach any bound: a density that there is stands for the rest.
                while found < keep:
                    values[found], places[found] = best, 0
                    found += 1
                # The bound lets a few too many through: drop the worst until `keep` are left.
                while found > keep:
                    worst = 0
                    for i in range(1, found):
                        if values[i] <= values[worst]:
                            worst = i
                    found -= 1
                    values[worst], places[worst] = values[found], places[found]
                for i in range(keep):
                    index[t, book, s, i] = places[i]
                    kept[t, book, s * keep + i] = values[i] - best
            for i in range(streams * keep, kept.shape[2]):
                kept[t, book, i] = 0.0
            shift[t, book] = total


@njit(nogil=True, cache=True)
def exponentiate_kept(kept: Array, first: int, last: int) -> None:
    """kept = exp(kept), in place."""
    n, books, size = kept.shape
    if size % LANES or not 0 <= first <= last <= books:
        raise ArrayError("exponentiate_kept: not whole vectors of the codebooks")
    for t in range(n):
        at = address(kept, np.float32) + (t * books + first) * size * 4
        exp_shifted(at, at, (last - first) * size // LANES, np.float32(0))


@njit_part
def _row(rows: Array, start: Array, streams: int, densities: int, book: int, s: int) -> int:
    """The address of the first row of a codebook and stream."""
    width = start[book + 1] - start[book]
    return address(rows, np.float32) + (start[book] * streams + s * width) * densities * 4


@njit_part
def _prefetch_rows(index: Array, t: int | np.int64, book: int, s: int, row: int, lines: int) -> None:
    """Prefetch the rows, each of `lines` cache lines, that a frame adds up; `row`: address of the first of all rows."""
    for i in range(index.shape[3]):
        prefetch_lines(row + index[t, book, s, i] * lines * VECTOR_BYTES, lines)


@njit(nogil=True, cache=True)
def mix_kept(
    index: Array, kept: Array, rows: Array, densities: int, start: Array, products: Array, first: int, last: int
) -> None:
    """products = Π over streams Σ over the kept densities weight · exponential.

    With each frame the rows of the next are prefetched, since they lie where no hardware prefetcher expects them; until
    about all of a codebook's have come.
    """
    n, books, streams, keep = index.shape
    if (
        kept.shape[:2] != (n, books)
        or kept.shape[2] < streams * keep
        or len(products) != n
        or len(start) != books + 1
        or not columns_fit(start, products, rows.size, streams * densities)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("mix_kept: densities kept, weights and products do not fit each other")
    # One codebook's rows (some 200 kB) stay in the second-level cache for all frames.
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(n):
            which = t * books + book
            for s in range(streams):
                row = _row(rows, start, streams, densities, book, s)
                if t + 1 == n and book + 1 < last:
                    lines = (start[book + 2] - start[book + 1]) // LANES
                    _prefetch_rows(
                        index, np.int64(0), book + 1, s, _row(rows, start, streams, densities, book + 1, s), lines
                    )
                elif t + 1 < n and t * keep < densities:
                    _prefetch_rows(index, t + 1, book, s, row, width // LANES)
                factors = address(kept, np.float32) + (which * kept.shape[2] + s * keep) * 4
                places = address(index, np.int32) + (which * streams + s) * keep * 4
                out = address(products, np.float32) + (t * products.shape[1] + start[book]) * 4
                mix_rows(factors, places, keep, row, width, out, s > 0)


MAX_BOUNDED = 16  # Densities kept of which the worst is found quickly; with more, no density is eliminated


@njit(nogil=True, cache=True)
def bounded(x: Array, gaussians: Array, within: Bounds, g: Array, first: int, last: int) -> int:
    """Log densities `g` f32 [n, codebooks, 3, padded densities] of what can be among the best; NEVER for the others.

    Returns how many dimensions of a Gaussian were computed.
    """
    rest, order, keep, follow = within
    books, streams, slots, depth, _ = gaussians.shape
    n, dim = len(x), depth // 2
    if (
        gaussians.shape != (books, streams, slots, 2 * dim + 1, LANES)
        or slots == 0
        or x.shape != (n, streams, depth)
        or rest.shape != (books, streams, slots, PARTS, LANES)
        or order.shape != (books, streams, slots)
        or g.shape != (n, books, streams, slots * LANES)
        or keep < 1
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("bounded: frames, Gaussians and densities do not fit each other")
    vector, computed = LANES * 4, 0
    bounds, entered = np.empty(LANES, np.float32), np.empty(slots, np.int64)
    for book in range(first, last):
        for s in range(streams):
            which = book * streams + s
            for t in range(n):
                frame = address(x, np.float32) + (t * streams + s) * depth * 4
                row = address(g, np.float32) + (t * books * streams + which) * slots * vector
                g[t, book, s] = NEVER
                bounds[:] = NEVER
                winners = np.int64(0)  # a literal is a type, for which `bring_forward` would be compiled once more
                for i in range(slots):
                    m = order[book, s, i]
                    panel = address(gaussians, np.float32) + (which * slots + m) * depth * vector
                    parts = address(rest, np.float32) + (which * slots + m) * PARTS * vector
                    to = row + m * vector
                    copy_floats(to, panel + 2 * dim * vector, LANES)
                    alive = True
                    for part in range(PARTS):
                        if not can_reach(to, parts + part * vector, address(bounds, np.float32)):
                            alive = False
                            break
                        begin, end = part * dim // PARTS, (part + 1) * dim // PARTS
                        partial(frame, panel, dim, begin, end, to)
                        computed += end - begin
                    if not alive:
                        g[t, book, s, m * LANES : (m + 1) * LANES] = NEVER
                        continue
                    entered[winners] = i
                    winners += 1
                    if keep <= MAX_BOUNDED:
                        bounds[:] = bound_of_nth(row, slots, keep)[0]
                if follow:
                    bring_forward(order[book, s], entered, winners)
    return computed * LANES
