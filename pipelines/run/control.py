"""Requests to a running decode: change a setting, compare two settings, leave a mark, stop.

Any thread may make them; the decode loop takes them at its next block boundary. The loop keeps `frame` up to date, so
that each request remembers at which frame it was made.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipelines import config as settings
from pipelines.config import Config, ConfigError, Value


@dataclass(frozen=True, slots=True)
class Change:
    """A live setting to change; the request came when the loop was at `asked_frame`."""

    key: str
    value: Value
    asked_frame: int

    @property
    def text(self) -> str:
        return setting_text(self.key, self.value)


def setting_text(key: str, value: Value) -> str:
    """Format a setting with its value: Gaussian selection: on; Frame skipping: every 2nd."""
    option = settings.option(key)
    if isinstance(value, bool):
        text = "on" if value else "off"
    elif value in option.words:
        text = option.words[value]  # as the form says it
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{option.title}: {text}"


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's note at a frame."""

    text: str
    asked_frame: int


class Control:
    """Takes requests from any thread to the decode loop."""

    def __init__(self) -> None:
        self.frame = 0  # written by the decode loop alone
        self.config = Config()
        """With every change requested so far; the code that starts the run sets it."""
        self._requests: deque[Change | Mark] = deque()
        self.other: Mapping[str, Value] | None = None
        """The settings to compare the present ones with; None: nothing is compared."""
        self.opening = threading.Lock()
        """Held while a run opens what it records into."""
        self.give_up: Callable[[], object] | None = None
        """Closes what a run records into that prepares, for seconds without a look; None where it ends by itself."""
        # Not an Event: a signal handler calls `stop`, and would wait for the lock of the thread that it interrupts.
        self._stopping = False

    def ask(self, key: str, value: Value) -> None:
        """Ask for a live setting to change; ConfigError when it cannot, or not together with what was requested."""
        option = settings.option(key)
        if not option.live:
            raise ConfigError(f"{key} cannot change while a run goes on; it is taken at the next start.")
        self.config = settings.check(settings.replace(self.config, key, value))
        self._requests.append(Change(option.key, settings.get(self.config, key), self.frame))

    def compare(self, other: Mapping[str, Value]) -> None:
        """From the end of the utterance on, decode it in turn with `other` live settings and with the present ones.

        ConfigError as for `ask`, or when `other` is how things are.
        """
        for key in other:
            if not settings.option(key).live or key in settings.COURSE:
                raise ConfigError(f"{key} cannot be compared while a run goes on.")
        if settings.check(settings.assign(self.config, other)) == self.config:
            raise ConfigError("Both sides of the comparison have the same settings.")
        self.other = dict(other)

    def stop_comparing(self) -> None:
        self.other = None

    @property
    def changing(self) -> bool:
        return any(isinstance(request, Change) for request in list(self._requests))

    def mark(self, text: str) -> None:
        self._requests.append(Mark(text, self.frame))

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)

    def take(self) -> list[Change | Mark]:
        """The requests made since the last call, oldest first."""
        return [self._requests.popleft() for _ in range(len(self._requests))]

    def stop(self) -> None:
        self._stopping = True

    @property
    def stopping(self) -> bool:
        return self._stopping

    def show(self, utterance: str, text: str, chunk: int) -> None:
        """A stream shows another text after its chunk number `chunk`, counted from 0 (override to pass it on)."""

    def sleep_until(self, deadline_ns: int) -> None:
        """Sleep to `deadline_ns` (perf_counter_ns), or until a request to stop or to change a setting."""
        while not self._requests and not self._stopping:
            left = (deadline_ns - time.perf_counter_ns()) / 1e9
            if left <= 0:
                return
            time.sleep(min(left, 0.02))
