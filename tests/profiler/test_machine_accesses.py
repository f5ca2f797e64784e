"""What accesses and calls take: that accesses really go where they should, and which part of a call's time counts."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from profiler_sessions import roof

from profiler.costs import KERNEL_CALL
from profiler.machine.roofs import _kernels as kernels
from profiler.machine.roofs import cpu, timing
from profiler.machine.roofs.accesses import ACCESSES, LINE_BYTES, access_steps, call_steps, called, scattered
from profiler.machine.roofs.table import AFTER_BYTES, LATENCY, OVERHEAD, Key, RoofTable
from profiler.machine.roofs.timing import Counted, Effort, Task, Work
from tests.each import each


@pytest.mark.parametrize("cores", [1, 2])
def test_waiting_threads_have_no_data(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_calls_after_other_data_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [step.key for step in call_steps()]
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


@each("step", [*call_steps(), *access_steps()[:1]])
def test_what_a_call_and_an_access_take_is_a_time(step: cpu.Step) -> None:
    found = step.take(Effort(1, 0.0))
    assert found.sound
    assert (found.unit, found.bytes) == ("ns", step.key.bytes)
    assert found.low <= found.median <= found.high


def seen(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> list[tuple[np.ndarray, ...]]:
    """The arrays that a roof of accesses is taken with."""
    given: list[tuple[np.ndarray, ...]] = []
    monkeypatch.setattr(kernels, name, lambda *args: given.append(args))
    scattered(name, size)(3)
    return given


@pytest.mark.parametrize("size", [1 << 14, 1 << 18])
def test_a_chase_visits_every_line_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    ((places, state, accesses),) = seen(monkeypatch, "chase", size)
    assert accesses == 3 * ACCESSES
    assert places.nbytes == size
    assert places.ctypes.data % LINE_BYTES == 0
    at, lines = int(state[0]), []
    for _ in range(size // LINE_BYTES):
        at = int(places[at])
        lines.append(at * places.itemsize // LINE_BYTES)
    assert sorted(lines) == list(range(size // LINE_BYTES))
    assert at == int(state[0]) == 0
    near = sum(abs(b - a) <= 1 for a, b in pairwise(lines))
    assert near < 0.1 * len(lines), "the next line is seldom the neighbour"


def test_the_chase_follows_where_the_lines_lead() -> None:
    places, state = np.array([2, 0, 3, 1], np.uint32), np.zeros(1, np.uint32)
    kernels.chase(places, state, 3)
    assert state[0] == 1
    kernels.chase(places, state, 4)
    assert state[0] == 1


def test_a_gather_takes_every_line_once_and_adds_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ((places, order, place, accesses),) = seen(monkeypatch, "gather", 1 << 18)
    assert accesses == 3 * ACCESSES
    lines = order.astype(int) * places.itemsize // LINE_BYTES
    assert sorted(lines) == list(range((1 << 18) // LINE_BYTES))
    monkeypatch.undo()
    total = places.sum(dtype=np.uint32)
    assert kernels.gather(places, order, place, len(order)) == total
    assert place[0] == 0
    # It goes on where it ended: two halves are the whole.
    half = len(order) // 2
    first, second = (kernels.gather(places, order, place, half) for _ in range(2))
    assert np.uint32(first + second) == total
    assert kernels.gather(places, order, place, 2 * len(order)) == np.uint32(2 * total)


# -- looking them up ----------------------------------------------------------------------------


def test_between_two_sizes_the_time_of_an_access_follows_the_logarithm() -> None:
    known = RoofTable((roof(LATENCY, "chase", 4.0, 1 << 16), roof(LATENCY, "chase", 64.0, 1 << 26)))

    def median(size: float) -> float:
        found = known.latency(size)
        return found.median

    assert [median(1), median(1 << 16), median(1 << 26), median(1 << 30)] == [4, 4, 64, 64]
    assert median(1 << 21) == pytest.approx(34)
    assert known.latency(1 << 20, "gather") is None
