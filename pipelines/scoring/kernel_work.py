"""What the `roofs` modules of scoring share: how a kernel becomes work that can be timed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.arrays import Array
from profiler.costs import CALL, KERNEL, WORK_COUNTS, Linear, Term
from profiler.machine.roofs.timing import Task, Work

KERNEL_CALL = "kernel call"
"""Roof of a call of a compiled kernel and the close of its span; measured in `tied.roofs`."""

FIRST_CACHE = 16 << 10
"""Bytes that surely fit the first cache beside what else a kernel touches."""

COLD = 16 << 20
"""Bytes that a block goes through, scoring and search together, before it needs the same small table again: what level
of memory that comes from."""

SEARCHED, SEARCHED_PER_FRAME, MOST_SEARCHED = 5 << 20, 384 << 10, 12 << 20
"""Bytes: of the graph, the tokens and Python that every block meets again (weights of 10 and of 4 MB came in runs as
fast as in loops over 15 and 10 MB); what is new with each frame (by `asrscope show --json` on the presets 0.37 MB at
least); and what more of it would not push further out of the caches."""

AT_ONCE = 1 << 20
"""Bytes of data that a repeat goes through before the next goes on from there: so short that it is seldom disturbed."""

Numbers = tuple[int, ...]
Family = Callable[[int, Numbers], Work]
"""Bytes of data (0: what fits the first cache) and the numbers of a name → the work."""


def searched(frames: int) -> float:
    """Return the bytes that the search of a block goes through before scoring reads its parameters again.

    They count to the size of what scoring reads block after block: a last level of cache keeps nothing that it
    does not meet again soon. A top-4 mixture of 8 MB took 20 µs a frame in a run and 6 µs in a loop of its own.
    """
    return float(min(SEARCHED + frames * SEARCHED_PER_FRAME, MOST_SEARCHED))


def calls(count: float, roof: str = KERNEL_CALL) -> Term:
    """Return the term of so many calls of compiled kernels a span; `roof` "numpy": of numpy's functions."""
    return Term(CALL, roof, Linear(fixed=count))


def units(kernel: str, *numbers: int, size: float = 0.0, work: int = 0, each: float = 1.0) -> Term:
    """Return the term of `each` units of a kernel's loop for every one of a span's work counts `work`.

    `numbers`: those of the roof's name; `size`: bytes of data that it goes through.
    """
    name = "/".join((kernel, *map(str, numbers)))
    factors = [0.0] * WORK_COUNTS
    factors[work] = each
    return Term(KERNEL, name, Linear(per_work=(factors[0], factors[1], factors[2])), size)


def filled(shape: tuple[int, ...], value: float = 1.0) -> Array:
    """Return float32 [shape] that has its own memory: pages never written would all be one and stay in the cache."""
    return np.full(shape, value, np.float32)


def repeated(once: Callable[[], object]) -> Task:
    """Return a task that calls `once` as often as it is told."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            once()

    return task
