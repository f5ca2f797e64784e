"""Scoring and search on a device: why the one gains much and the other little (note 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Value
from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import Rounds, Vocabulary
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import told
from pipelines.labs.verdicts import (
    FAILS,
    HOLDS,
    IMPOSSIBLE,
    UNDECIDED,
    Finding,
    all_of,
    at_least,
    at_most,
)
from profiler.analysis.comparison.statistics import Ratio

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

STAND_IN: Final = "torch-cpu"
"""The device code on the processor, where there is no accelerator."""

THREADS: Final = 2
MUCH: Final = 2.0
"""A great deal: scoring at least twice as fast, and search not. The note gives no number."""

PARTS: Final = ("scoring", "search")


class Given(Parameters, frozen=True, kw_only=True):
    """How much is scored and searched."""

    vocabulary: Vocabulary = 5000
    frames: Annotated[
        int, setting("Frames", "Frames of the first utterance that a turn takes.", ge=1, le=10000)
    ] = 100
    block: Annotated[
        int, setting("Block", "Frames given to the device at a time.", unit="frames", ge=1, le=256)
    ] = 64
    seconds: Rounds = 20.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds of `frames` by "part, place" (processor, device; scoring also on threads); `device` "" without one and
    `reason` then why. `senones` are scored independently in a frame, `asked` of them the search needs on average."""

    frames: int
    device: str
    reason: str
    senones: int
    asked: float
    seconds: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """The same model, graph and speech on both; without an accelerator the device code runs on the processor."""
    from pipelines.config import Config, assign
    from pipelines.labs._scoring import features_of
    from pipelines.models.opening import open_model
    from pipelines.run.recogniser import Recogniser, build
    from profiler.spans import NullLane, Recorder

    place = desk.device or STAND_IN
    base = assign(Config(), {"block": given.block, "graph.vocabulary": given.vocabulary})
    model = open_model(base, desk.progress, desk.stopping)
    features = features_of(model, desk, 0.0)[0]
    features = np.ascontiguousarray(np.resize(features, (given.frames, features.shape[1])))

    def made(settings: dict[str, Value]) -> Recogniser:
        desk.check()
        recorder = Recorder()
        recogniser = build(
            assign(base, settings), recorder, NullLane(), desk.progress, desk.stopping
        )
        recogniser.register(recorder)
        return recogniser

    processor = made({})
    arms: dict[str, Callable[[], object]] = {
        "scoring, processor": scoring(processor, features),
        f"scoring, {THREADS} threads": scoring(made({"threads": THREADS}), features),
        "scoring, device": scoring(made({"device": place}), features),
    }
    scores = np.empty((given.frames, processor.scorer.n_senones), np.float32)
    for at in range(0, given.frames, given.block):
        some = features[at : at + given.block]
        scores[at : at + len(some)] = processor.scorer.score(some, at, NullLane())
    arms["search, processor"] = searching(processor, scores)
    arms["search, device"] = searching(made({"search.device": place}), scores)
    processor.search.start(0)
    asked = []
    for t in range(given.frames):
        asked.append(len(processor.search.active_senones()))
        processor.search.advance(scores[t : t + 1], t)
    seconds = desk.turns(
        arms, seconds=given.seconds, inner=dict.fromkeys(arms, 1), what="both in turns"
    )
    return Found(
        frames=given.frames,
        device=desk.device or "",
        reason="" if desk.device else desk.no_device.partition(";")[0],
        senones=processor.scorer.n_senones,
        asked=float(np.mean(asked)),
        seconds=seconds,
    )


