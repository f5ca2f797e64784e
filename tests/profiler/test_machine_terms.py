"""Roofs that cost laws name: which are taken for which terms, and that accesses really go where they should."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from profiler_sessions import roof
from threadpoolctl import threadpool_info, threadpool_limits

from profiler.costs import ACCESS, CALL, KERNEL, STREAM, Linear, Term
from profiler.machine.roofs import _kernels as kernels
from profiler.machine.roofs import cpu, table, terms
from profiler.machine.roofs.table import LATENCY, OVERHEAD, Key, RoofTable
from profiler.machine.roofs.terms import ACCESS_BYTES, ACCESSES, LINE_BYTES, access_steps, steps
from profiler.machine.roofs.timing import Effort, Task, Work

ONE = Linear(1.0)


class Workload:
    """Kernels that keep a record of what they were made for and how often they ran."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []
        self.runs = 0

    def __call__(self, name: str, size: int) -> Work:
        def make():  # type: ignore[no-untyped-def]
            self.made.append((name, size))
            return self.run

        return Work(50.0, make)

    def run(self, repeats: int) -> None:
        self.runs += 1
        time.sleep(1e-4 * repeats)


def test_each_kernel_is_taken_at_each_of_its_sizes_and_only_once() -> None:
    named = [
        (Term(KERNEL, "tile/4", ONE), 1),
        (Term(KERNEL, "tile/4", ONE, 1e6), 1),
        (Term(KERNEL, "tile/4", ONE, 1e6), 2),
        (Term(KERNEL, "tile/8", ONE, 2e6, nearest=1e6), 1),
        (Term(CALL, "kernel call", ONE), 1),
        (Term(CALL, "kernel call", ONE, 1 << 20), 1),
        (Term(CALL, "numpy", ONE), 1),
        (Term(STREAM, "read", ONE, 1e6), 1),
        (Term(ACCESS, "chase", ONE, 1e6), 1),
    ]
    keys = [step.key for step in steps(named, Workload())]
    assert len(keys) == len(set(keys))
    assert set(keys) == {
        Key(table.KERNEL, "tile/4"),
        Key(table.KERNEL, "tile/4", bytes=1_000_000),
        Key(table.KERNEL, "tile/4", threads=2),
        Key(table.KERNEL, "tile/4", threads=2, bytes=1_000_000),
        Key(table.KERNEL, "tile/8"),
        Key(table.KERNEL, "tile/8", bytes=1_000_000),
        Key(table.KERNEL, "tile/8", bytes=2_000_000),
        # A call into numpy is in every plan, streams and accesses too.
        Key(OVERHEAD, "kernel call", ""),
        Key(OVERHEAD, "kernel call", "", bytes=1 << 20),
    }


def test_the_work_is_made_when_its_roof_is_taken_and_once_for_each_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu, "usable_cores", lambda: 2)
    workload = Workload()
    named = [(Term(KERNEL, "tile/4", ONE), 2)]
    named += [(Term(CALL, "kernel call", ONE, size), 1) for size in (0, 64)]
    kernel, call, later = steps(named, workload)
    assert not workload.made
    found = kernel.take(Effort(1, 0.0))
    assert workload.made == [("tile/4", 0)] * 2
    assert (found.kind, found.threads, found.unit) == (table.KERNEL, 2, "unit/s")
    found = call.take(Effort(1, 0.0))
    assert workload.made[2:] == [("kernel call", 0)]
    assert (found.kind, found.unit) == (OVERHEAD, "ns")
    assert later.take(Effort(1, 0.0)).bytes == 64
    assert workload.made[3:] == [("kernel call", 64)]
    assert workload.runs


