"""The ladder of a net on one core: plain loop, unrolled, vectors, library, 8-bit integers, batches (note 1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import NetName, Rounds
from pipelines.labs.chart import Axis, Bars, Chart
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import ratio, value
from pipelines.labs.texts import percent, told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

PRESETS: Final = {
    "plain loop": "ladder-1-scalar",
    "vectors": "ladder-2-simd",
    "BLAS": "ladder-3-blas",
    "8 bit": "ladder-4-int8",
    "8 bit, batches": "ladder-5-batch",
}
"""Rungs of the ladder, each the preset of that name; lazy outputs have a lab of their own."""

TAKEN: Final = ("block", "dnn.product", "dnn.dtype")
FLOATS: Final = ("vectors", "BLAS")
PLAIN, EIGHT, BATCHED = "plain loop", "8 bit", "8 bit, batches"
ONE_SUM, UNROLLED, LIBRARY, INTEGERS = (
    "one sum",
    "8 at a time, 4 sums",
    "numpy, float32",
    "numpy, int32",
)
SHARE_OF_WORD: Final = 100
"""Frames on which scores are compared."""


class Given(Parameters, frozen=True, kw_only=True):
    """Which net, and for how long."""

    net: NetName = "base"
    frames: Annotated[
        int, setting("Frames", "Frames of real speech that a turn scores.", ge=1, le=1000)
    ] = 16
    seconds: Rounds = 16.0


class Found(Measured, frozen=True, kw_only=True):
    """Seconds of the whole net over `frames` by rung, of its output layer for one frame by loop; `same_best`: share of
    frames whose best senone is that of float32, by rung; `shape` of the output layer."""

    frames: int
    rungs: dict[str, list[float]]
    loops: dict[str, list[float]]
    same_best: dict[str, float]
    shape: tuple[int, int]


def measure(given: Given, desk: Desk) -> Found:
    """Rungs in turns, then loops over the output layer in turns."""
    from pipelines.config import Config, assign, get, presets
    from pipelines.labs._scoring import Scoring
    from pipelines.models import nets

    settings = {
        rung: {key: get(presets.load(name).config, key) for key in TAKEN}
        for rung, name in PRESETS.items()
    }
    scoring = Scoring(
        assign(Config(), {"model": "dnn", "dnn.net": given.net}),
        desk,
        frames=max(given.frames, SHARE_OF_WORD),
    )
    exact = scoring.scores(settings["vectors"]).argmax(axis=1)
    same = {
        rung: float((scoring.scores(some).argmax(axis=1) == exact).mean())
        for rung, some in settings.items()
    }
    arms = {rung: scoring.arm(some, given.frames) for rung, some in settings.items()}
    inner = dict.fromkeys(arms, 1)
    with desk.part(0.0, 0.7):
        rungs = desk.turns(arms, seconds=0.7 * given.seconds, inner=inner, what="rungs in turns")
    weight, _ = nets.load(nets.find(given.net)).head(0)
    with desk.part(0.7, 1.0):
        loops = desk.turns(loops_of(weight), seconds=0.3 * given.seconds, what="loops in turns")
    return Found(frames=given.frames, rungs=rungs, loops=loops, same_best=same, shape=weight.shape)


def loops_of(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> dict[str, Callable[[], object]]:
    """The output layer for one frame: weight f32 [outputs, inputs] times a drawn frame, into an array of its own.

    Integers in numpy stand for the trap: its product of them has no tuned kernel.
    """
    from pipelines.labs import _unrolled_kernels as kernels

    x = np.random.default_rng(0).random(weight.shape[1], np.float32)
    out = np.empty(len(weight), np.float32)
    whole, whole_x = (np.round(64 * v).astype(np.int32) for v in (weight, x))
    sums = np.empty(len(weight), np.int32)
    return {
        ONE_SUM: partial(kernels.plain, weight, x, out),
        UNROLLED: partial(kernels.unrolled, weight, x, out),
        LIBRARY: partial(np.matmul, weight, x, out=out),
        INTEGERS: partial(np.matmul, whole, whole_x, out=sums),
    }


def judge(found: Found) -> Finding:
    """Vectors beat the plain loop, and 8 bit the better of the two ways with floats."""
    best = min(FLOATS, key=lambda rung: figures.seconds(found.rungs[rung]))
    vectors = ratio(found.rungs[PLAIN], found.rungs["vectors"])
    eight = ratio(found.rungs[best], found.rungs[EIGHT])
    over_plain = ratio(found.rungs[PLAIN], found.rungs[BATCHED])
    over_float = ratio(found.rungs[best], found.rungs[BATCHED])
    unrolled = ratio(found.loops[ONE_SUM], found.loops[UNROLLED])
    verdict = all_of(at_least(vectors, 1.0), at_least(eight, 1.0))
    why = (
        f"Vectors are {told(vectors)} times as fast as the plain loop, 8 bit {told(eight)} times as fast as the best "
        f"floats, and with batches {told(over_plain)} times as fast as the plain loop; unrolling alone brings "
        f"{told(unrolled)} times. 8 bit keeps the best senone of {percent(found.same_best[EIGHT])} of the frames."
    )
    numbers: dict[str, float | None] = {
        "vectors_over_plain": value(vectors),
        "int8_over_best_float": value(eight),
        "int8_batched_over_plain": value(over_plain),
        "int8_batched_over_best_float": value(over_float),
        "unrolled_over_plain": value(unrolled),
        "int8_same_best": found.same_best[EIGHT],
        "numpy_integers_over_floats_time": value(
            ratio(found.loops[INTEGERS], found.loops[LIBRARY])
        ),
    }
    for rung, times in found.rungs.items():
        seconds = figures.seconds(times) / found.frames
        numbers[f"{rung.replace(', ', '_').replace(' ', '_')}_ms_per_frame"] = 1e3 * seconds
    return Finding(verdict, why, numbers)


def picture(found: Found) -> Chart:
    """Time per frame rung by rung; beside it the loops over the output layer alone."""
    rungs = [figures.between(t, lambda s: 1e3 * s / found.frames) for t in found.rungs.values()]
    loops = [figures.between(t, lambda s: 1e3 * s) for t in found.loops.values()]
    outputs, inputs = found.shape
    time = Axis("time per frame", "ms", log=True)
    return Chart(
        Axis("rung", categories=tuple(found.rungs)),
        time,
        (Bars("whole net", *figures.columns(rungs)),),
        title="the whole net",
        beside=(
            Chart(
                Axis("loop", categories=tuple(found.loops)),
                time,
                (Bars("output layer", *figures.columns(loops)),),
                title=f"output layer alone, {outputs} × {inputs}",
            ),
        ),
    )


LAB: Final = Lab(
    claim="SIMD makes a net faster on a processor, and 8-bit integers faster still.",
    source="note 1 (Vanhoucke, Senior & Mao 2011)",
    group="scoring",
    measured="The presets of the ladder on real speech, one thread: plain loop, vectors and BLAS frame by frame, "
    "8-bit integers, and these in batches of 16. Loops over the output layer alone show the gain of unrolling. "
    "numpy's product of integers is shown as a trap: it has no tuned kernel.",
    bound="It holds if vectors are faster than the plain loop and 8 bit faster than the best floats, as the "
    "claim says. The published factors are shown beside ours.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: 8-bit weights first; they save bytes and instructions at once, at next to no loss.",
        FAILS: "So: here plain code or floats are as good; look at what the compiler made of the loop.",
        UNDECIDED: "So: take more rounds (--set seconds=60), with nothing else running.",
    },
    said=(
        Said("unrolling by 8 with 4 sums (Vanhoucke 2011)", 1.26, "×", "unrolled_over_plain"),
        Said("8 bit over the best floats (Vanhoucke 2011)", 3.0, "×", "int8_over_best_float"),
        Said("8 bit in batches over the plain loop", 10.0, "×", "int8_batched_over_plain"),
        Said("8 bit in batches over the best floats", 4.0, "×", "int8_batched_over_best_float"),
    ),
)
