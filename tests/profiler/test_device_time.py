"""Device time on the host's clock: against a device that is simulated, and so known exactly."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_device import COMPUTE, COPY, LATENCY_NS, MS, FakeDevice, Rig, piece

from profiler.analysis.breakdown import breakdown
from profiler.analysis.device import hidden_ns, transfers
from profiler.device.clock import Busy, Charge, ClockMap, ClockPair, Wait, charge, measure_pair
from profiler.device.time import LATENCY, RECORDING, TRANSFER_COST, TRANSFER_WORK, DeviceTimer, Part
from profiler.recording.layout import SPAN
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Cost, Linear, NullLane, Recorder
from tests.each import each
from tests.fake_clock import FakeClock


def test_the_narrowest_of_the_readings_counts():
    clock = FakeClock(10_000)

    class Uneven(FakeDevice):
        def wait(self, event: int) -> None:
            self.latency_ns = [9_000, 400, 30_000][self.events % 3]
            super().wait(event)

    pair = measure_pair(Uneven(clock, origin_ns=-7_000), clock)
    assert pair.uncertainty_ns == 200
    assert pair.device_ns + 7_000 == pytest.approx(pair.host_ns, abs=200)


@given(
    st.integers(-(10**12), 10**12),
    st.floats(-500e-6, 500e-6),
    st.lists(st.integers(0, 10**10), min_size=1, max_size=20),
)
def test_a_clock_with_its_own_rate(origin, skew, times):
    def device(host: int) -> int:
        return origin + round(host * (1 + skew))

    clocks = ClockMap()
    for host in (10**9, 4 * 10**9, 9 * 10**9):
        clocks.add(ClockPair(host, device(host), 10))
    assert clocks.rate == pytest.approx(1 - skew, abs=3e-7)
    for host in times:
        # 10^10 ns beyond a base of 8·10^9 ns that is known to the nanosecond.
        assert clocks.to_host(device(host)) == pytest.approx(host, abs=5)


def test_pairs_of_clocks_that_are_few_or_many():
    clocks = ClockMap()
    with pytest.raises(ValueError, match="no clock pair"):
        clocks.to_host(5)
    clocks.add(ClockPair(0, 0, 500))
    clocks.add(ClockPair(10_000, 11_000, 500))
    assert (clocks.rate, clocks.to_host(21_000)) == (1.0, 20_000), "they are too close together to tell a rate"
    clocks = ClockMap()
    for host in range(0, 1000, 100):
        clocks.add(ClockPair(host * MS, 2 * host * MS, 1))
    clocks.forget_before(2 * 550 * MS)
    assert [pair.host_ns // MS for pair in clocks.pairs] == [0, 500, 600, 700, 800, 900]
    assert clocks.to_host(2 * 550 * MS) == 550 * MS


def test_the_stream_waited_for_decides_then_arithmetic_before_copies():
    gemm = Busy(COMPUTE, 1, 0, 60)
    copy = Busy(COPY, 2, 40, 100, transfer=True)
    assert charge([Wait(COPY, 0, 120)], [gemm, copy]) == [
        Charge(gemm, 0, 40),
        Charge(copy, 40, 100),
        Charge(None, 100, 120),
    ]
    assert charge([Wait(None, 0, 100)], [copy, gemm]) == [Charge(gemm, 0, 60), Charge(copy, 60, 100)]
    assert charge([], [gemm]) == []
    assert charge([Wait(COPY, 5, 5)], [gemm]) == []


intervals = st.tuples(st.integers(0, 500), st.integers(0, 100)).map(lambda p: (p[0], p[0] + p[1]))


@given(
    st.lists(intervals, max_size=6),
    st.lists(st.tuples(st.integers(0, 2), intervals, st.booleans()), max_size=12),
    st.one_of(st.none(), st.integers(0, 2)),
)
def test_charges_tile_the_waits_and_name_only_what_ran(waits, busy, stream):
    at, apart = 0, []
    for start, end in sorted(waits):
        start = max(start, at)
        at = max(end, start)
        apart.append(Wait(stream, start, at))
    work = [Busy(which, i, start, end, transfer, i) for i, (which, (start, end), transfer) in enumerate(busy)]
    charges = charge(apart, work)
    assert sum(c.end_ns - c.start_ns for c in charges) == sum(w.end_ns - w.start_ns for w in apart)
    assert all(one.start_ns < one.end_ns <= after.start_ns for one, after in pairwise(charges))
    for one in charges:
        for t in range(one.start_ns, one.end_ns):
            assert any(w.start_ns <= t < w.end_ns for w in apart)
            running = [b for b in work if b.start_ns <= t < b.end_ns]
            assert one.busy in (running or [None])
            if one.busy and one.busy.stream != stream:
                assert all(b.stream != stream for b in running)
    # Nobody is charged for more than it ran.
    for b in work:
        assert sum(c.end_ns - c.start_ns for c in charges if c.busy == b) <= b.end_ns - b.start_ns


@each("skew", [-300e-6, 0.0, 300e-6])
def test_asynchronous_arithmetic_is_not_billed_to_the_copy_that_waits_for_it(skew):
    rig = Rig(rate=1 + skew)
    for _ in range(50):
        rig.compute(10 * MS)
        rig.blocking_copy(1 * MS)
        rig.timer.resolve()
    sums, (compute, _) = rig.taken()
    assert sums.pop(RECORDING) == rig.timer.recording_ns > 0  # clock pairs
    total = sum(sums.values())
    assert sums["score.dense.wait"] == pytest.approx(500 * MS, rel=0.003)
    assert sums["transfer.down.wait"] == pytest.approx(50 * MS, rel=0.01)
    assert sums[LATENCY] < 0.002 * total
    assert total == 50 * (11 * MS + LATENCY_NS)
    # Until the rate is known, the clocks part for as long as it takes to learn it.
    assert rig.timer.worst_ns <= 2 * LATENCY_NS + abs(skew) * 150 * MS
    assert len(compute) == 100
    # All of it was waited for.
    downs = compute[compute["stage"] == rig.down]
    assert int(downs["work0"].sum()) == 50 * 4096
    assert int(downs["work1"].sum()) == 0
    assert int(downs["work2"].sum()) < 0.01 * 50 * MS


def test_work_still_under_way_is_recorded_when_it_is_done():
    rig = Rig()
    recorded = []
    for rig.host.epoch in (3, 4, 5):
        rig.compute(5 * MS)
        rig.timer.resolve()
        # It belongs to the configuration under which it was given.
        recorded.append(rig.taken()[1][0][["epoch", "frames"]].tolist())
        rig.clock.advance(6 * MS)
    assert recorded == [[], [(3, 4)], [(4, 4)]]


def test_times_that_are_the_hosts_own_need_no_pairs():
    rig = Rig(host_time=True, origin_ns=0, latency_ns=0)
    rig.compute(3 * MS)
    rig.clock.advance(1 * MS)
    rig.blocking_copy(2 * MS, 100)
    rig.timer.resolve()
    sums, (compute, _) = rig.taken()
    assert sums == {"score.dense.wait": 2 * MS, "transfer.down.wait": 2 * MS}
    assert compute["duration_ns"].tolist() == [3 * MS, 2 * MS]
    assert rig.timer.clock_map.pairs == []


@pytest.mark.parametrize(("emit", "close", "spans"), [(3 * MS, MS, [3, 1, 2]), (9 * MS, 3 * MS, [4.5, 1.5])])
def test_what_the_device_timed_itself_stands_in_place_of_the_piece(emit, close, spans):
    rig = Rig(rate=1.0)
    stages = [rig.recorder.stage(name, "search") for name in ("search.emit", "search.epsilon")]
    parts: list[Part] = []
    given, began = rig.timer.begin(COMPUTE)
    rig.device.run(COMPUTE, 6 * MS)
    rig.timer.end(given, began, rig.gemm, COMPUTE, 5, 4, (7, 0, 0), parts=parts)
    with rig.timer.waiting(COMPUTE):
        rig.device.wait(rig.device.mark(COMPUTE))
    # It is known when the piece is done.
    parts += [Part(stages[0], emit, (30, 0, 0)), Part(stages[1], close)]
    rig.timer.resolve()
    sums, (compute, *_) = rig.taken()
    # More than the piece took is too much: all are shorter then, and nothing is left for the piece's own span.
    assert (compute["duration_ns"] / MS).tolist() == pytest.approx(spans, abs=1e-3)
    assert compute["stage"].tolist() == [*stages, rig.gemm][: len(spans)]
    assert compute["work0"].tolist() == [30, 0, 7][: len(spans)]
    assert compute["first_frame"].tolist() == [5] * len(spans)
    for one, after in pairwise(compute):
        assert one["start_ns"] + one["duration_ns"] == after["start_ns"]
    # What the host waited for is the piece.
    assert sums["score.dense.wait"] == pytest.approx(6 * MS, abs=LATENCY_NS)


def test_silent_work_is_done_and_not_recorded():
    rig = Rig()
    with rig.timer.silent():
        rig.compute(3 * MS)
        rig.blocking_copy(1 * MS)
        rig.timer.resolve()
    assert rig.clock() >= 1_004 * MS
    rig.timer.resolve()
    sums, lanes = rig.taken()
    assert (sums, [len(lane) for lane in lanes]) == ({}, [0, 0])


def test_waits_for_copies_and_for_nothing_say_why_they_have_no_law():
    rig = Rig()
    for epoch in (0, 1):
        rig.host.epoch = epoch
        rig.blocking_copy(1 * MS)
        rig.timer.resolve()
    for name, reason in (("transfer.down.wait", "waits for the device"), (LATENCY, "ran anything")):
        number = rig.recorder.stage_id(name)
        laws = {epoch: cost for stage, epoch, cost in rig.recorder.costs if stage == number}
        assert set(laws) == {0, 1}
        assert all(reason in cost.unmodelled for cost in laws.values())


def test_a_wait_for_scoring_carries_the_work_done_meanwhile_and_its_law():
    rig = Rig(latency_ns=0)
    dense = rig.recorder.stage("score.counted", "scoring", ("gaussians",))
    law = Cost({"gemm": Linear(per_work=(54.0, 0.0, 0.0))}, Linear(per_work=(4.0, 0.0, 0.0)))
    rig.recorder.cost(dense, 0, law)
    with piece(rig.timer, dense, work=(1000, 0, 0)):
        rig.device.run(COMPUTE, 4 * MS)
    rig.clock.advance(1 * MS)  # a quarter is hidden
    with rig.timer.waiting(COMPUTE):
        rig.device.wait(rig.device.free[COMPUTE])
    rig.timer.resolve()
    wait = rig.recorder.stage_id("score.counted.wait")
    assert rig.recorder.cost_of(wait, 0) == law
    assert rig.recorder.stages[wait].work == ("gaussians meanwhile",)
    spans = np.frombuffer(rig.host.take(), SPAN)
    (span,) = spans[spans["stage"] == wait]
    assert int(span["duration_ns"]) == pytest.approx(3 * MS, abs=2 * LATENCY_NS)
    assert int(span["work0"]) == pytest.approx(750, abs=2)


def test_with_the_recorder_off_the_device_is_not_queried():
    clock = FakeClock(1_000)
    device, recorder = FakeDevice(clock), Recorder(clock)
    timer = DeviceTimer(recorder, device, NullLane(), ["compute"])
    stage = recorder.stage("score.dense", "scoring")
    with piece(timer, stage):
        device.run(COMPUTE, 100)
    with timer.transfer(recorder.stage("t", "transfer", TRANSFER_WORK), 8, True), timer.waiting():
        pass
    timer.resolve()
    assert device.events == 0
    assert recorder.lanes == []


def test_a_copy_too_large_for_a_span_is_refused():
    rig = Rig()
    with pytest.raises(ValueError, match="split it below 4 GiB"), rig.timer.transfer(rig.up, 1 << 32, True):
        pass


def test_times_that_break_causality_are_corrected_and_reported():
    class Jumping(FakeDevice):
        def time_ns(self, event: int) -> int:
            return super().time_ns(event) - 20 * MS

    rig = Rig()
    given_ns = rig.clock()
    rig.compute(1 * MS)
    rig.device.__class__ = Jumping
    rig.clock.advance(2 * MS)
    rig.timer.resolve()
    (span,) = rig.taken()[1][0]
    assert int(span["start_ns"]) >= given_ns
    assert rig.timer.worst_ns >= 18 * MS


WHAT = ("compute", "copy", "blocking", "host", "wait", "follow", "block")
actions = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 1), st.integers(1, 5 * MS)), max_size=40)


@settings(max_examples=60, deadline=None)
@given(actions, st.floats(-200e-6, 200e-6), st.integers(0, 3_000))
def test_host_time_is_its_own_work_and_its_waits_whatever_the_device_does(program, skew, latency):
    rig = Rig(rate=1 + skew, latency_ns=latency)
    timer, device, clock = rig.timer, rig.device, rig.clock
    device.true.clear()
    begin, own = clock(), 0
    for what, stream, ns in [*program, ("wait", 0, 0), ("wait", 1, 0), ("block", 0, 0)]:
        if what == "compute":
            rig.compute(ns, stream)
        elif what == "copy":
            with timer.transfer(rig.up, 64, True, stream):
                device.run(stream, ns)
        elif what == "blocking":
            rig.blocking_copy(ns, 64, stream)
        elif what == "host":
            clock.advance(ns)
            own += ns
        elif what == "wait":
            with timer.waiting(stream):
                device.wait(device.free[stream])
        elif what == "follow":
            device.follow(stream, device.record(1 - stream))
        else:
            timer.resolve()
    sums, lanes = rig.taken()
    # The host's time is its own work, waiting that was charged to somebody, and recording both.
    assert own + sum(sums.values()) == clock() - begin

    # The device's lanes hold what really ran, in order, as long as it took.
    error = 2 * max(p.uncertainty_ns for p in timer.clock_map.pairs) + 2 + 10 * abs(skew) * 40 * 5
    drift = abs(skew) * (clock() - begin) + error
    recorded = sorted(
        (stream, int(s["start_ns"]), int(s["start_ns"] + s["duration_ns"]))
        for stream, spans in enumerate(lanes)
        for s in spans
    )
    for (stream, *times), (true_stream, *true) in zip(recorded, sorted(device.true), strict=True):
        assert stream == true_stream
        assert times == pytest.approx(true, abs=drift)
    for spans in lanes:
        ends = (spans["start_ns"] + spans["duration_ns"])[:-1]
        assert (spans["start_ns"][1:] >= ends).all()

    # Nothing is charged for longer than it ran, and copies know how much of them nobody waited for.
    for stage in (rig.gemm, rig.up, rig.down):
        mine = np.concatenate([spans[spans["stage"] == stage] for spans in lanes])
        ran, waited = int(mine["duration_ns"].sum()), sums.get(rig.recorder.stages[stage].name + ".wait", 0)
        assert waited <= ran
        assert stage == rig.gemm or int(mine["work2"].astype(np.int64).sum()) == ran - waited


def test_a_session_tells_transfers_and_hidden_time(tmp_path, small):
    rig = Rig()
    block = rig.recorder.stage("decode.block", "decode")
    search = rig.recorder.stage("search.emit", "search")
    for stage in (rig.up, rig.down):
        rig.recorder.cost(stage, 0, TRANSFER_COST)
    with SessionWriter(tmp_path / "device.asrs", rig.recorder, {}):
        for number in range(10):
            tile = rig.clock()
            with rig.timer.transfer(rig.up, 1_000_000, True, COPY, 4 * number, 4):
                rig.device.run(COPY, 1 * MS)
            rig.compute(4 * MS, frame=4 * number)
            start = rig.clock()
            rig.host.put(search, start, rig.clock.advance(3 * MS), 4 * number, 4)
            rig.blocking_copy(2 * MS, 500_000, frame=4 * number)
            rig.timer.resolve(4 * number, 4)
            rig.host.put(block, tile, rig.clock(), 4 * number, 4)
    with Session.open(small) as session:
        assert (hidden_ns(session), transfers(session)) == (None, [])
    with Session.open(tmp_path / "device.asrs") as session:
        up, down = sorted(transfers(session), key=lambda row: row.bytes, reverse=True)
        assert (up.stage, up.lane, up.copies, up.bytes) == ("transfer.up", "copy", 10, 10_000_000)
        assert (down.stage, down.lane, down.copies) == ("transfer.down", "compute", 10)
        assert (up.pinned_bytes, down.pinned_bytes) == (up.bytes, 0)
        assert (up.bytes_per_s, down.bytes_per_s) == pytest.approx((1e9, 0.25e9), rel=0.01)
        assert (up.overlapped, down.overlapped) == pytest.approx((1.0, 0.0), abs=0.01)
        # 1 ms of copy and 3 of 4 ms of arithmetic lay under the search, ten times.
        assert (hidden_ns(session), hidden_ns(session, 8, 20)) == pytest.approx((40 * MS, 12 * MS), rel=0.01)
        parts = breakdown(session)
        shown = (parts.wall_ns, parts.categories["search"], parts.categories["transfer"])
        assert shown == pytest.approx((60 * MS, 30 * MS, 20 * MS), rel=0.01)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        assert [row.share for row in parts.stages if (row.name, row.lane) == ("score.dense", "compute")] == [None]
