"""The clock of every span, and its tie to the wall clock.

All times in a session are nanoseconds of one monotonic clock (`time.perf_counter_ns`; CLOCK_MONOTONIC
on Linux, so processes of one machine share it). Wall-clock time is only ever stored as pairs of the
two, because wall clocks step. `FakeClock` replaces the clock in tests, which makes them exact.
"""

import time
from collections.abc import Callable

now_ns: Callable[[], int] = time.perf_counter_ns
"""Monotonic nanoseconds; the origin is arbitrary."""

PAIR_ATTEMPTS = 5
"""Readings of which the tightest is kept: a preemption between the two clocks spoils one, not five."""


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


class FakeClock:
    """A clock that stands still until told otherwise: `clock()` reads it, `advance(ns)` moves it."""

    def __init__(self, start_ns: int = 0) -> None:
        self.now = start_ns

    def __call__(self) -> int:
        """Return the time it was set to."""
        return self.now

    def advance(self, duration_ns: int) -> int:
        """Move the clock on and return the new time; a negative duration is refused."""
        if duration_ns < 0:
            raise ValueError(f"a monotonic clock cannot go back by {-duration_ns} ns")
        self.now += duration_ns
        return self.now
