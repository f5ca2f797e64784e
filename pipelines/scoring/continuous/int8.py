"""Scores of a continuous model from Gaussians in eight bits (`gaussians.int8`): of all senones, and of those listed."""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.continuous.listed import finish
from pipelines.scoring.continuous.queue import Queue, queue_fits
from pipelines.scoring.gaussians.int8 import bytes_fit, row_of_bytes
from pipelines.scoring.simd.maxima import lowest_bit
from pipelines.scoring.simd.panels import AHEAD, panel_of_bytes
from pipelines.scoring.simd.vector import LANES, address
from profiler.arrays import Array, ArrayError
from profiler.recording.kernel_spans import now_ns


@njit(nogil=True, cache=True)
def dense_of_bytes(x: Array, panels: Array, tile: Array, sums: Array, scores: Array, first: int, last: int) -> int:
    """Scores f32 [n, senones] of a continuous model; returns ns of log-sum-exp. Workspace as for `listed`."""
    n, streams, depth = x.shape
    groups, _, slots, size = panels.shape
    row = slots * LANES * 4
    if (
        not bytes_fit(x, panels)
        or slots == 0
        or len(tile) < streams * n
        or tile.shape[1] != slots * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not 0 <= first <= last <= groups
        or (last > first and (last - 1) * LANES >= scores.shape[1])
    ):
        raise ArrayError("dense_of_bytes: frames, panels and scores do not fit each other")
    counts = np.full((streams, n), slots, np.int64)
    lse_ns = 0
    for group in range(first, last):
        for s in range(streams):
            base = address(panels, np.uint8) + (group * streams + s) * slots * size
            for t in range(n):
                frame = address(x, np.int16) + (t * streams + s) * depth * 2
                to = address(tile, np.float32) + (s * n + t) * row
                row_of_bytes(frame, base, slots, depth // 2, to)
        begin = now_ns()
        finish(tile, sums, counts, scores, group, False)
        lse_ns += now_ns() - begin
    return lse_ns


@njit(nogil=True, cache=True)
def queued_of_bytes(x: Array, queue: Queue, panels: Array, tile: Array, sums: Array, scores: Array) -> int:
    """As `listed.queued`, from a queue of 8-bit panels at frames `x` int16 [n ≤ 64, streams, 2 · pairs]."""
    n, streams, depth = x.shape
    groups, lanes, ends, offsets, frame_bits = queue
    row = tile.shape[1] * 4
    slots, size = panels.shape[2], panels.shape[3]
    if (
        not bytes_fit(x, panels)
        or len(tile) < streams * n
        or tile.shape[1] != slots * LANES
        or sums.shape != (2, LANES)
        or len(scores) != n
        or not queue_fits(queue, n, streams, slots, size, panels.size)
        or (len(groups) and groups.max() * LANES >= scores.shape[1])
    ):
        raise ArrayError("queued_of_bytes: frames, queue and scores do not fit each other")
    base = address(panels, np.uint8)
    counts = np.zeros((streams, n), np.int64)
    lse_ns = 0
    at = 0
    for place in range(len(groups)):
        counts[:] = 0
        for s in range(streams):
            while at < ends[place * streams + s]:
                panel, later, frames = (
                    base + offsets[at],
                    base + offsets[at + AHEAD],
                    frame_bits[at],
                )
                at += 1
                while frames:
                    t = lowest_bit(frames)
                    frames &= frames - np.uint64(1)
                    frame = address(x, np.int16) + (t * streams + s) * depth * 2
                    to = address(tile, np.float32) + (s * n + t) * row + counts[s, t] * 4 * LANES
                    counts[s, t] += 1
                    panel_of_bytes(frame, panel, depth // 2, later, to)
        begin = now_ns()
        finish(tile, sums, counts, scores, groups[place], False, lanes[place])
        lse_ns += now_ns() - begin
    return lse_ns
