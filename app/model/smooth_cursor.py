"""Where the cursor of a followed run stands: frames arrive in bursts, and the cursor runs through each burst evenly.

The writer commits about 20 times a second, a block may decode 160 ms of audio at once, and reading costs more than
drawing: so the file is read less often than the charts are drawn, and the cursor is behind by about one burst.
"""

from __future__ import annotations

SHORTEST_S, LONGEST_S = 0.03, 0.3  # Bounds of the time in which a burst is run through
USUAL_S = 0.1  # Before any two bursts have come
WEIGHT = 0.2  # Of the newest interval in the mean of those between bursts


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
