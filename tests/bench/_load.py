"""Other programs that keep a machine busy during a measurement."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event

import numpy as np

from profiler.errors import BadInput

READ_BYTES = 64 << 20
"""Such a program reads this over and over: more than it could keep of a shared cache."""
SPINS = 200_000
"""Turns of an empty loop between two readings: about as long as one of them."""


def spin() -> bool:
    """Compute for a while; whether the process that started this one is still there: if killed, it cannot end it."""
    for _ in range(SPINS):
        pass
    parent = multiprocessing.parent_process()
    return parent is not None and parent.is_alive()


def _busy(ready: Event) -> None:
    values = np.ones(READ_BYTES // 8)
    ready.set()
    while spin():
        values.sum()


@contextmanager
def programs(count: int, work: Callable[..., None] = _busy, *arguments: object) -> Iterator[None]:
    """Run `count` of them until the block ends: half computing and half reading memory, or `work(ready, …)`."""
    spawn = multiprocessing.get_context("spawn")
    started = []
    try:
        for _ in range(count):
            ready = spawn.Event()
            started.append(spawn.Process(target=work, args=(ready, *arguments), daemon=True))
            started[-1].start()
            while not ready.wait(0.1):
                if not started[-1].is_alive():
                    raise BadInput("Another program that was to keep the machine busy has ended.")
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.join()
