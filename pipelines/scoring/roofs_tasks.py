"""Work to be timed: something repeated, or repeated after so much memory was read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.kernel_work import COLD, KEPT, SEARCH_SECONDS
from pipelines.scoring.meter import Meter
from pipelines.scoring.simd.vector import LANES, aligned
from profiler.arrays import Array
from profiler.machine.roofs import timing
from profiler.machine.roofs.timing import Task, each_after
from profiler.spans import Lane, Recorder

HOT_BYTES = 8 << 10
"""Weights or values within the first cache, beside what else a kernel needs there."""

CHUNK = (64 << 10) // FLOAT
"""Floats read at a time while a kernel waits for its turn: more than a first cache holds, and over in some µs."""


def filled(shape: tuple[int, ...], value: float = 1.0) -> Array:
    """Return float32 [shape] that begins with a cache line, as those of a run do.

    It has its own memory: pages never written would all be one and stay in the cache.
    """
    result = aligned(shape)
    result.fill(value)
    return result


CALLED = "called"
"""A stage of no name of its own, for `recording`."""

_SPANS = 1 << 12
"""Those that wait for nobody, before they are thrown away."""


class _Scratch(Lane):
    """A lane without a consumer: when its ring is full, what waits there is thrown away."""

    __slots__ = ()

    def _room(self) -> int:
        self.take()
        return super()._room()


def recording(stage: str = CALLED) -> Meter:
    """Return a meter that records `stage` as a run's does: to close its span is part of what calling it takes."""
    meter = Meter()
    meter.register(Recorder(), {stage: ()})
    meter.begin(0, 1, _Scratch(0, CALLED, "cpu", False, _SPANS))
    return meter


THIRD = 1 / 3
"""A frame of speech asks for 37 % of all senones (5 000 words, beam 13)."""


@njit(nogil=True, cache=True)
def read(values: Array) -> np.float32:
    """A value of each cache line, added up."""
    total = np.float32(0)
    for i in range(0, len(values), LANES):
        total += values[i]
    return total


def outputs_of(size: int, outputs: int, row_bytes: int) -> int:
    """Return how many of the `outputs` of a layer are computed, whose weights have `row_bytes` each.

    All of them over `size` bytes; without a size (0) as many as have their weights in the nearest caches.
    """
    return outputs if size else min(outputs, max(1, KEPT // row_bytes))


def after_reading(
    passed: int, once: Callable[[], object], before: Callable[[], object] | None = None
) -> Task:
    """`once` as often as asked, each time after `passed` bytes were read and then `before`, whose time does not count.

    They are others each time, as the weights of a net are: the same ones would stay in a cache.
    """
    floats = max(passed // FLOAT, 1)
    pieces = filled((max(COLD // (floats * FLOAT), 1), floats))
    return _in_turn(pieces, once, before)


def after_others(between: int, seconds: float, own: Task, times: int = 1) -> Task:
    """`own`, `times` repeats of it, as often as asked: each `seconds` after the last, while `between` bytes are read.

    That time does not count. So the rest of a block and its search come between two uses of a kernel's data. A kernel
    that goes round through as much data of its own finds less of it in a cache that others share, and once less, once
    more; and in a cache that programs on other cores use as well, data stay for a few ms only
    (`python -m tests.bench.constants --only system`). What a call itself needs is a roof of its own, and no part of
    the data's time: `own` is called with no repeat before.
    """
    pieces = filled((1, between // FLOAT))
    return _in_turn(pieces, lambda: own(times), lambda: own(0), seconds)


def after_writing(frames: int, before: Callable[[], object], once: Callable[[], object]) -> Task:
    """`once` as often as asked, right after `before`, which is no part of its time, wrote its data.

    Each time the search of so many frames after the last: in a cache that others share, data that come anew do not
    stay as long as those that are asked for again and again.
    """
    seconds = frames * SEARCH_SECONDS
    return _in_turn(filled((1, CHUNK)), once, before, seconds)


def _in_turn(
    pieces: Array,
    once: Callable[[], object],
    before: Callable[[], object] | None = None,
    least: float = 0.0,
) -> Task:
    """`once`, each time after a piece was read and then `before`; that takes `least` seconds at least.

    Until then the piece is read again and again, as a search never rests: after some ms without a look at memory the
    same product of 64 frames, whose data come from beyond the caches, took 1.4 to 2 times as long, in a row of calls
    now so and now so (`python -m tests.bench.constants --only system`).
    """
    turn = 0

    def others() -> None:
        nonlocal turn
        turn = (turn + 1) % len(pieces)
        piece, at = pieces[turn], 0
        until = timing.clock() + least
        read(piece)
        while timing.clock() < until:
            read(piece[at : at + CHUNK])
            at = at + CHUNK if at + CHUNK < len(piece) else 0
        if before is not None:
            before()

    return each_after(others, once)
