"""What the labs of training at scale share: their workers started and followed, curves collected, losses compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from pipelines.labs.chart import Axis, Chart, Line
from pipelines.labs.declaration import Parameters, setting
from pipelines.labs.desk import Desk
from pipelines.labs.figures import Ratio, ci
from pipelines.training.parallel.job import DIVERGED, Job, Piece, Report, Task

NO_LOSS: Final = 1.05  # Up to this ratio of two cross-entropies nobody calls one of them worse: a twentieth
PROCESS_BYTES: Final = 400 << 20  # Memory of a worker apart from its net: Python, torch, and the labelled frames
GROUPS: Final = {"send": "transfer", "wait": "idle"}  # Of a session's stages; what is not here computes


class Workers(Parameters, frozen=True, kw_only=True):
    """Where workers run."""

    machines: Annotated[
        int,
        setting(
            "Machines",
            "Machines that share the workers evenly. On number I of M others type: torchrun --nnodes=M --node-rank=I "
            "--master-addr=HOST --master-port=PORT --nproc-per-node=N -m pipelines.training.parallel.",
            ge=1,
            le=64,
        ),
    ] = 1
    address: Annotated[
        str, setting("Address", "HOST:PORT of this machine, as the others reach it; needed for several machines only.")
    ] = ""


class Delayed(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one worker: `seconds` by kind of work; `delays`: how often each number of updates from copy to use."""

    seconds: dict[str, float]
    delays: dict[int, int]


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """A training by rounds, each alone. `segments`: mean cross-entropy of each segment examined afterwards, nats."""

    seconds: list[float] = []
    examples: list[int] = []
    segments: list[list[float]] = []

    @property
    def losses(self) -> list[float]:
        """Mean loss after each round, nats."""
        return [float(np.mean(each)) for each in self.segments]

    @property
    def per_example(self) -> list[float]:
        return [s / n for n, s in zip(self.examples, self.seconds, strict=True)]


class Curve(Training, frozen=True, kw_only=True):
    """A method of training with workers, by rounds, `updates` and `bytes` (sent and received by all) of each alone."""

    name: str
    workers: int
    updates: list[int] = []
    bytes: list[int] = []
    residuals: list[tuple[float, float]] = []
    by_worker: list[Delayed] = []


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A span of a worker, in seconds since the piece began."""

    worker: int
    kind: str
    begin: float
    end: float
    batch: int


def synchronous(like: Task) -> Task:
    """The same training by workers that share each minibatch of as many examples as all of theirs."""
    n = like.workers
    return msgspec.structs.replace(
        like,
        name="synchronous",
        method="synchronous",
        batch=n * like.batch,
        batches=like.batches // n,
        rate=n * like.rate,
    )


def losses(curves: Mapping[str, Training], spent: Literal["seconds", "examples", "bytes"], x: Axis) -> Chart:
    """The loss of each training over what was spent on it until then."""
    lines = []
    for name, curve in curves.items():
        y = tuple(loss if loss < DIVERGED else None for loss in curve.losses)
        lines.append(Line(name, tuple(np.cumsum(getattr(curve, spent)).tolist()), y))
    return Chart(x, Axis("loss", "nat"), tuple(lines), title=f"Loss by {'time' if spent == 'seconds' else spent}")


def data(desk: Desk) -> Path:
    """The folder of the shipped voices' features and labels; made the first time."""
    from pipelines.training.corpus import voices

    return voices.prepare(desk.progress)


def trained(desk: Desk, job: Job, workers: Workers) -> tuple[list[Curve], list[list[Block]]]:
    """Do `job` on the shipped voices; the curve of each task, and the spans of its last round."""
    from pipelines.training.parallel import launch
    from pipelines.training.parallel.worker import widest

    with desk.part(0.0, 0.2):
        job = msgspec.structs.replace(job, data=str(data(desk)))
    pieces: list[list[Piece]] = [[] for _ in job.tasks]
    desk.progress("starting the workers", None)
    machines = launch.Machines(workers.machines, workers.address)
    coming = launch.pieces(job, widest(job.tasks), desk.stopping, machines)
    # However this ends, the workers end before it.
    with desk.part(0.2, 1.0), desk.step(), closing(coming):
        for piece in coming:
            pieces[piece.task].append(piece)
            share = sum(map(len, pieces)) / (len(job.tasks) * job.rounds)
            loss = float(np.mean(piece.segments))
            desk.progress(f"training, {job.tasks[piece.task].name}: loss {loss:.3f}", share)
    last = [of_task[-1].reports for of_task in pieces]
    for task, reports in zip(job.tasks, last, strict=True):
        for report in reports:
            groups = {f"train.{span.kind}": GROUPS.get(span.kind, "scoring") for span in report.spans}
            spans = [(f"train.{span.kind}", span.begin, span.end) for span in report.spans]
            desk.hand_over(f"{task.name}, worker {report.rank + 1}", spans, groups)
    return [_curve(task, of_task) for task, of_task in zip(job.tasks, pieces, strict=True)], list(map(_blocks, last))


def _curve(task: Task, pieces: Sequence[Piece]) -> Curve:
    return Curve(
        name=task.name,
        workers=task.workers,
        seconds=[piece.seconds for piece in pieces],
        examples=[piece.examples for piece in pieces],
        updates=[piece.updates for piece in pieces],
        bytes=[sum(report.bytes for report in piece.reports) for piece in pieces],
        segments=[piece.segments for piece in pieces],
        residuals=[pair for piece in pieces for pair in piece.residuals],
        by_worker=[_summed(reports) for reports in zip(*(piece.reports for piece in pieces), strict=True)],
    )


def _summed(reports: Sequence[Report]) -> Delayed:
    ns, delays = Counter[str](), Counter[int]()
    for report in reports:
        ns.update(report.ns)
        delays.update(report.delays)
    return Delayed(seconds={kind: each / 1e9 for kind, each in ns.items()}, delays=dict(delays))


def _blocks(reports: Sequence[Report]) -> list[Block]:
    """Each worker's spans since the first of its machine began: clocks of machines differ by anything."""
    begin = min((report.spans[0].begin for report in reports if report.spans), default=0)
    return [
        Block(report.rank, span.kind, (span.begin - begin) / 1e9, (span.end - begin) / 1e9, span.batch)
        for report in reports
        for span in report.spans
    ]


def mean_delay(worker: Delayed) -> float:
    return sum(d * n for d, n in worker.delays.items()) / max(sum(worker.delays.values()), 1)


def loss_text(ratio: Ratio) -> str:
    return "that of a net that diverged, against" if ratio.ratio > 100 else f"{ci(ratio)} times"


def processes_bytes(workers: int, weights: int) -> int:
    """Memory of `workers` processes with a net each: weights, gradient, two vectors to send, and the process."""
    return workers * (PROCESS_BYTES + 4 * 4 * weights)


def weights(widths: Sequence[int]) -> int:
    return sum((before + 1) * after for before, after in pairwise(widths))
