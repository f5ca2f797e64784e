"""Frames put side by side by sixteens, as kernels want them that have frames in their lanes."""

from __future__ import annotations

import numpy as np
from numba import njit

from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned, copy_floats
from profiler.arrays import Array, ArrayError


def room(max_frames: int, inputs: int) -> Array:
    """For `by_sixteen`: zeros f32 [max_frames/16, inputs, 16]."""
    return aligned((-(-max_frames // LANES), inputs, LANES))


def by_sixteen(x: Array, room: Array) -> Array:
    """x f32 [inputs, n], in C or F order, as f32 [n/16, inputs, 16] in `room`; what lies beyond n stays as it was."""
    if x.flags.c_contiguous:
        _move(x, room)
    else:
        _turn(np.ascontiguousarray(x.T), room)
    return room


@njit(nogil=True, cache=True)
def frames_fit(frames: Array, inputs: int, n: int) -> bool:
    """Whether f32 [n/16, inputs, 16] has room for n frames."""
    return frames.shape[1:] == (inputs, LANES) and len(frames) * LANES >= n


@njit(nogil=True, cache=True)
def _move(x, room):  # type: ignore[no-untyped-def]
    """From [inputs, n]."""
    inputs, n = x.shape
    if not frames_fit(room, inputs, n):
        raise ArrayError("_move: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        to = address(room[begin // LANES], np.float32)
        for i in range(inputs):
            source = address(x, np.float32) + (i * n + begin) * 4
            copy_floats(to + i * VECTOR_BYTES, source, min(LANES, n - begin))


@njit(nogil=True, cache=True)
def _turn(x, room):  # type: ignore[no-untyped-def]
    """From [n, inputs]."""
    n, inputs = x.shape
    if not frames_fit(room, inputs, n):
        raise ArrayError("_turn: more frames or inputs than there is room for")
    for begin in range(0, n, LANES):
        for i in range(inputs):
            for t in range(begin, min(begin + LANES, n)):
                room[begin // LANES, i, t - begin] = x[t, i]
