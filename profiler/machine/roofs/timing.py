"""How long a piece of repeated work takes at best, on a machine that other programs use as well.

A round repeats the work for milliseconds, so that the call does not count. Where rounds differ much,
more are taken and the fastest are kept: what the machine sustains is the roof, and what another program
took away is not the machine's. Pure Python, because the process that has torch uses it too.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import stdev
from types import MappingProxyType
from typing import Final, NamedTuple

from profiler.machine.roofs.table import (
    BANDWIDTH,
    KERNEL,
    LATENCY,
    OVERHEAD,
    RATE,
    Key,
    Roof,
)

clock: Callable[[], float] = time.perf_counter
cpu_clock: Callable[[], float] = time.process_time
thread_clock: Callable[[], float] = time.thread_time
"""Seconds of wall time, of processor time of all threads, of this thread; tests put their own here."""

REPEAT_SECONDS: Final = 0.004
ROUNDS: Final = 9

STEADY_SPREAD: Final = 0.1
"""Rounds of an undisturbed machine differ by 1…5 % (of caches, up to 10 %)."""

OWN_SHARE: Final = 0.95
"""A round in which the work had less of its processors than this was disturbed by another program."""

DISTURBED_ROUNDS: Final = 3
"""How many of the fastest rounds are kept where nearly all were disturbed: those that were so the least."""

SLOW_END: Final = 0.75
"""Of the rounds kept, the slow end of a roof's interval: a single round of several ms can be anybody's doing, and took
up to twice the time of the others. The fast end is the fastest: nothing makes a machine faster than it is."""

QUICK_SECONDS: Final = 0.15
PATIENT_SECONDS: Final = 0.6
"""How long rounds are taken for one roof while another program disturbs them."""

UNITS: Final = {RATE: "op/s", BANDWIDTH: "B/s", OVERHEAD: "ns", KERNEL: "unit/s", LATENCY: "ns"}
TIMES: Final = (OVERHEAD, LATENCY)
"""Kinds whose figure is a time, so that less is better."""

Task = Callable[[int], object]
"""Work that repeats itself the given number of times; what it returns is `Counted` or means nothing."""


class Counted(NamedTuple):
    """Returned by a task of whose time only a part counts: how long that took, in seconds by `clock`."""

    seconds: float


def counted(told: object, whole: float) -> float:
    """Return the seconds that count of a task that took `whole` and returned `told`."""
    return told.seconds if isinstance(told, Counted) else whole


def repeated(once: Callable[[], object]) -> Task:
    """`once` as often as asked, from Python."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            once()

    return task


def each_after(before: Callable[[], object], once: Callable[[], object]) -> Task:
    """`once` as often as asked, each time after `before`, whose time does not count."""

    def task(repeats: int) -> Counted:
        seconds = 0.0
        for _ in range(repeats):
            before()
            start = clock()
            told = once()
            seconds += counted(told, clock() - start)
        return Counted(seconds)

    return task


class Effort(NamedTuple):
    """How many rounds to take; on a busy machine, how long more for one roof, and until when (`clock`) at all."""

    rounds: int = ROUNDS
    seconds: float = PATIENT_SECONDS
    until: float = math.inf


class Work(NamedTuple):
    """What one thread does: operations per repeat, and a function that creates the task with its own arrays.

    `in_turn`: the task itself goes through other data between two uses of its own. `waits`: it waits for other threads,
    so that less processor time than wall time tells nothing of other programs. `to_pass`: repeats that go through all
    of its own data.
    """

    operations: float
    make: Callable[[], Task]
    in_turn: bool = False
    waits: bool = False
    to_pass: int = 1


class Rounds(NamedTuple):
    """Repeats within a round, seconds of the fastest rounds in rising order, and whether they were disturbed."""

    repeats: int
    seconds: list[float]
    disturbed: bool


