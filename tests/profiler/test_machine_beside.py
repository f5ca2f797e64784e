"""Figures that are taken again and again: the run queue's, and the probes of the machine's speed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from profiler.machine import run_queue
from profiler.machine.roofs import probe, timing
from profiler.machine.roofs.probe import EVERY_NS, TIMES, Probe
from profiler.machine.roofs.table import KERNEL, PROBES, PROBES_TOGETHER, Key
from profiler.machine.roofs.timing import Effort
from profiler.machine.run_queue import RunQueue
from profiler.span_layout import SPAN
from profiler.spans import Recorder
from tests.fake_clock import FakeClock


class Queue:
    """A file as Linux writes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{threading.get_native_id()}-schedstat"

    def says(self, text: str) -> None:
        self.path.write_text(text)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Queue:
    monkeypatch.setattr(run_queue, "PATH", f"{tmp_path}/{{}}-schedstat")
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", -(2**62))
    return Queue(tmp_path)


def test_the_run_queue_says_what_was_waited_since_the_last_call(queue: Queue) -> None:
    queue.says("5000 700 3\n")
    with RunQueue() as waiting:
        assert waiting.readable
        assert waiting.waited_ns() == 0
        queue.says("9000 1000 4\n")
        assert waiting.waited_ns() == 300
        assert waiting.waited_ns() == 0
        # Numbers may be long, and a kernel that counts anew takes nothing back.
        queue.says(f"{2**63} {2**62} {2**40}\n")
        assert waiting.waited_ns() == 2**62 - 1000
        queue.says("1 2 3\n")
        assert waiting.waited_ns() == 0
    assert not waiting.readable
    assert waiting.waited_ns() == 0
    waiting.close()


def test_a_thread_that_had_its_processor_all_along_is_not_asked_about(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = 0
    monkeypatch.setattr(run_queue, "LEAST_AWAY_NS", 5_000)
    monkeypatch.setattr(run_queue, "_away_ns", lambda: away)
    queue.says("5000 700 3\n")
    with RunQueue() as waiting:
        queue.says("9000 1000 4\n")
        away = 4_000
        assert waiting.waited_ns() == 0
        away = 8_000
        assert waiting.waited_ns() == 300, "what was left out counts the next time"
        queue.says("9000 1500 4\n")
        away = 12_000
        assert waiting.waited_ns() == 0


@pytest.mark.parametrize("text", [None, "", "5000", "a b c"])
def test_where_the_system_does_not_tell_it_there_is_no_waiting(
    queue: Queue, text: str | None
) -> None:
    if text is not None:
        queue.says(text)
    with RunQueue() as waiting:
        assert not waiting.readable
        queue.says("9000 1000 4\n")
        assert waiting.waited_ns() == 0


def test_on_this_system_it_is_never_negative() -> None:
    with RunQueue() as waiting:
        assert all(waiting.waited_ns() >= 0 for _ in range(1000))


def test_probes_are_taken_at_their_time_and_recorded_as_set_up() -> None:
    clock = FakeClock(1_000)
    recorder = Recorder(clock)
    lane = recorder.lane("decode", decode=True)
    probing = Probe(recorder, lane)
    lasts = iter(
        [
            [0, 900, 300, 500, 900, 900, 900],
            [0, 70, 80, 60, 70, 70, 70],
            [0, *[10] * 6],
            [0, *[20] * 6],
        ]
    )

    def task(repeats: int) -> None:
        assert repeats == 1
        if not times:
            times.extend(next(lasts))
        clock.advance(times.pop(0))

    times: list[int] = []
    probing._tasks = [task, task]
    assert probing.take(clock(), 7) == 1_000 + 4_400 + 420 == clock()
    assert probing.take(clock() + EVERY_NS - 1, 9) == clock() + EVERY_NS - 1
    assert lane.waiting == 2
    clock.advance(EVERY_NS)
    assert probing.take(clock(), 11) == clock()
    spans = np.frombuffer(lane.take(), SPAN)
    stages = [recorder.stages[number] for number in spans["stage"]]
    assert [stage.name for stage in stages] == [*PROBES, *PROBES]
    assert {(stage.group, stage.work) for stage in stages} == {("setup", ("repeats",))}
    # The best of all, at its time.
    assert spans["duration_ns"].tolist() == [300, 60, 10, 20]
    assert spans["start_ns"][:2].tolist() == [1_000 + 900, 1_000 + 4_400 + 150]
    assert spans["work0"].tolist() == [1] * 4
    assert spans["first_frame"].tolist() == [7, 7, 11, 11]
    assert not spans["frames"].any()
    assert TIMES == 6


def test_probes_have_roofs_of_the_same_work() -> None:
    steps = probe.steps()
    assert [step.key for step in steps] == [
        Key(KERNEL, PROBES[0]),
        Key(KERNEL, PROBES[1], bytes=probe.MEMORY_BYTES),
    ]
    for step, make in zip(steps, probe.TASKS, strict=True):
        roof = step.take(Effort(1, 0.0))
        assert roof.sound
        assert roof.unit == "unit/s"
        make()(1)


def test_the_roof_of_a_probe_is_the_best_of_as_many_pieces_as_count_in_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a machine that nothing has changed would seem faster than its roofs."""
    now, ran = 0.0, 0

    def piece(repeats: int) -> None:
        nonlocal now, ran
        assert repeats == 1
        ran += 1
        now += 2.0 if ran % (TIMES * PROBES_TOGETHER) == 5 else 3.0

    monkeypatch.setattr(timing, "clock", lambda: now)
    assert probe.as_in_a_run(piece)(4) == timing.Counted(8.0)
    assert ran == 4 * TIMES * PROBES_TOGETHER


def test_the_memory_probe_reads_what_it_says() -> None:
    from profiler.machine.roofs import _kernels as kernels

    ones = np.ones(probe.MEMORY_BYTES // 4, np.float32)
    assert kernels.read(ones, 1) == len(ones)
