"""How fast the machine is now: two small kernels timed between blocks, whose roofs the calibration has.

A neighbour on the same core, on the same cache or on the same memory slows a run down without ever taking its
processor. The probe of arithmetic stays in registers and the first cache, that of memory reads 4 MiB, which most
processors keep in the cache that cores share. Each is timed six times and the best counts, so that a turn of another
program in between does not; `python -m tests.bench.constants --only system` prints what part of a run they take.
Their roofs are timed in the same way: on a machine that is disturbed for moments only, the best of short pieces is
faster than the middle of long ones, and the machine would seem faster than it was when its roofs were taken.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from profiler.machine.roofs import table, timing
from profiler.machine.roofs.cpu import Step, aligned
from profiler.machine.roofs.table import (
    LEAST_SLOWNESS,
    MOST_SLOWNESS,
    PROBES,
    PROBES_TOGETHER,
    Key,
    Roof,
)
from profiler.machine.roofs.timing import Counted, Effort, Task, roof_of
from profiler.spans import Lane, Recorder

EVERY_NS: Final = 1_000_000_000
TIMES: Final = 6

PASSES: Final = 60
"""Of the arithmetic over its vector: far more than a clock reading takes, far less than a turn of another program."""
MEMORY_BYTES: Final = 4 << 20


def _arithmetic() -> Task:
    from profiler.machine.roofs import _kernels as kernels

    values, out = aligned(2048), aligned(2048, 21 * 64)
    return lambda repeats: kernels.fma_vector(values, out, PASSES * repeats)


def _memory() -> Task:
    from profiler.machine.roofs import _kernels as kernels

    values = aligned(MEMORY_BYTES // 4)
    return lambda repeats: kernels.read(values, repeats)


TASKS: Final[tuple[Callable[[], Task], ...]] = (_arithmetic, _memory)
SIZES: Final = (0, MEMORY_BYTES)
"""Of their data; what other programs leave of a shared cache is a roof of several moments, as that of any data is."""


def as_in_a_run(task: Task) -> Task:
    """`task` as often as asked, each as readers take it from a run: the best of as many pieces as count together."""
    pieces = TIMES * PROBES_TOGETHER

    def repeated(repeats: int) -> Counted:
        return Counted(sum(min(_seconds(task) for _ in range(pieces)) for _ in range(repeats)))

    return repeated


def _seconds(task: Task) -> float:
    start = timing.clock()
    task(1)
    return timing.clock() - start


def steps() -> list[Step]:
    """Return the steps that measure what the probes take on this machine at its best: repeats a second."""

    def step(name: str, size: int, make: Callable[[], Task]) -> Step:
        key = Key(table.KERNEL, name, bytes=size)

        def timed(effort: Effort) -> Roof:
            return roof_of(key, 1.0, as_in_a_run(make()), effort, 1)

        return Step(key, timed)

    return [step(*each) for each in zip(PROBES, SIZES, TASKS, strict=True)]


class Probe:
    """Times the two kernels when it is time, and records each as a span of set-up."""

    def __init__(self, recorder: Recorder, lane: Lane) -> None:
        self._clock, self._lane = recorder.clock, lane
        self._stages = [recorder.stage(name, "setup", ("repeats",)) for name in PROBES]
        self._tasks = [make() for make in TASKS]
        self.due_ns = 0
        """When it is time again."""
        self._latest: deque[int] = deque(maxlen=PROBES_TOGETHER)

    def slowness(self, roof: Roof | None) -> float:
        """How much slower than its `roof` the probe of arithmetic was, as readers take it (`conditions`); else 1."""
        if roof is None or not self._latest:
            return 1.0
        found = min(self._latest) * roof.median / 1e9
        return found if LEAST_SLOWNESS <= found <= MOST_SLOWNESS else 1.0

    def take(self, now: int, frame: int) -> int:
        """Time them if the last time is long ago; returns the time after it, or `now`."""
        if now < self.due_ns:
            return now
        for stage, task in zip(self._stages, self._tasks, strict=True):
            task(1)
            best, at = None, 0
            for _ in range(TIMES):
                start = self._clock()
                task(1)
                taken = self._clock() - start
                if best is None or taken < best:
                    best, at = taken, start
            self._lane.put(stage, at, at + (best or 0), frame, 0, 1)
            if stage == self._stages[0]:
                self._latest.append(best or 0)
        after = self._clock()
        self.due_ns = after + EVERY_NS
        return after
