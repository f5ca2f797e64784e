"""What would a run cost if a stage were faster, or a setting other? Amdahl's law (1967) on a session's own figures.

`scaled` multiplies the time of stages and leaves the rest. `changed` predicts other settings from two lists of times of
the same speech: the session's stages change as these do. Every prediction says what it assumes.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from profiler.analysis.breakdown import Breakdown
from profiler.analysis.categories import NOT_OWN, OVERHEAD, SCORING_CATEGORIES, UNEXPLAINED
from profiler.analysis.recorded import real_time_factor
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.spans import GROUPS

PARTS: Final = (*SCORING_CATEGORIES, *NOT_OWN)  # Of scoring time, and of all time what was not its own
MOST_FACTOR: Final = 1e6  # So that products of some factors stay finite

WHOLE: Final = ("frontend", "scoring", "search", "transfer", OVERHEAD)


@dataclass(frozen=True, slots=True)
class PredictedStage:
    """One stage (or the time between stages, "overhead") and what it would take; times in ns."""

    name: str
    group: str
    time_ns: float
    predicted_ns: float
    parts: Mapping[str, float]  # Share of each of PARTS in the stage's time; empty where it is not split

    @property
    def factor(self) -> float | None:
        """Predicted time / time, None for a stage that did not run."""
        return self.predicted_ns / self.time_ns if self.time_ns else None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The stages of the decode lane, which add up to the wall time, and what was assumed, in sentences."""

    audio_s: float
    lines: tuple[PredictedStage, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def wall_ns(self) -> float:
        return sum(line.time_ns for line in self.lines)

    @property
    def predicted_ns(self) -> float:
        return sum(line.predicted_ns for line in self.lines)

    @property
    def rtf(self) -> float | None:
        return real_time_factor(self.wall_ns, self.audio_s)

    @property
    def predicted_rtf(self) -> float | None:
        return real_time_factor(self.predicted_ns, self.audio_s)


def unchanged(parts: Breakdown) -> Prediction:
    """Return the session as it was, to start from."""
    lines: list[PredictedStage] = []

    def add(name: str, group: str, time_ns: float, split_ns: Mapping[str, float]) -> None:
        split = {part: max(ns, 0.0) / time_ns for part, ns in split_ns.items()} if time_ns else {}
        lines.append(PredictedStage(name, group, time_ns, time_ns, split))

    lost = {name: parts.categories[name] for name in NOT_OWN}
    for row in [row for row in parts.stages if row.share is not None and row.group != OVERHEAD]:
        times = dict(row.lost_ns or {})
        for name, ns in times.items():
            lost[name] -= ns
        if row.group == "scoring":
            # Without a law or a roof a stage's whole time is not attributed, as in the categories.
            times |= {"compute": row.compute_ns or 0.0, "memory": row.memory_ns or 0.0}
            times[UNEXPLAINED] = row.time_ns - sum(times.values())
        add(row.name, row.group, row.time_ns, times)
    add(OVERHEAD, OVERHEAD, max(parts.wall_ns - sum(line.time_ns for line in lines), 0.0), lost)
    return Prediction(parts.audio_s, tuple(lines))


def parse_factor(text: str) -> tuple[str, float]:
    """Read STAGE=FACTOR; BadInput with one sentence when it is anything else."""
    name, _, value = text.partition("=")
    with suppress(ValueError):
        if name.strip() and 0.0 <= float(value) < math.inf:
            return name.strip(), float(value)
    raise BadInput(
        f"--scale must be STAGE=FACTOR with a factor of time from 0 (free; 0.5 is twice as fast), not {text!r}."
    )


def names(prediction: Prediction) -> list[str]:
    return [line.name for line in prediction.lines if line.name != OVERHEAD] + [*WHOLE, *PARTS]


def scaled(prediction: Prediction, factors: Iterable[tuple[str, float]]) -> Prediction:
    """Return the prediction with stages, groups or parts multiplied in turn; BadInput for a name that is neither."""
    lines, assumptions = list(prediction.lines), list(prediction.assumptions)
    for name, factor in factors:
        if name not in names(prediction):
            known = ", ".join(names(prediction))
            raise BadInput(f"There is no stage or group '{one_line(name)}' in the session; it has {known}.")
        if not 0 <= factor <= MOST_FACTOR:
            raise BadInput(f"The factor of {name} must be a number from 0 to {MOST_FACTOR:,.0f}, not {factor:g}.")
        touched = 0.0
        for i, line in enumerate(lines):
            share = line.parts.get(name, 0.0) if name in PARTS else float(name in (line.name, line.group))
            touched += share * line.predicted_ns
            after = line.predicted_ns * (1.0 - share * (1.0 - factor))
            lines[i] = dataclasses.replace(line, predicted_ns=after)
        what = {0.0: "is free", 1.0: "takes what it took"}.get(factor, f"takes {factor:g} of its time")
        kind = "group" if name in GROUPS else "stage"
        if name in PARTS:
            kind = "part of the time" if name in NOT_OWN else "part of the scoring time"
        said = f"{what}; every other stage takes what it took (Amdahl's law)."
        if not touched:
            said = "took no time in this session, so a factor for it changes nothing."
        assumptions.append(f"The {kind} {name} {said}")
    return dataclasses.replace(prediction, lines=tuple(lines), assumptions=tuple(assumptions))


def changed(prediction: Prediction, before: Mapping[str, float], after: Mapping[str, float], group: str) -> Prediction:
    """Return the prediction with `group` under other settings, by times of stages `before` and `after`."""
    lines = [line for line in prediction.lines if line.group != group]
    mine = {line.name: line for line in prediction.lines if line.group == group}
    known = [name for name in mine if before.get(name)]
    whole = sum(before[name] for name in known)
    taken = sum(mine[name].predicted_ns for name in known)
    found = []
    for name in dict.fromkeys([*mine, *after]):
        line = mine.get(name, PredictedStage(name, group, 0.0, 0.0, {}))
        time = line.predicted_ns
        if before.get(name):
            time *= after.get(name, 0.0) / before[name]
        elif name in after or name in before:  # found in neither, there is nothing to go by, and it stays
            time = taken * after.get(name, 0.0) / whole if whole else 0.0
        found.append(dataclasses.replace(line, predicted_ns=time))
    at = next((i for i, line in enumerate(prediction.lines) if line.group == group), len(lines))
    assumptions = prediction.assumptions
    if newcomers := ", ".join(line.name for line in found if not line.time_ns and line.predicted_ns):
        said = f"The session has no figures of {newcomers}: taken by what the stages of {group} take together."
        assumptions = (*assumptions, said)
    return dataclasses.replace(prediction, lines=(*lines[:at], *found, *lines[at:]), assumptions=assumptions)
