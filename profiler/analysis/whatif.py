"""What would a run cost if a stage were faster, or a setting other? Amdahl's law on a session's own figures.

`scaled` multiplies the time of stages and leaves the rest as it is (Amdahl 1967: what is not touched limits
what can be won). `changed` predicts other settings: the cost laws say what each stage would compute and
move, the machine's roofs how long that takes at best, and the session how far from its best a stage runs;
a stage is taken to keep that distance. What is assumed is said in words with every prediction.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from profiler.analysis.breakdown import Breakdown, StageRow
from profiler.analysis.categories import OTHER_PROGRAMS, OVERHEAD, SCORING_CATEGORIES, UNEXPLAINED
from profiler.costs import KERNEL, STREAM, Cost
from profiler.errors import BadInput
from profiler.machine.roofs.table import RoofTable, size_text
from profiler.spans import GROUPS

PARTS: Final = SCORING_CATEGORIES
"""What scoring time is split into; a factor for one of them acts on that part of every scoring stage."""

ROUND_EDGE: Final = 1.5
"""How much less or more of a shared cache other programs may leave: factor of the bytes of data tried either way."""

GIVES_WAY: Final = 1.4
"""Bandwidths so far apart between the two make a prediction doubtful; plateaus of a ladder scatter by a tenth."""

WHOLE: Final = ("frontend", "scoring", "search", "transfer", OVERHEAD)


@dataclass(frozen=True, slots=True)
class Line:
    """One stage (or the time between stages, "overhead") and what it would take; times in ns."""

    name: str
    group: str
    time_ns: float
    predicted_ns: float
    parts: Mapping[str, float]
    """Share of each of PARTS in the stage's time; empty where it is not split."""
    per_block_ns: float = 0.0
    """Of the time, what comes once a block however many frames it has; of scoring the laws tell."""

    @property
    def factor(self) -> float | None:
        """Predicted time / time, None for a stage that did not run."""
        return self.predicted_ns / self.time_ns if self.time_ns else None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The stages of the decode lane, which add up to the wall time, and what was assumed, in sentences."""

    audio_s: float
    lines: tuple[Line, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def wall_ns(self) -> float:
        """Wall time of the session, ns."""
        return sum(line.time_ns for line in self.lines)

    @property
    def predicted_ns(self) -> float:
        """Wall time that is predicted, ns."""
        return sum(line.predicted_ns for line in self.lines)

    @property
    def rtf(self) -> float | None:
        """Real-time factor of the session, None without audio."""
        return self.wall_ns / 1e9 / self.audio_s if self.audio_s else None

    @property
    def predicted_rtf(self) -> float | None:
        """Real-time factor that is predicted, None without audio."""
        return self.predicted_ns / 1e9 / self.audio_s if self.audio_s else None


def unchanged(parts: Breakdown) -> Prediction:
    """Return the session as it was, to start from."""
    lines = []
    for row in parts.stages:
        if row.share is not None and row.group != OVERHEAD:
            split: dict[str, float] = {}
            if row.group == "scoring" and row.time_ns:
                # Without a law or a roof a stage's whole time is not attributed, as in the categories.
                known = {
                    "compute": row.compute_ns or 0.0,
                    "memory": row.memory_ns or 0.0,
                    OTHER_PROGRAMS: row.other_ns or 0.0,
                }
                times = known | {UNEXPLAINED: row.time_ns - sum(known.values())}
                split = {name: ns / row.time_ns for name, ns in times.items()}
            searched = row.parts if row.group == "search" else None
            calls = searched.likely["calls"] if searched is not None else 0.0
            lines.append(Line(row.name, row.group, row.time_ns, row.time_ns, split, calls))
    between = max(parts.wall_ns - sum(line.time_ns for line in lines), 0.0)
    # Of what lies between, only what is recorded at the ends of a block is known to come with each.
    ends = sum(row.time_ns for row in parts.stages if row.group == OVERHEAD)
    lines.append(Line(OVERHEAD, OVERHEAD, between, between, {}, min(ends, between)))
    return Prediction(parts.audio_s, tuple(lines))


def parse_factor(text: str) -> tuple[str, float]:
    """Read STAGE=FACTOR; BadInput with one sentence when it is anything else."""
    name, equals, value = text.partition("=")
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not equals or not name.strip() or not (0.0 <= factor < math.inf):
        raise BadInput(
            f"--scale must be STAGE=FACTOR with a factor of time from 0 (free; 0.5 is twice as fast), "
            f"not {text!r}."
        )
    return name.strip(), factor


def names(prediction: Prediction) -> list[str]:
    """Return what a factor may be given for: stages, groups, and the parts of scoring."""
    return [line.name for line in prediction.lines if line.name != OVERHEAD] + [*WHOLE, *PARTS]


def scaled(prediction: Prediction, factors: Iterable[tuple[str, float]]) -> Prediction:
    """Return the prediction with the time of stages, groups or parts multiplied, one after the other.

    BadInput with one sentence when a name is neither. A group that took no time is no mistake: nothing changes.
    """
    lines, assumptions = list(prediction.lines), list(prediction.assumptions)
    for name, factor in factors:
        if name not in names(prediction):
            known = ", ".join(names(prediction))
            raise BadInput(f"There is no stage or group {name!r} in the session; it has {known}.")
        touched = 0.0
        for i, line in enumerate(lines):
            share = line.parts.get(name, 0.0) if name in PARTS else float(name in _called(line))
            touched += share * line.predicted_ns
            after = line.predicted_ns * (1.0 - share * (1.0 - factor))
            lines[i] = dataclasses.replace(line, predicted_ns=after)
        assumptions.append(_scale_sentence(name, factor, touched))
    return Prediction(prediction.audio_s, tuple(lines), tuple(assumptions))


def _called(line: Line) -> tuple[str, str]:
    return line.name, line.group


def _scale_sentence(name: str, factor: float, touched: float) -> str:
    what = {0.0: "is free", 1.0: "takes what it took"}.get(factor, f"takes {factor:g} of its time")
    kind = "part of the scoring time" if name in PARTS else "group" if name in GROUPS else "stage"
    if not touched:
        return (
            f"The {kind} {name} took no time in this session, so a factor for it changes nothing."
        )
    return f"The {kind} {name} {what}; every other stage takes what it took (Amdahl's law)."


def changed(
    prediction: Prediction, before: Sequence[StageRow], after: Sequence[StageRow], group: str
) -> Prediction:
    """Return the prediction with the stages of `group` as other settings would have them.

    `before`, `after`: rows of the same number of frames under the old and the new settings, of which only
    what follows from counts and laws is used, not the times.
    """
    old = {row.name: _at_best(row) for row in before if row.group == group}
    new = {row.name: _at_best(row) for row in after if row.group == group}
    lines = [line for line in prediction.lines if line.group != group]
    mine = {line.name: line for line in prediction.lines if line.group == group}
    known = [name for name in mine if old.get(name)]
    best = sum(old[name] for name in known)
    taken = sum(mine[name].predicted_ns for name in known)
    found = []
    for name in [*mine, *(name for name in new if name not in mine)]:
        line = mine.get(name, Line(name, group, 0.0, 0.0, {}))
        if name not in new and name not in old:
            # Without counts in either there is nothing to go by: it stays.
            found.append(line)
            continue
        if old.get(name):
            time = line.predicted_ns * new.get(name, 0.0) / old[name]
        elif best:
            time = taken * new.get(name, 0.0) / best
        else:
            time = 0.0
        if name not in new:
            time = 0.0
        found.append(dataclasses.replace(line, predicted_ns=time))
    at = next((i for i, line in enumerate(prediction.lines) if line.group == group), len(lines))
    newcomers = ", ".join(line.name for line in found if not line.time_ns and line.predicted_ns)
    assumptions = [
        *prediction.assumptions,
        f"Each stage of {group} keeps its distance from what its cost law takes at the machine's roofs: its own "
        "instructions, traffic, scattered accesses and calls; all other stages take what they took.",
    ]
    if newcomers:
        assumptions.append(
            f"The session has no figures of {newcomers}; they are taken to be as far from their "
            f"roofs as the stages of {group} are together."
        )
    return Prediction(prediction.audio_s, (*lines[:at], *found, *lines[at:]), tuple(assumptions))


def in_blocks(prediction: Prediction, factor: float) -> Prediction:
    """Return the prediction with `factor` times as many blocks: calls of the search, and what is done at their ends."""
    lines = tuple(
        dataclasses.replace(
            line, predicted_ns=line.predicted_ns + (factor - 1.0) * line.per_block_ns
        )
        for line in prediction.lines
    )
    sentence = (
        "Calls of the search, and what the run does at the ends of a block, come once a block."
    )
    return Prediction(prediction.audio_s, lines, (*prediction.assumptions, sentence))


def doubts(costs: Mapping[str, Cost], roof_table: RoofTable) -> list[str]:
    """Return a sentence if stages' data are about as large as what a cache keeps; `costs` by stage, as predicted.

    Whether such data come from the cache or from memory depends on what else uses it at that moment.
    """
    found: dict[str, float] = {}
    largest = 0.0
    for name, cost in costs.items():
        size = max((t.bytes for t in cost.terms or () if t.kind in (KERNEL, STREAM)), default=0.0)
        near, far = (
            roof_table.bandwidth(size * factor, cost.threads)
            for factor in (1 / ROUND_EDGE, ROUND_EDGE)
        )
        if size and near and far and near.median > GIVES_WAY * far.median:
            found[name] = near.median / far.median
            largest = max(largest, size)
    if not found:
        return []
    return [
        f"The data of {', '.join(found)} ({size_text(round(largest))} until they are read again) are about as large as "
        "what a cache keeps for them. Depending on what else uses it at the moment, bandwidth there differs by up to "
        f"{max(found.values()):.1f} times, and these stages with it."
    ]


def _at_best(row: StageRow) -> float:
    """ns that the terms of the stage's law take, one after the other; of a law without terms, arithmetic and traffic.

    Kernels of this kind overlap them little: the sum predicts better than the largest of them.
    """
    if row.parts is not None:
        return row.law_ns or 0.0
    # Its bytes are all that such a law has for a stage that only copies: they count in the first cache, too.
    return (row.arithmetic_ns or 0.0) + (row.traffic_max_ns or 0.0)
