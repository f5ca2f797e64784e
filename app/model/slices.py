"""Work that takes longer than the window may be held up, done a little at a time. No widgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from PySide6.QtCore import QObject

from app.model.pace import single_shot

Found = TypeVar("Found")

SLICE_S = 0.004  # So long a piece of it takes before the window is served again


class Slices(QObject, Generic[Found]):
    """Does one job at a time in slices, and hands over what it found."""

    def __init__(self, parent: QObject, done: Callable[[Found], None]) -> None:
        super().__init__(parent)
        self._done = done
        self._job: Generator[None, None, Found] | None = None
        self._timer = single_shot(self, 0, lambda: self._go_on(SLICE_S))
        self.took_s = 0.0  # How long the job has taken so far, without what was done in between

    @property
    def busy(self) -> bool:
        """Whether a job is under way."""
        return self._job is not None

    def start(self, job: Generator[None, None, Found], after_ms: int = 0) -> None:
        """Begin a job, which rests after every `yield`; one that is under way is dropped."""
        self._job, self.took_s = job, 0.0
        self._timer.start(after_ms)

    def finish(self) -> None:
        """Do the rest of the job at once."""
        self._timer.stop()
        self._go_on(float("inf"))

    def drop(self) -> None:
        """Forget the job."""
        self._timer.stop()
        self._job = None

    def _go_on(self, seconds: float) -> None:
        job, began = self._job, time.monotonic()
        while job is not None:
            try:
                next(job)
            except StopIteration as over:
                self._job = None
                self.took_s += time.monotonic() - began
                self._done(over.value)
                return
            if time.monotonic() - began >= seconds:
                self.took_s += time.monotonic() - began
                self._timer.start(0)
                return
