"""When a moving view is to be redrawn next: at an even pace, slower where the window takes too much.

The redraws lie on a grid of their own. If each were timed from the end of the one before it, the drawing itself
would be added to every interval. A profiler must not distort what it measures, so the window's process has a budget:
reading, working out, painting and all else that it does between two redraws.
"""

from __future__ import annotations

from typing import Final

FASTEST_S, SLOWEST_S = 1 / 30, 0.1  # Update between 30 and 10 times a second

SHARE: Final = 0.34
"""Part of one core that the process may take: if it takes c between two redraws, they are c / share apart."""

WEIGHT: Final = 0.2
"""Of the newest interval in the mean cost: one dear update, of figures say, does not hold up the next."""


class RedrawClock:
    """The grid of redraws, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._spent_s: float | None = None
        self._cost_s = 0.0

    @property
    def interval_s(self) -> float:
        """Seconds between two redraws."""
        return min(max(self._cost_s / SHARE, FASTEST_S), SLOWEST_S)

    def spent(self, process_s: float) -> None:
        """Take in what the process has used until this redraw, in seconds of all its threads' processor time.

        What was used in a pause, to open a session say, counts as one dear update at most.
        """
        if self._spent_s is not None:
            cost = min(process_s - self._spent_s, SLOWEST_S)
            self._cost_s += WEIGHT * (cost - self._cost_s)
        self._spent_s = process_s

    def wait_s(self, now_s: float) -> float:
        """How long to wait for the next redraw; one that was missed is not made up for."""
        due = now_s if self._due is None else max(self._due, now_s - self.interval_s)
        self._due = due + self.interval_s
        return self._due - now_s
