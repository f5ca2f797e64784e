"""The kernels of GMM scoring: plain functions over packed arrays, without the interpreter lock.

Layouts (made by `packing`): B codebooks, 3 streams, K densities (a multiple of 16), n frames.

- `x` f32 [n, 3, 27]: per stream the 13 squares, the 13 values, one.
- `gaussians` f32 [B, 3, K/16, 27, 16]: panels of 16 densities. Other models have other numbers of streams and values.
- `g` f32 [n, B, 3, K]: log densities, then their exponentials relative to the best.
- `weights` f32, per codebook of width w (senones, a multiple of 16) [w/16, 3, K, 16]: panels of 16
  senones, so that a tile of the product streams through memory in order.
- `products` f32 [n, W]: likelihoods, W = Σ w. `start` int64 [B + 1]: first column of each codebook.
- `shift` f32 [n, B]: what was subtracted before the exponential, all streams together.
- `rows` f32, per codebook [3, K, w]: the weights once more, with one row per density.
- `dots` f32 [senones, 3, K]: once more, those of a senone side by side, for mixtures of chosen senones in a few frames:
  a dot product over memory in order. Panels of 16 senones would save nothing, four of five hold a chosen one.

Every kernel does the codebooks `first` … `last` − 1, so that threads can share a block. Arrays that do not fit each
other are an `ArrayError`, here and in all kernels of scoring. What belongs together comes as a tuple, and one without
names: numba looks at each name in every call (0.07 µs).
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from pipelines.scoring.gaussians.product import NEVER
from pipelines.scoring.simd.dot_products import ROWS, make_stream_products
from pipelines.scoring.simd.exponential import exp_shifted, log_shifted
from pipelines.scoring.simd.maxima import largest
from pipelines.scoring.simd.tiles import make_rows, make_tile
from pipelines.scoring.simd.vector import LANES, WIDE_REGISTERS, address, copy_floats
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

_rows_8, _rows_2, _rows_1 = make_rows(8), make_rows(2), make_rows(1)

Matrix = tuple[int, int]  # Its address, and the bytes from a row or a panel to the next
Strip = Callable[[Matrix, Matrix, int, int, Matrix, bool, int], None]


Order = tuple[Array, Array, Array]
"""Where the senones of the codebooks stand: (start, runs, run_start).

