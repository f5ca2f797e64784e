"""What two settings make of the same few seconds of speech: their scoring timed alone, their search counted.

The scorers of both take turns, each alone, and between their blocks as much memory is gone through as the search's laws
say: caches are as a run leaves them. How much longer that takes beside one scorer than beside the other tells how much
longer the search would wait. What the search itself does follows from its counts: either is decoded once, and of its
times only what lies between the stages is used, for which there is no law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipelines.audio import loading as audio
from pipelines.config import Config
from pipelines.experiments import rerun
from pipelines.experiments.rerun import Arm, Recording, Runner, Stretch
from pipelines.run.interleave import turns
from pipelines.run.recogniser import Progress
from pipelines.run.roofs_needed import judge_alike
from profiler.analysis import whatif
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.arms import Times
from profiler.analysis.comparison.statistics import undisturbed
from profiler.analysis.nesting import pick
from profiler.arrays import Array
from profiler.costs import ACCESS, STREAM
from profiler.errors import Cancelled
from profiler.machine.roofs.table import RoofTable
from profiler.machine.roofs.traffic import Traffic

SCORED_FRAMES: Final = 600
"""Frames that a scorer scores per round: nine blocks of the largest size, and 2 s of the slowest settings."""

BUDGET_S: Final = 8.0
HOT_TIMES: Final = 4
"""How often the memory of a block is gone through twice; the fastest second time counts as not waiting."""


@dataclass(frozen=True)
class Found:
    """Of one setting, what a stage takes, ns by name: of scoring as timed, of the search by its laws.

    `overhead`: what its decode took between the stages and at the ends of blocks. `tokens`: that lived in a frame.
    """

    scoring: Mapping[str, float]
    search: Mapping[str, float]
    overhead: Mapping[str, float]
    tokens: float


@dataclass(frozen=True)
class Rehearsed:
    """What was found of both settings on the same frames.

    `waiting`: how many times as long the search's memory is waited for beside the changed scorer.
    """

    before: Found
    after: Found
    waiting: float


def rehearse(
    before: Config,
    after: Config,
    stretch: Stretch,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Rehearsed:
    """Try both settings on `stretch`; `roof_table`: of the session, for the laws of the search.

    Raises Cancelled, and what `recogniser.build` raises.
    """
    arms = [Arm("unchanged", before), Arm("changed", after)]
    sides = rerun.runners(arms, roof_table, progress, cancelled)
    counted = [_counted(side, stretch, progress, cancelled) for side in sides]
    judge_alike(counted, progress, cancelled)
    # The same beside both: what more or fewer tokens go through is a matter of their laws.
    traffic = Traffic(amounts(counted[0]))
    sounds = [audio.load(item.path).samples for item in stretch.items]
    features = [_features(side, sounds) for side in sides]
    between_s: list[list[float]] = [[], []]
    for turn in turns(len(sides), 1, rerun.Rounds(BUDGET_S, progress)):
        if cancelled():
            raise Cancelled
        between_s[turn.arm].append(_scored(sides[turn.arm], features[turn.arm], traffic))
    hot = min(_hot_s(traffic, before.block) for _ in range(HOT_TIMES))
    waited = [max(float(undisturbed(np.array(each))) - hot, 0.0) for each in between_s]
    for arm, side in zip(arms, sides, strict=True):
        side.taken.hand_over(arm, 1)
    then, now = (_found(arm.times, each) for arm, each in zip(arms, counted, strict=True))
    return Rehearsed(then, now, waited[1] / waited[0] if all(waited) else 1.0)


def _counted(
    side: Runner, stretch: Stretch, progress: Progress, cancelled: Callable[[], bool]
) -> Recording:
    """Decode `stretch` once; what was recorded has the laws of the search alone: others need no roofs."""
    # The first decode loads kernels and makes room; it is none of those that are compared.
    side.decode(stretch.items[0])
    side.forget()
    for done, item in enumerate(stretch.items):
        if cancelled():
            raise Cancelled
        progress("counting what the search does", done / len(stretch.items))
        side.decode(item)
    recording = side.taken.all_from(0)
    side.forget()
    recording.costs = {
        key: cost
        for key, cost in recording.costs.items()
        if recording.stages[key[0]].group == "search"
    }
    return recording


def amounts(recording: Recording) -> dict[tuple[str, int], float]:
    """What the laws of a recording say of the memory that it went through: (kind, bytes of data) → amount a frame.

    Accesses that may have found their data in a cache count: whether they do is for the caches to say.
    """
    frames = sum(piece.n_frames for piece in recording.utterances)
    found: dict[tuple[str, int], float] = {}
    for (stage, epoch), cost in recording.costs.items():
        at = (recording.spans["stage"] == stage) & (recording.spans["epoch"] == epoch)
        spans = pick(recording.spans, np.flatnonzero(at))
        for term in cost.terms or ():
            if term.kind in (STREAM, ACCESS):
                key = term.kind, int(term.bytes)
                count = float((term.most or term.count).of(spans).sum())
                found[key] = found.get(key, 0.0) + count / frames
    return found


def _features(side: Runner, sounds: Sequence[Array]) -> Array:
    """The first frames of `sounds`, samples f32 [n] each: f32 [frames, 39]."""
    return np.concatenate([side.features(samples) for samples in sounds])[:SCORED_FRAMES]


def _scored(side: Runner, features: Array, traffic: Traffic) -> float:
    """Score `features` with `traffic` between the blocks; returns the seconds of that a frame."""
    seconds = 0.0

    def between(frames: int) -> None:
        nonlocal seconds
        seconds += traffic.frames(frames)

    traffic.rewind()
    side.score(features, between)
    return seconds / len(features)


def _hot_s(traffic: Traffic, frames: int) -> float:
    """Seconds that a frame of `traffic` takes where that of so many frames is gone through again at once."""
    traffic.rewind()
    traffic.frames(frames)
    traffic.rewind()
    return traffic.frames(frames) / frames


def _found(scored: Times, counted: Recording) -> Found:
    scoring = {
        name: float(undisturbed(times).sum())
        for name, times in scored.stages.items()
        if name != OVERHEAD
    }
    parts = breakdown(counted)
    leaves = sum(row.time_ns for row in parts.stages if row.share and row.group != OVERHEAD)
    return Found(
        scoring,
        whatif.at_best(parts.stages, "search"),
        {OVERHEAD: max(parts.wall_ns - leaves, 0.0)},
        _tokens(counted),
    )


def _tokens(counted: Recording) -> float:
    """Tokens in a frame on the mean: the first count of the stage that goes on from each."""
    emit = next(stage for stage in counted.stages.values() if stage.name == "search.emit")
    spans = counted.spans[counted.spans["stage"] == emit.id]
    return float(spans["work0"].sum() / max(spans["frames"].sum(), 1))
