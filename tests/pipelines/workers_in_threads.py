"""Workers of a training as threads of one process, with the same transport (gloo) and the same code."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.distributed import HashStore, PrefixStore, ProcessGroupGloo

from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import Frames, Pool
from pipelines.training.module import Layers
from pipelines.training.parallel import worker
from pipelines.training.parallel.job import Job, Piece
from pipelines.training.parallel.lessons import Lessons, Part
from pipelines.training.parallel.peers import Diary, Peers

PATIENCE = timedelta(minutes=5)
FEATURES, CLASSES = 4, 5


def together(size: int, work: Callable[[Peers, Callable[[int, Diary], Peers | None]], Any]) -> list[Any]:
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
        except BaseException as problem:  # whatever it is, the test raises it
            problems.append(problem)

    threads = [threading.Thread(target=live, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    while not problems and any(thread.is_alive() for thread in threads):  # one that failed leaves the others waiting
        time.sleep(0.01)
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


def plain_descent(
    taught: Lessons, widths: tuple[int, ...], rate: float, batches: int, size: int
) -> tuple[torch.nn.Sequential, Callable[[torch.Tensor], torch.Tensor]]:
    """Minibatch SGD as torch does it, with its own layers, losses and optimiser, from where workers begin.

    The net, and what is done to frames before it.
    """
    card = taught.card(widths, 0)
    start, place, width = Layers(card, 1, torch.device("cpu")).vector, 0, card.inputs
    layers: list[torch.nn.Module] = []
    for outputs in (*widths, CLASSES):
        layer = torch.nn.Linear(width, outputs)
        for parameter in (layer.weight, layer.bias):
            end = place + parameter.numel()
            parameter.data = start[place:end].clone().view_as(parameter)
            place = end
        layers += [layer, torch.nn.ReLU()]
        width = outputs
    net = torch.nn.Sequential(*layers[:-1])
    mean, scale = torch.tensor(card.mean), torch.tensor(card.scale)
    spread = lambda x: ((x - mean) * scale).flatten(1)  # noqa: E731
    descent = torch.optim.SGD(net.parameters(), rate)
    for number in range(batches):
        x, y = taught.batch(number, size)
        descent.zero_grad()
        torch.nn.functional.cross_entropy(net(spread(x)), y).backward()
        descent.step()
    return net, spread


def run_job(job: Job, taught: Lessons | None = None) -> list[Piece]:
    pieces: list[Piece] = []
    data = taught or lessons(context=job.context)

    def work(world: Peers, group: Callable[[int, Diary], Peers | None]) -> None:
        shared = Lessons(data.taught, data.examined, data.classes, data.context, job.seed)
        worker.run(job, shared, world, group, torch.device("cpu"), pieces.append)

    together(worker.widest(job.tasks), work)
    return pieces


def write_shard(folder: Path, senones: Sequence[int] | np.ndarray, name: str = "shard-0000") -> np.ndarray:
    """Write a shard of random frames with these senones into `folder`; returns the frames."""
    values = np.random.default_rng(len(senones)).normal(0, 1, (len(senones), 39)).astype(np.float16)
    path = folder / f"{name}.safetensors"
    data.write(Frames(values, values, np.array([len(senones)], np.int32)), path)
    labels.write(np.asarray(senones, np.uint16), path)
    return values


def labelled_shard(folder: Path) -> Path:
    write_shard(folder, np.random.default_rng(1).integers(0, 100, 300))
    return folder
