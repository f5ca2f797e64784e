"""The time in which a thread could not run although it had work: what of it others took, and where it went.

Linux counts per thread (`/proc/<pid>/task/<tid>/schedstat`: ns on the processor, ns in the run queue, turns) for how
long it was ready, without waiting for a lock, a device or a deadline. Other programs ran meanwhile; or the CPU limit of
the container was used up (`cpu_limit`), or the host of a virtual machine had taken the processor (`steal` of
`/proc/stat`), which the run queue contains and which are taken off it. A thread whose process stood still was neither
ready nor on a processor. Elsewhere there are no such figures.

The whole process stands still when it is stopped by a signal, paused with its container or machine, or held by a
debugger. A thread that wakes at equal intervals wakes later where another one has the interpreter or the processors are
taken. What a late beat took beyond its interval, and beyond that time of any other thread, is time in which all stood
still. The thread that asks knows that of itself.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple

from profiler.clock import now_ns
from profiler.machine import cpu_limit

TASKS = "/proc/self/task"  # Folder of the threads; tests put their own here
INTERVAL_NS: Final = 100_000_000  # Between two beats: that of the sampler (`profiler.machine.sampler.INTERVAL_SECONDS`)
LEAST_NS: Final = 100_000_000  # A shorter stop is not distinguished from a beat that comes late

EVERY_NS: Final = 1_000_000_000
"""Between two readings of all threads: a system call for each, and each lets another thread have the interpreter."""

_SCHEDSTAT: Final = 96


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
                    running, ready, *_ = os.read(file, _SCHEDSTAT).split()
                finally:
                    os.close(file)
                used[thread] = int(running) + int(ready)
        if not any(used.values()):
            raise NotImplementedError("this kernel does not count the time of threads")
        used.pop(self._asking, None)
        return used


PATH = "/proc/self/task/{}/schedstat"  # Of a thread by its number in the system; tests put their own here
STAT = "/proc/stat"

_ROOM: Final = 96  # Bytes read: three numbers of at most 20 digits
_LINE: Final = 256  # Bytes of the first line of STAT: a name and ten numbers


LEAST_AWAY_NS = 5_000
"""A thread that was off its processor for less since the last reading is not read: a reading takes less
than this with all of it in the caches, and more after other data went through them (`python -m tests.bench.constants
--only system`). What is left out counts the next time."""

LEAST_STOP_NS: Final = 150_000_000
"""A thread was neither on a processor nor ready for so long: the process may have stood still."""

TICK_NS: Final = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)  # The unit of STAT
STEAL_TICKS: Final = 5
"""So much time must be lost until STAT is read again: it counts in ticks, and reading it takes a tenth of a
millisecond."""


class Lost(NamedTuple):
    """ns in which a thread did not run: other programs did, a limit or the host held it up, or all stood still."""

    other_ns: int = 0
    throttled_ns: int = 0
    stopped_ns: int = 0


NOTHING: Final = Lost()


class RunQueue:
    """What the thread that makes it loses; use as a context manager. `pulse`: tells whether the process stood still."""

    def __init__(self, pulse: Pulse | None = None) -> None:
        self._file = -1
        self._last = -1
        self._pulse = pulse
        self.throttling = cpu_limit.Throttling()
        self.steal = _Steal()
        self._throttled = self.throttling.total_ns() if self.throttling.limited else 0
        self._at, self._away = _away_ns()
        with suppress(OSError, ValueError, IndexError):
            self._file = os.open(PATH.format(threading.get_native_id()), os.O_RDONLY)
            self._last = self._ready_ns()

    @property
    def readable(self) -> bool:
        return self._file >= 0 and self._last >= 0

    def waited_ns(self) -> int:
        """Return how long the thread has lost since the last call, for whatever reason."""
        return sum(self.lost())

    def lost(self) -> Lost:
        """Return what the thread has lost since the last call; nothing where the system does not tell it."""
        now, away = _away_ns()
        lost = away - self._away
        if lost < LEAST_AWAY_NS or not self.readable:
            return NOTHING
        with suppress(OSError, ValueError, IndexError):
            ready = self._ready_ns()
            # A kernel that counts anew takes nothing back.
            queued, self._last = max(ready - self._last, 0), ready
            # The moment until which `away` counts: a stop from here on belongs to the next reading.
            since, self._at, self._away = self._at, now, away
            return self._divided(since, lost, queued)
        return NOTHING

    def _divided(self, since: int, lost: int, queued: int) -> Lost:
        """Divide `lost` ns, of which the thread was in the run queue for `queued`."""
        blocked, stopped = max(lost - queued, 0), 0
        if blocked >= LEAST_STOP_NS and self._pulse is not None:
            stopped = min(self._pulse.stopped_ns(since), blocked)
            blocked -= stopped
        held = 0
        if self.throttling.limited:
            total = self.throttling.total_ns()
            held, self._throttled = max(total - self._throttled, 0), total
        # First what it was ready for; then what it waited for, for example a lock of a thread that was held up.
        held = min(held, queued + blocked)
        other, blocked = max(queued - held, 0), blocked - max(held - queued, 0)
        # Where its processor was taken while it ran, it was not in the queue.
        stolen = self.steal.part(self._at - since - lost, other + blocked)
        return Lost(max(other - max(stolen - blocked, 0), 0), held + stolen, stopped)

    def close(self) -> None:
        """Close the files; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self.throttling.close()

    def __enter__(self) -> "RunQueue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ready_ns(self) -> int:
        return int(os.pread(self._file, _ROOM, 0).split()[1])


class _Steal:
    """What the host of a virtual machine took of the processors, by the part of their work that a thread did."""

    def __init__(self) -> None:
        self._before = _stolen_and_busy()
        self._own = self._lost = self._left = 0
        self.total_ns = 0

    def part(self, own_ns: int, lost_ns: int) -> int:
        """The thread ran for `own_ns` and lost `lost_ns`: how much of that the host took, at most all of it."""
        self._own, self._lost = self._own + own_ns, self._lost + lost_ns
        if self._before is not None and self._lost >= STEAL_TICKS * TICK_NS:
            now = _stolen_and_busy() or self._before
            stolen, busy = (max(n - b, 0) for n, b in zip(now, self._before, strict=True))
            share = min(max(self._own, 0) / (busy * TICK_NS), 1.0) if busy else 1.0
            # What could not be taken off anything was no time of this thread.
            self._left = min(self._left + round(share * stolen * TICK_NS), self._lost)
            self._before, self._own, self._lost = now, 0, 0
        found = min(self._left, lost_ns)
        self._left -= found
        self.total_ns += found
        return found


def _stolen_and_busy() -> tuple[int, int] | None:
    """Ticks of all processors that the host took, and those of work; None where no host has ever taken any."""
    with suppress(OSError, ValueError, IndexError):
        file = os.open(STAT, os.O_RDONLY)
        try:
            user, nice, system, _, _, irq, softirq, steal = map(int, os.read(file, _LINE).split()[1:9])
        finally:
            os.close(file)
        return (steal, user + nice + system + irq + softirq) if steal else None
    return None


def _away_ns() -> tuple[int, int]:
    """Now, and the time in which the calling thread was on no processor until then, from some moment on.

    Its own time is read first: a kernel takes the processor away when a call to it returns, and that waiting counts.
    """
    own = time.thread_time_ns()
    now = time.perf_counter_ns()
    return now, now - own
