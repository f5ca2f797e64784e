"""What a person asks of a decode while it runs: change a setting, leave a mark, stop.

Asked from any thread; taken by the decode loop at its next block boundary. The decode loop keeps
`frame` up to date, so that a request remembers at which frame it was made.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from pipelines import config as settings
from pipelines.config import Config, ConfigError, Value


@dataclass(frozen=True, slots=True)
class Change:
    """A live setting to change, asked for when the loop was at `asked_frame`."""

    key: str
    value: Value
    asked_frame: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's note at a frame."""

    text: str
    asked_frame: int


class Control:
    """The way from a person's hands into the decode loop."""

    def __init__(self) -> None:
        self.frame = 0  # written by the decode loop alone
        self.config = Config()
        """With every change asked for so far; whoever starts the run sets it."""
        self._requests: deque[Change | Mark] = deque()
        self._stopping = threading.Event()

    def ask(self, key: str, value: Value) -> None:
        """Ask for a live setting to change.

        ConfigError when it cannot change while running, or cannot act beside the others as they are or
        have been asked to become.
        """
        option = settings.option(key)
        if not option.live:
            raise ConfigError(
                f"{key} cannot change while a run goes on; it is taken at the next start."
            )
        self.config = settings.check(settings.replace(self.config, key, value))
        self._requests.append(Change(option.key, settings.get(self.config, key), self.frame))

    def mark(self, text: str) -> None:
        """Leave a mark where the loop is now."""
        self._requests.append(Mark(text, self.frame))

    @property
    def asked(self) -> bool:
        """Whether `take` would return anything."""
        return bool(self._requests)

    def take(self) -> list[Change | Mark]:
        """The requests made since the last call, oldest first."""
        taken = []
        while self._requests:
            taken.append(self._requests.popleft())
        return taken

    def stop(self) -> None:
        """Ask the decode loop to end after the block it is in."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether somebody asked to stop."""
        return self._stopping.is_set()

    def sleep_until(self, deadline_ns: int) -> None:
        """Sleep to `deadline_ns` (perf_counter_ns), or less when asked to stop or to change something."""
        while not self._requests:
            left = (deadline_ns - time.perf_counter_ns()) / 1e9
            if left <= 0 or self._stopping.wait(min(left, 0.02)):
                return
