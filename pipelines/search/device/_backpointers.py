"""From a device's back-pointers to the history that words are traced in; compiled.

Back-pointers are int32 [frames, tokens] each: the token of the frame before, and the direct arc (`graph`)
that was followed. History is as in `kernels.history`: only tokens that the block's last ones stem from get entries, so
that it grows as slowly as on the processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from pipelines.search.device.frontier import NOBODY
from pipelines.search.kernels.history import append
from profiler.arrays import I32, Array

BROKEN = -(1 << 62)


class Arcs(NamedTuple):
    """Arrays of `graph.DirectArcs`, all int32."""

    base: Array
    path: Array
    path_arc: Array
    path_before: Array
    longest: int


@numba.njit(cache=True, nogil=True)
def absorb(
    previous: I32, arc: I32, arcs: Arcs, first_frame: int, entry: I32, history: I32, used: int
) -> int:  # pragma: no cover - compiled
    """Append the entries of a block; returns how many there are then, −(how many more must fit), or BROKEN
    where what came from the device leads nowhere.

    `entry` int32 [tokens] holds each token's latest entry before the block, and after it.
    """
    base, path, path_arc, path_before, longest = arcs
    frames, tokens = previous.shape
    live = np.zeros((frames, tokens), dtype=np.uint8)
    n_live = 0
    for t in range(frames - 1, -1, -1):
        for k in range(tokens):
            if arc[t, k] != NOBODY and (t == frames - 1 or live[t, k] != 0):
                if not (0 <= previous[t, k] < tokens and arc[t, k] < len(base)):
                    return BROKEN
                live[t, k] = 1
                n_live += 1
                if t > 0:
                    live[t - 1, previous[t, k]] = 1
            else:
                live[t, k] = 0
    need = n_live * (1 + longest)
    if used + need > len(history):
        return -need
    before, after = entry.copy(), np.full(tokens, -1, dtype=np.int32)
    chain = np.empty(longest + 1, dtype=np.int32)
    for t in range(frames):
        for k in range(tokens):
            if live[t, k] == 0:
                continue
            latest = before[previous[t, k]]
            taken = arc[t, k]
            if taken >= 0:
                if base[taken] >= 0:
                    latest = append(history, used, latest, base[taken], first_frame + t)
                    used += 1
                length = 0
                behind = path[taken]
                while behind >= 0:
                    chain[length] = path_arc[behind]
                    length += 1
                    behind = path_before[behind]
                for i in range(length - 1, -1, -1):
                    latest = append(history, used, latest, chain[i], first_frame + t)
                    used += 1
            after[k] = latest
        before, after = after, before
    for k in range(tokens):
        entry[k] = before[k] if live[frames - 1, k] != 0 else -1
    return used
