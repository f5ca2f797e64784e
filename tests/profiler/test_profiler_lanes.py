import itertools
import threading
import time
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.own_cost import recorder_cost
from profiler.analysis.track import CostTrack
from profiler.clock import now_ns
from profiler.recording.kernel_spans import HAS_CLOCK, put_open
from profiler.recording.kernel_spans import now_ns as kernel_now_ns
from profiler.recording.kernel_spans import put as kernel_put
from profiler.recording.lanes import RING_RECORDS, Lane, NullLane
from profiler.recording.layout import SPAN
from profiler.session.reader import Session
from profiler.session.writer import Rounds, SessionWriter
from profiler.spans import Recorder
from tests.each import each
from tests.fake_clock import FakeClock

JOIN_S = 60


@numba.njit(cache=True, nogil=True)
def record_run(spans: Any, begin: int, n: int) -> None:
    """n spans whose every field follows from its number."""
    for i in range(begin, begin + n):
        kernel_put(spans, i % 1000, 10 * i, 10 * i + i % 7, i, i % 50, (i + 1, i + 2, i + 3))


@numba.njit(cache=True, nogil=True)
def record_slowly(spans: Any, begin: int, n: int) -> int:
    """The same, with time in between: some 100 ns a span."""
    clocks = 0
    for i in range(begin, begin + n):
        for _ in range(4):
            clocks ^= kernel_now_ns()
        record_run(spans, i, 1)
    return clocks


@numba.njit
def record_and_open(spans: Any, begin: int, n: int) -> None:
    """`record_run` of n − 1, and the last one's end is left open."""
    record_run(spans, begin, n - 1)
    i = begin + n - 1
    put_open(spans, i % 1000, 10 * i, i, i % 50, (i + 1, i + 2, i + 3))


@numba.njit
def record_one(spans: Any, stage: int, first_frame: int, frames: int, work0: int) -> None:
    kernel_put(spans, stage, 5, 9, first_frame, frames, (work0, 0, 0))


@numba.njit
def read_clock() -> int:
    return kernel_now_ns()


def expected_run(begin: int, n: int, lane: int = 0, epoch: int = 0) -> np.ndarray:
    """What `record_run` must have recorded."""
    i = np.arange(begin, begin + n)
    spans = np.empty(n, SPAN)
    values = {"start_ns": 10 * i, "duration_ns": i % 7, "stage": i % 1000, "lane": lane, "epoch": epoch}
    values |= {"first_frame": i, "frames": i % 50, "work0": i + 1, "work1": i + 2, "work2": i + 3}
    for name, value in values.items():
        spans[name] = value
    return spans


def put_run(lane: Lane, begin: int, n: int) -> None:
    """The same spans as `record_run`, from Python."""
    for i in range(begin, begin + n):
        lane.put(i % 1000, 10 * i, 10 * i + i % 7, i, i % 50, i + 1, i + 2, i + 3)


def taken(lane: Lane, limit: int = RING_RECORDS) -> np.ndarray:
    return np.frombuffer(lane.take(limit), SPAN)


STEPS = st.tuples(st.sampled_from(["put", "lap", "kernel", "open", "take", "epoch"]), st.integers(1, 12))


@settings(deadline=None)  # compiles at first
@given(st.integers(1, 9), st.lists(STEPS, max_size=60))
def test_a_lane_records_as_a_list_would(capacity, steps):
    clock = FakeClock(1)
    lane = Lane(3, "x", "cpu", False, capacity, clock)
    waiting: list[tuple[int, ...]] = []
    recorded = dropped = epoch = 0
    begin = 1
    for what, n in steps:
        spans: list[tuple[int, ...]] = []
        if what == "epoch":
            epoch = lane.epoch = n
        elif what == "take":
            assert taken(lane, n).tolist() == waiting[:n]
            del waiting[:n]
        elif what == "lap":
            lane.begin(7, 2**32 - 1)
            for i in range(n):
                start = clock()
                clock.advance(i)
                lane.lap(5, i)
                spans.append((start, i, 5, 3, epoch, 2**32 - 1, 7, i, 0, 0))
        else:
            run = expected_run(begin, n, 3, epoch)
            if what == "put":
                put_run(lane, begin, n)
            elif what == "kernel":
                record_run(lane.lend(), begin, n)
                lane.settle()
            else:
                record_and_open(lane.lend(), begin, n)
                lane.settle(10 * (begin + n - 1) + 1000)
                run["duration_ns"][-1] = 1000
            spans = run.tolist()
            begin += n
        kept = spans[: capacity - len(waiting)]
        waiting += kept
        recorded, dropped = recorded + len(kept), dropped + len(spans) - len(kept)
        assert (lane.recorded, lane.dropped, lane.waiting) == (recorded, dropped, len(waiting))
    assert taken(lane).tolist() == waiting


def test_a_lap_that_ended_earlier_leaves_the_rest_to_the_next():
    clock = FakeClock(1000)
    lane = Lane(0, "decode", "cpu", True, clock=clock)
    lane.begin(70, 3)
    clock.advance(500)
    lane.lap_before(200, 1, 9, 8, 7)
    lane.lap(2)
    clock.advance(40)
    lane.lap_before(99, 1)  # longer than there was time: nothing is left for this one
    lane.lap(2)
    spans = taken(lane)
    assert spans[["start_ns", "duration_ns", "stage"]].tolist() == [
        (1000, 300, 1), (1300, 200, 2), (1500, 0, 1), (1500, 40, 2),
    ]  # fmt: skip
    assert set(spans[["first_frame", "frames"]].tolist()) == {(70, 3)}
    assert spans[["work0", "work1", "work2"]][0].item() == (9, 8, 7)
    null = NullLane()
    null.begin(1, 2)
    null.lap(3, 4, 5, 6)
    null.lap_before(1, 2, 3)
    record_run(null.lend(), 0, 50)
    null.settle()
    assert (null.recorded, null.dropped) == (0, 0)