def rounds(
    task: Task,
    effort: Effort,
    threads: int | None = None,
    cpu: Callable[[], float] | None = None,
) -> Rounds:
    """Time `task` in rounds and keep the `effort.rounds` fastest.

    With `threads`, the number of threads that the work keeps busy, a round that had less processor time
    than wall time × threads counts as disturbed, and others are taken in its place as long as there is time.
    `cpu` tells the processor time spent so far; without it that of the whole process counts.
    """
    spent_so_far = cpu or cpu_clock
    task(1)
    repeats = 1
    while True:
        elapsed = _shortest(task, repeats, 1)
        # One long call may be another program's doing; too few repeats would time the call alone.
        if elapsed >= REPEAT_SECONDS / 2:
            elapsed = _shortest(task, repeats, 2, elapsed)
        if elapsed >= REPEAT_SECONDS / 2:
            break
        repeats *= max(2, min(1000, int(REPEAT_SECONDS / max(elapsed, 1e-6))))
    began = clock()
    seconds: list[float] = []
    quiet: list[float] = []
    while True:
        for _ in range(effort.rounds):
            before, start = spent_so_far(), clock()
            told = task(repeats)
            spent = clock() - start
            seconds.append(counted(told, spent))
            if threads is None or spent_so_far() - before >= OWN_SHARE * threads * spent:
                quiet.append(seconds[-1])
        kept = sorted(quiet)[: effort.rounds]
        full = len(kept) == effort.rounds
        even = full and kept[len(kept) // 2] <= kept[0] * (1 + STEADY_SPREAD)
        if even or clock() > min(began + effort.seconds, effort.until):
            if len(kept) > effort.rounds // 2:
                return Rounds(repeats, kept, False)
            return Rounds(repeats, sorted(seconds)[:DISTURBED_ROUNDS], True)


def _shortest(task: Task, repeats: int, times: int, known: float = math.inf) -> float:
    for _ in range(times):
        start = clock()
        task(repeats)
        known = min(known, clock() - start)
    return known


def roof_of(
    key: Key,
    amount: float,
    task: Task,
    effort: Effort,
    threads: int | None = None,
    cpu: Callable[[], float] | None = None,
) -> Roof:
    """Time `task`, whose one repeat does `amount` operations, moves that many bytes, or is that many calls.

    `threads` and `cpu` as for `rounds`.
    """
    repeats, seconds, disturbed = rounds(task, effort, threads, cpu)
    total = amount * repeats
    slow = seconds[round(SLOW_END * (len(seconds) - 1))]
    ends = seconds[0], seconds[len(seconds) // 2], slow
    if key.kind in TIMES:
        low, median, high = (s / total * 1e9 for s in ends)
    else:
        high, median, low = (total / s for s in ends)
    return Roof(*key, median, low, high, UNITS[key.kind], disturbed)


PAUSE: Final = 2.0
"""Between two pieces of `after_pauses`, in times of a piece: about what the search takes beside the scoring."""

PIECE_SECONDS: Final = 5e-5
"""A piece of work is at least so long, so that its call does not count."""

MOST_REPEATS: Final = 1 << 20
"""Work that takes no time at all is not repeated for ever."""

PAUSED_SECONDS: Final = 0.06
"""For so long pieces are timed; those of the first half, which meet data never touched, do not count."""


def after_pauses(key: Key, amount: float, task: Task) -> Roof:
    """Time `task` as a run meets it: piece after piece with something else in between, here an idle loop.

    Data beyond the nearest caches then come slower than in an endless loop over them, on a machine whose caches
    others share. `amount`: of one repeat; those of the next repeat follow it.
    """
    task(1)  # compiled, or loaded, by its first call
    repeats = 1
    while (piece := _shortest(task, repeats, 1)) < PIECE_SECONDS and repeats < MOST_REPEATS:
        repeats *= 2
    seconds: list[float] = []
    began = clock()
    half = began + PAUSED_SECONDS / 2
    spent = piece
    while len(seconds) < DISTURBED_ROUNDS or clock() < began + PAUSED_SECONDS:
        until = clock() + PAUSE * piece
        while clock() < until:
            pass
        before, start = thread_clock(), clock()
        task(repeats)
        spent = clock() - start
        undisturbed = thread_clock() - before >= OWN_SHARE * spent
        if undisturbed and start > half:
            seconds.append(spent)
        if clock() > began + QUICK_SECONDS:
            break
    kept = sorted(seconds or [spent])
    low, median, high = (
        amount * repeats / kept[round(part * (len(kept) - 1))] for part in (0.75, 0.5, 0.25)
    )
    return Roof(*key, median, low, high, UNITS[key.kind], not seconds)


ONE_MOMENT: Final = 0.3
"""So far from the middle lies a roof's furthest moment where a cache or memory is shared; about nine of ten lie nearer
(`python -m tests.bench.constants --only system`)."""


STUDENT: Final = MappingProxyType(
    {3: 2.920, 4: 2.353, 5: 2.132, 6: 2.015, 7: 1.943, 8: 1.895, 9: 1.860}
    | {10: 1.833, 12: 1.796, 15: 1.761, 20: 1.729, 25: 1.711}
)
"""By number of moments, beyond how many standard deviations from their mean on one side one of twenty lies (Student's
distribution): a stage is faster than its law allows on one side alone. From so many on a roof's own moments say where
one more may lie, such as a run's own: how far a cache that is shared keeps data differs from kernel to kernel and from
machine to machine."""

SKEWED: Final = 1.1
"""By so much more, as moments are no normal distribution: what other programs take makes some of them far slower, and
says nothing of how fast others may be. So at the fast end the deviation of the faster ones counts where it is less than
that of all; `python -m tests.bench.constants --only system` prints how many lie within, which are to be nine of ten."""


ONE_OWN_MOMENT: Final = 0.13
"""By so much may a core's own roof be found better after its first moment, which may fall into a slow minute; of
nineteen of twenty the best is no better (`python -m tests.bench.constants --only system`)."""


NEW_OWN_MOMENT: Final = 0.045
"""By so much may one more moment of a core's own roof be better than the best of those known; nineteen of twenty are no
better (`python -m tests.bench.constants --only system`)."""

FASTER_IN_A_RUN: Final = 0.1
"""By so much may data in shared caches come faster than in a roof whose moments agree. A mixture of one frame took 7 %
less in several runs than a roof whose five moments lay within 5 %; why is not known."""


def is_steady(roof: Roof) -> bool:
    """Whether the machine was undisturbed enough for this roof to be kept for good."""
    best = roof.median / roof.low if roof.kind in TIMES else roof.high / roof.median
    return not roof.disturbed and best <= 1 + STEADY_SPREAD


def better(one: Roof, other: Roof) -> Roof:
    """Return which of two measurements of the same roof the machine sustained better.

    One that no other program disturbed goes before one that was, whatever their figures.
    """
    if one.disturbed != other.disturbed:
        return other if one.disturbed else one
    if one.kind in TIMES:
        return min(one, other, key=lambda roof: roof.median)
    return max(one, other, key=lambda roof: roof.median)


def middle(moments: Sequence[Roof]) -> Roof:
    """Return the middle one of a roof measured at several moments, the slower of two; undisturbed ones alone count.

    Its interval is that of all of their middles and its own.
    """
    calm = undisturbed(moments)
    calm.sort(key=lambda roof: roof.median, reverse=calm[0].kind in TIMES)
    found, ends = calm[(len(calm) - 1) // 2], [roof.median for roof in calm]
    return replace(found, low=min(found.low, *ends), high=max(found.high, *ends))


def undisturbed(moments: Sequence[Roof]) -> list[Roof]:
    """Return those that no other program disturbed; all where none is."""
    return [roof for roof in moments if not roof.disturbed] or list(moments)


def wider_by(moments: Sequence[Roof]) -> tuple[float, float]:
    """Return how many times slower and faster than the middle one of several `moments` another may be.

    For 3 moments or more: by their deviations as logarithms, where a prediction of one more is wanted.
    """
    count = len(moments)
    middle_one, sign = middle(moments), -1.0 if moments[0].kind in TIMES else 1.0
    faster = [sign * math.log(roof.median / middle_one.median) for roof in moments]
    of_all = stdev(faster)
    of_faster = math.sqrt(2.0 * sum(max(each, 0.0) ** 2 for each in faster) / (count - 1))
    student = STUDENT[max(known for known in STUDENT if known <= count)]
    by = SKEWED * student * math.sqrt(1.0 + 1.0 / count)
    return math.exp(by * of_all), math.exp(by * min(of_all, of_faster))


def beyond_moments(roof: Roof, moments: Sequence[Roof], *, shared: bool) -> Roof:
    """Return the roof with an interval that holds what other moments than these few would have found.

    `shared`: the middle of its moments counts, and another may lie on either side; else the best, and another may only
    be better. `moments` may be more than those that the roof goes by: of more it is better known how far they differ.
    """
    if not moments:
        return roof
    if shared:
        calm = undisturbed(moments)
        if len(calm) < min(STUDENT):
            wider = 1.0 + ONE_MOMENT / len(calm)
            return replace(roof, low=roof.low / wider, high=roof.high * wider)
        less, more = wider_by(calm)
        more = max(more, 1.0 + FASTER_IN_A_RUN)
        if roof.kind in TIMES:
            less, more = more, less
        low, high = min(roof.low, roof.median / less), max(roof.high, roof.median * more)
        return replace(roof, low=low, high=high)
    better_by = 1.0 + max(ONE_OWN_MOMENT / len(moments), NEW_OWN_MOMENT)
    if roof.kind in TIMES:
        return replace(roof, low=min(roof.low, roof.median / better_by))
    return replace(roof, high=max(roof.high, roof.median * better_by))
