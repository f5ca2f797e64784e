"""Taking the roofs that cost laws name: kernels of the workload, calls, and accesses scattered over memory.

What a term names is measured by the workload's own code: `work_of` gives, for a roof's name and a size, the work to be
timed (`timing.Work`). So nothing here knows what the kernels do.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from profiler.arrays import Array
from profiler.costs import ACCESS, CALL, KERNEL, Term
from profiler.machine.roofs import table
from profiler.machine.roofs.cpu import Step, aligned, at_once, together
from profiler.machine.roofs.table import Key, Roof
from profiler.machine.roofs.timing import Effort, Task, Work, after_pauses, roof_of

WorkOf = Callable[[str, int], Work]
"""Roof's name and bytes → the work to be timed; KeyError for an unknown name.

The bytes are those of a kernel's data (0: what fits the first cache), or of what is read before a call (0: nothing).
"""

ACCESS_BYTES: Final = tuple(1 << power for power in (14, 18, 20, 21, 22, 24, 26))
"""Sizes over which accesses are scattered: 16 KiB to 64 MiB, with steps about the usual caches."""

LINE_BYTES: Final = 64

GENERAL_CALLS: Final = ("numpy", "numba", "python")
"""Calls that are no kernel's of the workload; every calibration has them."""


def steps(terms: Iterable[tuple[Term, int]], work_of: WorkOf) -> list[Step]:
    """Return what to measure for `terms`, each with its number of threads; for a kernel with sizes at each of them."""
    found: list[Key] = []
    for term, threads in terms:
        if term.kind in (KERNEL, ACCESS) and term.roof not in table.LADDERS:
            sizes = {0, int(term.nearest), int(term.bytes)}
            found += [Key(table.KERNEL, term.roof, threads=threads, bytes=n) for n in sizes]
        elif term.kind == CALL and term.roof not in GENERAL_CALLS:
            found.append(call_key(term))
    return steps_of(found, work_of)


def call_key(term: Term) -> Key:
    """Return the roof that a term of calls names."""
    return Key(table.OVERHEAD, term.roof, "", bytes=int(term.bytes))


def steps_of(keys: Iterable[Key], work_of: WorkOf) -> list[Step]:
    """Return what to measure for the roofs of `keys`, kernels' and calls'."""
    return [
        Step(key, (_kernel if key.kind == table.KERNEL else _call)(key, work_of))
        for key in dict.fromkeys(keys)
    ]


def access_steps() -> list[Step]:
    """Return the steps that measure what a scattered access takes."""
    keys = [
        Key(table.LATENCY, name, "", 1, size) for name in table.LADDERS for size in ACCESS_BYTES
    ]
    return [Step(key, _access(key)) for key in keys]


def _kernel(key: Key, work_of: WorkOf) -> Callable[[Effort], Roof]:
    def timed(effort: Effort) -> Roof:
        from threadpoolctl import threadpool_limits

        work = work_of(key.name, key.bytes)
        tasks = [work.make() for _ in range(at_once(key.threads))]
        # Else a library's product, in a task that is one thread's, would take all processors.
        with threadpool_limits(1):
            if key.bytes and key.threads == 1 and not work.in_turn:
                return after_pauses(key, work.operations, tasks[0])
            return together(key, work.operations * len(tasks), tasks, effort)

    return timed


def _call(key: Key, work_of: WorkOf) -> Callable[[Effort], Roof]:
    def timed(effort: Effort) -> Roof:
        work = work_of(key.name, key.bytes)
        threads = None if work.waits else 1
        return roof_of(key, work.operations, work.make(), effort, threads)

    return timed


def _access(key: Key) -> Callable[[Effort], Roof]:
    def timed(effort: Effort) -> Roof:
        return roof_of(key, float(ACCESSES), scattered(key.name, key.bytes), effort, 1)

    return timed


ACCESSES: Final = 1 << 12
"""Accesses of one repeat."""


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
    words = LINE_BYTES // 4
    order = np.random.default_rng(0).permutation(size // LINE_BYTES).astype(np.uint32)
    places: Array = aligned(size // 4).view(np.uint32)
    places[:] = 0
    return places, order * np.uint32(words)
