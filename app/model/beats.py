"""When a moving view is to be brought up to date next: at an even pace, as often as a budget of processor time allows.

What the window computes is taken from the run that it watches. So the budget is of its whole process: what updates cost
and what is spent beside them, on reading the file and on figures. Both are measured and smoothed, and the pace follows.

The beats lie on a grid of their own. If each were timed from the end of the drawing before it, the drawing itself
would be added to every interval.
"""

from __future__ import annotations

FASTEST_S, SLOW_S, SLOWEST_S = 1 / 30, 1 / 20, 1 / 10
"""Between two updates: where they are cheap; where the budget does not allow more; on a machine too slow for that."""

SHARE = 0.32
"""Of one core, that the process of the window takes as long as it can have at least an update every `SLOW_S` for it."""

MOST_SHARE = 0.5
"""With fewer updates a chart that scrolls jerks: first the share gives way, up to this one, then the pace."""

USUAL_S = 0.01
"""An update, before any was measured."""

WEIGHT = 0.05
"""Of the newest update in the mean cost: where every few updates one is dearer than the others, the pace is even."""

OUTLIER = 3.0
"""An update counts as at most so many times the mean: one dear update, of a menu say, does not hold up the next."""

REST_S = 2.0
"""What is spent beside the updates is a mean over about so long: the file is read some times a second."""

LEAST_ROOM = 0.01
"""Share of a core that is left for updates, whatever the rest of the process takes."""


class Beats:
    """The grid of beats, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._cost_s = USUAL_S
        self._rest = 0.0
        self._last: tuple[float, float] | None = None

    @property
    def interval_s(self) -> float:
        """Seconds between two beats."""
        kept = self._cost_s / max(SHARE - self._rest, LEAST_ROOM)
        most = self._cost_s / max(MOST_SHARE - self._rest, LEAST_ROOM)
        return min(max(min(max(kept, FASTEST_S), SLOW_S), most), SLOWEST_S)

    def took(self, drawn_s: float, now_s: float, process_s: float) -> None:
        """An update is over.

        Args:
            drawn_s: processor time that it took, its painting included.
            now_s: the monotonic clock.
            process_s: processor time of the whole process since it began.
        """
        if self._last is not None and now_s > self._last[0]:
            elapsed, used = now_s - self._last[0], process_s - self._last[1]
            share = min(max(used - drawn_s, 0.0) / elapsed, MOST_SHARE)
            self._rest += min(elapsed / REST_S, 1.0) * (share - self._rest)
        self._last = now_s, process_s
        self._cost_s += WEIGHT * (min(drawn_s, OUTLIER * self._cost_s) - self._cost_s)

    def wait_s(self, now_s: float) -> float:
        """How long to wait for the next beat; one that was missed is not made up for."""
        due = now_s if self._due is None else max(self._due, now_s - self.interval_s)
        self._due = due + self.interval_s
        return self._due - now_s
