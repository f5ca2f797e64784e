"""The tokens' history: dropping entries that no token leads to, and following one back; compiled.

History is int32 [capacity, 3]: previous entry (-1: none), arc (-1: none), frame. Entries point backwards only.
Alternatives (`lattice`) hang on entries: int32 [capacity, 2] (entry, the losing way's entry), ascending, with costs.
"""

import numba
import numpy as np

from pipelines.search.kernels.layout import Index
from profiler.arrays import F32, I32
from profiler.process.numba_flags import njit_inlined


@njit_inlined
def append(history: I32, used: int, entry: Index, arc: Index, frame: Index) -> np.int32:  # pragma: no cover - compiled
    """Write the entry that follows `entry`; its number, which is `used`."""
    history[used, 0] = entry
    history[used, 1] = arc
    history[used, 2] = frame
    return np.int32(used)


@numba.njit(cache=True, nogil=True)
def collect(
    history: I32, first: int, roots: I32, other_roots: I32, alternative: I32, delta: F32, beam: float
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Keep only entries of `history`, all of it in use, that the roots lead to; renumber them from entry `first` on.

    An alternative is kept when its cost, with all that lies between it and the cheapest root, is within `beam`. Returns
    how many entries, with those before `first`, and alternatives are left.
    """
    used = len(history)
    # By entry from `first` on. `above`: what it costs more than the best of the roots' paths to pass it.
    number = np.zeros(used - first, dtype=np.int32)
    above = np.full(used - first, np.inf, dtype=np.float32)
    for i in range(len(roots)):
        if roots[i] >= first:
            above[roots[i] - first] = 0.0
    for i in range(len(other_roots)):
        if other_roots[i] >= first:
            above[other_roots[i] - first] = 0.0
    # Entries point backwards only, so one pass from the end reaches all.
    a = len(delta) - 1
    for i in range(used - 1, first - 1, -1):
        here = above[i - first]
        previous = history[i, 0] - first
        if here < np.inf and previous >= 0:
            above[previous] = min(above[previous], here)
        while a >= 0 and alternative[a, 0] == i:
            losing = alternative[a, 1] - first
            value = here + delta[a]
            if not (value <= beam and here < np.inf):
                alternative[a, 0] = -1
            elif losing >= 0:
                above[losing] = min(above[losing], value)
            a -= 1
    kept = first
    for i in range(first, used):
        if above[i - first] < np.inf:
            previous = history[i, 0]
            history[kept, 0] = number[previous - first] if previous >= first else previous
            history[kept, 1] = history[i, 1]
            history[kept, 2] = history[i, 2]
            number[i - first] = kept
            kept += 1
        else:
            number[i - first] = -1
    for i in range(len(roots)):
        if roots[i] >= first:
            roots[i] = number[roots[i] - first]
    for i in range(len(other_roots)):
        if other_roots[i] >= first:
            other_roots[i] = number[other_roots[i] - first]
    left = 0
    for a in range(len(delta)):
        if alternative[a, 0] >= 0:
            losing = alternative[a, 1]
            alternative[left, 0] = number[alternative[a, 0] - first]
            alternative[left, 1] = number[losing - first] if losing >= first else losing
            delta[left] = delta[a]
            left += 1
    return kept, left


@numba.njit(cache=True, nogil=True)
def trace(history: I32, entry: int, anchor: int, out: I32) -> tuple[int, bool]:  # pragma: no cover - compiled
    """Entries from `entry` back to (without) `anchor` or the beginning, last one first, in `out`.

    Returns their number and whether the anchor was met; beyond the length of `out` they are only counted.
    """
    n = 0
    while entry >= 0 and entry != anchor:
        if n < len(out):
            out[n] = entry
        n += 1
        entry = history[entry, 0]
    return n, entry == anchor and anchor >= 0
