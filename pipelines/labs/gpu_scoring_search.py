"""Scoring and search on a device: why the one gains much and the other little (note 0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, Vocabulary, setting
from pipelines.labs.desk import Desk, why_no_accelerator
from pipelines.labs.figures import Ratio, ci, ratio_columns, value
from pipelines.labs.sweep import SweepResult, Work, milliseconds, one_size
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, Finding, all_of, at_least, at_most
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.run.recogniser import Recogniser

STAND_IN: Final = "torch-cpu"  # The device code on the processor, where there is no accelerator
THREADS: Final = 2
PARTS: Final = ("scoring", "search")


class Params(Parameters, frozen=True, kw_only=True):
    vocabulary: Vocabulary = 5000
    frames: Annotated[int, setting("Frames", "Frames of the first utterance that a turn takes.", ge=1, le=10000)] = 100
    block: Annotated[int, setting("Block", "Frames given to the device at a time.", unit="frames", ge=1, le=256)] = 64
    seconds: Seconds = 20.0


def measure(params: Params, desk: Desk) -> SweepResult:
    """The same model, graph and speech on both; without an accelerator the device code runs on the processor.

    `senones`: scored in a frame; `asked`: how many the search needs on average; `reason`: why there is no accelerator.
    """
    from pipelines.labs._scoring import features_of
    from pipelines.models.opening import open_model
    from pipelines.run.recogniser import build

    place = desk.device or STAND_IN
    base = assign(Config(), {"block": params.block, "graph.vocabulary": params.vocabulary})
    model = open_model(base, desk.progress, desk.stopping)
    first = features_of(model, desk, 0.0)[0]
    features = np.ascontiguousarray(np.resize(first, (params.frames, first.shape[1])))

    def made(settings: dict[str, Value]) -> Recogniser:
        desk.check()
        recorder = Recorder()
        recogniser = build(assign(base, settings), recorder, NullLane(), desk.progress, desk.stopping)
        recogniser.register(recorder)
        return recogniser

    processor = made({})
    variants = {
        "scoring, processor": scoring(processor, features),
        f"scoring, {THREADS} threads": scoring(made({"threads": THREADS}), features),
        "scoring, device": scoring(made({"device": place}), features),
    }
    scores = np.empty((params.frames, processor.scorer.n_senones), np.float32)
    for at in range(0, params.frames, params.block):
        some = features[at : at + params.block]
        scores[at : at + len(some)] = processor.scorer.score(some, at, NullLane())
    variants["search, processor"] = searching(processor, scores)
    variants["search, device"] = searching(made({"search.device": place}), scores)
    processor.search.start(0)
    asked = []
    for t in range(params.frames):
        asked.append(len(processor.search.active_senones()))
        processor.search.advance(scores[t : t + 1], t)
    sweep = one_size(variants, params.frames, "both in turns", calls=1)
    return SweepResult(
        timings=sweep.run(desk, params.seconds),
        counts={"senones": processor.scorer.n_senones, "asked": float(np.mean(asked))},
        texts={"reason": "" if desk.device else why_no_accelerator().partition(";")[0]},
        device=desk.device or "",
    )


def scoring(recogniser: Recogniser, features: Array) -> Work:
    """Score all of `features` f32 [frames, 39] in blocks; on a device, until the scores are here."""
    from pipelines.experiments.scoring_replay import Replay, scoring_s

    speech = Replay(features, [None] * len(features))
    return lambda: scoring_s(recogniser.scorer, recogniser.config.block, speech)


def searching(recogniser: Recogniser, scores: Array) -> Work:
    """Search through scores f32 [frames, senones] that are here, block by block; returns the words."""
    search, block = recogniser.search, recogniser.config.block

    def run() -> list[str]:
        search.start(0)
        for at in range(0, len(scores), block):
            search.advance(scores[at : at + block], at)
        return [word for word, _, _ in search.finish()]

    return run


def gain(result: SweepResult, part: str, place: str = "device") -> Ratio | None:
    return result.timings.ratio(f"{part}, processor", f"{part}, {place}")


def judge(result: SweepResult) -> Finding:
    gains = {part: gain(result, part) for part in PARTS}
    threads = gain(result, "scoring", f"{THREADS} threads")
    senones, asked = result.counts["senones"], result.counts["asked"]
    numbers: dict[str, float | None] = {
        "scoring_threads_gain": value(threads),
        "independent_scores_per_frame": senones,
        "senones_asked_per_frame": asked,
        "scoring_gain": None,
    }
    kind = "gain" if result.device else "stand_in_gain"
    numbers |= {f"{part}_{kind}": value(gains[part]) for part in PARTS}
    numbers |= result.timings.per_unit().table("{variant}_ms_per_frame", milliseconds)
    if result.device:
        why = (
            f"On {result.device} scoring is {ci(gains['scoring'])} times as fast as on one core, and search "
            f"{ci(gains['search'])} times."
        )
        return Finding(all_of(at_least(gains["scoring"], 2.0), at_most(gains["search"], 2.0)), why, numbers)
    why = (
        f"No accelerator here ({result.texts['reason'].rstrip('.')}). The processor's half: {senones:.0f} scores of a "
        f"frame wait for nothing, and {THREADS} threads make scoring {ci(threads)} times as fast; the search "
        f"asks for {asked:.0f} of them frame after frame, and the device's way of searching is "
        f"{ci(gains['search'])} times as fast as the serial one on this processor."
    )
    return Finding(IMPOSSIBLE, why, numbers)


def picture(result: SweepResult) -> Chart:
    per_frame = result.timings.per_unit()
    names = {"processor": "processor", "device": result.device or "device code on the processor"}
    bars = tuple(
        per_frame.bars(name, per_frame.cells(f"{part}, {place}" for part in PARTS), milliseconds)
        for place, name in names.items()
    )
    there = result.device or "device code"
    spread = (f"scoring, {there}", f"search, {there}", f"scoring, {THREADS} threads")
    gains = [*(gain(result, part) for part in PARTS), gain(result, "scoring", f"{THREADS} threads")]
    speeds = Chart(
        Axis("what is spread out", categories=spread),
        Axis("speed beside one core", "×", low=0.0),
        (Bars("as fast as one core", *ratio_columns(gains)), Mark("one core", 1.0)),
    )
    parts = Axis("part of the recogniser", categories=PARTS)
    return Chart(parts, Axis("time per frame", "ms", log=True), bars, beside=(speeds,))


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
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: score on the device and search on the processor, while the next block is being scored.",
        FAILS: "So: on this device both parts are worth moving, or neither.",
        IMPOSSIBLE: "So: ask for the gain of scoring and of search apart before you buy a device for a recogniser.",
    },
    published=(PublishedValue("scoring on a GPU beside SSE (Cardinal 2008)", 5.0, "×", "scoring_gain"),),
    bytes_needed=lambda params: 900_000_000 + params.frames * 4 * 5126,
)
