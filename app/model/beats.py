"""When a moving view is to be brought up to date next: at an even pace, slower where drawing is slow.

The beats lie on a grid of their own. If each were timed from the end of the drawing before it, the drawing itself
would be added to every interval.
"""

from __future__ import annotations

FASTEST_S, SLOWEST_S = 0.04, 0.1
"""Update between 25 and 10 times a second: with all views, 31 took 0.47 of a core (`asrscope bench desk`, 30 s)."""

DRAWING_SHARE = 0.35
"""Part of one core that drawing may take: if an update costs d, the next one comes after d / share."""

WEIGHT = 0.2
"""Of the newest update in the mean cost: one dear update, of figures say, does not hold up the next."""


class Beats:
    """The grid of beats, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._cost_s = 0.0

    @property
    def interval_s(self) -> float:
        """Seconds between two beats."""
        return min(max(self._cost_s / DRAWING_SHARE, FASTEST_S), SLOWEST_S)

    def took(self, drawn_s: float) -> None:
        """An update took so much processor time, its painting included."""
        self._cost_s += WEIGHT * (drawn_s - self._cost_s)

    def wait_s(self, now_s: float) -> float:
        """How long to wait for the next beat; one that was missed is not made up for."""
        due = now_s if self._due is None else max(self._due, now_s - self.interval_s)
        self._due = due + self.interval_s
        return self._due - now_s
