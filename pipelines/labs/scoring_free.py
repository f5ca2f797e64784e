"""Scoring made free: what remains of a real decode is front end and search (note 0)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, Vocabulary, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, value
from pipelines.labs.sweep import SweepResult, Timings, Work, key, one_size, run_all
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, at_least
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.run.recogniser import Recogniser

MODELS: Final[dict[str, dict[str, Value]]] = {
    "continuous, frame by frame": {"model": "continuous", "block": 1},
    "continuous, blocks of 16": {"model": "continuous"},
    "tied mixtures": {"model": "ptm"},
    "net": {"model": "dnn"},
}
JUDGED: Final = "tied mixtures"
"""The recogniser as it is shipped (preset `gmm`): its scoring is as quick as it could be made."""

SLOW: Final = "continuous, frame by frame"
SLOW_ROUNDS: Final = 3  # Of models that score for seconds; what is judged gets the time
RATE: Final = 16_000  # Samples a second
WHOLE, SCORING, FREE = "whole", "scoring", "free"
"""The whole decode, its scoring alone, and the decode with ready scores."""


class Params(Parameters, frozen=True, kw_only=True):
    vocabulary: Vocabulary = 5000
    speech_s: Annotated[
        float,
        setting("Speech", "The beginning of the first utterance, which a turn decodes.", unit="s", ge=0.1, le=600.0),
    ] = 4.0
    seconds: Seconds = 20.0


def variant(model: str, part: str) -> str:
    """The name of a variant; its size is the number of samples that are decoded."""
    return f"{model}: {part}"


def measure(params: Params, desk: Desk) -> SweepResult:
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models.opening import open_model
    from pipelines.run.recogniser import Recogniser, build
    from pipelines.scoring import build_scorer

    base = assign(Config(), {"graph.vocabulary": params.vocabulary})
    first = build(base, Recorder(), NullLane(), desk.progress, desk.stopping)
    _, sound = next(spoken(desk.speech(), 0.0))
    samples = sound.samples[: int(params.speech_s * RATE)]
    quick: dict[str, Work] = {}
    slow: dict[str, Work] = {}
    for name, settings in MODELS.items():
        desk.check()
        config = assign(base, settings)
        scorer = first.scorer
        if config.model != first.config.model:
            model = open_model(config, desk.progress, desk.stopping)
            scorer = build_scorer(config, model, desk.progress, desk.stopping)
            scorer.warm_up()
        recogniser = Recogniser(config, first.frontend, scorer, first.search)
        recogniser.register(Recorder())
        some = slow if config.model == "continuous" else quick
        some |= {variant(name, part): call for part, call in decodes(recogniser, samples).items()}
    few = one_size(slow, len(samples), "slow decodes in turns", calls=1)
    few = replace(few, rounds=lambda size: SLOW_ROUNDS)
    many = one_size(quick, len(samples), "decodes in turns", calls=1)
    slow_ones, quick_ones = run_all(desk, 2 * params.seconds, [few, many])
    return SweepResult(timings=slow_ones.joined(quick_ones))


def decodes(recogniser: Recogniser, samples: Array) -> dict[str, Work]:
    """The whole decode of `samples` f32 [n], its scoring alone, and the decode with scores that are there."""
    from pipelines.experiments.scoring_replay import Replay, scoring_s
    from pipelines.scoring import with_context

    scorer, search, block = recogniser.scorer, recogniser.search, recogniser.config.block
    lane, beyond = NullLane(), sum(scorer.context)

    def frontend() -> Array:
        return with_context(recogniser.frontend.features(samples, 0, lane), scorer.context)

    padded = frontend()
    n = len(padded) - beyond
    speech = Replay(padded, [None] * n)
    ready = np.empty((n, scorer.n_senones), np.float32)
    scoring_s(scorer, block, speech, ready)

    def decode(scored: bool) -> list[str]:
        some = frontend()
        scorer.reset()
        search.start(0)
        for at in range(0, n, block):
            rows = scorer.score(some[at : at + block + beyond], at, lane) if scored else ready[at : at + block]
            search.advance(rows, at)
        return [word for word, _, _ in search.finish()]

    return {
        WHOLE: lambda: decode(scored=True),
        SCORING: lambda: scoring_s(scorer, block, speech),
        FREE: lambda: decode(scored=False),
    }


def real_time_factors(result: SweepResult) -> Timings:
    """Seconds per second of speech."""
    return result.timings.per_unit(lambda samples: samples / RATE)


def judge(result: SweepResult) -> Finding:
    rtf = real_time_factors(result)
    left = {name: rtf.ratio(variant(name, FREE), variant(name, WHOLE)) for name in MODELS}
    gain = rtf.ratio(variant(SLOW, WHOLE), variant(SLOW, FREE))
    why = (
        f"With scoring free {percent(left[JUDGED])} of the time of the shipped recogniser is left (an RTF of "
        f"{rtf.time(variant(JUDGED, FREE)):.3f}), {percent(left['net'])} with a net; with continuous mixtures frame by "
        f"frame {percent(left[SLOW])}, so there it would be {ci(gain)} times as fast."
    )
    numbers: dict[str, float | None] = {}
    for name in MODELS:
        whole, scoring, free = (rtf.time(variant(name, part)) for part in (WHOLE, SCORING, FREE))
        numbers |= {
            f"{key(name)}_left_share": value(left[name]),
            f"{key(name)}_rtf": whole,
            f"{key(name)}_rtf_with_scoring_free": free,
            # Amdahl: what does not get faster stays.
            f"{key(name)}_left_share_predicted": 1.0 - scoring / whole,
            f"{key(name)}_speed_up_at_most": whole / free,
        }
    return Finding(at_least(left[JUDGED], 0.5), why, numbers)


def picture(result: SweepResult) -> Chart:
    rtf = real_time_factors(result)
    remains = {name: rtf.time(variant(name, FREE)) for name in MODELS}
    whole = {name: rtf.time(variant(name, WHOLE)) for name in MODELS}

    def stacked(scale: dict[str, float]) -> tuple[Bars, Bars]:
        rest = tuple(remains[name] / scale[name] for name in MODELS)
        gone = tuple(max(0.0, whole[name] - remains[name]) / scale[name] for name in MODELS)
        return Bars("remains: front end and search", rest, stacked=True), Bars("scoring", gone, stacked=True)

    models = Axis("acoustic model", categories=tuple(MODELS))
    shares = stacked({name: each / 100 for name, each in whole.items()})
    factors = Chart(models, Axis("real-time factor", low=0.0), stacked(dict.fromkeys(MODELS, 1.0)))
    time = Axis("time of the decode", "%", low=0.0)
    return Chart(models, time, (*shares, Mark("half", 50.0)), beside=(factors,))


LAB: Final = Lab(
    claim="Even with scoring reduced to nothing, decoding stays slow: search is the other important part.",
    source="note 0, the answer",
    group="scoring",
    measured="Real decodes of the same speech with several acoustic models, whole, and with scores computed "
    "before; front end and search are the same. The verdict is about the recogniser as shipped, whose scoring is "
    "fast; the other models show how it depends on that. The prediction of Amdahl's law from the time of scoring "
    "alone is shown for comparison.",
    bound="It holds if more than half of the time is left. The claim gives no number; half is ours: with less, a "
    "recogniser would be more than twice as fast, and nobody would call that slow. Published are 30 to 70 % "
    "(Gales 1999: likelihoods take the rest).",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: once scoring is fast, work on the search: beam, active states, a smaller graph.",
        FAILS: "So: scoring is still where the time goes; search can wait.",
    },
    published=(
        PublishedValue("gain of scoring 5 times as fast (Cardinal 2008)", 1.35, "×", "tied_mixtures_speed_up_at_most"),
    ),
    bytes_needed=lambda params: 900_000_000 + int(params.speech_s * 100) * 4 * 5126 * len(MODELS),
)
