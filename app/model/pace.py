"""How often something is brought up to date while the cursor moves by itself.

Charts move 30 times a second, but nobody reads figures and sentences that fast, and laying out and painting them costs
more than the charts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

AT_NEXT_MS = 50
"""What is due between two drawings of a moving cursor waits so long for the next one: done by itself, it would have the
window laid out and painted once more."""

EARLY_S = 0.005
"""A drawing that comes so little before it is due does it: the timers of both are of whole milliseconds."""


class Pace(QObject):
    """Calls `update` at once where a person acts, else at most every `every_ms`, and always after the last request.

    `apart`: while the cursor moves by itself, only when the request is over: what takes long is not to be added to the
    drawing of the charts, or the two together hold up the window.
    """

    def __init__(
        self, parent: QObject, every_ms: int, update: Callable[[], None], apart: bool = False
    ) -> None:
        super().__init__(parent)
        self._every_s = every_ms / 1e3
        self._apart = apart
        self._update = update
        self._last = 0.0
        self._timer = single_shot(self, 0, self.now)

    def ask(self, moving: bool) -> None:
        """Update soon; at once unless the cursor is `moving` by itself."""
        rest = self._last + self._every_s - time.monotonic()
        if not moving or (rest <= EARLY_S and not self._apart):
            self.now()
        elif not self._timer.isActive():
            wait_ms = 0 if self._apart else AT_NEXT_MS
            self._timer.start(int(max(rest, 0.0) * 1e3) + 1 + wait_ms)

    def now(self) -> None:
        """Update at once."""
        self._timer.stop()
        self._last = time.monotonic()
        self._update()

    def flush(self) -> None:
        """Update at once if an update is due."""
        if self._timer.isActive():
            self.now()

    def drop(self) -> None:
        """Forget what is due: there is nothing to show any more."""
        self._timer.stop()
        self._last = 0.0


def single_shot(parent: QObject, milliseconds: int, call: Callable[[], None]) -> QTimer:
    """Make a timer that calls once, so long after it was started."""
    timer = QTimer(parent, singleShot=True, interval=milliseconds)
    timer.timeout.connect(call)
    return timer
