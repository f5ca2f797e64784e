"""Scoring one frame of several: the scores of the last one copied, or a net that answers for all of them (note 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipelines.config import Value
from pipelines.labs import figures
from pipelines.labs._nets import (
    Decoded,
    agreement,
    best_change,
    points,
    word_change,
    word_error_rate,
)
from pipelines.labs._parameters import InBlocks, Rounds, Vocabulary, Words
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least
from profiler.analysis.comparison.statistics import Ratio

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

NET: Final = "multi-frame"
WHOLE: Final = "every frame"
RULES: Final = {"copied": "copy", "own outputs": "multi-frame"}
STEPS: Final = (2, 3, 4)
"""One frame of so many goes through the hidden layers."""


class Given(Parameters, frozen=True, kw_only=True):
    """How much is measured."""

    vocabulary: Vocabulary = 5000
    speech_s: Words = 60.0
    frames: InBlocks = 48
    seconds: Rounds = 8.0


class Found(Measured, frozen=True, kw_only=True):
    """By way (WHOLE, "copied, 1 of K", "own outputs, 1 of K"): words and best senones, seconds of `frames`."""

    frames: int
    decoded: dict[str, Decoded]
    seconds: dict[str, list[float]]


def way(rule: str, step: int) -> str:
    """The name of a way of scoring."""
    return f"{rule}, 1 of {step}"


def measure(given: Given, desk: Desk) -> Found:
    """The same net and trunk in all ways, so that only what happens to the frames between differs."""
    from pipelines.config import Config, assign
    from pipelines.labs import _nets
    from pipelines.labs._scoring import Scoring

    base: dict[str, Value] = {"model": "dnn", "dnn.net": NET, "graph.vocabulary": given.vocabulary}
    ways: dict[str, dict[str, Value]] = {
        way(name, step): {"frames.skip": step, "frames.rule": rule}
        for name, rule in RULES.items()
        for step in STEPS
    }
    with desk.part(0.0, 0.75):
        found = _nets.decoded(base, ways, given.speech_s, desk)
    found[WHOLE] = found.pop("")
    scoring = Scoring(assign(Config(), base), desk, frames=given.frames)
    arms = {WHOLE: scoring.arm({})}
    arms |= {name: scoring.arm(settings) for name, settings in ways.items()}
    with desk.part(0.75, 1.0):
        inner = dict.fromkeys(arms, 1)
        seconds = desk.turns(arms, seconds=given.seconds, inner=inner, what="ways in turns")
    return Found(frames=given.frames, decoded=found, seconds=seconds)


def better(found: Found, step: int) -> Ratio:
    """Share of frames with the best senone of every frame's scoring: own outputs less copies."""
    own, copied = (found.decoded[way(rule, step)] for rule in ("own outputs", "copied"))
    return best_change(own, copied)


def judge(found: Found) -> Finding:
    """At every step, own outputs keep more best senones than copies."""
    gains = {step: better(found, step) for step in STEPS}
    last = STEPS[-1]
    own, copied = way("own outputs", last), way("copied", last)
    cost = ratio(found.seconds[own], found.seconds[copied])
    words = word_change(found.decoded[own], found.decoded[copied])
    saving = ratio(found.seconds[WHOLE], found.seconds[own])
    verdict = all_of(*(at_least(gain, 0.0) for gain in gains.values()))
    why = (
        f"With one frame of {last} through the net, own outputs keep the best senone of "
        f"{percent(agreement(found.decoded[own]))} of the frames and copies of "
        f"{percent(agreement(found.decoded[copied]))}: "
        f"{points(gains[last])}. In words that is {points(words)} of error rate. Own outputs take {told(cost)} times "
        f"as long as copies, and are {told(saving)} times as fast as scoring every frame."
    )
    numbers: dict[str, float | None] = {"own_over_copied_time": value(cost)}
    for name, counts in found.decoded.items():
        key = name.replace(", ", "_").replace(" ", "_")
        numbers[f"{key}_same_best"] = agreement(counts)
        numbers[f"{key}_wer"] = word_error_rate(counts)
        numbers[f"{key}_ms_per_frame"] = 1e3 * figures.seconds(found.seconds[name]) / found.frames
        if name != WHOLE:
            numbers[f"{key}_gain"] = value(ratio(found.seconds[WHOLE], found.seconds[name]))
    for step, gain in gains.items():
        numbers[f"own_less_copied_same_best_1_of_{step}"] = gain.ratio
    return Finding(verdict, why, numbers)


def picture(found: Found) -> Chart:
    """Best senones lost over time per frame, a line from one frame of one to one of four; beside it words."""

    def time(name: str) -> float:
        return 1e3 * figures.seconds(found.seconds[name]) / found.frames

    senones, words = [], []
    for rule in RULES:
        names = [WHOLE, *(way(rule, step) for step in STEPS)]
        names.sort(key=time)
        x = tuple(map(time, names))
        lost = tuple(100 * (1 - agreement(found.decoded[n])) for n in names)
        senones.append(Line(rule, x, lost))
        rates = (word_error_rate(found.decoded[n]) for n in names)
        words.append(Line(rule, x, tuple(None if r is None else 100 * r for r in rates)))
    cost = Axis("time per frame", "ms", low=0.0)
    return Chart(
        cost,
        Axis("frames that lose their best senone", "%", low=0.0),
        tuple(senones),
        title="one frame of 1, 2, 3 and 4 scored",
        beside=(Chart(cost, Axis("word error rate", "%", low=0.0), tuple(words)),),
    )


LAB: Final = Lab(
    claim="A net with outputs for several frames is better than copying the scores of the last frame.",
    source="note 1 (Vanhoucke, Devin & Heigold 2013)",
    group="scoring",
    measured="The shipped multi-frame net on real speech. One frame of 2, 3 and 4 goes through its hidden "
    "layers; the frames between get their own outputs or copied scores. Measured are the frames that keep the "
    "best senone of the same net on every frame, word errors, and time. The first of its outputs is not as good "
    "as a net for one frame; that is not compared here.",
    bound="It holds if own outputs keep more best senones than copies, for 2, 3 and 4 frames alike, as the claim "
    "says. Only these two are compared; the time of own outputs is shown beside them.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: where frames are skipped, give the net outputs for them; and look at their time, which "
        "pays only where the layers below are most of a net.",
        FAILS: "So: copy, or score every frame.",
        UNDECIDED: "So: decode more speech that is labelled (--audio, --transcripts).",
    },
    said=(
        Said("less activation cost, at most (Vanhoucke 2013)", 4.0, "×", "own_outputs_1_of_4_gain"),
    ),
)
