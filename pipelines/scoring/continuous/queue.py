"""The chosen panels of a continuous model that a block computes, put together before any is computed.

Each panel comes once, with the frames that want it, and in the order of memory: so it comes from there once per block,
and the one after the next is prefetched meanwhile. A queue is a tuple without names, which numba would look at in every
call.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.simd.panels import AHEAD
from pipelines.scoring.simd.vector import LANES
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

EVERY = np.uint16((1 << LANES) - 1)
"""All lanes."""

Queue = tuple[Array, Array, Array, Array, Array]
"""Panels of a thread's groups: (groups, lanes, ends, offsets, frame_bits).

`groups` int64, ascending; `lanes` uint16 [groups]: which senones of a group get their score. `ends` int64 [groups ·
streams]: where the panels of each group and stream end; `offsets` int64 and `frame_bits` uint64 [groups · streams · M +
AHEAD]: place among the bytes of the parameters and frames (bit by frame) of each panel.
"""


@njit(nogil=True, cache=True)
def mark(senones: Array, lanes: Array) -> None:
    """Set the lanes of `senones` in `lanes` uint16 [all groups]."""
    for senone in senones:
        if not 0 <= senone < len(lanes) * LANES:
            raise ArrayError("mark: a senone that there is none")
        lanes[senone // LANES] |= np.uint16(1 << senone % LANES)


@njit_part
def room_fits(queue: Queue, all_groups: int, most: int, streams: int) -> bool:
    """Whether it has room for `most` panels of each of its groups and streams."""
    groups, _, ends, offsets, frame_bits = queue
    panels = len(groups) * streams * most + AHEAD
    if len(ends) < len(groups) * streams or len(offsets) < panels or len(frame_bits) < panels:
        return False
    return not len(groups) or (groups.min() >= 0 and groups.max() < all_groups)


@njit_part
def queue_fits(queue: Queue, n: int, streams: int, most: int, panel: int, size: int) -> bool:
    """Whether it holds frames below n and panels of `panel` bytes within `size`, at most `most` together."""
    groups, lanes, ends, offsets, frame_bits = queue
    if n > 64 or len(lanes) != len(groups) or not room_fits(queue, size, most, streams):
        return False
    none = np.uint64(0) if n == 64 else ~np.uint64(0) << np.uint64(n)
    end = 0
    for i in range(len(groups) * streams):
        if not end <= ends[i] <= end + most:
            return False
        end = ends[i]
    for i in range(end):  # noqa: SIM110 (numba)
        if not 0 <= offsets[i] <= size - panel or frame_bits[i] & none:
            return False
    return True


@njit(nogil=True, cache=True)
def gather_lists(panel: int, components: int, start: Array, items: Array, words: Array, queue: Queue) -> None:
    """Fill the queue for codewords `words` int32 [n, streams] and `start`, `items` of `shortlists`.

    The parameters are [groups, streams, components] panels of `panel` bytes.
    """
    groups, _, ends, offsets, frame_bits = queue
    n, streams = words.shape
    if n > 64 or len(start) != streams or not room_fits(queue, start.shape[2] - 1, components, streams):
        raise ArrayError("gather_lists: lists, codewords and queue do not fit each other")
    for t in range(n):
        for s in range(streams):
            if not 0 <= words[t, s] < start.shape[1]:
                raise ArrayError("gather_lists: a codeword that has no list")
    wanted = np.zeros(1 << 8, np.uint64)  # a place for any item
    count = 0
    for place in range(len(groups)):
        group = groups[place]
        for s in range(streams):
            base = (group * streams + s) * components * panel
            if n == 1:
                k = words[0, s]
                begin, end = start[s, k, group], start[s, k, group + 1]
                if not 0 <= begin <= end <= len(items) or end - begin > components:
                    raise ArrayError("gather_lists: a list beyond the items or the panels")
                for i in range(begin, end):
                    offsets[count] = base + items[i] * panel
                    frame_bits[count] = 1
                    count += 1
            else:
                for t in range(n):
                    k = words[t, s]
                    bit = np.uint64(1) << np.uint64(t)
                    begin, end = start[s, k, group], start[s, k, group + 1]
                    if not 0 <= begin <= end <= len(items):
                        raise ArrayError("gather_lists: a list beyond the items")
                    for i in range(begin, end):
                        wanted[items[i]] |= bit
                for m in range(components):
                    if wanted[m]:
                        offsets[count] = base + m * panel
                        frame_bits[count] = wanted[m]
                        wanted[m] = 0
                        count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        offsets[i] = offsets[max(count - 1, 0)]


@njit(nogil=True, cache=True)
def gather_clusters(panel: int, clusters: Array, expanded: Array, queue: Queue) -> None:
    """Fill the queue with the panels, of `panel` bytes, whose cluster is expanded: `clusters` uint16 [groups, streams,
    M], `expanded` uint64 [streams, K], the frames (bit by frame) that expand each cluster."""
    groups, _, ends, offsets, frame_bits = queue
    all_groups, streams, components = clusters.shape
    if len(expanded) != streams or not room_fits(queue, all_groups, components, streams):
        raise ArrayError("gather_clusters: clusters and queue do not fit each other")
    count = 0
    for place in range(len(groups)):
        group = groups[place]
        for s in range(streams):
            base = (group * streams + s) * components * panel
            for m in range(components):
                k = clusters[group, s, m]
                if k >= expanded.shape[1]:
                    raise ArrayError("gather_clusters: a cluster that there is none")
                frames = expanded[s, k]
                if frames:
                    offsets[count] = base + m * panel
                    frame_bits[count] = frames
                    count += 1
            ends[place * streams + s] = count
    for i in range(count, count + AHEAD):
        offsets[i] = offsets[max(count - 1, 0)]
