"""How long a thread was ready to run while another program had its processor.

Linux counts it per thread (`/proc/<pid>/task/<tid>/schedstat`: ns on the processor, ns in the run queue, turns),
without waiting for a lock, a device or a deadline. Elsewhere there is no such figure.
"""

import os
import threading
import time
from contextlib import suppress
from types import TracebackType

PATH = "/proc/self/task/{}/schedstat"
"""Of a thread by its number in the system; tests put their own here."""

_ROOM = 96
"""Bytes read: three numbers of at most 20 digits."""


LEAST_AWAY_NS = 5_000
"""A thread that was off its processor for less since the last reading is not read: a reading takes less
than this with all of it in the caches, and more after other data went through them (`python -m tests.bench.constants
--only system`). What is left out counts the next time."""


class RunQueue:
    """The waiting of the thread that makes it; use as a context manager."""

    def __init__(self) -> None:
        self._file = -1
        self._last = -1
        self._away = _away_ns()
        with suppress(OSError, ValueError, IndexError):
            self._file = os.open(PATH.format(threading.get_native_id()), os.O_RDONLY)
            self._last = self._ready_ns()

    @property
    def readable(self) -> bool:
        """Whether this system tells it."""
        return self._file >= 0 and self._last >= 0

    def waited_ns(self) -> int:
        """Return how long the thread has waited since the last call; 0 where the system does not tell it."""
        away = _away_ns()
        if away - self._away < LEAST_AWAY_NS or not self.readable:
            return 0
        self._away = away
        with suppress(OSError, ValueError, IndexError):
            ready = self._ready_ns()
            waited, self._last = ready - self._last, ready
            return max(waited, 0)
        return 0

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "RunQueue":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ready_ns(self) -> int:
        return int(os.pread(self._file, _ROOM, 0).split()[1])


def _away_ns() -> int:
    """Time in which the calling thread was on no processor, from some moment on.

    Its own time is read first: a kernel takes the processor away when a call to it returns, and that waiting counts.
    """
    own = time.thread_time_ns()
    return time.perf_counter_ns() - own
