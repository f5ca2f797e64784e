"""A worker's life: among the others from the first barrier on, a piece of each task in turn, reports to the first."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import torch

from pipelines.run.interleave import turns
from pipelines.training.parallel.job import Job, Method, Piece, Report, Task
from pipelines.training.parallel.lessons import Lessons
from pipelines.training.parallel.method import Asynchronous, Consensus, Pipelined, Setting, Synchronous, Training
from pipelines.training.parallel.peers import Diary, Peers
from profiler.clock import now_ns

METHODS: Final[dict[Method, Callable[[Task, Setting], Training]]] = {
    "synchronous": Synchronous,
    "pipelined": Pipelined,
    "asynchronous": Asynchronous,
    "consensus": Consensus,
}

Group = Callable[[int, Diary], Peers | None]
"""A group of the first n workers; None for a worker outside it. All workers call it, in the same order."""


def run(
    job: Job, lessons: Lessons, world: Peers, group: Group, device: torch.device, deliver: Callable[[Piece], None]
) -> None:
    """Do `job` as one of its workers; the first one calls `deliver` with each piece."""
    torch.set_num_threads(job.threads)
    card = lessons.card(job.widths, job.bottleneck)
    diary = world.diary
    taken: list[tuple[Training, Peers] | None] = []
    for task in job.tasks:
        peers, back = group(task.ranks, diary), group(task.ranks, diary)
        if peers is None or back is None:
            taken.append(None)
            continue
        # The server's vectors stay in the processor's memory: gloo carries them.
        setting = Setting(peers, back, lessons, card, device)
        taken.append((METHODS[task.method](task, setting), peers))
    for turn in turns(len(job.tasks), 1, range(job.rounds)):
        task, mine = job.tasks[turn.arm], taken[turn.arm]
        diary.begin_piece(traced=turn.round == job.rounds - 1)
        piece = None
        if mine is not None:
            training, peers = mine
            peers.barrier()
            begin = now_ns()
            done = training.piece(task.batches)
            peers.barrier()
            seconds = (now_ns() - begin) / 1e9
            answers = training.answers()
            if peers.rank == 0:
                where = torch.device("cpu") if task.method == "asynchronous" else device
                piece = Piece(
                    task=turn.arm,
                    round=turn.round,
                    seconds=seconds,
                    examples=done.examples,
                    updates=done.updates,
                    segments=lessons.losses(answers, where),
                    reports=[],
                    residuals=done.residuals,
                )
        world.barrier()
        reports = world.gather(msgspec.json.encode(diary.report(world.rank)))
        if piece is not None:
            of_task = [msgspec.json.decode(text, type=Report) for text in reports[: task.ranks]]
            deliver(msgspec.structs.replace(piece, reports=of_task))


def widest(tasks: Sequence[Task]) -> int:
    return max(task.ranks for task in tasks)