`runs` int64 [r, 3] are (first senone, first column, length), those of codebook b at run_start[b] … run_start[b + 1].
"""


def _make_strip(rows: int, together: int, prefetching: bool = True) -> Strip:
    """C[rows, 16·panels] = A[rows, k] · B, `together` panels at a time while that many are left."""
    wide, narrow = make_tile(rows, together), make_tile(rows, 1)

    @njit_part
    def strip(a: Matrix, b: Matrix, panels: int, k: int, c: Matrix, times: bool, later: int) -> None:
        p = 0
        while p < panels:
            bp, cp = (b[0] + p * b[1], b[1]), (c[0] + p * 4 * LANES, c[1])
            following = later + p * b[1] if prefetching and later != 0 else 0
            if panels - p >= together:
                wide(a, bp, k, cp, times, following)
                p += together
            else:
                narrow(a, bp, k, cp, times, following)
                p += 1

    return strip


_eight, _four, _one_prefetching = _make_strip(8, 2), _make_strip(4, 2 if WIDE_REGISTERS else 1), _make_strip(1, 4)
# With the choice of prefetching left open its loop is slower.
_one = _make_strip(1, 4, prefetching=False)


@njit(nogil=True, cache=True)
def _multiply(a: Matrix, n: int, b: Matrix, panels: int, k: int, c: Matrix, times: bool, later: int) -> None:
    """C[n, 16·panels] = A[n, k] · B in tiles.

    With the last rows as much as B is prefetched from the address `later` on, in panels as far apart: by then all of B
    is in a cache, and memory would be idle. Nothing where it is 0.
    """
    t = 0
    while t < n:
        at, to = (a[0] + t * a[1], a[1]), (c[0] + t * c[1], c[1])
        left = n - t
        # Sixteen sums of 16 lanes stay in registers only where one register holds 16 lanes.
        if WIDE_REGISTERS and left >= 8:
            _eight(at, b, panels, k, to, times, later if left == 8 else 0)
            t += 8
        elif left >= 4:
            _four(at, b, panels, k, to, times, later if left == 4 else 0)
            t += 4
        elif left > 1 or later == 0:
            _one(at, b, panels, k, to, times, later)
            t += 1
        else:
            _one_prefetching(at, b, panels, k, to, times, later)
            t += 1


@njit(nogil=True, cache=True)
def evaluate(x: Array, gaussians: Array, g: Array, first: int, last: int) -> None:
    """Log densities `g` of all Gaussians of the codebooks."""
    n, books, streams, densities = g.shape
    depth = x.shape[2]
    panels = densities // LANES
    panel_bytes = depth * LANES * 4
    if (
        densities != panels * LANES
        or x.shape != (n, streams, depth)
        or gaussians.shape != (books, streams, panels, depth, LANES)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("evaluate: frames, Gaussians and densities do not fit each other")
    for book in range(first, last):
        for s in range(streams):
            which = book * streams + s
            _multiply(
                (address(x, np.float32) + s * depth * 4, streams * depth * 4),
                n,
                (address(gaussians, np.float32) + which * panels * panel_bytes, panel_bytes),
                panels,
                depth,
                (address(g, np.float32) + which * densities * 4, books * streams * densities * 4),
                # Never; False itself is a type, for which all tiles would be compiled once more.
                s < 0,
                address(gaussians, np.float32) + (which + 1) * panels * panel_bytes,
            )


@njit(nogil=True, cache=True)
def exponentiate(g: Array, shift: Array, first: int, last: int) -> None:
    """Replace each stream's log densities by exp(g − best); `shift` = Σ best over the streams."""
    n, books, streams, densities = g.shape
    groups = densities // LANES
    if densities != groups * LANES or densities < LANES or shift.shape != (n, books) or not 0 <= first <= last <= books:
        raise ArrayError("exponentiate: densities and shift do not fit each other")
    base = address(g, np.float32)
    for t in range(n):
        for book in range(first, last):
            total = np.float32(0)
            for s in range(streams):
                at = base + ((t * books + book) * streams + s) * densities * 4
                best = largest(at, groups)
                exp_shifted(at, at, groups, best)
                total += best
            shift[t, book] = total


@njit(nogil=True, cache=True)
def columns_fit(start: Array, products: Array, weights: int, each: int | np.int64) -> bool:
    """Whether `products` and the number of weights, `each` a column, fit codebooks that start at these columns."""
    books, columns = len(start) - 1, products.shape[1]
    if books < 0 or start[0] != 0 or start[books] != columns:
        return False
    for book in range(books):
        width = start[book + 1] - start[book]
        if width < 0 or width % LANES:
            return False
    return weights == columns * each


@njit(nogil=True, cache=True)
def runs_fit(order: Order, senones: int, first: int, last: int) -> bool:
    """Whether the runs of the codebooks lead from their own columns to senones that there are."""
    start, runs, run_start = order
    if run_start.shape != start.shape or runs.shape[1] != 3:
        return False
    for book in range(first, last):
        if not 0 <= run_start[book] <= run_start[book + 1] <= len(runs):
            return False
        for r in range(run_start[book], run_start[book + 1]):
            senone, column, length = runs[r, 0], runs[r, 1], runs[r, 2]
            if not (0 <= senone <= senone + length <= senones):
                return False
            if not start[book] <= column <= column + length <= start[book + 1]:
                return False
    return True


@njit_part
def put_in_order(products: Array, order: Order, scores: Array, t: int, book: int) -> None:
    """Copy what stands in the columns of a codebook to its senones, in frame t."""
    _, runs, run_start = order
    here = address(products, np.float32) + t * products.shape[1] * 4
    there = address(scores, np.float32) + t * scores.shape[1] * 4
    for r in range(run_start[book], run_start[book + 1]):
        senone, column, length = runs[r, 0], runs[r, 1], runs[r, 2]
        copy_floats(there + senone * 4, here + column * 4, length)


