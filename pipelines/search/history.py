"""The checked way to `kernels.history`, for all who keep one: entries int32 [capacity, 3] that point backwards."""

from __future__ import annotations

import numpy as np

from pipelines.search.kernels import history as history_kernels
from profiler.arrays import Array, ArrayError, check, check_indices


def collect(
    history: Array,
    first: int,
    roots: Array,
    other_roots: Array,
    alternative: Array,
    delta: Array,
    beam: float,
) -> tuple[int, int]:
    """Keep of `history`, its used part, only what the roots (int32, -1: none) lead to; see `history_kernels.collect`.

    Entries before `first` stay as they are. Renumbers the roots and `alternative`, int32 [k, 2] of entries from `first`
    on, in place; its costs `delta` f32 [k] move along. Returns how many entries and alternatives are left.
    """
    used = len(history)
    check("history", history, np.int32, (None, 3), writable=True)
    check("roots", roots, np.int32, (None,), writable=True)
    check("other roots", other_roots, np.int32, (None,), writable=True)
    check("alternatives", alternative, np.int32, (None, 2), writable=True)
    check("their costs", delta, np.float32, (len(alternative),), writable=True)
    if not 0 <= first <= used or (len(alternative) and alternative[0, 0] < first):
        raise ArrayError(f"entries from {first} on are not what is collected of {used}")
    for backpointers in (roots, other_roots, alternative):
        check_indices("backpointers + 1", backpointers + 1, used + 1)
    kept, left = history_kernels.collect(history, first, roots, other_roots, alternative, delta, beam)
    return int(kept), int(left)


def trace(history: Array, entry: int, anchor: int, out: Array) -> tuple[int, bool]:
    """Entries from `entry` back to (without) `anchor`, last one first, in `out` int32; see `history_kernels.trace`."""
    check("history", history, np.int32, (None, 3))
    check("out", out, np.int32, (None,), writable=True)
    if not -1 <= entry < len(history):
        raise ArrayError(f"there is no entry {entry} among {len(history)}")
    count, met = history_kernels.trace(history, entry, anchor, out)
    return int(count), bool(met)
