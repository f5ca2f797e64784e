"""The tokens by state: a sparse set (Briggs & Torczon 1993), compiled. Its initial content does not matter."""

import numpy as np

from profiler.arrays import U32
from profiler.process.numba_flags import njit_inlined


@njit_inlined
def find(state: U32, slot: U32, goal: np.uint32, m: int) -> np.uint32:  # pragma: no cover - compiled
    """The place of the token in state `goal`; `m`, the number of tokens, where there is none."""
    place = slot[goal]
    return place if place < m and state[place] == goal else np.uint32(m)


@njit_inlined
def insert(state: U32, slot: U32, goal: np.uint32, m: int) -> None:  # pragma: no cover - compiled
    state[m] = goal
    slot[goal] = m
