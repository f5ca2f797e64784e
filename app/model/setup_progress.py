"""Progress of a run's set-up: one bar, what each phase took, and the time left, in words that a user knows. No Qt.

The worker reports steps with names and shares of their own (`net scalar/586`). Here they are phases of one whole, each
with a usual duration: that of a start with nothing cached, later that of the set-up before.
"""

import math
from collections.abc import Sequence
from typing import Final

MODEL, GRAPH, SCORING, MACHINE = range(4)

BEGINNINGS: Final = {  # How the steps of the worker begin, by phase; others are of the one under way
    MODEL: ("opening ", "reading the acoustic model", "untying"),
    GRAPH: (
        *("finding the search graph", "building graph", "replacing a damaged graph"),
        "waiting for another program that builds",
    ),
    SCORING: ("compiling the kernels",),
    MACHINE: ("measuring the machine",),
}

PHASE_NAMES: Final = (
    "Reading the acoustic model",
    "Building the search graph",
    "Preparing scoring and search",
    "Measuring this machine",
)

USUAL_S: Final = (3.0, 12.0, 4.0, 5.0)  # Seconds of the phases with nothing cached, on two cores of a server
SOON_S: Final = 2.0  # Seconds: no remaining time is shown before they have passed, or with less to go
LATE: Final = 1.5  # Multiple of the usual time of a phase from which on it is late
SHORTEST_S: Final = 0.05


class SetUp:
    """One set-up; times are those of the caller's clock, `usual`: seconds of each phase, as far as they are known."""

    def __init__(self, now: float, usual: Sequence[float] = ()) -> None:
        known = [s for s in usual if math.isfinite(s) and s >= 0.0]
        self._usual = tuple(known) if len(known) == len(USUAL_S) else USUAL_S
        self._start = self._begun = now
        self._phase = MODEL
        self._within = 0.0
        self._took = [0.0] * len(USUAL_S)
        self._shown = 0.0

    def update(self, step: str, share: float | None, now: float) -> None:
        """Take over the step that the worker reports, and how much of it is done."""
        phase = next((phase for phase, texts in BEGINNINGS.items() if step.startswith(texts)), self._phase)
        if phase > self._phase:
            self._end_phase(now)
            self._phase = phase
        # Within scoring, each table that is made begins at nothing again.
        if share is not None and self._phase != SCORING:
            self._within = min(max(share, self._within), 1.0)

    def _end_phase(self, now: float) -> None:
        self._took[self._phase] += now - self._begun
        self._begun, self._within = now, 0.0

    def durations(self, now: float) -> list[float]:
        self._end_phase(now)
        return list(self._took)

    def steps(self, now: float) -> list[tuple[str, int]]:
        """The phases so far with their seconds, the one under way last; those of no second are left out."""
        took = [*self._took[: self._phase], self._took[self._phase] + now - self._begun]
        return [
            (PHASE_NAMES[phase], round(seconds))
            for phase, seconds in enumerate(took)
            if phase == self._phase or round(seconds)
        ]

    def left_s(self, now: float) -> float:
        usual, *after = self._usual[self._phase :]
        done = max(self._within, 1.0 - math.exp(-(now - self._begun) / max(usual, SHORTEST_S)))
        return usual * (1.0 - done) + sum(after)

    def share(self, now: float) -> float:
        """How much of the whole is done, 0…1; never less than before."""
        spent = now - self._start
        whole = spent + self.left_s(now)
        self._shown = max(self._shown, spent / whole if whole else 0.0)
        return self._shown

    def left_to_show(self, now: float) -> int | None:
        """Seconds to go for a person to read, in steps of five above ten; None where there is nothing to say."""
        left = self.left_s(now)
        # Nobody knows while a phase takes longer than usual and does not say how much of it is done.
        late = not self._within and now - self._begun > LATE * self._usual[self._phase] + SOON_S
        if now - self._start < SOON_S or left < SOON_S or late:
            return None
        return round(left) if left < 10 else 5 * round(left / 5)
