"""A chain of operations of one cycle each, every one on the result before: its rate is the clock's.

Marsaglia's xorshift ("Xorshift RNGs", Journal of Statistical Software 8, 2003): three shifts and three exclusive ors.
"""

from __future__ import annotations

import numba
import numpy as np

CYCLES = 6
"""Of a step, on processors where a shift and an exclusive or take a cycle each, as on all of x86 since 2000."""


@numba.njit(cache=True, nogil=True)
def chain(start: np.uint64, steps: int) -> np.uint64:
    """The number `steps` after `start`, uint64."""
    x = np.uint64(start)
    for _ in range(steps):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x
