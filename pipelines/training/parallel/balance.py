"""Which worker gets which layers, and what a pipeline of them would do: split by measured cost, timed by arithmetic.

The timing assumes workers that do not disturb each other, such as devices of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass


def split(costs: Sequence[float], workers: int) -> tuple[int, ...]:
    """The first layer of each worker, such that the dearest share of the `costs` is as small as can be.

    Of equal splits the one that gives the first workers least. ValueError where there are more workers than layers.
    """
    n = len(costs)
    if not 0 < workers <= n:
        raise ValueError(f"{n} layers cannot be split over {workers} workers")
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
    for first in range(n):
        best[1, first] = sum(costs[first:]), (first,)
    for k in range(2, workers + 1):
        for first in range(n - k + 1):
            best[k, first] = min(
                (max(sum(costs[first:cut]), best[k - 1, cut][0]), (first, *best[k - 1, cut][1]))
                for cut in range(first + 1, n - k + 2)
            )
    return best[workers, 0][1]


@dataclass(frozen=True)
class Stage:
    """Seconds of a worker's layers: forward, backward with the update, and sending their outputs."""

    forward: float
    backward: float
    send: float = 0.0


@dataclass(frozen=True)
class Slot:
    """A simulated task of a worker, in seconds from the beginning."""

    worker: int
    batch: int
    backward: bool
    begin: float
    end: float


def simulated(stages: Sequence[Stage], batches: int) -> list[Slot]:
    """When each worker would go forward and backward, in the order of `pipelined`; what is sent travels meanwhile."""
    k = len(stages)
    free = [0.0] * k
    there: dict[tuple[int, int, bool], float] = {}
    slots: list[Slot] = []
    at, due = [0] * k, [0] * k
    while any(n < batches for n in due):
        for worker, stage in enumerate(stages):
            delay = 2 * (k - 1 - worker)
            back = at[worker] - due[worker] > delay or at[worker] == batches
            number = due[worker] if back else at[worker]
            if number == batches:
                continue
            last, first = worker == k - 1, worker == 0
            source = (worker, number, back)
            if not (last if back else first) and source not in there:
                continue
            begin = max(free[worker], there.get(source, 0.0))
            end = begin + (stage.backward if back else stage.forward)
            slots.append(Slot(worker, number, back, begin, end))
            free[worker] = end
            if back:
                due[worker] += 1
                if not first:
                    there[worker - 1, number, True] = end + stages[worker - 1].send
            else:
                at[worker] += 1
                if not last:
                    there[worker + 1, number, False] = end + stage.send
    return slots


def speed_up(stages: Sequence[Stage], batches: int) -> float:
    """The speed-up of the pipeline for `batches` minibatches over one worker with all the layers."""
    alone = batches * sum(stage.forward + stage.backward for stage in stages)
    return alone / max(slot.end for slot in simulated(stages, batches))
