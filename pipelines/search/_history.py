"""The tokens' history: dropping entries that no token leads to, and following one back; compiled.

History is int32 [capacity, 3]: previous entry (-1: none), arc, frame. Entries point backwards only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def collect(history: Any, roots: Any, n_roots: int, used: int) -> int:  # pragma: no cover
    """Keep only the entries that `roots[:n_roots]` lead to; renumber both; returns their number."""
    number = np.zeros(used, dtype=np.int32)
    for i in range(n_roots):
        if roots[i] >= 0:
            number[roots[i]] = 1
    # Entries point backwards only, so one pass from the end marks all.
    for i in range(used - 1, -1, -1):
        if number[i] != 0 and history[i, 0] >= 0:
            number[history[i, 0]] = 1
    kept = 0
    for i in range(used):
        if number[i] != 0:
            previous = history[i, 0]
            history[kept, 0] = number[previous] if previous >= 0 else -1
            history[kept, 1] = history[i, 1]
            history[kept, 2] = history[i, 2]
            number[i] = kept
            kept += 1
        else:
            number[i] = -1
    for i in range(n_roots):
        if roots[i] >= 0:
            roots[i] = number[roots[i]]
    return kept


@numba.njit(cache=True, nogil=True)
def trace(
    history: Any, entry: int, anchor: int, out: Any
) -> tuple[int, bool]:  # pragma: no cover - compiled
    """Entries from `entry` back to (without) `anchor` or the beginning, last one first, in `out`.

    Returns their number and whether the anchor was met; beyond the length of `out` they are only
    counted.
    """
    n = 0
    while entry >= 0 and entry != anchor:
        if n < len(out):
            out[n] = entry
        n += 1
        entry = history[entry, 0]
    return n, entry == anchor and anchor >= 0
