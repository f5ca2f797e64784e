"""How a roof is taken on a machine that other programs use: on a clock of the tests' own."""

import itertools
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from profiler_sessions import roof

from profiler.costs import KERNEL_CALL
from profiler.machine.roofs import _kernels as kernels
from profiler.machine.roofs import cpu, timing
from profiler.machine.roofs.accesses import ACCESSES, LINE_BYTES, called, scattered, steps
from profiler.machine.roofs.table import AFTER_BYTES, BANDWIDTH, LATENCY, OVERHEAD, RATE, Key, Roof, RoofTable, plateaus
from profiler.machine.roofs.timing import Counted, Effort, Task, Work, better, is_steady, roof_of, rounds
from tests.each import each

MS = 0.001


class Machine:
    """A clock, and work of a millisecond a repeat that other programs stretch as `pace` says, over and over."""

    def __init__(self, *pace: float) -> None:
        self.now = self.cpu = 0.0
        self._pace = itertools.cycle(pace)
        self.calls: list[int] = []

    def task(self, repeats: int) -> None:
        self.calls.append(repeats)
        self.now += repeats * MS * next(self._pace)
        self.cpu += repeats * MS


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    def with_pace(*pace: float) -> Machine:
        made = Machine(*pace)
        monkeypatch.setattr(timing, "clock", lambda: made.now)
        monkeypatch.setattr(timing, "cpu_clock", lambda: made.cpu)
        return made

    return with_pace


@each("pace, calls", [([1], 9 + 3), ([3, 3, 1, 3, 3, 1, 3, 3, 1], None)])
def test_the_median_is_of_undisturbed_rounds(pace, calls, machine):
    """Of an undisturbed machine the fewest are taken."""
    made = machine(*pace)
    found = rounds(made.task, Effort(9), 1)
    assert not found.disturbed
    assert found.seconds == pytest.approx([found.repeats * MS] * 9)
    assert found.repeats * MS >= timing.REPEAT_SECONDS / 2
    assert calls is None or made.calls.count(found.repeats) == calls


def test_a_machine_that_never_rests_is_flagged(machine):
    # Evenly slow: only the processor time tells.
    busy = machine(2.0)
    found = roof_of(Key(RATE, "x"), 1.0, busy.task, Effort(9, 0.5), 1)
    assert found.disturbed
    assert found.spread == pytest.approx(0.0)
    assert not is_steady(found)
    # Work that waits for a device has no processor time of its own, and is not suspected.
    assert not roof_of(Key(RATE, "x"), 1.0, busy.task, Effort(9, 0.5)).disturbed


def test_one_interrupted_call_does_not_count(machine):
    found = rounds(machine(0.001, 5.0, *[0.001] * 999).task, Effort(9))
    assert found.repeats * 0.001 * MS >= timing.REPEAT_SECONDS / 2


def test_time_is_bounded_for_one_roof_and_for_all(machine):
    busy = machine(2.0, 2.5, 3.0)
    rounds(busy.task, Effort(9, seconds=0.2), 1)
    taken = busy.now
    assert 0.2 < taken < 0.6
    rounds(busy.task, Effort(9, seconds=9.0, until=taken), 1)
    assert busy.now - taken < 0.3


def test_the_better_of_two_is_the_undisturbed_and_then_the_faster():
    slow, fast = roof(RATE, "gemm", 1.0), roof(RATE, "gemm", 2.0)
    assert better(slow, fast) is better(fast, slow) is fast
    dear, cheap = roof(OVERHEAD, "numpy", 900.0), roof(OVERHEAD, "numpy", 800.0)
    assert better(dear, cheap) is cheap
    lucky = Roof(RATE, "gemm", "float32", 1, 0, 3.0, 3.0, 3.0, "op/s", disturbed=True)
    assert better(slow, lucky) is better(lucky, slow) is slow


def test_a_calibration_comes_back_to_what_was_disturbed():
    visits: list[str] = []
    spreads = {"calm": iter([0.01]), "busy": iter([0.5, 0.3, 0.02])}

    def step(name: str) -> cpu.Step:
        def take(effort: Effort) -> Roof:
            visits.append(name)
            return roof(RATE, name, 1e9, spread=next(spreads[name]))

        return cpu.Step(Key(RATE, name), take)

    fractions: list[float] = []
    found = cpu.take([step("calm"), step("busy")], lambda _, fraction: fractions.append(fraction), patient=True)
    assert visits == ["calm", "busy", "busy", "busy"]
    assert [r.name for r in found] == ["calm", "busy"]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)


def test_plateaus_are_labelled_by_size_and_slopes_are_none():
    rates = [200, 205, 118, 117, 116, 98, 99, 60, 31, 30]
    rungs = [roof(BANDWIDTH, "read", r * 1e9, 1 << (14 + i)) for i, r in enumerate(rates)]
    found = plateaus(rungs)
    assert [p.label for p in found] == ["16 KiB … 32 KiB", "64 KiB … 256 KiB", "512 KiB … 1 MiB", "4 MiB … 8 MiB"]
    assert [round(p.rate / 1e9) for p in found] == [205, 117, 99, 31]
    assert plateaus([]) == []


