"""Lab `transfer-ledger`: every transfer of a training run, with its bytes: is a GPU like a REST service?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from pipelines.labs import _training as shared
from pipelines.labs.chart import Axis, Bars, Chart, Line
from pipelines.labs.declaration import Lab, Measured, Parameters, PublishedValue, setting
from pipelines.labs.desk import NONE, Desk, opened
from pipelines.labs.figures import format_integer, percent
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, Verdict, all_of

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.device import Device

HIDDEN, BOTTLENECK, OUTPUTS = (512, 512, 512, 512), 256, 5126  # The shape of the shipped net `base`
RATE = 0.1
KINDS = ("weights there", "batch there", "loss back", "weights back")
HEAVY = ("weights there", "weights back")
FRAMES = 2000 * 360_000
"""Of 2 000 hours of speech, as Chen et al. 2012 trained on: one pass over them is what requests are counted for."""


class Params(Parameters, frozen=True, kw_only=True):
    batch: Annotated[int, setting("Minibatch", "Examples of a minibatch.", unit="frames", ge=1, le=8192)] = 256
    steps: Annotated[int, setting("Steps", "Minibatches that are trained on.", ge=2, le=100_000)] = 120


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """The transfers of one kind: bytes of each, and the seconds that the device took for each."""

    bytes: list[int]
    seconds: list[float]


class TransferLedgerResult(Measured, frozen=True, kw_only=True):
    """All transfers by kind; `device`: who the other side was; `step_seconds`: computing of each step."""

    device: str
    real: bool
    batch: int
    kinds: dict[str, Kind]
    step_seconds: list[float]


class _Book:
    """Copies on a device's stream, timed by its own events, with their bytes."""

    def __init__(self, device: Device, desk: Desk) -> None:
        self._device, self._desk = device, desk
        self.kinds = {name: Kind(bytes=[], seconds=[]) for name in KINDS}

    def copy(self, kind: str, target: Tensor, source: Tensor, step: int) -> None:
        """Copy and wait."""
        from pipelines.device import COMPUTE

        desk, device = self._desk, self._device
        begin = desk.recorder.clock()
        before = device.record(COMPUTE)
        device.run(COMPUTE, lambda: target.copy_(source))
        after = device.record(COMPUTE)
        device.wait(after)
        self.kinds[kind].bytes.append(source.numel() * source.element_size())
        self.kinds[kind].seconds.append((device.time_ns(after) - device.time_ns(before)) / 1e9)
        stage = desk.stage(f"transfer.{kind}", "transfer")
        desk.lane.put(stage, begin, desk.recorder.clock(), step, 1)


def measure(params: Params, desk: Desk) -> TransferLedgerResult:
    """Train with everything that crosses in a ledger; the processor's torch stands in for an accelerator."""
    import torch

    from pipelines.device import COMPUTE
    from pipelines.training.module import Layers
    from pipelines.training.parallel import lessons as labelled

    with desk.part(0.0, 0.3):
        lessons = labelled.read(shared.data(desk), "senones", 7, 1)
    device, real = opened(desk)
    book = _Book(device, desk)
    where = torch.device(device.where)
    net = Layers(lessons.card(HIDDEN, BOTTLENECK), 1, where)
    on_host = torch.empty(net.vector.shape)
    on_host.copy_(net.vector)  # which waits until the net is made
    training = desk.stage("train.step", "scoring")
    loss_there, loss_here = torch.zeros(1, device=where), torch.zeros(1)
    steps: list[float] = []
    clock = desk.recorder.clock

    def learn(x: Tensor, y: Tensor) -> None:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        torch.autograd.backward(loss)
        net.step(RATE)
        loss_there.copy_(loss.detach())

    with desk.step() as number:
        book.copy("weights there", net.vector, on_host, number)
    for step in range(params.steps):
        desk.progress("training, each transfer in the ledger", 0.3 + 0.7 * step / params.steps)
        x, y = lessons.batch(step, params.batch)
        x_there, y_there = torch.empty_like(x, device=where), torch.empty_like(y, device=where)
        with desk.step() as number:
            book.copy("batch there", x_there, x, number)
            book.copy("batch there", y_there, y, number)
            begin = clock()
            device.run(COMPUTE, partial(learn, x_there, y_there))
            device.wait(device.mark(COMPUTE))
            end = clock()
            desk.lane.put(training, begin, end, number, 1)
            steps.append((end - begin) / 1e9)
            book.copy("loss back", loss_here, loss_there, number)
    with desk.step() as number:
        book.copy("weights back", on_host, net.vector, number)
    return TransferLedgerResult(device=device.name, real=real, batch=params.batch, kinds=book.kinds, step_seconds=steps)