def test_an_end_that_nobody_tells_is_the_beginning():
    lane = Lane(2, "x", "cpu", False, 50)
    record_and_open(lane.lend(), 1, 3)
    lane.settle()
    # It is not left open for the next one.
    record_run(lane.lend(), 4, 1)
    lane.settle(12345)
    assert taken(lane)["duration_ns"].tolist() == [1, 2, 0, 4]
    if HAS_CLOCK:
        before = now_ns()
        inside = read_clock()
        assert before <= inside <= now_ns()


@each("bad", [(1 << 16, 0, 0, 0), (-1, 0, 0, 0), (0, 1 << 32, 0, 0), (0, 0, -5, 0), (0, 0, 0, 1 << 40)])
def test_a_kernel_drops_and_counts_what_does_not_fit(bad):
    lane, largest = Lane(0, "x", "cpu", False, 4), (65535, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    record_one(lane.lend(), *bad)
    record_one(lane.lend(), *largest)
    lane.settle()
    assert (lane.recorded, lane.dropped) == (1, 1)
    assert taken(lane)[["stage", "first_frame", "frames", "work0"]].tolist() == [largest]


class Consumer(threading.Thread):
    """Takes from a lane, a varying number at a time, until the test signals the end."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(daemon=True)
        self.lane, self.done = lane, threading.Event()
        self.taken: list[bytes] = []
        self.racing = False  # set by the producer while a kernel records
        self.raced = 0  # times that something was taken from beginning to end of which it did

    def run(self) -> None:
        for limit in itertools.cycle((1, 7, 64, 3, 9000)):
            last, racing = self.done.is_set(), self.racing
            self.taken.append(self.lane.take(limit))
            self.raced += racing and self.racing and len(self.taken[-1]) > 0
            if last and not self.lane.waiting:
                return

    def spans(self) -> np.ndarray:
        self.done.set()
        self.join(JOIN_S)
        assert not self.is_alive()
        return np.frombuffer(b"".join(self.taken), SPAN)


def test_a_kernel_records_while_the_consumer_takes():
    """The kernel runs without the interpreter lock; its spans arrive whole, once each and in order."""
    lane = Lane(1, "x", "cpu", False, 40_000)
    consumer = Consumer(lane)
    consumer.start()
    kept, number = [], 0
    for turn in range(200):
        if turn >= 40 and consumer.raced >= 10:
            break
        # Mostly there is room; every tenth time what there is no room for is dropped.
        while turn % 10 and lane.waiting > 10_000:
            time.sleep(0)
        n, before = 19_989 if turn % 3 else turn, lane.dropped
        spans = lane.lend()
        consumer.racing = True
        record_slowly(spans, number, n)
        consumer.racing = False
        lane.settle()
        kept.append((number, n - (lane.dropped - before)))
        number, before = number + n, lane.dropped
        put_run(lane, number, 1)
        kept.append((number, int(lane.dropped == before)))
        number += 1
    spans = consumer.spans()
    assert spans.tobytes() == b"".join(expected_run(begin, n, 1).tobytes() for begin, n in kept)
    assert lane.recorded + lane.dropped == number
    if not consumer.raced:
        pytest.skip("this machine never ran the kernel and the consumer at the same time")


def test_a_stalled_writer_drops_and_counts(tmp_path, monkeypatch):
    stalled, go_on = threading.Event(), threading.Event()
    flush = Rounds._flush

    def slow(rounds: Rounds) -> None:
        flush(rounds)
        if rounds._recorder.lanes:
            stalled.set()
            assert go_on.wait(JOIN_S)

    monkeypatch.setattr(Rounds, "_flush", slow)
    recorder, path = Recorder(), tmp_path / "stalled.asrs"
    stage = recorder.stage("a", "search")
    with SessionWriter(path, recorder, {}) as writer:
        full, beside = recorder.lane("full", decode=True), recorder.lane("beside")
        assert stalled.wait(JOIN_S)
        assert full.waiting == 0
        for i in range(RING_RECORDS + 100):
            full.put(stage, i, i + 1)
        for _ in range(23):
            full.begin(0, 1)
            full.lap(stage)
        record_run(full.lend(), 0, 7)
        full.settle()
        beside.put(stage, 1, 2)
        assert (full.dropped, beside.dropped) == (130, 0)
        go_on.set()
    assert writer.failed is None
    with Session.open(path) as session:
        lanes = {lane.name: (lane.recorded, lane.dropped) for lane in session.lanes.values()}
        assert lanes == {"full": (RING_RECORDS, 130), "beside": (1, 0)}
        kept = session.spans[session.spans["lane"] == full.id]
        assert kept["start_ns"].tolist() == list(range(RING_RECORDS))
        shown = recorder_cost(session, CostTrack())
        assert (shown.spans, shown.dropped) == (RING_RECORDS + 1, 130)