def test_one_slow_round_does_not_widen_a_roof(monkeypatch):
    seconds = [1.0, 1.0, 1.0, 1.0, 1.25, 1.25, 1.25, 2.0, 2.5]
    monkeypatch.setattr(timing, "rounds", lambda *_: timing.Rounds(1, seconds, disturbed=False))
    rate = roof_of(Key(RATE, "x"), 10.0, lambda _: None, Effort(9))
    assert (rate.low, rate.median, rate.high) == (8.0, 8.0, 10.0)
    call = roof_of(Key(OVERHEAD, "x"), 1e9, lambda _: None, Effort(9))
    assert (call.low, call.median, call.high) == (1.0, 1.25, 1.25)


@pytest.mark.parametrize("cores", [1, 2])
def test_waiting_threads_have_no_data(cores, monkeypatch):
    """A table of 128 components for each of 64 threads took 14 GB on two processors."""
    monkeypatch.setattr(cpu, "usable_cores", lambda: cores)
    made: list[int] = []

    def make() -> Task:
        made.append(1)
        return lambda repeats: time.sleep(1e-4 * repeats)

    planned = cpu.plan(64, {"tile:int8": Work(50.0, make)}, whole=False)
    rate = next(step for step in planned if step.key.name == "tile")
    assert not made
    found = rate.take(Effort(1, 0.0))
    assert len(made) == cores
    assert (found.threads, found.dtype) == (64, "int8")
    # 50 units in 0.1 ms for each thread as if it had a processor; sleeping takes longer where others work, never less.
    assert 0 < found.median <= 64 * 50 / 1e-4


def test_calls_after_other_data_count_alone(monkeypatch):
    keys = [step.key for step in steps() if step.key.kind == OVERHEAD]
    assert keys == [Key(OVERHEAD, KERNEL_CALL, ""), Key(OVERHEAD, KERNEL_CALL, "", bytes=AFTER_BYTES)]
    now, order = 0.0, ""

    def taking(seconds: float, name: str) -> None:
        nonlocal now, order
        now, order = now + seconds, order + name

    monkeypatch.setattr(timing, "clock", lambda: now)
    monkeypatch.setattr(kernels, "read", lambda *_: taking(10.0, "r"))
    monkeypatch.setattr(kernels, "some", lambda *_: taking(2.0, "c"))
    assert called(0)(3) is None
    assert (order, now) == ("ccc", 6.0)
    assert called(AFTER_BYTES)(2) == Counted(4.0)
    assert order == "cccrcrc"


@each("step", [steps()[0], *steps()[-2:]])
def test_what_a_call_and_an_access_take_is_a_time(step):
    found = step.take(Effort(1, 0.0))
    assert found.sound
    assert (found.unit, found.bytes) == ("ns", step.key.bytes)
    assert found.low <= found.median <= found.high


@pytest.mark.parametrize("size", [1 << 14, 1 << 18])
def test_a_chase_visits_every_line_once(monkeypatch, size):
    given: list[Any] = []
    monkeypatch.setattr(kernels, "chase", lambda *args: given.extend(args))
    scattered("chase", size)(3)
    monkeypatch.undo()
    places, state, accesses = given
    assert accesses == 3 * ACCESSES
    assert places.nbytes == size
    assert places.ctypes.data % LINE_BYTES == 0
    lines = []
    for _ in range(size // LINE_BYTES):
        kernels.chase(places, state, 1)
        lines.append(int(state[0]) * places.itemsize // LINE_BYTES)
    assert sorted(lines) == list(range(size // LINE_BYTES))
    assert lines[-1] == 0
    kernels.chase(places, state, 7)
    assert int(state[0]) * places.itemsize // LINE_BYTES == lines[6]
    near = sum(abs(b - a) <= 1 for a, b in pairwise(lines))
    assert near < 0.1 * len(lines), "the next line is seldom the neighbour"


def test_a_gather_takes_every_line_once_and_adds_them_up(monkeypatch):
    given: list[Any] = []
    monkeypatch.setattr(kernels, "gather", lambda *args: given.extend(args))
    scattered("gather", 1 << 18)(3)
    monkeypatch.undo()
    places, order, place, accesses = given
    assert accesses == 3 * ACCESSES
    lines = order.astype(int) * places.itemsize // LINE_BYTES
    assert sorted(lines) == list(range((1 << 18) // LINE_BYTES))
    total = places.sum(dtype=np.uint32)
    assert kernels.gather(places, order, place, len(order)) == total
    assert place[0] == 0
    # It goes on where it ended: two halves are the whole.
    half = len(order) // 2
    first, second = (kernels.gather(places, order, place, half) for _ in range(2))
    assert np.uint32(first + second) == total
    assert kernels.gather(places, order, place, 2 * len(order)) == np.uint32(2 * total)


def test_between_two_sizes_the_time_of_an_access_follows_the_logarithm():
    known = RoofTable((roof(LATENCY, "chase", 4.0, 1 << 16), roof(LATENCY, "chase", 64.0, 1 << 26)))
    medians = [known.latency(1 << power).median for power in (0, 16, 26, 30, 21)]
    assert medians == pytest.approx([4, 4, 64, 64, 34])
    assert known.latency(1 << 20, "gather") is None