def judge(result: TransferLedgerResult) -> Finding:
    heavy = [size for kind in HEAVY for size in result.kinds[kind].bytes]
    light = [size for name, kind in result.kinds.items() if name not in HEAVY for size in kind.bytes]
    weight = min(heavy) / max(light)
    in_sum = sum(light) / sum(heavy)
    requests = FRAMES / result.batch * len(light) / max(len(result.step_seconds), 1)
    crossing = sum(sum(kind.seconds) for kind in result.kinds.values())
    share = crossing / (crossing + sum(result.step_seconds))
    ledger: Verdict = HOLDS if len(heavy) == 2 and weight >= 10.0 else FAILS
    cost: Verdict = HOLDS if share >= 0.5 else FAILS
    why = (
        f"{len(heavy)} requests of {np.mean(heavy) / 1e6:.3g} MB each carry the weights, "
        f"{format_integer(len(light))} others at most {max(light) / 1e6:.3g} MB, {weight:.3g} times less; "
        f"but in sum the light ones move {in_sum:.3g} times the bytes of the heavy ones after "
        f"{len(result.step_seconds)} steps, and crossing takes {percent(share, 1)} of the time. "
        f"One pass over 2 000 hours would be {format_integer(requests)} light requests."
    )
    if not result.real:
        cost = IMPOSSIBLE
        why += (
            f" {NONE}: torch on the processor stood in, which has the same ledger, but what sending to a device "
            "costs could not be tried."
        )
    figures: dict[str, float | None] = {
        "heavy_requests": float(len(heavy)),
        "light_requests": float(len(light)),
        "light_requests_in_2000_h": requests,
        "heavy_bytes": float(np.mean(heavy)),
        "light_bytes_most": float(max(light)),
        "heavy_over_light": weight,
        "light_bytes_over_heavy_in_sum": in_sum,
        "transfer_share_of_time": share,
    }
    return Finding(all_of(ledger, cost), why, figures)


def picture(result: TransferLedgerResult) -> Chart:
    kinds = [result.kinds[name] for name in KINDS]
    one = tuple(float(np.mean(kind.bytes)) if kind.bytes else None for kind in kinds)
    every = tuple(float(sum(kind.bytes)) for kind in kinds)
    steps = tuple(float(n + 1) for n in range(len(result.step_seconds)))
    there = np.array(result.kinds["batch there"].bytes).reshape(len(steps), -1).sum(1)
    light = np.cumsum(there + np.array(result.kinds["loss back"].bytes))
    heavy = float(result.kinds["weights there"].bytes[0])
    sums = (Line("batches and losses", steps, tuple(light.tolist())), Line("weights", steps, (heavy,) * len(steps)))
    return Chart(
        Axis("request", categories=KINDS),
        Axis("bytes", "B", log=True),
        (Bars("one request", one), Bars("all of this run", every)),
        title="The ledger",
        beside=(Chart(Axis("step"), Axis("bytes since the beginning", "B"), sums, title="What adds up"),),
    )


def bytes_needed(params: Params) -> int:
    shape = [15 * 39, *HIDDEN, BOTTLENECK, OUTPUTS]
    return shared.PROCESS_BYTES + 4 * 4 * shared.weights(shape) + params.batch * 4 * 3 * sum(shape)


LAB = Lab(
    claim="A GPU is like a REST service: two heavy requests, weights there and back, and millions of light "
    "ones between; the cost is sending.",
    source="note 2",
    group="device",
    wants_device=True,
    measured="A training of the net `base` on the shipped voices, with a record of every transfer: weights once, "
    "a batch and its classes each step, the loss back, weights back at the end. Bytes and requests are the same "
    "on every device; times are those of the accelerator, or of torch on the CPU without one.",
    bound="It holds if weights cross twice and each time carry at least ten times the bytes of any other "
    "request, and if sending takes more than half of the time. The claim gives no number; ten and half are ours.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: keep weights and whatever is used again on the device; what adds up are the batches, so "
        "send them small (float16 features, context made there), early and from page-locked memory.",
        PART: "So: keep weights and whatever is used again on the device, and measure there what the batches cost.",
        FAILS: "So: here sending is not what costs, or batches are as heavy as the weights: look at what computes "
        "first, and send less per frame before you send weights less often.",
        UNDECIDED: "So: train longer (--set steps=1000).",
    },
    published=(PublishedValue("heavy requests", 2.0, "", "heavy_requests"),),
    bytes_needed=bytes_needed,
)
