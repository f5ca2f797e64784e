"""Counters charged to stages: a lane on a fake clock with counters that grow as the test says."""

import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler import counting
from profiler.counting import COUNTED, CountingLane, by_stage, is_exact
from profiler.machine.counters import EVENTS, Availability
from profiler.recording.layout import AT, OPEN, SPAN
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder
from tests.fake_clock import FakeClock

CYCLES, FAULTS = EVENTS[0], EVENTS[4]


class FakeGroup:
    """Two counters under the test's hand."""

    events = (CYCLES, FAULTS)

    def __init__(self) -> None:
        self.availability = [Availability(event, True, "counted") for event in self.events]
        self.enabled = self.running = self.cycles = self.faults = 0
        self.readings = 0

    def work(self, cycles: int, faults: int = 0, ns: int = 100, part: float = 1.0) -> None:
        self.cycles += cycles
        self.faults += faults
        self.enabled += ns
        self.running += int(ns * part)

    def read_raw(self) -> bytes:
        self.readings += 1
        return struct.pack("=5Q", 2, self.enabled, self.running, self.cycles, self.faults)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000)


@pytest.fixture
def group() -> FakeGroup:
    return FakeGroup()


@pytest.fixture
def lane(clock: FakeClock, group: FakeGroup) -> CountingLane:
    lane = CountingLane(0, "decode", "cpu", True, clock=clock)
    group.work(777, 77)  # before counting begins
    lane.count(group)  # type: ignore[arg-type]
    return lane


