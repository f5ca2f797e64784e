"""When the window is updated while the cursor moves by itself: redraws, and long work in slices.

Charts move 30 times a second (`RedrawClock`). Work that would hold up the window runs in `Slices`. Frames arrive in
bursts, through which `SmoothCursor` moves evenly: the writer commits about 20 times a second, a block may decode 160 ms
of audio at once, and reading costs more than drawing.
"""

import time
from collections.abc import Callable, Generator
from typing import Final, Generic, TypeVar

from PySide6.QtCore import QObject, QTimer


def single_shot(parent: QObject, milliseconds: int, call: Callable[[], None]) -> QTimer:
    timer = QTimer(parent, singleShot=True, interval=milliseconds)
    timer.timeout.connect(call)
    return timer


Result = TypeVar("Result")

SLICE_S = 0.004  # So long a piece of it takes before the window is served again


class Slices(QObject, Generic[Result]):
    """Does one job at a time in slices, and hands over what it found."""

    def __init__(self, parent: QObject, done: Callable[[Result], None]) -> None:
        super().__init__(parent)
        self._done = done
        self._job: Generator[None, None, Result] | None = None
        self._timer = single_shot(self, 0, lambda: self._go_on(SLICE_S))

    @property
    def busy(self) -> bool:
        return self._job is not None

    def start(self, job: Generator[None, None, Result], after_ms: int = 0) -> None:
        """Begin a job, which rests after every `yield`; one that is under way is dropped."""
        self._job = job
        self._timer.start(after_ms)

    def finish(self) -> None:
        self._timer.stop()
        self._go_on(float("inf"))

    def drop(self) -> None:
        self._timer.stop()
        self._job = None

    def _go_on(self, seconds: float) -> None:
        job, began = self._job, time.monotonic()
        while job is not None:
            try:
                next(job)
            except StopIteration as over:
                self._job = None
                self._done(over.value)
                return
            if time.monotonic() - began >= seconds:
                self._timer.start(0)
                return


FASTEST_S, SLOWEST_S = 1 / 30, 0.1  # Update between 30 and 10 times a second
SHARE: Final = 0.34  # Part of a core that the process may take: if c between two redraws, they are c / share apart
WEIGHT: Final = 0.2  # Of the newest interval in a running mean: one expensive update does not hold up the next


class RedrawClock:
    """Even redraws on a grid of the monotonic clock, s; slower where the process needs more than `SHARE` of a core."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._spent_s: float | None = None
        self._cost_s = 0.0

    @property
    def interval_s(self) -> float:
        return min(max(self._cost_s / SHARE, FASTEST_S), SLOWEST_S)

    def spent(self, process_s: float) -> None:
        """Take in the process's processor seconds until this redraw; after a pause at most one slow update counts."""
        if self._spent_s is not None:
            cost = min(process_s - self._spent_s, SLOWEST_S)
            self._cost_s += WEIGHT * (cost - self._cost_s)
        self._spent_s = process_s

    def wait_s(self, now_s: float) -> float:
        due = now_s if self._due is None else max(self._due, now_s - self.interval_s)
        self._due = due + self.interval_s
        return self._due - now_s


SHORTEST_S, LONGEST_S = 0.03, 0.3  # Bounds of the time in which a burst is run through
USUAL_S = 0.1  # Before any two bursts have come


class SmoothCursor:
    """Runs a cursor after the newest frame."""

    def __init__(self) -> None:
        self._interval_s = USUAL_S
        self._arrived_s: float | None = None
        self._frames_per_s = 0.0

    def arrived(self, now_s: float, backlog: float) -> None:
        """A burst came, and the cursor is `backlog` frames behind the newest: show them until the next one comes."""
        if self._arrived_s is not None:
            interval = min(max(now_s - self._arrived_s, SHORTEST_S), LONGEST_S)
            self._interval_s += WEIGHT * (interval - self._interval_s)
        self._arrived_s = now_s
        self._frames_per_s = backlog / self._interval_s

    def moved(self, position: float, newest: float, elapsed_s: float) -> float:
        """The cursor's position `elapsed_s` after it was at `position`."""
        return min(newest, position + self._frames_per_s * elapsed_s)
