"""Measures accesses scattered over memory, and calls of compiled kernels: after another call, and after other data."""

from functools import partial
from typing import Final

import numpy as np

from profiler.arrays import Array
from profiler.costs import KERNEL_CALL
from profiler.machine.roofs import table, timing
from profiler.machine.roofs.cpu import Step, aligned, repeated
from profiler.machine.roofs.table import AFTER_BYTES, Key, Roof
from profiler.machine.roofs.timing import Counted, Effort, Task, roof_of
from profiler.spans import Lane

ACCESS_BYTES: Final = tuple(1 << power for power in (14, 18, 20, 21, 22, 24, 26))
"""Sizes over which accesses are scattered: 16 KiB to 64 MiB, with steps about the usual caches."""

LINE_BYTES: Final = 64
OTHERS_BYTES: Final = 16 << 20  # Each AFTER_BYTES of these are others than before, so that none stay cached
ACCESSES: Final = 1 << 12  # Accesses of one repeat


def steps() -> list[Step]:
    """What to measure: the ladders of accesses, and a call of a compiled kernel after nothing and after other data."""
    accesses = [Key(table.LATENCY, name, "", 1, size) for name in table.LADDERS for size in ACCESS_BYTES]
    calls = [Key(table.OVERHEAD, KERNEL_CALL, "", bytes=size) for size in (0, AFTER_BYTES)]
    return [Step(key, partial(_measured, key)) for key in (*accesses, *calls)]


def _measured(key: Key, effort: Effort) -> Roof:
    if key.kind == table.OVERHEAD:
        return roof_of(key, 1.0, called(key.bytes), effort, 1)
    return roof_of(key, float(ACCESSES), scattered(key.name, key.bytes), effort, 1)


class _Scratch(Lane):
    """A lane without a consumer: when its ring is full, what waits there is thrown away."""

    __slots__ = ()

    def _room(self) -> int:
        self.take()
        return super()._room()


def called(size: int) -> Task:
    """Return calls of a kernel with arrays and the close of its span, each after `size` bytes of others were read."""
    from profiler.machine.roofs import _kernels as kernels

    a, b, c = (aligned(64).reshape(4, 16) for _ in range(3))
    lane = _Scratch(0, "called", "cpu", False, 1 << 12)
    lane.begin(0, 1)

    def once() -> None:
        kernels.some(a, b, c, 0, 0)
        lane.lap(0, 1)

    if not size:
        return repeated(once)
    others = aligned(OTHERS_BYTES // 4).reshape(-1, size // 4)
    turn = 0

    def task(repeats: int) -> Counted:
        nonlocal turn
        seconds = 0.0
        for _ in range(repeats):
            turn = (turn + 1) % len(others)
            kernels.read(others[turn], 1)
            start = timing.clock()
            once()
            seconds += timing.clock() - start
        return Counted(seconds)

    return task


def scattered(name: str, size: int) -> Task:
    """Return accesses to cache lines in random order over `size` bytes: each found in the one before, or in a list."""
    from profiler.machine.roofs import _kernels as kernels

    places, order = lines_at_random(size)
    # One cycle through all lines.
    places[order] = np.roll(order, -1)
    if name == "chase":
        state = np.zeros(1, np.uint32)
        return lambda repeats: kernels.chase(places, state, ACCESSES * repeats)
    # A repeat goes on where the one before ended: all of the data is gone through, not its beginning again.
    place = np.zeros(1, np.int64)
    return lambda repeats: kernels.gather(places, order, place, ACCESSES * repeats)


def lines_at_random(size: int) -> tuple[Array, Array]:
    """Return uint32 zeros [n] of `size` bytes in memory of their own, and where their lines begin in random order."""
    order = np.random.default_rng(0).permutation(size // LINE_BYTES).astype(np.uint32)
    places: Array = aligned(size // 4).view(np.uint32)
    places[:] = 0
    return places, order * np.uint32(LINE_BYTES // 4)