def step(lane: CountingLane, clock: FakeClock, group: FakeGroup, stage: int, cycles: int) -> None:
    start = clock()
    group.work(cycles, cycles // 10)
    lane.put(stage, start, clock.advance(1000))
    clock.advance(10)


def in_kernel(ring: Any, state: Any, stage: int, start_ns: int, end_ns: int) -> None:
    """What profiler.recording.kernel_spans.put does to a lent ring."""
    slot = ring[state[AT]]
    slot["stage"], slot["start_ns"], slot["end_ns"], slot["frames"] = stage, start_ns, end_ns, 1
    state[AT] = (state[AT] + 1) % len(ring)


def table(lane: CountingLane, *, final: bool = True) -> dict[tuple[int, int, str], int]:
    return {(t.stage, t.epoch, t.name): t.value for t in lane.totals(final)}


def test_counts_go_to_the_later_span(lane, clock, group):
    for cycles in (100, 300):
        step(lane, clock, group, 1, cycles)
        step(lane, clock, group, 2, 7)
    totals = lane.totals(final=True)
    found = {(t.stage, t.name): t.value for t in totals}
    assert found[1, "cycles"] == 400
    assert found[1, "page_faults"] == 40
    assert found[2, "cycles"] == 14
    assert found[1, COUNTED] == 1000 + 1010  # the second time with the gap before it
    assert {t.source for t in totals} == {"perf_event"}
    assert group.readings == 5


def test_spans_of_one_call_share(lane, clock, group):
    start = clock()
    group.work(1000)
    clock.advance(4000)
    lane.put(1, start, start + 3000)
    lane.put(2, start + 3000, start + 4000)
    clock.advance(1)
    step(lane, clock, group, 3, 10)
    totals = {t.stage: t for t in lane.totals(final=True) if t.name == "cycles"}
    assert {stage: total.value for stage, total in totals.items()} == {1: 750, 2: 250, 3: 10}
    assert [is_exact(totals[stage].source) for stage in (1, 2, 3)] == [False, False, True]
    assert "shared" in totals[2].source
    assert group.readings == 3


def test_laps_count_like_spans(lane, clock, group):
    read = group.read_raw

    def slow() -> bytes:
        clock.advance(50)
        return read()

    lane._read = slow
    lane.begin(0, 4)
    for stage in (1, 2):
        group.work(10 * stage)
        clock.advance(1000 * stage)
        lane.lap(stage)
    assert {k[0]: v for k, v in table(lane).items() if k[2] == "cycles"} == {1: 10, 2: 20}
    assert np.frombuffer(lane.take(), SPAN)["duration_ns"].tolist() == [1000, 2000]


def test_stages_in_turns_share(lane, clock, group):
    lane.begin(0, 4)
    for _ in range(2):
        group.work(1000, 10)
        clock.advance(800)
        lane.lap_before(200, 1)
        lane.lap(2)
    group.work(70, 7)
    clock.advance(100)
    lane.lap(3)
    totals = {t.stage: (t.value, is_exact(t.source)) for t in lane.totals(final=True) if t.name == "cycles"}
    assert totals == {1: (1500, False), 2: (500, False), 3: (70, True)}
    assert group.readings == 1 + 2 + 1
    assert np.frombuffer(lane.take(), SPAN)["duration_ns"].tolist() == [600, 200, 600, 200, 100]


def test_an_open_span_of_a_kernel(lane, clock, group):
    ring, state = lane.lend()
    start = clock()
    in_kernel(ring, state, 4, start, start + 100)
    state[OPEN] = state[AT]
    in_kernel(ring, state, 5, start + 100, start + 100)
    group.work(60)
    lane.settle(clock.advance(300))
    found = table(lane)
    assert (found[4, 0, "cycles"], found[5, 0, "cycles"]) == (20, 40)
    assert group.readings == 2


def test_a_kernel_over_the_end_of_the_ring(clock, group):
    lane = CountingLane(0, "decode", "cpu", True, capacity=4, clock=clock)
    lane.count(group)  # type: ignore[arg-type]
    for _ in range(3):
        step(lane, clock, group, 1, 10)
    lane.take()
    ring, state = lane.lend()
    for _ in range(4):
        in_kernel(ring, state, 2, clock(), clock.advance(10))
    group.work(40)
    clock.advance(1)
    lane.settle()
    found = table(lane)
    assert (found[2, 0, "cycles"], found[2, 0, COUNTED]) == (40, 51)


@pytest.mark.parametrize(("part", "cycles"), [(0.25, 400), (0.0, None)])
def test_shared_counters_are_scaled(part, cycles, lane, clock, group):
    start = clock()
    group.work(100, ns=1000, part=part)
    lane.put(1, start, clock.advance(1000))
    totals = {total.name: total for total in lane.totals(final=True)}
    if cycles is None:
        assert totals == {}, "they never ran"
    else:
        assert totals["cycles"].value == cycles
        assert "scaled up from 25%" in totals["cycles"].source
        assert not is_exact(totals["cycles"].source)


def test_one_thread_of_several_and_user_mode_are_said(clock, group):
    lane = CountingLane(0, "decode", "cpu", True, clock=clock)
    group.availability[1] = Availability(FAULTS, True, "user mode only", user_only=True)
    lane.count(group, threads=2)  # type: ignore[arg-type]
    step(lane, clock, group, 1, 10)
    sources = {t.name: t.source for t in lane.totals(final=True)}
    assert sources["cycles"] == "perf_event, one thread of 2"
    assert sources["page_faults"] == "perf_event, one thread of 2, user mode"
    assert is_exact("perf_event, user mode")
    assert not any(is_exact(source) for source in sources.values())


def test_the_last_reading_waits(lane, clock, group):
    now = clock()
    lane.put(9, now - 100, now)  # before counting
    step(lane, clock, group, 1, 10)
    assert lane.totals() == []
    step(lane, clock, group, 1, 20)
    assert table(lane, final=False)[1, 0, "cycles"] == 10
    assert lane.totals() == []
    found = table(lane)
    assert found[1, 0, "cycles"] == 30
    assert {stage for stage, _, _ in found} == {1}
    assert lane.totals(final=True) == []


STEP = st.fixed_dictionaries({
    "stage": st.integers(0, 3), "epoch": st.integers(0, 1), "ns": st.integers(1, 10**6),
    "cycles": st.integers(0, 10**9), "sharing": st.integers(1, 4), "add_up": st.booleans(),
})  # fmt: skip


@given(st.lists(STEP, max_size=30))
def test_no_count_is_lost_or_doubled(steps):
    clock, group = FakeClock(1_000_000), FakeGroup()
    lane = CountingLane(0, "decode", "cpu", True, clock=clock)
    begin = clock()
    lane.count(group)  # type: ignore[arg-type]
    latest: dict[tuple[int, int, str], int] = {}
    for one in steps:
        lane.epoch = one["epoch"]
        start, ns = clock(), one["ns"]
        group.work(one["cycles"])
        clock.advance(ns * one["sharing"])
        for i in range(one["sharing"]):
            lane.put((one["stage"] + i) % 4, start + i * ns, start + (i + 1) * ns)
        clock.advance(1)
        if one["add_up"]:
            latest |= table(lane, final=False)
    latest |= table(lane)
    slack = 8  # each total is rounded on its own
    assert sum(v for k, v in latest.items() if k[2] == "cycles") == pytest.approx(group.cycles, abs=slack)
    counted = sum(v for k, v in latest.items() if k[2] == COUNTED)
    assert counted == pytest.approx(clock() - begin - bool(steps), abs=slack)


def test_totals_reach_the_session_and_are_added_up_over_epochs(clock, group, tmp_path):
    recorder = Recorder(clock)
    writer = SessionWriter(tmp_path / "counted.asrs", recorder, {"recorder": counting.about(group)})  # type: ignore[arg-type]
    stage, other = recorder.stage("score.gaussians", "scoring"), recorder.stage("search.emit", "search")
    lane = recorder.lane("decode", decode=True, make=CountingLane)
    lane._clock = clock
    with counting.counting(lane, group, writer) as report:  # type: ignore[arg-type]
        for lane.epoch in (0, 1):
            step(lane, clock, group, stage, 100 + lane.epoch)
        report()
        start = clock()
        group.work(40)
        clock.advance(100)
        lane.put(other, start, start + 50)
        lane.put(other, start + 50, start + 100)
    step(lane, clock, group, stage, 5000)  # after counting has ended
    writer.close()
    with Session.open(writer.path) as session:
        counted = {name: (row.values["cycles"], row.exact) for (name, _), row in by_stage(session).items()}
        assert counted == {"score.gaussians": (201, True), "search.emit": (40, False)}
        about = session.meta["recorder"]
        assert about["counters"] == ["cycles", "page_faults"]
        assert all(about[key] > 0 for key in ("ns_per_counter_read", "ns_per_counted_span", "ns_per_span"))


def test_nothing_is_counted_without_a_group_or_a_lane(clock, group):
    sink = SimpleNamespace(counters=lambda totals: pytest.fail("nothing to store"))
    for lane, some in ((NullLane(), group), (CountingLane(0, "x", "cpu", True), None)):
        with counting.counting(lane, some, sink) as report:  # type: ignore[arg-type]
            lane.put(0, 1, 2)
            report()
    assert group.readings == 0


def test_missed_readings_are_recorded_in_the_session(lane, clock, group, monkeypatch):
    monkeypatch.setattr(counting, "MAX_WAITING", 3)
    stored: dict[str, object] = {}
    sink = SimpleNamespace(counters=lambda totals: None, meta=stored.__setitem__)
    with counting.counting(lane, group, sink) as report:  # type: ignore[arg-type]
        report()
        assert stored == {}
        for _ in range(5):
            step(lane, clock, group, 1, 10)
        assert table(lane)[1, 0, "cycles"] == 30
        step(lane, clock, group, 2, 10)
        assert table(lane)[2, 0, "cycles"] == 30, "with what nobody read"
    assert stored == {counting.MISSED: 2}
