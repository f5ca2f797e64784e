"""A small net taught by a large one, beside the same net trained on labels: words at equal time (note 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipelines.config import Value
from pipelines.labs import figures
from pipelines.labs._nets import Decoded, agreement, points, word_change, word_error_rate
from pipelines.labs._parameters import InBlocks, Rounds, Words
from pipelines.labs.chart import Axis, Bars, Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, at_most

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

TEACHER, TAUGHT, LABELS = "teacher", "taught by it", "trained on labels"
NETS: Final = {TEACHER: "large", TAUGHT: "small", LABELS: "small-hard"}


class Given(Parameters, frozen=True, kw_only=True):
    """How much is measured."""

    speech_s: Words = 60.0
    frames: InBlocks = 48
    seconds: Rounds = 8.0


class Found(Measured, frozen=True, kw_only=True):
    """By net (TEACHER, TAUGHT, LABELS): words and best senones beside the teacher's, and seconds of `frames`;
    `bundled`: whether the speech was the shipped voices."""

    frames: int
    bundled: bool
    decoded: dict[str, Decoded]
    seconds: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """All three on the same speech, and their times in turns."""
    from pipelines.config import Config, assign
    from pipelines.labs import _nets
    from pipelines.labs._scoring import Scoring

    base: dict[str, Value] = {"model": "dnn", "dnn.net": NETS[TEACHER]}
    ways: dict[str, dict[str, Value]] = {name: {"dnn.net": NETS[name]} for name in (TAUGHT, LABELS)}
    with desk.part(0.0, 0.75):
        found = _nets.decoded(base, ways, given.speech_s, desk)
    found = {TEACHER: found.pop(""), **found}
    scoring = Scoring(assign(Config(), base), desk, frames=given.frames)
    arms = {name: scoring.arm({"dnn.net": net}) for name, net in NETS.items()}
    with desk.part(0.75, 1.0):
        inner = dict.fromkeys(arms, 1)
        seconds = desk.turns(arms, seconds=given.seconds, inner=inner, what="nets in turns")
    return Found(frames=given.frames, bundled=not desk.audio, decoded=found, seconds=seconds)


def judge(found: Found) -> Finding:
    """The taught net makes fewer word errors than the one trained on labels; their times are the same by design."""
    change = word_change(found.decoded[TAUGHT], found.decoded[LABELS])
    faster = ratio(found.seconds[TEACHER], found.seconds[TAUGHT])
    same = ratio(found.seconds[TAUGHT], found.seconds[LABELS])
    rates = {name: word_error_rate(counts) for name, counts in found.decoded.items()}
    told_rates = {name: "unknown" if r is None else percent(r, 1) for name, r in rates.items()}
    why = (
        f"The taught net's word error rate is {told_rates[TAUGHT]} and that of the same net trained on labels "
        f"{told_rates[LABELS]}: {points(change)}. The teacher's is {told_rates[TEACHER]}, at {told(faster)} times "
        "the time."
    )
    if found.bundled:
        why += " The labels were of these very voices: people's speech (--audio, --transcripts) is the test."
    numbers: dict[str, float | None] = {
        "wer_change": value(change),
        "taught_over_labels_time": value(same),
        "teacher_over_taught_time": value(faster),
    }
    for name, counts in found.decoded.items():
        key = name.replace(" ", "_")
        numbers[f"{key}_wer"] = rates[name]
        numbers[f"{key}_same_best_as_teacher"] = agreement(counts)
        numbers[f"{key}_ms_per_frame"] = 1e3 * figures.seconds(found.seconds[name]) / found.frames
    return Finding(at_most(change, 0.0), why, numbers)


def picture(found: Found) -> Chart:
    """Word errors of each net; beside them its time per frame, and how often it agrees with the teacher."""
    counts = found.decoded.values()
    rates = tuple(None if (r := word_error_rate(c)) is None else 100 * r for c in counts)
    same = tuple(100 * agreement(c) for c in counts)
    times = [
        figures.between(found.seconds[n], lambda s: 1e3 * s / found.frames) for n in found.decoded
    ]
    nets = Axis("net", categories=tuple(found.decoded))
    return Chart(
        nets,
        Axis("word error rate", "%", low=0.0),
        (Bars("word errors", rates),),
        beside=(
            Chart(
                nets,
                Axis("time per frame", "ms", low=0.0),
                (Bars("time", *figures.columns(times)),),
            ),
            Chart(
                nets,
                Axis("frames with the teacher's best senone", "%", low=0.0),
                (Bars("same best senone", same),),
            ),
        ),
    )


LAB: Final = Lab(
    claim="A small net learns more from the outputs of a large one than from labels.",
    source="note 1 (Li, Zhao, Huang & Gong 2014)",
    group="scoring",
    measured="Two shipped nets of the same shape, and so of the same time: one taught by the large net, one "
    "trained on the labels of synthetic voices. Word errors and best senones on real speech, compared with their "
    "teacher. Labels exist only for those voices, which are also the shipped speech; use speech of people to "
    "compare the nets on unknown voices.",
    bound="It holds if the taught net makes fewer word errors than the one trained on labels, as the claim says. "
    "The claim gives no factor.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: train the net that you can afford on the outputs of the best that you have.",
        FAILS: "So: labels of the voices that are decoded win on these voices; try both on speech like your users'.",
        UNDECIDED: "So: decode more speech that is labelled (--audio, --transcripts).",
    },
)
