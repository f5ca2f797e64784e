"""The signals that end a program: Ctrl+C, SIGTERM (kill, shutdown) and SIGHUP (the terminal is gone).

A signal requests a stop (`stopping`) or raises (`raising`), so that files are closed and drafts removed. A
second signal ends the program at once. Outside the main thread both do nothing.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(KeyboardInterrupt):
    """A signal asks the program to end."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number  # The exit status that shells give for it


class Stop:
    """Whether a signal came, and which."""

    number: int | None = None

    def requested(self) -> bool:
        return self.number is not None

    @property
    def status(self) -> int:
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def stopping(ask: Callable[[], object] = bool) -> Iterator[Stop]:
    """The first signal calls `ask` and is remembered, the second raises Ended."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested():
            raise Ended(number)
        stop.number = number
        ask()

    with _handled(handle):
        yield stop


@contextmanager
def raising() -> Iterator[None]:
    """Every signal raises Ended where the main thread is."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise Ended(number)

    with _handled(handle):
        yield


@contextmanager
def usual() -> Iterator[None]:
    with _handled(signal.SIG_DFL):
        yield


@contextmanager
def _handled(handle: Callable[[int, FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            was = signal.getsignal(number)
            # Ignored from the start (nohup): the program is to survive its terminal.
            if number == signal.SIGINT or was is not signal.SIG_IGN:
                before[number] = was
                signal.signal(number, handle)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, signal.SIG_DFL if was is None else was)
