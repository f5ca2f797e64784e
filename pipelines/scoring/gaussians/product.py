"""The matrix product of few frames and many Gaussians, read in order of memory."""

from __future__ import annotations

from typing import Final, cast

import numpy as np
from numba import njit

from pipelines.scoring.simd.tiles import make_tile
from pipelines.scoring.simd.vector import VECTOR_BYTES, WIDE_REGISTERS

# One panel at a time: a processor prefetches one stream of memory well and four short ones badly (how well, at one
# frame: `python -m tests.bench.constants --only products`), and eight rows give enough independent sums to keep its
# multipliers busy.
_tile_8, _tile_4, _tile_1 = make_tile(8, 1), make_tile(4, 1), make_tile(1, 1)

NOTHING: Final = cast(int, np.int64(0))
"""No address to prefetch: numba would compile `multiply` anew for a zero that is written out."""


@njit(nogil=True, cache=True)
def multiply(a: int, a_stride: int, n: int, b: int, panels: int, k: int, c: int, later: int) -> None:
    """C[n, 16·panels] = A[n, k] · B, whose panels [k, 16] are read once per eight rows, in order of memory.

    Addresses and `a_stride` in bytes. From the address `later` on, which need not be mapped, as many panels are
    prefetched meanwhile, some in each pass over B; none where it is 0.
    """
    panel, row = k * VECTOR_BYTES, panels * VECTOR_BYTES
    eights = n // 8 if WIDE_REGISTERS else 0
    fours = (n - 8 * eights) // 4
    ones = n - 8 * eights - 4 * fours
    passes = eights + fours + ones
    t = 0
    for turn in range(passes):
        at, to = (a + t * a_stride, a_stride), c + t * row
        for p in range(panels):
            here, there = (b + p * panel, 0), (to + p * VECTOR_BYTES, row)
            ahead = later + p * panel if later != 0 and p % passes == turn else 0
            if turn < eights:
                _tile_8(at, here, k, there, False, ahead)
            elif turn < eights + fours:
                _tile_4(at, here, k, there, False, ahead)
            else:
                _tile_1(at, here, k, there, False, ahead)
        t += 8 if turn < eights else 4 if turn < eights + fours else 1
