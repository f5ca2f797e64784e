"""The ladder of a net on one core: plain loop, unrolled, vectors, library, 8-bit integers, batches (note 1)."""

from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart
from pipelines.labs.declaration import Lab, NetName, Parameters, PublishedValue, Seconds, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import ci, percent, value
from pipelines.labs.sweep import SweepResult, Work, milliseconds, one_size, run_all
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, all_of, at_least
from profiler.arrays import F32

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
ONE_SUM, UNROLLED, LIBRARY, INTEGERS = ("one sum", "8 at a time, 4 sums", "numpy, float32", "numpy, int32")
COMPARED: Final = 100  # Frames on which scores are compared


class Params(Parameters, frozen=True, kw_only=True):
    net: NetName = "base"
    frames: Annotated[int, setting("Frames", "Frames of real speech that a turn scores.", ge=1, le=1000)] = 16
    seconds: Seconds = 16.0


def measure(params: Params, desk: Desk) -> SweepResult:
    """Rungs in turns, then loops. `same_best`: share of frames with the best senone of float32, by rung."""
    from pipelines.config import Config, assign, get, presets
    from pipelines.labs._scoring import Scoring
    from pipelines.models import nets

    settings = {rung: {key: get(presets.load(name).config, key) for key in TAKEN} for rung, name in PRESETS.items()}
    config = assign(Config(), {"model": "dnn", "dnn.net": params.net})
    scoring = Scoring(config, desk, frames=max(params.frames, COMPARED))
    exact = scoring.scores(settings["vectors"]).argmax(axis=1)
    same = {rung: float((scoring.scores(some).argmax(axis=1) == exact).mean()) for rung, some in settings.items()}
    weight, _ = nets.load(nets.find(params.net)).head(0)
    sweeps = [
        scoring.sweep(settings, "rungs in turns", params.frames, share=0.7),
        one_size(loops_of(weight), 1, "loops in turns", share=0.3),
    ]
    whole_net, loops = run_all(desk, params.seconds, sweeps)
    return SweepResult(
        timings=whole_net,
        more={"loops": loops},
        counts={"outputs": weight.shape[0], "inputs": weight.shape[1]},
        by_variant={"same_best": same},
    )


def loops_of(weight: F32) -> dict[str, Work]:
    """The output layer for one frame: weight f32 [outputs, inputs] times a drawn frame, into an array of its own.

    Integers in numpy stand for the trap: its product of them has no tuned kernel.
    """
    from pipelines.labs import _kernels as kernels

    x: F32 = np.random.default_rng(0).random((weight.shape[1],), np.float32)
    out = np.empty(len(weight), np.float32)
    whole, whole_x = (np.round(64 * v).astype(np.int32) for v in (weight, x))
    sums = np.empty(len(weight), np.int32)
    return {
        ONE_SUM: partial(kernels.plain, weight, x, out),
        UNROLLED: partial(kernels.unrolled, weight, x, out),
        LIBRARY: partial(np.matmul, weight, x, out=out),
        INTEGERS: partial(np.matmul, whole, whole_x, out=sums),
    }


def judge(result: SweepResult) -> Finding:
    rungs, loops = result.timings, result.more["loops"]
    best, _ = rungs.fastest(rungs.cells(FLOATS))
    vectors, eight = rungs.ratio(PLAIN, "vectors"), rungs.ratio(best, EIGHT)
    over_plain = rungs.ratio(PLAIN, BATCHED)
    unrolled = loops.ratio(ONE_SUM, UNROLLED)
    same_best = result.by_variant["same_best"][EIGHT]
    why = (
        f"Vectors are {ci(vectors)} times as fast as the plain loop, 8 bit {ci(eight)} times as fast as the best "
        f"floats, and with batches {ci(over_plain)} times as fast as the plain loop; unrolling alone brings "
        f"{ci(unrolled)} times. 8 bit keeps the best senone of {percent(same_best)} of the frames."
    )
    numbers: dict[str, float | None] = {
        "vectors_over_plain": value(vectors),
        "int8_over_best_float": value(eight),
        "int8_batched_over_plain": value(over_plain),
        "int8_batched_over_best_float": value(rungs.ratio(best, BATCHED)),
        "unrolled_over_plain": value(unrolled),
        "int8_same_best": same_best,
        "numpy_integers_over_floats_time": value(loops.ratio(INTEGERS, LIBRARY)),
    }
    numbers |= rungs.per_unit().table("{variant}_ms_per_frame", milliseconds)
    return Finding(all_of(at_least(vectors, 1.0), at_least(eight, 1.0)), why, numbers)


def picture(result: SweepResult) -> Chart:
    rungs, loops = result.timings.per_unit(), result.more["loops"]
    shape = f"{result.counts['outputs']:.0f} × {result.counts['inputs']:.0f}"
    time = Axis("time per frame", "ms", log=True)
    whole = rungs.bars("whole net", rungs.cells(), milliseconds)
    layer = loops.bars("output layer", loops.cells(), milliseconds)
    alone = Axis("loop", categories=tuple(loops.variants))
    return Chart(
        Axis("rung", categories=tuple(rungs.variants)),
        time,
        (whole,),
        title="the whole net",
        beside=(Chart(alone, time, (layer,), title=f"output layer alone, {shape}"),),
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
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: 8-bit weights first; they save bytes and instructions at once, at next to no loss.",
        FAILS: "So: here plain code or floats are as good; look at what the compiler made of the loop.",
    },
    published=(
        PublishedValue("unrolling by 8 with 4 sums (Vanhoucke 2011)", 1.26, "×", "unrolled_over_plain"),
        PublishedValue("8 bit over the best floats (Vanhoucke 2011)", 3.0, "×", "int8_over_best_float"),
        PublishedValue("8 bit in batches over the plain loop", 10.0, "×", "int8_batched_over_plain"),
        PublishedValue("8 bit in batches over the best floats", 4.0, "×", "int8_batched_over_best_float"),
    ),
)
