"""Scoring one frame of several: the scores of the last one copied, or a net that answers for all of them (note 1)."""

from typing import Final

from pipelines.labs._scoring import NetResult, best_change, compared, percent_wrong, points, word_change
from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import InBlocks, Lab, Parameters, PublishedValue, Seconds, Vocabulary, Words
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, value
from pipelines.labs.sweep import key, milliseconds
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least

NET: Final = "multi-frame"
WHOLE: Final = "every frame"
COPIED, OWN = "copied", "own outputs"
RULES: Final = {COPIED: "copy", OWN: "multi-frame"}
STEPS: Final = (2, 3, 4)  # Of this many frames, one is computed through the hidden layers


class Params(Parameters, frozen=True, kw_only=True):
    vocabulary: Vocabulary = 5000
    speech_s: Words = 60.0
    frames: InBlocks = 48
    seconds: Seconds = 8.0


def variant(rule: str, step: int) -> str:
    return f"{rule}, 1 of {step}"


def measure(params: Params, desk: Desk) -> NetResult:
    return compared(
        WHOLE,
        {"model": "dnn", "dnn.net": NET, "graph.vocabulary": params.vocabulary},
        {
            variant(name, step): {"frames.skip": step, "frames.rule": rule}
            for name, rule in RULES.items()
            for step in STEPS
        },
        desk,
        speech_s=params.speech_s,
        frames=params.frames,
        seconds=params.seconds,
    )


def judge(result: NetResult) -> Finding:
    timings, decoded = result.timings, result.decoded
    # How many more frames have the same best senone as full scoring with own outputs than with copies, as a share.
    gains = {step: best_change(decoded[variant(OWN, step)], decoded[variant(COPIED, step)]) for step in STEPS}
    last = STEPS[-1]
    own, copied = variant(OWN, last), variant(COPIED, last)
    cost = timings.ratio(own, copied)
    words = word_change(decoded[own], decoded[copied])
    why = (
        f"With one frame of {last} through the net, own outputs keep the best senone of "
        f"{percent(decoded[own].agreement)} of the frames and copies of {percent(decoded[copied].agreement)}: "
        f"{points(gains[last])}. In words that is {points(words)} of error rate. Own outputs take {ci(cost)} times "
        f"as long as copies, and are {ci(timings.ratio(WHOLE, own))} times as fast as scoring every frame."
    )
    numbers: dict[str, float | None] = {"own_over_copied_time": value(cost)}
    for name, counts in decoded.items():
        numbers[f"{key(name)}_same_best"] = counts.agreement
        numbers[f"{key(name)}_wer"] = counts.wer
        if name != WHOLE:
            numbers[f"{key(name)}_gain"] = value(timings.ratio(WHOLE, name))
    numbers |= timings.per_unit().table("{variant}_ms_per_frame", milliseconds)
    numbers |= {f"own_less_copied_same_best_1_of_{step}": gain.ratio for step, gain in gains.items()}
    return Finding(all_of(*(at_least(gain, 0.0) for gain in gains.values())), why, numbers)


def picture(result: NetResult) -> Chart:
    per_frame, decoded = result.timings.per_unit(), result.decoded
    senones, words = [], []
    for rule in RULES:
        names = sorted([WHOLE, *(variant(rule, step) for step in STEPS)], key=per_frame.time)
        x = tuple(1e3 * per_frame.time(name) for name in names)
        senones.append(Line(rule, x, tuple(100 * (1 - decoded[name].agreement) for name in names)))
        words.append(Line(rule, x, percent_wrong(decoded[name] for name in names)))
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
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: where frames are skipped, give the net outputs for them; and look at their time, which "
        "pays only where the layers below are most of a net.",
        FAILS: "So: copy, or score every frame.",
        UNDECIDED: "So: decode more speech that is labelled (--audio, --transcripts).",
    },
    published=(PublishedValue("less activation cost, at most (Vanhoucke 2013)", 4.0, "×", "own_outputs_1_of_4_gain"),),
)
