"""How long a piece of repeated work takes at best, on a machine that other programs use as well.

A round repeats the work for milliseconds. Where rounds differ much, more are taken and the fastest kept: what another
program took is not the machine's. Pure Python, because the process that has torch uses it too.
"""

import math
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from profiler.machine.roofs.table import BANDWIDTH, KERNEL, LATENCY, OVERHEAD, RATE, Key, Roof

clock: Callable[[], float] = time.perf_counter
cpu_clock: Callable[[], float] = time.process_time
thread_clock: Callable[[], float] = time.thread_time
"""Seconds of wall time, of processor time of all threads, of this thread; tests put their own here."""

REPEAT_SECONDS: Final = 0.004
ROUNDS: Final = 9

STEADY_SPREAD: Final = 0.1  # Rounds of an undisturbed machine differ by 1…5 % (of caches, up to 10 %)
OWN_SHARE: Final = 0.95  # With less of its processors than this, another program disturbed a round
DISTURBED_ROUNDS: Final = 3  # Kept of disturbed rounds: the fastest, which were so the least

SLOW_END: Final = 0.75
"""Of the rounds kept, the slow end of a roof's interval: a single round of several ms can be anybody's doing, and took
up to twice the time of the others. The fast end is the fastest: nothing makes a machine faster than it is."""

QUICK_SECONDS: Final = 0.15
PATIENT_SECONDS: Final = 0.6  # How long rounds are taken for one roof while another program disturbs them

UNITS: Final = {RATE: "op/s", BANDWIDTH: "B/s", OVERHEAD: "ns", KERNEL: "unit/s", LATENCY: "ns"}
TIMES: Final = (OVERHEAD, LATENCY)  # Kinds whose figure is a time, so that less is better
Task = Callable[[int], object]  # Repeats its work so often; returns `Counted` or nothing of meaning


class Counted(NamedTuple):
    """Returned by a task of whose time only a part counts: how long that took, in seconds by `clock`."""

    seconds: float


class Effort(NamedTuple):
    """How many rounds to take; on a busy machine, how long more for one roof, and until when (`clock`) at all."""

    rounds: int = ROUNDS
    seconds: float = PATIENT_SECONDS
    until: float = math.inf


class Work(NamedTuple):
    """What one thread does: operations per repeat, and a function that creates the task with its own arrays."""

    operations: float
    make: Callable[[], Task]


class Rounds(NamedTuple):
    """Repeats within a round, seconds of the fastest rounds in rising order, and whether they were disturbed."""

    repeats: int
    seconds: list[float]
    disturbed: bool


def rounds(task: Task, effort: Effort, threads: int | None = None, cpu: Callable[[], float] | None = None) -> Rounds:
    """Time `task` in rounds and keep the `effort.rounds` fastest.

    With `threads`, the number of threads that the work keeps busy, a round that had less processor time
    than wall time × threads counts as disturbed, and others are taken in its place as long as there is time.
    `cpu` tells the processor time spent so far; without it that of the whole process counts.
    """

    def timed() -> float:
        start = clock()
        task(repeats)
        return clock() - start

    spent_so_far = cpu or cpu_clock
    task(1)
    repeats = 1
    # One long call may be another program's doing; too few repeats would time the call alone.
    while (elapsed := timed()) < REPEAT_SECONDS / 2 or (elapsed := min(timed(), timed())) < REPEAT_SECONDS / 2:
        repeats *= max(2, min(1000, int(REPEAT_SECONDS / max(elapsed, 1e-6))))
    began = clock()
    seconds: list[float] = []
    quiet: list[float] = []
    while True:
        for _ in range(effort.rounds):
            before, start = spent_so_far(), clock()
            result = task(repeats)
            spent = clock() - start
            seconds.append(result.seconds if isinstance(result, Counted) else spent)
            if threads is None or spent_so_far() - before >= OWN_SHARE * threads * spent:
                quiet.append(seconds[-1])
        kept = sorted(quiet)[: effort.rounds]
        full = len(kept) == effort.rounds
        even = full and kept[len(kept) // 2] <= kept[0] * (1 + STEADY_SPREAD)
        if even or clock() > min(began + effort.seconds, effort.until):
            if len(kept) > effort.rounds // 2:
                return Rounds(repeats, kept, False)
            return Rounds(repeats, sorted(seconds)[:DISTURBED_ROUNDS], True)


def roof_of(
    key: Key,
    amount: float,
    task: Task,
    effort: Effort,
    threads: int | None = None,
    cpu: Callable[[], float] | None = None,
) -> Roof:
    """Time `task`, one repeat of which is `amount` operations, bytes or calls; `threads`, `cpu` as for `rounds`."""
    repeats, seconds, disturbed = rounds(task, effort, threads, cpu)
    total = amount * repeats
    slow = seconds[round(SLOW_END * (len(seconds) - 1))]
    ends = seconds[0], seconds[len(seconds) // 2], slow
    if key.kind in TIMES:
        low, median, high = (s / total * 1e9 for s in ends)
    else:
        high, median, low = (total / s for s in ends)
    return Roof(*key, median, low, high, UNITS[key.kind], disturbed)


def is_steady(roof: Roof) -> bool:
    best = roof.median / roof.low if roof.kind in TIMES else roof.high / roof.median
    return not roof.disturbed and best <= 1 + STEADY_SPREAD


def better(one: Roof, other: Roof) -> Roof:
    """Return which of two measurements of the same roof the machine sustained better: the undisturbed, the faster."""
    sign = 1 if one.kind in TIMES else -1
    return min(one, other, key=lambda roof: (roof.disturbed, sign * roof.median))
