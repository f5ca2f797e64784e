"""Other programs, as many as wanted, which keep a machine busy while something is measured."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event

import numpy as np

from profiler.errors import BadInput

READ_BYTES = 64 << 20
"""What such a program reads over and over: more than it could keep of a shared cache."""
SPINS = 200_000
"""Turns of an empty loop between two readings: about as long as one of them."""


def is_wanted() -> bool:
    """Whether the process that started this one is still there: one that was killed cannot end it."""
    parent = multiprocessing.parent_process()
    return parent is not None and parent.is_alive()


def _busy(ready: Event) -> None:
    values = np.ones(READ_BYTES // 8)
    ready.set()
    while is_wanted():
        values.sum()
        for _ in range(SPINS):
            pass


@contextmanager
def programs(count: int) -> Iterator[None]:
    """Run `count` of them, half computing and half reading memory, until the block ends."""
    spawn = multiprocessing.get_context("spawn")
    started = []
    try:
        for _ in range(count):
            ready = spawn.Event()
            started.append(spawn.Process(target=_busy, args=(ready,), daemon=True))
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
