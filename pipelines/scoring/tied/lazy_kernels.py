"""The kernel of lazy scoring in a tied-mixture model: mixtures of chosen senones in a few frames.

The Gaussians of a block and their exponentials are computed for all its frames at once (`kernels`); what is left for
later are the mixtures of the active senones. A senone's weights lie side by side here, so that each is a dot product
over memory in order: panels of 16 senones would save nothing, four of five hold an active one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.simd.dot_products import ROWS, make_stream_products
from pipelines.scoring.simd.exponential import log_shifted
from pipelines.scoring.simd.vector import LANES, address
from profiler.arrays import Array, ArrayError

MAX_STREAMS = 4
"""The most of an `AcousticModel` (`sphinx.model.MAX_TIED_STREAMS`)."""
_products = make_stream_products(MAX_STREAMS)

Mixtures = tuple[Array, Array]
"""Of each senone: (its weights f32 [senones, 3, K], its codebook int32 [senones])."""


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
