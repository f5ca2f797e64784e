"""Compiled loops over the states and arcs of transducers of millions of arcs.

Shapes: n states, m arcs; `first` int64 [n + 1] are offsets into the arcs, `body` int32 words of an
OpenFst vector file: per state its final weight, its number of arcs (64 bits) and four words per arc.
"""

import numba
import numpy as np

from profiler.arrays import I32, I64, Bool

Words = I32
Offsets = I64


@numba.njit(cache=True, nogil=True)
def count(body: Words, first: Offsets) -> int:  # pragma: no cover - compiled
    """Fill `first` by walking the states of `body`; returns the words walked, -1 on nonsense."""
    at = 0
    for state in range(len(first) - 1):
        if at + 3 > len(body):
            return -1
        arcs = body[at + 1]
        at += 3 + 4 * arcs
        if arcs < 0 or at > len(body):
            return -1
        first[state + 1] = first[state] + arcs
    return at


@numba.njit(cache=True, nogil=True)
def reach(first: Offsets, target: Words, start: int, reached: Bool) -> None:  # pragma: no cover - compiled
    """Mark the states that paths from `start` come to."""
    stack = np.empty(len(reached), dtype=np.int64)
    stack[0], depth = start, 1
    reached[start] = True
    while depth:
        depth -= 1
        state = stack[depth]
        for arc in range(first[state], first[state + 1]):
            if not reached[target[arc]]:
                reached[target[arc]] = True
                stack[depth] = target[arc]
                depth += 1
