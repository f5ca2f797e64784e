"""The clock of every span, its tie to the wall clock, and the frame by which a session counts audio.

All times in a session are ns of one monotonic clock (`time.perf_counter_ns`; CLOCK_MONOTONIC on Linux, shared by the
processes of a machine). Wall-clock time is stored only as pairs of the two, because wall clocks step.
"""

import time
from collections.abc import Callable
from typing import Final

now_ns: Callable[[], int] = time.perf_counter_ns  # Monotonic nanoseconds; the origin is arbitrary

PAIR_ATTEMPTS = 5  # Readings of which the tightest is kept: a preemption between the two clocks spoils one, not five


def wall_pair(clock: Callable[[], int] = now_ns) -> tuple[int, int]:
    """Return (monotonic ns, wall ns since 1970) read as close together as possible."""
    best: tuple[int, int, int] | None = None
    for _ in range(PAIR_ATTEMPTS):
        before = clock()
        wall = time.time_ns()
        after = clock()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, wall)
    assert best is not None
    return best[1], best[2]


FRAME_S: Final = 0.01  # Seconds between frames: the hop of the front end, by which sessions number frames
