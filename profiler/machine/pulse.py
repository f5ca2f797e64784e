"""Whether the whole process stood still: stopped by a signal, paused with its container or machine, held by a debugger.

A thread that wakes at equal intervals wakes later where another one has the interpreter or the processors are taken.
Linux counts for how long each was on a processor or ready for one. What a late beat took beyond its interval, and
beyond that time of any other thread, is time in which all stood still. The thread that asks knows that of itself.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from profiler.clock import now_ns

TASKS = "/proc/self/task"
"""Folder of the threads; tests put their own here."""

INTERVAL_NS: Final = 100_000_000
"""Between two beats: that of the sampler (`profiler.machine.sampler.INTERVAL_SECONDS`)."""

LEAST_NS: Final = 100_000_000
"""A shorter stop is not distinguished from a beat that comes late."""

EVERY_NS: Final = 1_000_000_000
"""Between two readings of all threads: a system call for each, and each lets another thread have the interpreter."""

_ROOM: Final = 96


class Pulse:
    """Follows the beats of one thread; the thread that makes it asks."""

    def __init__(self, clock: Callable[[], int] = now_ns) -> None:
        self._clock = clock
        self._asking = str(threading.get_native_id())
        self._beat = self._read = 0
        self._used: dict[str, int] = {}
        self._stops: deque[tuple[int, int]] = deque(maxlen=16)
        self._lock = threading.Lock()

    def beat(self) -> Mapping[str, float]:
        """To be called every INTERVAL_NS, as a reading of a `Sampler`: raises where the system does not tell."""
        with self._lock:
            self._look()
        return {}

    def stopped_ns(self, since: int) -> int:
        """For how long the process stood still since a time of the clock, at most."""
        with self._lock:
            if not self._beat:
                return 0
            with suppress(OSError, NotImplementedError):
                self._look()
            return sum(end - max(begin, since) for begin, end in self._stops if end > since)

    def _look(self) -> None:
        now = self._clock()
        late_ns = now - self._beat - INTERVAL_NS if self._beat else 0
        if late_ns >= LEAST_NS or now - self._read >= EVERY_NS:
            used = self._of_others()
            longest = max((ns - self._used.get(thread, 0) for thread, ns in used.items()), default=0)
            if late_ns - longest >= LEAST_NS:
                self._stops.append((self._beat, now))
            self._used, self._read = used, now
        self._beat = now

    def _of_others(self) -> dict[str, int]:
        """For how long each thread but the one that asks was on a processor or ready for one."""
        used: dict[str, int] = {}
        for thread in os.listdir(TASKS):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                file = os.open(f"{TASKS}/{thread}/schedstat", os.O_RDONLY)
                try:
                    running, ready, *_ = os.read(file, _ROOM).split()
                finally:
                    os.close(file)
                used[thread] = int(running) + int(ready)
        if not any(used.values()):
            raise NotImplementedError("this kernel does not count the time of threads")
        used.pop(self._asking, None)
        return used
