"""Workers of a training as threads of one process, with the same transport (gloo) and the same code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch.distributed import HashStore, PrefixStore, ProcessGroupGloo

from pipelines.training.corpus.data import Frames
from pipelines.training.corpus.pool import Pool
from pipelines.training.parallel import worker
from pipelines.training.parallel.job import Job, Piece
from pipelines.training.parallel.lessons import Lessons, Part
from pipelines.training.parallel.peers import Diary, Peers

PATIENCE = timedelta(minutes=5)
FEATURES, CLASSES = 4, 5


def together(
    size: int, work: Callable[[Peers, Callable[[int, Diary], Peers | None]], Any]
) -> list[Any]:
    """What `work` returns in each of `size` workers, by rank; the first exception of any is raised."""
    store = HashStore()
    found: list[Any] = [None] * size
    problems: list[BaseException] = []

    def live(rank: int) -> None:
        made = 0

        def group(n: int, diary: Diary) -> Peers | None:
            nonlocal made
            made += 1
            if rank >= n:
                return None
            own = PrefixStore(f"group{made}", store)
            return Peers(ProcessGroupGloo(own, rank, n, PATIENCE), diary)

        try:
            world = group(size, Diary())
            assert world is not None
            found[rank] = work(world, group)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        # One that failed leaves the others waiting for it.
        while thread.is_alive() and not problems:
            thread.join(0.05)
    if problems:
        raise problems[0]
    return found


def lessons(examples: int = 96, context: int = 1, seed: int = 1) -> Lessons:
    """Frames that say their class: a number of them is taught, the first half of it is examined."""
    draw = np.random.default_rng(7)
    direction = draw.normal(0, 1, (FEATURES, CLASSES))

    def part(frames: int) -> Part:
        heard = draw.normal(0, 1, (frames, FEATURES)).astype(np.float32)
        ends = np.array([frames // 2, frames], np.int32)
        classes = (heard @ direction).argmax(1).astype(np.int64)
        return Part(Pool(Frames(heard, heard, ends)), classes, np.arange(frames))

    return Lessons(part(examples), np.arange(examples // 2), CLASSES, context, seed)


def done(job: Job, taught: Lessons | None = None) -> list[Piece]:
    """The pieces of `job`, its workers as threads, on small planted data."""
    pieces: list[Piece] = []
    data = taught or lessons(context=job.context)

    def work(world: Peers, group: Callable[[int, Diary], Peers | None]) -> None:
        shared = Lessons(data.taught, data.examined, data.classes, data.context, job.seed)
        worker.run(job, shared, world, group, torch.device("cpu"), pieces.append)

    together(worker.widest(job.tasks), work)
    return pieces


def pieces(
    job: Job, workers: int, stopping: Callable[[], bool], machines: object
) -> Iterator[Piece]:
    """In the place of `launch.pieces`."""
    yield from done(job)
