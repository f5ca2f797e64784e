"""One pass over a graph's records: does every index that the search's kernels follow lie inside?"""

from __future__ import annotations

import numba
import numpy as np

from pipelines.search.kernels.layout import LARGEST
from profiler.arrays import I32

SOUND, RANGES, LOOPS, TARGETS, WORDS, SENONES, WEIGHTS, EPSILONS, ORDER = range(9)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_LARGEST_BITS = np.int32(LARGEST.view(np.int32))  # bits of positive floats are ordered as they are


@numba.njit(cache=True, nogil=True)
def fault(
    states: I32, arcs: I32, n_senones: int, n_words: int, n_epsilon_states: int
) -> int:  # pragma: no cover - compiled
    """The first thing that is wrong, or SOUND.

    `states` int32 [n + 1, 4] and `arcs` int32 [m, 4] are the records of wfst.STATE and wfst.ARC as words. A state's
    arcs with senones come before its epsilons, and states without epsilons after `n_epsilon_states`.
    """
    n, m = len(states) - 1, len(arcs)
    if n < 0 or states[0, 0] != 0 or states[n, 0] != m:
        return RANGES
    for state in range(n):
        first, epsilon, end = states[state, 0], states[state, 1], states[state + 1, 0]
        if not 0 <= first <= epsilon <= end <= m:
            return RANGES
        if states[state, 2] < 0 or states[state, 2] > n_senones:
            return LOOPS
        if states[state, 3] & _MAGNITUDE > _LARGEST_BITS:
            return WEIGHTS
        if epsilon < end and state >= n_epsilon_states:
            return ORDER
        for arc in range(first, end):
            target, senone, word, weight = arcs[arc, 0], arcs[arc, 1], arcs[arc, 2], arcs[arc, 3]
            if target < 0 or target >= n:
                return TARGETS
            if word < 0 or word > n_words:
                return WORDS
            if senone < 0 or senone > n_senones:
                return SENONES
            if (senone == 0) != (arc >= epsilon):
                return EPSILONS
            if weight & _MAGNITUDE > _LARGEST_BITS:
                return WEIGHTS
    return SOUND
