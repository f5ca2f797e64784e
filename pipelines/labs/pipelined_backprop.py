"""Lab `pipelined-backprop`: the layers of a net on several workers, each with another minibatch, gradients late."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Bars, Block, Chart, Gantt, Line, Mark
from pipelines.labs.declaration import Lab, Measured, PublishedValue, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import between, ci, columns, quotient, ratio, ratio_columns, scaled, seconds, value
from pipelines.labs.sweep import Work, one_size
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, all_of, at_least, at_most
from pipelines.training.parallel.balance import Stage, speed_up, split
from profiler.machine.describe import usable_cores

if TYPE_CHECKING:
    import torch

    from pipelines.training.module import Layers
    from pipelines.training.parallel.lessons import Lessons

HIDDEN, BOTTLENECK = (1024,) * 6, 256
"""The shape of the shipped net `large`: one device alone is slow with it, and its layers can be split evenly."""
LAYERS = len(HIDDEN) + 2
SAID_2, SAID_4 = 1.9, 3.3  # Chen, Eversole, Li, Yu & Seide 2012, on 2 and 4 GPUs, without loss
RATE = 0.02  # At 128 examples; at four times as much, late gradients end in no numbers
SIMULATED = (2, 3, 4)
SIMULATED_BATCHES = 200
SHOWN_BATCHES = 8  # Of the recorded spans, minibatches in the picture: the pipe filling and full


class Params(shared.Workers, frozen=True, kw_only=True):
    most: Annotated[int, setting("Workers", "The longest pipeline that is run.", ge=2, le=LAYERS)] = 4
    batch: Annotated[int, setting("Minibatch", "Examples of a minibatch.", unit="frames", ge=1, le=4096)] = 128
    batches: Annotated[int, setting("Minibatches", "Minibatches in a round of each pipeline.", ge=8, le=100_000)] = 40
    rounds: Annotated[int, setting("Rounds", "Rounds in turns; each is one time of each pipeline.", ge=3, le=100)] = 14
    cost_seconds: Annotated[
        float, setting("Costs", "Time for measuring what each layer costs.", unit="s", ge=0.0, le=60.0)
    ] = 3.0


class PipelinedBackpropResult(Measured, frozen=True, kw_only=True):
    """Costs of layers (seconds of a minibatch by round, forward and backward), splits, curves, spans of the last round.

    `curves`: one worker first, the longest pipeline last. `devices`: GPUs, or cores where there are none.
    """

    batch: int
    forward: list[list[float]]
    backward: list[list[float]]
    splits: dict[int, list[int]]
    curves: list[shared.Curve]
    spans: list[shared.Block]
    devices: int


def measure(params: Params, desk: Desk) -> PipelinedBackpropResult:
    import torch

    from pipelines.training.parallel import lessons as labelled
    from pipelines.training.parallel.job import Job, Task

    with desk.part(0.0, 0.2):
        lessons = labelled.read(shared.data(desk), "senones", 7, 1)
        forward, backward = layer_costs(desk, lessons, params)
    costs = [seconds(f) + seconds(b) for f, b in zip(forward, backward, strict=True)]
    sizes = sorted({1, 2, params.most})
    splits = {k: list(split(costs, k)) for k in sorted({*sizes, *SIMULATED})}
    task = Task(name="one worker", method="pipelined", workers=1, batch=params.batch, batches=params.batches, rate=RATE)
    names = {k: "one worker" if k == 1 else f"{k} workers" for k in sizes}
    tasks = [replace(task, name=name, workers=k, split=tuple(splits[k])) for k, name in names.items()]
    job = Job(tasks=tasks, rounds=params.rounds, outputs="senones", widths=HIDDEN, bottleneck=BOTTLENECK)
    with desk.part(0.2, 1.0):
        curves, spans = shared.trained(desk, job, params)
    return PipelinedBackpropResult(
        batch=params.batch,
        forward=forward,
        backward=backward,
        splits=splits,
        curves=curves,
        spans=[b for b in spans[-1] if b.batch < spans[-1][0].batch + SHOWN_BATCHES],
        devices=params.machines * (torch.cuda.device_count() or usable_cores() or 1),
    )


def layer_costs(desk: Desk, lessons: Lessons, params: Params) -> tuple[list[list[float]], list[list[float]]]:
    """Seconds of a minibatch forward and backward (with the update) in each layer, by round; the last has the loss."""
    import torch

    from pipelines.training.module import Layers

    cpu = torch.device("cpu")
    card = lessons.card(HIDDEN, BOTTLENECK)
    heard, classes = lessons.batch(0, min(params.batch, len(lessons)))
    passes: dict[str, Work] = {}
    for number in range(LAYERS):
        layer = Layers(card, 1, cpu, number, number + 1)
        x = heard if number == 0 else torch.rand(len(heard), layer.widths[0])
        both = _Passes(layer, x, classes if number == LAYERS - 1 else None)
        passes[f"forward, layer {number + 1}"] = both.forward
        passes[f"backward, layer {number + 1}"] = both.backward
    sweep = one_size(passes, len(heard), "costs of the layers", calls=1)
    found = sweep.run(desk, params.cost_seconds)
    rounds = [found.rounds(name) for name in found.variants]
    return rounds[::2], rounds[1::2]


class _Passes:
    """One layer with what it needs for either pass again and again."""

    def __init__(self, layer: Layers, x: torch.Tensor, classes: torch.Tensor | None) -> None:
        self._layer, self._x, self._classes = layer, x, classes
        self.forward()

    def forward(self) -> None:
        import torch

        x = self._x if self._layer.first == 0 else self._x.detach().requires_grad_()
        self._out = self._layer(x, stale=True)
        if self._classes is not None:
            self._out = torch.nn.functional.cross_entropy(self._out, self._classes)

    def backward(self) -> None:
        import torch

        torch.autograd.backward(self._out, torch.ones_like(self._out), retain_graph=True)
        self._layer.step(0.0)


def simulated(result: PipelinedBackpropResult, workers: int) -> float:
    """The speed-up of `workers` devices that each compute as one core here and do not wait for transfers."""
    forward, backward = (list(map(seconds, times)) for times in (result.forward, result.backward))
    bounds = pairwise([*result.splits[workers], LAYERS])
    return speed_up([Stage(sum(forward[a:b]), sum(backward[a:b])) for a, b in bounds], SIMULATED_BATCHES)


def judge(result: PipelinedBackpropResult) -> Finding:
    alone, pair, *_ = result.curves
    longest = result.curves[-1]
    speed = ratio(alone.per_example, pair.per_example)
    speed_of_most = ratio(alone.per_example, longest.per_example)
    loss = quotient(longest.segments[-1], alone.segments[-1])
    delays = [max(each.delays, key=each.delays.__getitem__) for each in longest.by_worker]
    four = longest.workers == 4 <= result.devices
    verdict = all_of(
        at_least(speed, SAID_2), at_most(loss, shared.NO_LOSS), at_least(speed_of_most, SAID_4) if four else IMPOSSIBLE
    )
    model = {k: simulated(result, k) for k in SIMULATED}
    what = f"{result.devices} core{'s' if result.devices > 1 else ''}"
    why = (
        f"On {what}, 2 workers are {ci(speed)} times as fast as one, {longest.workers} are {ci(speed_of_most)} times; "
        f"with gradients {', '.join(map(str, delays))} updates late the loss is {shared.loss_text(loss)} that without "
        f"delay. Devices that compute as one core here and transfer in no time would give {model[2]:.3g}× on 2 and "
        f"{model[4]:.3g}× on 4 (simulated from the layers' times)."
    )
    costs = [seconds(f) + seconds(b) for f, b in zip(result.forward, result.backward, strict=True)]
    figures: dict[str, float | None] = {
        "speed_up_2": value(speed),
        "speed_up_most": value(speed_of_most),
        "efficiency_2": value(scaled(speed, 0.5)),
        "loss_over_plain": loss.ratio,
        "output_layer_share": costs[-1] / sum(costs),
        "delay_of_first": float(delays[0]),
    }
    figures |= {f"simulated_speed_up_{k}": each for k, each in model.items()}
    return Finding(verdict, why, figures)


def picture(result: PipelinedBackpropResult) -> Chart:
    rows = max((block.worker for block in result.spans), default=0) + 1
    names = tuple(f"worker {n + 1}" for n in range(rows))
    blocks = tuple(
        Block(b.worker, b.begin, b.end, b.kind, str(b.batch) if b.kind == "forward" else "")
        for b in result.spans
        if b.kind in ("forward", "backward", "wait")
    )
    alone, *others = result.curves
    speeds = [ratio(alone.per_example, curve.per_example) for curve in others]
    measured = Line("measured", tuple(float(curve.workers) for curve in others), *ratio_columns(speeds))
    modelled = tuple(simulated(result, k) for k in SIMULATED)
    model = Line("simulated, a device each", tuple(map(float, SIMULATED)), modelled, dashed=True)
    published = Line("Chen 2012, GPUs", (2.0, 4.0), (SAID_2, SAID_4), joined=False)
    speed = (measured, model, published, Mark("one worker", 1.0))
    layers = Axis("layer", categories=(*(f"{n + 1}" for n in range(LAYERS - 1)), "output"))
    costs = tuple(
        Bars(name, *columns([between(t, lambda s: 1e3 * s) for t in times]))
        for name, times in (("forward", result.forward), ("backward", result.backward))
    )
    return Chart(
        Axis("time", "s"),
        Axis("worker", categories=names),
        (Gantt(blocks),),
        title=f"{SHOWN_BATCHES} minibatches, as recorded",
        beside=(
            Chart(Axis("workers"), Axis("speed-up", "×", low=0.0), speed, title="Speed-up"),
            Chart(layers, Axis("time of a minibatch", "ms"), costs, title="What is balanced"),
            shared.losses({curve.name: curve for curve in result.curves}, "examples", Axis("examples")),
        ),
    )


def bytes_needed(params: Params) -> int:
    shape = [15 * 39, *HIDDEN, BOTTLENECK, 5126]
    in_flight = (2 * params.most) * params.batch * 4 * 3 * sum(shape)
    return shared.processes_bytes(params.most + 1, shared.weights(shape)) + in_flight


LAB = Lab(
    claim="A net split by layers over GPUs trains as a pipeline, nearly as many times as fast (1.9× on 2, 3.3× "
    "on 4), and late gradients cost nothing.",
    source="note 1 (Chen, Eversole, Li, Yu & Seide 2012)",
    group="training",
    measured="The net `large` (6 × 1024, 5 126 outputs) on the shipped voices. Its layers are split over workers "
    "of one thread each by their measured costs; every pipeline sees the same minibatches, in turns, and "
    "gradients really are late. If there are fewer devices than workers, they share them; then a simulation from "
    "the measured times of the layers says what one device per worker would give.",
    bound="It holds if two workers are at least 1.9 times as fast as one, four with a device each 3.3 times (Chen "
    "2012), and the loss ends at most a twentieth above that without delay. Published is no loss; the twentieth is "
    "ours. The net is ours, too: the smaller shipped net has half of its weights in the output layer, so that no split "
    "into more than two could be even. The loss is measured on the training frames, as in `minibatch`.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: split a net that one device computes too slowly by its layers, balanced by measured cost.",
        PART: "So: split a net that one device computes too slowly by its layers, and try four where there are four "
        "devices.",
        FAILS: "So: the most expensive layer, here the output layer, sets the pace of the pipeline, and cores "
        "share what devices would not; split it, or train data parallel.",
        UNDECIDED: "So: give it more rounds (--set rounds=40) with nothing else running.",
    },
    published=(
        PublishedValue("speed-up on 2", SAID_2, "×", "speed_up_2"),
        PublishedValue("speed-up on 4, simulated here", SAID_4, "×", "simulated_speed_up_4"),
        PublishedValue("delay of the first of 4 workers", 6, "updates", "delay_of_first"),
    ),
    bytes_needed=bytes_needed,
)
