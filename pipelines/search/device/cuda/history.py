"""Entries of the history of the CUDA search: written for new tokens, and followed back along the best path."""

import numpy as np
from numba import cuda

from pipelines.search.device.cuda import layout
from pipelines.search.device.cuda.intrinsics import device_function, kernel_function
from pipelines.search.device.cuda.layout import GraphArrays, UtteranceArrays
from profiler.arrays import I32, I64


@device_function
def entries_needed(key: np.int64, keys: I64, graph: GraphArrays) -> np.int32:  # pragma: no cover - compiled
    """How many entries of history a token needs: for arcs with a word, or into a phone's first state."""
    _, arcs, source = graph
    count = 0
    arc = key & layout.ARC_MASK
    while arc < arcs.shape[0]:
        label = arcs[arc, 1]
        if arcs[arc, 2] & layout.RECORDED:
            count += 1
        if label != 0:
            break
        arc = keys[source[arc]] & layout.ARC_MASK
    return np.int32(count)


@device_function
def new_entry(
    state: np.int32,
    graph: GraphArrays,
    own: UtteranceArrays,
    used: np.int32,
    count: np.int32,
    side: np.int32,
    frame: np.int32,
) -> np.int32:  # pragma: no cover - compiled
    """The history entry of a new token; its `count` entries are written from `used` on, the last one first."""
    _, arcs, source = graph
    keys, by_state, lists, history = own
    at = used + count
    arc = keys[state] & layout.ARC_MASK
    here = np.int64(state)
    while arc < arcs.shape[0]:
        label = arcs[arc, 1]
        here = np.int64(source[arc])
        if arcs[arc, 2] & layout.RECORDED:
            at -= 1
            history[at, 0] = at - 1
            history[at, 1] = arc
            history[at, 2] = frame
        if label != 0:
            break
        arc = keys[here] & layout.ARC_MASK
    before = np.int32(-1)
    if arc != layout.START:
        before = lists[layout.ENTRY + side, by_state[layout.PLACE, here]]
    if count == 0:
        return before
    history[used, 0] = before
    return np.int32(used + count - 1)


@kernel_function
def trace(
    arcs: I32,
    source: I32,
    all_keys: I64,
    all_by_state: I32,
    all_lists: I32,
    all_history: I32,
    books: I64,
    chosen: I32,
    known: I32,
    path: I32,
    counts: I32,
) -> None:  # pragma: no cover - compiled
    """The path of each utterance's token in state `chosen[u]` (-1: none), the last entry first, one thread for each.

    `path` int32 [utterances, capacity, 3]: history entry (-1: not written yet), arc, frame. It ends at entry
    `known[u]` or where the utterance begins. `counts` int32 [utterances, 2]: entries, beyond the capacity counted only,
    and whether it ended at `known`.
    """
    u = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if u >= chosen.shape[0]:
        return
    counts[u, 0] = 0
    counts[u, 1] = 0
    if chosen[u] < 0:
        return
    keys, by_state, lists, history = all_keys[u], all_by_state[u], all_lists[u], all_history[u]
    count, room = 0, path.shape[1]
    here, arc = np.int64(chosen[u]), np.int64(arcs.shape[0])
    if books[u, layout.PENDING] != 0:
        arc = keys[here] & layout.ARC_MASK
    while arc < arcs.shape[0]:
        here = np.int64(source[arc])
        if arcs[arc, 2] & layout.RECORDED:
            if count < room:
                path[u, count, 0] = -1
                path[u, count, 1] = arc
                path[u, count, 2] = books[u, layout.FRAME] - 1
            count += 1
        if arcs[arc, 1] != 0:
            break
        arc = keys[here] & layout.ARC_MASK
    entry = np.int32(-1)
    if arc != layout.START:
        entry = lists[layout.ENTRY + books[u, layout.SIDE], by_state[layout.PLACE, here]]
    while entry >= 0 and entry != known[u]:
        if count < room:
            path[u, count, 0] = entry
            path[u, count, 1] = history[entry, 1]
            path[u, count, 2] = history[entry, 2]
        count += 1
        entry = history[entry, 0]
    counts[u, 0] = count
    counts[u, 1] = 1 if entry >= 0 else 0
