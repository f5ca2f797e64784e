"""Lab `minibatch`: what a minibatch of 1 to 8192 frames gives in speed, and what it costs in updates."""

import time
from functools import partial
from typing import Annotated

from msgspec.structs import replace

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import between, ci, columns, format_integer, quotient, ratio
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least, at_most

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 8192)
LOW, HIGH = 256, 1024
BASE_RATE = 0.2
"""At 256 examples; others are tried at this times √(b / 256), which keeps the noise of a step (Krizhevsky 2014)."""
RATES = (0.25, 1.0, 4.0)
HIDDEN = (256, 256, 256)
EXAMINED = 5000
"""Frames that the loss is taken of: as good as all that are taught unchanged, as the best of two sizes are close."""
PIECES = 12  # Of each training: its curve has as many points
INPUT_BYTES = 15 * 39 * 4
ACTIVATION_BYTES = 2 * 4 * (15 * 39 + sum(HIDDEN) + 3 * 128)


class Params(Parameters, frozen=True, kw_only=True):
    seconds: Annotated[
        float,
        setting(
            "Seconds each",
            "Time of one training; there are three rates for each of eight sizes.",
            unit="s",
            ge=0.0,
            le=600.0,
        ),
    ] = 4.0
    largest: Annotated[int, setting("Largest", "The largest minibatch.", unit="frames", ge=64, le=8192)] = 8192
    threads: Annotated[int, setting("Threads", "Threads that torch computes on.", ge=1, le=64)] = 1


class Run(shared.Training, frozen=True, kw_only=True):
    """One training, in pieces as its rounds, with minibatches of `size`."""

    size: int
    rate: float


class MinibatchResult(Measured, frozen=True, kw_only=True):
    """All trainings."""

    runs: list[Run]


def measure(params: Params, desk: Desk) -> MinibatchResult:
    import torch

    from pipelines.run.interleave import turns
    from pipelines.training.module import Layers
    from pipelines.training.parallel import lessons as labelled

    with desk.part(0.0, 0.1):
        lessons = labelled.read(shared.data(desk), "states", 7, 1, EXAMINED)
    cpu = torch.device("cpu")
    card = lessons.card(HIDDEN, 0)
    runs, nets = [], []
    for size in [s for s in SIZES if s <= min(params.largest, len(lessons))]:
        for factor in RATES:
            rate = BASE_RATE * factor * (size / 256) ** 0.5
            runs.append(Run(size=size, rate=rate))
            nets.append(Layers(card, 1, cpu))
    numbers = [0] * len(runs)

    def piece(arm: int) -> None:
        run, net, first = runs[arm], nets[arm], numbers[arm]
        end = time.monotonic() + params.seconds / PIECES
        while numbers[arm] == first or time.monotonic() < end:
            net.learn(*lessons.batch(numbers[arm], run.size))
            net.step(run.rate)
            numbers[arm] += 1
        run.examples.append((numbers[arm] - first) * run.size)

    for turn in turns(len(runs), 1, range(PIECES)):
        run = runs[turn.arm]
        done = (turn.round * len(runs) + turn.place) / (PIECES * len(runs))
        desk.progress(f"training, minibatches of {run.size}", 0.1 + 0.9 * done)
        run.seconds.append(desk.once(f"minibatch of {run.size}", partial(piece, turn.arm)))
        run.segments.append(lessons.losses(nets[turn.arm], cpu))
    return MinibatchResult(runs=runs)


def _last(run: Run) -> float:
    return run.losses[-1]


def best(result: MinibatchResult) -> dict[int, Run]:
    """Return for each size the training with the lowest final loss."""
    sizes = dict.fromkeys(run.size for run in result.runs)
    return {size: min((run for run in result.runs if run.size == size), key=_last) for size in sizes}


def judge(result: MinibatchResult) -> Finding:
    chosen = best(result)
    inside, outside = ([r for size, r in chosen.items() if (LOW <= size <= HIGH) == kind] for kind in (True, False))
    if not inside or not outside:
        return Finding(UNDECIDED, f"Of minibatches of {LOW} to {HIGH} and others only one kind was tried.", {})
    inner, outer = min(inside, key=_last), min(outside, key=_last)
    loss = quotient(inner.segments[-1], outer.segments[-1])
    rate = {size: sum(run.examples) / sum(run.seconds) for size, run in chosen.items()}
    smallest, largest = min(rate), max(rate)
    badly = ratio(chosen[smallest].per_example, inner.per_example)
    verdict = all_of(at_most(loss, 1.0), at_least(badly, 1.0))
    winner = min(inner, outer, key=_last)
    why = (
        f"After {sum(winner.seconds):.3g} s of training each, the best minibatch of {LOW} to {HIGH} ({inner.size}) has "
        f"{ci(loss)} times the loss of the best other ({outer.size}); "
        f"{winner.size} frames run at {format_integer(rate[winner.size])} a second, "
        f"{smallest} at {format_integer(rate[smallest])}, {largest} at {format_integer(rate[largest])}."
    )
    figures: dict[str, float | None] = {"best_minibatch": float(winner.size), "loss_usual_over_other": loss.ratio}
    figures |= {f"frames_per_s_at_{size}": value for size, value in rate.items()}
    figures |= {f"loss_at_{size}": run.losses[-1] for size, run in chosen.items()}
    return Finding(verdict, why, figures)


def picture(result: MinibatchResult) -> Chart:
    chosen = best(result)
    named = {str(size): run for size, run in chosen.items()}
    speeds = columns([between(run.per_example, lambda s: 1 / s) for run in chosen.values()])
    speed = Chart(
        Axis("minibatch", log=True),
        Axis("frames", "1/s", log=True),
        (Line("speed", tuple(map(float, chosen)), *speeds), Mark("usual", LOW, on="x", until=HIGH)),
        title="Speed",
    )
    by_examples = shared.losses(named, "examples", Axis("examples", log=True))
    return replace(shared.losses(named, "seconds", Axis("training", "s")), beside=(by_examples, speed))


def bytes_needed(params: Params) -> int:
    nets = len(SIZES) * len(RATES) * 2 * 4 * shared.weights([15 * 39, *HIDDEN, 128])
    return shared.PROCESS_BYTES + nets + params.largest * (2 * INPUT_BYTES + ACTIVATION_BYTES)


LAB = Lab(
    claim="A minibatch is usually 256 to 1024 frames: smaller ones use the machine badly, larger ones need "
    "more passes.",
    source="note 1 (Yu & Deng, ch. 7)",
    group="training",
    measured="A net of 3 × 256 on the shipped voices with minibatches of 1 to 8192, the same time for each, in turns, "
    "each with the best of three learning rates. The result is the loss on the training frames; speed alone would "
    "mislead. The voices are a minute of speech, changed at random; longer trainings would favour larger minibatches.",
    bound="It holds if the best minibatch within the claim's 256 to 1024 ends with a lower loss than the best "
    "outside, after the same time, and if the smallest one takes longer per frame. The loss is measured on the "
    "training frames: the claim is about descent, and a net learns a minute of speech by heart long before other "
    "sentences tell anything.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: train with 256 to 1024 frames a step, and with more only on more devices.",
        FAILS: "So: choose the minibatch by loss after a given time on your machine, not by frames per second: "
        "one core is busy with few frames already, a GPU only with hundreds.",
        UNDECIDED: "So: both do equally well here; take the size that your device computes fastest.",
    },
    bytes_needed=bytes_needed,
)
