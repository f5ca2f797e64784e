"""The matrix product of few frames and many Gaussians, read in order of memory."""

from __future__ import annotations

from numba import njit

from pipelines.scoring.simd.tiles import make_tile
from pipelines.scoring.simd.vector import VECTOR_BYTES, WIDE_REGISTERS

# One panel at a time: a processor prefetches one stream of memory well and four short ones badly (how well, at one
# frame: `python -m tests.bench.constants --only products`), and eight rows give enough independent sums to keep its
# multipliers busy.
_tile_8, _tile_4, _tile_1 = make_tile(8, 1), make_tile(4, 1), make_tile(1, 1)


@njit(nogil=True, cache=True)
def multiply(a: int, a_stride: int, n: int, b: int, panels: int, k: int, c: int) -> None:
    """C[n, 16·panels] = A[n, k] · B, whose panels [k, 16] are read once per eight rows, in order of memory.

    Addresses and `a_stride` in bytes.
    """
    row = panels * VECTOR_BYTES
    t = 0
    while t < n:
        at, to = (a + t * a_stride, a_stride), c + t * row
        if WIDE_REGISTERS and n - t >= 8:
            for p in range(panels):
                _tile_8(
                    at, (b + p * k * VECTOR_BYTES, 0), k, (to + p * VECTOR_BYTES, row), False, 0
                )
            t += 8
        elif n - t >= 4:
            for p in range(panels):
                _tile_4(
                    at, (b + p * k * VECTOR_BYTES, 0), k, (to + p * VECTOR_BYTES, row), False, 0
                )
            t += 4
        else:
            for p in range(panels):
                _tile_1(
                    at, (b + p * k * VECTOR_BYTES, 0), k, (to + p * VECTOR_BYTES, row), False, 0
                )
            t += 1
