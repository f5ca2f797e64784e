"""Kernels that measure an NVIDIA GPU from inside: loads of which each waits for the one before, and barriers."""

from numba import cuda

from profiler.arrays import I32


@cuda.jit
def chase(places: I32, state: I32, loads: int) -> None:  # pragma: no cover - compiled
    """Follow `places` int32 [n] from state[0] on by one thread, which leaves its last place there."""
    at = state[0]
    for _ in range(loads):
        at = places[at]
    state[0] = at


@cuda.jit
def barrier(state: I32, count: int) -> None:  # pragma: no cover - compiled
    """Each thread of the block counts its barriers in `state` int32 [threads]."""
    passed = 0
    for _ in range(count):
        cuda.syncthreads()
        passed += 1
    state[cuda.threadIdx.x] = passed
