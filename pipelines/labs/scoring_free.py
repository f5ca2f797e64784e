"""Scoring made free: what remains of a real decode is front end and search (note 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Value
from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import Rounds, Vocabulary
from pipelines.labs.chart import Axis, Chart, Mark, StackedBars
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk
    from pipelines.run.recogniser import Recogniser
    from profiler.arrays import Array

MODELS: Final[dict[str, dict[str, Value]]] = {
    "continuous, frame by frame": {"model": "continuous", "block": 1},
    "continuous, blocks of 16": {"model": "continuous"},
    "tied mixtures": {"model": "ptm"},
    "net": {"model": "dnn"},
}
JUDGED: Final = "tied mixtures"
"""The recogniser as it is shipped (preset `gmm`): its scoring is as quick as it could be made."""

SLOW: Final = "continuous, frame by frame"
SLOW_ROUNDS: Final = 3
"""Of models that score for seconds; what is judged gets the time."""

MOST: Final = 0.5
"""Decoding stays slow if more than half of its time is left; the note gives no number."""

RATE: Final = 16_000
"""Samples a second."""


class Given(Parameters, frozen=True, kw_only=True):
    """How much is decoded, and for how long."""

    vocabulary: Vocabulary = 5000
    speech_s: Annotated[
        float,
        setting(
            "Speech",
            "The beginning of the first utterance, which a turn decodes.",
            unit="s",
            ge=0.1,
            le=600.0,
        ),
    ] = 4.0
    seconds: Rounds = 20.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds of `audio_s` by model: the whole decode, scoring alone, and the decode with scores that are there."""

    audio_s: float
    whole: dict[str, list[float]]
    scoring: dict[str, list[float]]
    free: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """Three arms a model, in turns: quick models for all the time, slow ones for some rounds; one search for all."""
    from pipelines.config import Config, assign
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.models.opening import open_model
    from pipelines.run.recogniser import Recogniser, build
    from pipelines.scoring import build_scorer
    from profiler.spans import NullLane, Recorder

    base = assign(Config(), {"graph.vocabulary": given.vocabulary})
    first = build(base, Recorder(), NullLane(), desk.progress, desk.stopping)
    _, sound = next(spoken(desk.speech(), 0.0))
    samples = sound.samples[: int(given.speech_s * RATE)]
    quick: dict[str, Callable[[], object]] = {}
    slow: dict[str, Callable[[], object]] = {}
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
        for part, call in decodes(recogniser, samples).items():
            arms = slow if config.model == "continuous" else quick
            arms[f"{name}: {part}"] = call
    with desk.part(0.0, 0.5):
        seconds = desk.turns(slow, rounds=SLOW_ROUNDS, inner=1, what="slow decodes in turns")
    with desk.part(0.5, 1.0):
        seconds |= desk.turns(quick, seconds=given.seconds, inner=1, what="decodes in turns")

    def of(part: str) -> dict[str, list[float]]:
        return {name: seconds[f"{name}: {part}"] for name in MODELS}

    return Found(
        audio_s=len(samples) / RATE, whole=of("whole"), scoring=of("scoring"), free=of("free")
    )


def decodes(recogniser: Recogniser, samples: Array) -> dict[str, Callable[[], object]]:
    """The whole decode of `samples` f32 [n], its scoring alone, and the decode with scores that are there.

    Whole and free return the words.
    """
    from pipelines.experiments.scoring_replay import Replay, scoring_s
    from pipelines.scoring import with_context
    from profiler.spans import NullLane

    scorer, search, block = recogniser.scorer, recogniser.search, recogniser.config.block
    lane = NullLane()

    def frontend() -> Array:
        return recogniser.frontend.features(samples, 0, lane)

    features = frontend()
    n = len(features)
    padded = with_context(features, scorer.context)
    speech = Replay(padded, [None] * n)
    ready = np.empty((n, scorer.n_senones), np.float32)
    scoring_s(scorer, block, speech, ready)
    beyond = sum(scorer.context)

    def words() -> list[str]:
        return [word for word, _, _ in search.finish()]

    def whole() -> list[str]:
        some = with_context(frontend(), scorer.context)
        scorer.reset()
        search.start(0)
        for at in range(0, n, block):
            search.advance(scorer.score(some[at : at + block + beyond], at, lane), at)
        return words()

    def free() -> list[str]:
        frontend()
        search.start(0)
        for at in range(0, n, block):
            search.advance(ready[at : at + block], at)
        return words()

    return {"whole": whole, "scoring": lambda: scoring_s(scorer, block, speech), "free": free}


def judge(found: Found) -> Finding:
    """More than half of the shipped recogniser's time is left when its scores cost nothing."""
    left = {name: ratio(found.free[name], found.whole[name]) for name in found.whole}
    gain = ratio(found.whole[SLOW], found.free[SLOW])
    rtf = {name: figures.seconds(times) / found.audio_s for name, times in found.free.items()}
    why = (
        f"With scoring free {percent(left[JUDGED])} of the time of the shipped recogniser is left (an RTF of "
        f"{rtf[JUDGED]:.3f}), {percent(left['net'])} with a net; with continuous mixtures frame by frame "
        f"{percent(left[SLOW])}, so there it would be {told(gain)} times as fast."
    )
    numbers: dict[str, float | None] = {}
    for name in found.whole:
        key = name.replace(", ", "_").replace(" ", "_")
        whole, scoring = figures.seconds(found.whole[name]), figures.seconds(found.scoring[name])
        numbers |= {
            f"{key}_left_share": value(left[name]),
            f"{key}_rtf": whole / found.audio_s,
            f"{key}_rtf_with_scoring_free": rtf[name],
            # Amdahl: what does not get faster stays.
            f"{key}_left_share_predicted": 1.0 - scoring / whole,
            f"{key}_speed_up_at_most": whole / figures.seconds(found.free[name]),
        }
    return Finding(at_least(left[JUDGED], MOST), why, numbers)


def picture(found: Found) -> Chart:
    """Real-time factors: what remains, and what goes away with the scoring."""
    names = tuple(found.whole)
    free = [figures.seconds(found.free[n]) / found.audio_s for n in names]
    whole = [figures.seconds(found.whole[n]) / found.audio_s for n in names]
    shares = StackedBars(
        (
            (
                "remains: front end and search",
                tuple(100 * f / w for f, w in zip(free, whole, strict=True)),
            ),
            ("scoring", tuple(100 * max(0.0, 1 - f / w) for f, w in zip(free, whole, strict=True))),
        )
    )
    factors = StackedBars(
        (
            ("remains: front end and search", tuple(free)),
            ("scoring", tuple(max(0.0, w - f) for f, w in zip(free, whole, strict=True))),
        )
    )
    models = Axis("acoustic model", categories=names)
    return Chart(
        models,
        Axis("time of the decode", "%", low=0.0),
        (shares, Mark("half", 50.0)),
        beside=(Chart(models, Axis("real-time factor", low=0.0), (factors,)),),
    )


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
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: once scoring is fast, work on the search: beam, active states, a smaller graph.",
        FAILS: "So: scoring is still where the time goes; search can wait.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    said=(
        Said(
            "whole recogniser with scoring 5 times as fast (Cardinal 2008)",
            1.35,
            "×",
            "tied_mixtures_speed_up_at_most",
        ),
    ),
    bytes_needed=lambda given: 900_000_000 + int(given.speech_s * 100) * 4 * 5126 * len(MODELS),
)