def scoring(
    recogniser: object, features: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> Callable[[], object]:
    """Score all of `features` in blocks; on a device, until the scores are here."""
    from pipelines.experiments.scoring_replay import Replay, scoring_s
    from pipelines.run.recogniser import Recogniser

    assert isinstance(recogniser, Recogniser)
    speech = Replay(features, [None] * len(features))
    return lambda: scoring_s(recogniser.scorer, recogniser.config.block, speech)


def searching(
    recogniser: object, scores: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> Callable[[], object]:
    """Search through scores that are here, block by block; returns the words."""
    from pipelines.run.recogniser import Recogniser

    assert isinstance(recogniser, Recogniser)
    search, block = recogniser.search, recogniser.config.block

    def run() -> list[str]:
        search.start(0)
        for at in range(0, len(scores), block):
            search.advance(scores[at : at + block], at)
        return [word for word, _, _ in search.finish()]

    return run


def gain(found: Found, part: str) -> Ratio | None:
    """Time on the processor / time on the device."""
    return ratio(found.seconds[f"{part}, processor"], found.seconds[f"{part}, device"])


def judge(found: Found) -> Finding:
    """On a device scoring is at least twice as fast as on the processor, and search is not."""
    gains = {part: gain(found, part) for part in PARTS}
    threads = ratio(
        found.seconds["scoring, processor"], found.seconds[f"scoring, {THREADS} threads"]
    )
    numbers: dict[str, float | None] = {
        "scoring_threads_gain": value(threads),
        "independent_scores_per_frame": float(found.senones),
        "senones_asked_per_frame": found.asked,
    }
    for part in PARTS:
        name = f"{part}_gain" if found.device else f"{part}_stand_in_gain"
        numbers[name] = value(gains[part])
    for name, times in found.seconds.items():
        key = name.replace(", ", "_").replace(" ", "_")
        numbers[f"{key}_ms_per_frame"] = 1e3 * figures.seconds(times) / found.frames
    if found.device:
        verdict = all_of(at_least(gains["scoring"], MUCH), at_most(gains["search"], MUCH))
        why = (
            f"On {found.device} scoring is {told(gains['scoring'])} times as fast as on one core, and search "
            f"{told(gains['search'])} times."
        )
        return Finding(verdict, why, numbers | {"scoring_gain": value(gains["scoring"])})
    numbers["scoring_gain"] = None
    why = (
        f"No accelerator here ({found.reason.rstrip('.')}). The processor's half: {found.senones} scores of a "
        f"frame wait for nothing, and {THREADS} threads make scoring {told(threads)} times as fast; the search "
        f"asks for {found.asked:.0f} of them frame after frame, and the device's way of searching is "
        f"{told(gains['search'])} times as fast as the serial one on this processor."
    )
    return Finding(IMPOSSIBLE, why, numbers)


def picture(found: Found) -> Chart:
    """Time per frame of both parts, here and there."""
    places = ("processor", "device")
    bars = []
    for place in places:
        rows = [
            figures.between(found.seconds[f"{part}, {place}"], lambda s: 1e3 * s / found.frames)
            for part in PARTS
        ]
        name = place if place == "processor" else found.device or "device code on the processor"
        bars.append(Bars(name, *figures.columns(rows)))
    gains = [gain(found, part) for part in PARTS]
    threads = ratio(
        found.seconds["scoring, processor"], found.seconds[f"scoring, {THREADS} threads"]
    )
    speed = Bars(
        "as fast as one core",
        (*(value(g) for g in gains), value(threads)),
        tuple(None if g is None else g.low for g in (*gains, threads)),
        tuple(None if g is None else g.high for g in (*gains, threads)),
    )
    there = found.device or "device code"
    return Chart(
        Axis("part of the recogniser", categories=PARTS),
        Axis("time per frame", "ms", log=True),
        tuple(bars),
        beside=(
            Chart(
                Axis(
                    "what is spread out",
                    categories=(
                        f"scoring, {there}",
                        f"search, {there}",
                        f"scoring, {THREADS} threads",
                    ),
                ),
                Axis("speed beside one core", "×", low=0.0),
                (speed, Mark("one core", 1.0)),
            ),
        ),
    )


LAB: Final = Lab(
    claim="On a GPU scoring gains a great deal, and search does not, because it is serial.",
    source="note 0, the answer",
    group="scoring",
    wants_device=True,
    measured="The same model, graph and speech, scored and searched on one core and on the device, copies "
    "included. Without an accelerator only the CPU's part runs: the gain of threads for scoring, and the cost of "
    "the device's parallel search on a CPU. That says nothing about a GPU.",
    bound="It holds if scoring gains at least a factor of two and search does not. The claim gives no number; "
    "two is ours. Cardinal 2008 reports 5 for scoring.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: score on the device and search on the processor, while the next block is being scored.",
        FAILS: "So: on this device both parts are worth moving, or neither.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
        IMPOSSIBLE: "So: ask for the gain of scoring and of search apart before you buy a device for a recogniser.",
    },
    said=(Said("scoring on a GPU beside SSE (Cardinal 2008)", 5.0, "×", "scoring_gain"),),
    bytes_needed=lambda given: 900_000_000 + given.frames * 4 * 5126,
)