@pytest.mark.parametrize("cores", [1, 2])
def test_threads_that_wait_for_a_processor_have_no_data_of_their_own(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of 128 components for each of 64 threads took 14 GB on two processors."""
    monkeypatch.setattr(cpu, "usable_cores", lambda: cores)
    workload = Workload()
    (kernel,) = steps([(Term(KERNEL, "tile/4", ONE), 64)], workload)
    found = kernel.take(Effort(1, 0.0))
    assert len(workload.made) == cores
    assert found.threads == 64
    # 50 units in 0.1 ms on each processor; sleeping takes longer where others work, never less.
    assert 0 < found.median <= cores * 50 / 1e-4

    rate = next(
        s
        for s in cpu.plan(64, {"tile": Work(50.0, workload("tile", 0).make)}, whole=False)
        if s.key.name == "tile"
    )
    workload.made.clear()
    assert 0 < rate.take(Effort(1, 0.0)).median <= cores * 50 / 1e-4
    assert len(workload.made) == cores


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("size", [0, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_librarys_product_has_one_thread_in_each_task(size: int, threads: int) -> None:
    """Else it takes all processors, and a net of one thread seems to need half of the time that it takes."""
    if not blas_threads():
        pytest.skip("numpy's library of products is not one whose threads can be counted")
    seen: set[int] = set()

    def product(repeats: int) -> None:
        seen.update(blas_threads())
        time.sleep(1e-4 * repeats)

    def make() -> Task:
        return product

    (*_, step) = steps(
        [(Term(KERNEL, "product", ONE, size), threads)], lambda name, size: Work(1.0, make)
    )
    with threadpool_limits(3):
        before = blas_threads()
        step.take(Effort(1, 0.0))
        assert blas_threads() == before
    assert seen == {1}


def test_what_no_kernel_is_called_is_an_error_of_the_law() -> None:
    def work_of(name: str, size: int) -> Work:
        raise KeyError(name)

    (step,) = steps([(Term(KERNEL, "guess", ONE), 1)], work_of)
    with pytest.raises(KeyError):
        step.take(Effort(1, 0.0))


def test_accesses_are_taken_from_the_first_cache_to_beyond_the_last() -> None:
    keys = [step.key for step in access_steps()]
    assert {key.name for key in keys} == {"chase", "gather"}
    assert {key.kind for key in keys} == {LATENCY}
    for name in ("chase", "gather"):
        sizes = [key.bytes for key in keys if key.name == name]
        assert sizes == list(ACCESS_BYTES) == sorted(sizes)
        assert (sizes[0], sizes[-1]) == (16 << 10, 64 << 20)


def seen(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> list[tuple[np.ndarray, ...]]:
    """The arrays that a roof of accesses is taken with."""
    given: list[tuple[np.ndarray, ...]] = []
    monkeypatch.setattr(kernels, name, lambda *args: given.append(args))
    terms.scattered(name, size)(3)
    return given


@pytest.mark.parametrize("size", [1 << 14, 1 << 18])
def test_a_chase_visits_every_line_once_before_it_comes_back(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
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


def test_what_an_access_takes_is_a_time() -> None:
    step = next(step for step in access_steps() if step.key.bytes == 1 << 14)
    found = step.take(Effort(1, 0.0))
    assert (found.unit, found.bytes) == ("ns", 1 << 14)
    assert found.sound
    assert found.low <= found.median <= found.high


# -- looking them up ----------------------------------------------------------------------------


def test_of_the_sizes_of_a_kernel_the_nearest_counts_and_none_is_the_first_cache() -> None:
    known = RoofTable(
        (
            roof(table.KERNEL, "tile", 9e9),
            roof(table.KERNEL, "tile", 4e9, 1 << 20),
            roof(table.KERNEL, "tile", 1e9, 1 << 26),
            roof(table.KERNEL, "tile", 2e9, 1 << 26, threads=2),
            roof(table.KERNEL, "only large", 1e9, 1 << 26),
        )
    )

    def median(*asked: float) -> float | None:
        found = known.kernel("tile", 1, *asked)
        return found and found.median

    assert [median(), median(100), median(1 << 21), median(1 << 25)] == [9e9, 4e9, 4e9, 1e9]
    # Two threads were measured over much data alone.
    assert known.kernel("tile", 2, 1 << 20) == known.roofs[3]
    assert known.kernel("tile", 2) == known.roofs[0]
    assert known.kernel("only large") is None
    assert known.kernel("other") is None


def test_between_two_sizes_the_time_of_an_access_follows_the_logarithm() -> None:
    known = RoofTable((roof(LATENCY, "chase", 4.0, 1 << 16), roof(LATENCY, "chase", 64.0, 1 << 26)))

    def median(size: float) -> float:
        found = known.latency(size)
        assert found is not None
        return found.median

    assert [median(1), median(1 << 16), median(1 << 26), median(1 << 30)] == [4, 4, 64, 64]
    assert median(1 << 21) == pytest.approx(34)
    assert known.latency(1 << 20, "gather") is None
