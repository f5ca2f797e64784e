"""A small net taught by a large one, against the same net trained on labels: words at equal time (note 1)."""

from typing import Final

import msgspec

from pipelines.labs._scoring import NetResult, compared, percent_wrong, points, word_change
from pipelines.labs.chart import Axis, Bars, Chart
from pipelines.labs.declaration import InBlocks, Lab, Parameters, Seconds, Words
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, value
from pipelines.labs.sweep import key, milliseconds
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, at_most

TEACHER, TAUGHT, LABELS = "teacher", "taught by it", "trained on labels"
NETS: Final = {TEACHER: "large", TAUGHT: "small", LABELS: "small-hard"}


class Params(Parameters, frozen=True, kw_only=True):
    speech_s: Words = 60.0
    frames: InBlocks = 48
    seconds: Seconds = 8.0


def measure(params: Params, desk: Desk) -> NetResult:
    """All three on the same speech, and their times in turns; `bundled` is 1 where it was the shipped voices."""
    result = compared(
        TEACHER,
        {"model": "dnn", "dnn.net": NETS[TEACHER]},
        {variant: {"dnn.net": NETS[variant]} for variant in (TAUGHT, LABELS)},
        desk,
        speech_s=params.speech_s,
        frames=params.frames,
        seconds=params.seconds,
    )
    return msgspec.structs.replace(result, counts={"bundled": float(not desk.audio)})


def judge(result: NetResult) -> Finding:
    change = word_change(result.decoded[TAUGHT], result.decoded[LABELS])
    faster = result.timings.ratio(TEACHER, TAUGHT)
    rates = {name: "unknown" if c.wer is None else percent(c.wer, 1) for name, c in result.decoded.items()}
    why = (
        f"The taught net's word error rate is {rates[TAUGHT]} and that of the same net trained on labels "
        f"{rates[LABELS]}: {points(change)}. The teacher's is {rates[TEACHER]}, at {ci(faster)} times the time."
    )
    if result.counts["bundled"]:
        why += " The labels were of these very voices: people's speech (--audio, --transcripts) is the test."
    numbers: dict[str, float | None] = {
        "wer_change": value(change),
        "taught_over_labels_time": value(result.timings.ratio(TAUGHT, LABELS)),
        "teacher_over_taught_time": value(faster),
    }
    for name, counts in result.decoded.items():
        numbers[f"{key(name)}_wer"] = counts.wer
        numbers[f"{key(name)}_same_best_as_teacher"] = counts.agreement
    numbers |= result.timings.per_unit().table("{variant}_ms_per_frame", milliseconds)
    return Finding(at_most(change, 0.0), why, numbers)


def picture(result: NetResult) -> Chart:
    counts = list(result.decoded.values())
    same = tuple(100 * each.agreement for each in counts)
    times = result.timings.per_unit().bars("time", result.timings.cells(result.decoded), milliseconds)
    nets = Axis("net", categories=tuple(result.decoded))
    return Chart(
        nets,
        Axis("word error rate", "%", low=0.0),
        (Bars("word errors", percent_wrong(counts)),),
        beside=(
            Chart(nets, Axis("time per frame", "ms", low=0.0), (times,)),
            Chart(nets, Axis("frames with the teacher's best senone", "%", low=0.0), (Bars("same best senone", same),)),
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
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: train the net that you can afford on the outputs of the best that you have.",
        FAILS: "So: labels of the voices that are decoded win on these voices; try both on speech like your users'.",
        UNDECIDED: "So: decode more speech that is labelled (--audio, --transcripts).",
    },
)