@njit_part
def mix_rows(factors: int, places: int, count: int, rows: int, width: int, out: int, times: bool) -> None:
    """out f32 [width] = Σ factors f32 · the rows that `places` int32 says, `count` of them; or `times` what is there.

    All by address; `rows` f32 [densities, width].
    """
    column = 0
    while column < width:
        left = width - column
        at, to = rows + column * 4, out + column * 4
        if left >= 8 * LANES:
            _rows_8(factors, places, count, at, width * 4, to, times)
            column += 8 * LANES
        elif left >= 2 * LANES:
            _rows_2(factors, places, count, at, width * 4, to, times)
            column += 2 * LANES
        else:
            _rows_1(factors, places, count, at, width * 4, to, times)
            column += LANES


@njit(nogil=True, cache=True)
def mix(g: Array, weights: Array, start: Array, products: Array, first: int, last: int) -> None:
    """products = Π over streams Σ over densities weight · exponential: a tile per 16 senones, two or four at a time.

    Two panels of weights stay in the first cache for all rows. Single rows take four, whose sums do not wait for each
    other: one chain of sums is bound by the latency of an addition.
    """
    n, books, streams, densities = g.shape
    book_bytes = streams * densities * 4
    panel = streams * densities * LANES
    if (
        len(products) != n
        or len(start) != books + 1
        or not columns_fit(start, products, weights.size, streams * densities)
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("mix: densities, weights and products do not fit each other")
    together = 4 if n < 4 else 2
    for book in range(first, last):
        panels = (start[book + 1] - start[book]) // LANES
        base = address(weights, np.float32) + start[book] * streams * densities * 4
        for p in range(0, panels, together):
            for s in range(streams):
                here = base + (p * panel + s * densities * LANES) * 4
                # What follows: the same panels of the next stream, or the next panels.
                after = panel * together if s == streams - 1 else (s + 1) * densities * LANES
                later = base + (p * panel + after) * 4
                to = address(products, np.float32) + (start[book] + p * LANES) * 4
                _multiply(
                    (address(g, np.float32) + book * book_bytes + s * densities * 4, books * book_bytes),
                    n,
                    (here, panel * 4),
                    min(together, panels - p),
                    densities,
                    (to, products.shape[1] * 4),
                    s > 0,
                    # One row is bound by memory: a prefetch would only wait.
                    later if n > 1 else 0,
                )


@njit(nogil=True, cache=True)
def logarithms(products: Array, shift: Array, order: Order, scores: Array, first: int, last: int) -> None:
    """scores[n, senones] = log product + shift, put into the order of the senones."""
    n, columns = products.shape
    start, _, _ = order
    books, senones = len(start) - 1, scores.shape[1]
    if (
        shift.shape != (n, books)
        or len(scores) != n
        or not columns_fit(start, products, columns, np.int64(1))
        or not 0 <= first <= last <= books
        or not runs_fit(order, senones, first, last)
    ):
        raise ArrayError("logarithms: products, runs and scores do not fit each other")
    for t in range(n):
        for book in range(first, last):
            at = address(products, np.float32) + (t * columns + start[book]) * 4
            log_shifted(at, at, (start[book + 1] - start[book]) // LANES, shift[t, book])
            put_in_order(products, order, scores, t, book)


MAX_STREAMS = 4  # The most of an `AcousticModel` (`sphinx.model.MAX_TIED_STREAMS`)
_products = make_stream_products(MAX_STREAMS)

Mixtures = tuple[Array, Array]  # Of each senone: (its weights f32 [senones, 3, K], its codebook int32 [senones])


@njit(nogil=True, cache=True)
def mix_some(
    g: Array, shift: Array, mixtures: Mixtures, senones: Array, first: int, last: int, products: Array, scores: Array
) -> None:
    """scores[t, senone] = log Π over streams Σ over densities weight · exponential, plus shift.

    For t = first … last − 1 and each of `senones` int64, best with those of a codebook together. g f32
    [n, B, 3, K] exponentials, shift f32 [n, B], scores f32 [n, n_senones]; workspace `products` f32 [n, W], W the
    senones of the largest codebook and at least 16 to spare.
    """
    n, books, streams, densities = g.shape
    dots, book_of = mixtures
    groups = densities // LANES
    frame_bytes = books * streams * densities * 4
    if (
        densities != groups * LANES
        or not 1 <= streams <= MAX_STREAMS
        or shift.shape != (n, books)
        or dots.shape != (len(book_of), streams, densities)
        or not 0 <= first <= last <= n
        or len(scores) < last
        or scores.shape[1] != len(book_of)
        or len(products) < last
        or products.shape[1] <= LANES
    ):
        raise ArrayError("mix_some: densities, weights and scores do not fit each other")
    for senone in senones:
        if not 0 <= senone < len(book_of) or not 0 <= book_of[senone] < books:
            raise ArrayError("mix_some: a senone that there is none")
    row_bytes = streams * dots.shape[2] * 4
    rows = np.empty(2 * ROWS, np.int64)
    count = len(senones)
    begin = 0
    while begin < count:
        book = book_of[senones[begin]]
        end = begin + 1
        while end < count and end - begin < products.shape[1] - LANES:
            if book_of[senones[end]] != book:
                break
            end += 1
        for i in range(begin, end, ROWS):
            for j in range(2 * ROWS):
                # Past the end the last one once more: what comes out is not looked at.
                bound = end if j < ROWS else count
                rows[j] = address(dots, np.float32) + senones[min(i + j, bound - 1)] * row_bytes
            for t in range(first, last):
                factors = address(g, np.float32) + t * frame_bytes + book * streams * densities * 4
                here = address(rows, np.int64)
                out = address(products, np.float32) + (t * products.shape[1] + i - begin) * 4
                _products(streams, factors, groups, here, out)
        for t in range(first, last):
            at = address(products, np.float32) + t * products.shape[1] * 4
            # Whole vectors: the logarithm of what lay there before is not looked at either.
            log_shifted(at, at, -(-(end - begin) // LANES), shift[t, book])
            for i in range(begin, end):
                scores[t, senones[i]] = products[t, i - begin]
        begin = end


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def mix_best(g: Array, log_rows: Array, order: Order, products: Array, scores: Array, first: int, last: int) -> None:
    """scores f32 [n, senones] of the codebooks from log densities `g` [n, B, 3, K]; layouts as above.

    The best component in place of the sum takes no exponential and no logarithm: log p ≈ Σ over streams max over
    densities (log weight + log density). Without a matrix product it is slower than the exact sum here; it says what
    the exponentials cost, and what leaving them out does to the words.
    """
    n, books, streams, densities = g.shape
    start, _, _ = order
    if (
        len(products) != n
        or len(scores) != n
        or len(start) != books + 1
        or not columns_fit(start, products, log_rows.size, streams * densities)
        or not 0 <= first <= last <= books
        or not runs_fit(order, scores.shape[1], first, last)
    ):
        raise ArrayError("mix_best: densities, weights and scores do not fit each other")
    width_of_all = start[1:] - start[:-1]
    best = np.empty(width_of_all.max(), np.float32)
    for book in range(first, last):
        width = start[book + 1] - start[book]
        for t in range(n):
            out = products[t, start[book] : start[book + 1]]
            out[:] = 0.0
            for s in range(streams):
                begin = (start[book] * streams + s * width) * densities
                some = best[:width]
                some[:] = NEVER
                for d in range(densities):
                    value = g[t, book, s, d]
                    row = log_rows[begin + d * width : begin + (d + 1) * width]
                    for c in range(width):
                        total = value + row[c]
                        some[c] = max(some[c], total)
                for c in range(width):
                    out[c] += some[c]
            put_in_order(products, order, scores, t, book)
