import struct
import unicodedata
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from profiler import clock
from profiler.arrays import ArrayError, check, check_indices, check_offsets
from profiler.plain import one_line, printable
from profiler.recording.drained_lane import DrainedLane
from profiler.recording.kernel_spans import put as kernel_put
from profiler.spans import SPAN, Cost, Lane, Linear, Recorder, measure_ns_per_span
from tests.each import each

U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


def test_stages_and_costs_are_registered_once_and_checked():
    recorder = Recorder()
    assert recorder.stage("a", "search", ("arcs",)) == recorder.stage("a", "search", ["arcs"]) == 0
    assert recorder.stage("b", "scoring") == 1
    for epoch in (0, 0, 1):
        recorder.cost(0, epoch, Cost({"fma": Linear(1)}))
    assert len(recorder.costs) == 2
    refusals = {
        "already registered": lambda: recorder.stage("a", "scoring"),
        "none of": lambda: recorder.stage("c", "cooking"),
        "at most 3": lambda: recorder.stage("c", "search", ("a", "b", "c", "d")),
        "no such stage": lambda: recorder.cost(5, 0, Cost()),
        "epoch": lambda: recorder.cost(0, 70000, Cost()),
    }
    for sentence, refused in refusals.items():
        with pytest.raises(ValueError, match=sentence):
            refused()
    lane = Lane(0, "x", "cpu", False)
    for bad in ({"work0": 2**32}, {"frames": 2**32}, {"first_frame": -1}):
        with pytest.raises(struct.error):
            lane.put(1, 0, 1, **bad)
    assert lane.recorded == 0, "counts that do not fit are not silently cut"


FACTOR = st.floats(0, 1e6)


@given(FACTOR, FACTOR, st.tuples(FACTOR, FACTOR, FACTOR), st.lists(st.tuples(U16, U32, U32, U32), max_size=8))
def test_linear_is_the_sum_of_its_terms(fixed, per_frame, per_work, rows):
    law = Linear(fixed, per_frame, per_work)
    spans = np.zeros(len(rows), SPAN)
    for span, (frames, *work) in zip(spans, rows, strict=True):
        span["frames"] = frames
        span["work0"], span["work1"], span["work2"] = work
    wanted = [
        fixed + per_frame * frames + sum(f * w for f, w in zip(per_work, work, strict=True)) for frames, *work in rows
    ]
    assert law.of(spans) == pytest.approx(wanted)
    totals = [float(sum(row[i] for row in rows)) for i in range(4)]
    assert law.total(len(rows), totals[0], (totals[1], totals[2], totals[3])) == pytest.approx(sum(wanted))
    assert Linear.from_list(law.as_list()) == law


def test_cost_survives_storage_and_refuses_nonsense():
    cost = Cost({"gemm": Linear(1, 2, (3, 4, 5))}, Linear(1), Linear(2), 3.0, Linear(4))
    assert Cost.from_dict(cost.as_dict()) == cost
    for bad in (None, {}, {"operations": 3}, {**cost.as_dict(), "working_set_bytes": "x"}):
        with pytest.raises(ValueError):
            Cost.from_dict(bad)
    for numbers in ([1, 2], [1, 2, 3, 4, "5"], [1, 2, 3, 4, float("nan")], "12345"):
        with pytest.raises(ValueError, match="five sensible numbers"):
            Linear.from_list(numbers)


def test_measuring_the_recorder_and_the_clocks():
    measured = measure_ns_per_span()
    assert 0 < measured["ns_per_put"] < measured["ns_per_span"] < 1e6
    readings = iter([0, 1000, 2000, 2010, 3000, 3500, 4000, 4900, 5000, 5900])
    mono, _ = clock.wall_pair(lambda: next(readings))
    assert mono == 2005, "the tightest reading"


STAGE = 7


@numba.njit
def record(spans: Any, begin: int, n: int) -> None:
    for i in range(begin, begin + n):
        kernel_put(spans, STAGE, 10 * i, 10 * i + 5, i, 1, (i, 0, 0))


@given(
    st.integers(4, 40), st.lists(st.tuples(st.sampled_from(["put", "lap", "kernel"]), st.integers(1, 30)), max_size=30)
)
def test_no_span_is_lost_in_a_small_ring(capacity, turns):
    lane = DrainedLane(0, "small", "cpu", True, capacity, clock=lambda: 0)
    n, epochs = 0, list[int]()
    for epoch, (how, count) in enumerate(turns):
        lane.epoch = epoch
        if how == "kernel":
            # A quarter of the ring is promised to a kernel.
            count = min(count, -(-capacity // 4))
            record(lane.lend(), n, count)
            lane.settle()
        else:
            for i in range(n, n + count):
                if how == "put":
                    lane.put(STAGE, 10 * i, 10 * i + 5, i, 1, i)
                else:
                    lane.begin(i, 1)
                    lane.lap(STAGE, i)
        epochs += [epoch] * count
        n += count
    assert (lane.recorded, lane.dropped) == (n, 0)
    spans = lane.drain()
    assert spans["work0"].tolist() == spans["first_frame"].tolist() == list(range(n))
    assert spans["epoch"].tolist() == epochs
    assert set(spans["stage"].tolist()) <= {STAGE}
    assert len(lane.drain()) == 0


def test_a_subclass_may_hold_less():
    class Counted(DrainedLane):
        def keep(self, spans: np.ndarray) -> None:
            totals.append(len(spans))

    totals: list[int] = []
    lane = Recorder().lane("counted", make=Counted)
    for i in range(200_000):
        lane.put(STAGE, i, i + 1)
    assert len(lane.drain()) == 0
    assert sum(totals) == 200_000
    assert max(totals) <= 1 << 14
    assert isinstance(lane, Lane)


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12), st.integers(0, 15))
def test_the_last_spans_of_a_ring(capacity, rounds, count):
    lane = Lane(0, "decode", "cpu", True, capacity=capacity)
    recorded: list[int] = []
    for turn, (puts, takes) in enumerate(rounds):
        for number in range(100 * turn, 100 * turn + puts):
            lane.put(number, number, number + 1)
            if lane.recorded > len(recorded):
                recorded.append(number)
        lane.take(takes)
    found = lane.latest(count)
    # Taken or not, what is still in the ring is there.
    wanted = recorded[len(recorded) - min(count, len(recorded), capacity) :]
    lane.put(99, 1, 2)
    assert found["stage"].tolist() == found["start_ns"].tolist() == wanted, "it is a copy"


ROWS = np.zeros((3, 4), np.float32)


def test_the_right_array_passes():
    check("x", ROWS, np.float32, (3, 4), writable=True)
    check("x", ROWS, np.float32, (None, 4))
    check("x", ROWS[:, :2], np.float32, (3, 2), contiguous=False)
    check("x", np.zeros((0, 4), np.float32), np.float32, (None, 4))
    check("x", np.array(1, np.float32), np.float32, ())


def frozen() -> np.ndarray:
    array = ROWS.copy()
    array.flags.writeable = False
    return array


@each(
    "array, message",
    [
        (ROWS.astype(np.float64), "holds float64, the kernel wants float32"),
        (ROWS.astype(">f4"), "holds >f4"),
        (ROWS[:2], r"shape \(2, 4\), the kernel wants \(3, 4\)"),
        (np.zeros((3, 8), np.float32)[:, ::2], "not contiguous"),
        (frozen(), "read-only"),
        (ROWS.tolist(), "is a list"),
    ],
)
def test_any_other_is_refused_by_name(array, message):
    with pytest.raises(ArrayError, match=f"^x .*{message}"):
        check("x", array, np.float32, (3, 4), writable=True)
    with pytest.raises(ArrayError, match="not contiguous"):
        check("x", np.zeros((3, 8), np.float32)[:, ::2], np.float32, (3, 4), contiguous=False)


def test_indices_lie_below_the_limit():
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        check_indices("i", np.array([0, 4], dtype), 5)
        check_indices("i", np.array([], dtype), 0)
        with pytest.raises(ArrayError, match="only 0 to 3"):
            check_indices("i", np.array([0, 4], dtype), 4)
    with pytest.raises(ArrayError, match="holds -1 to 2"):
        check_indices("i", np.array([2, -1]), 4)


def test_offsets_rise_from_nought_to_the_end():
    check_offsets("s", np.array([0, 2, 2, 4]), 4)
    # Without a sign they do not hide a fall.
    for dtype in (np.int64, np.uint32):
        for starts in ([], [1, 4], [0, 3], [0, 5], [0, 3, 2, 4]):
            with pytest.raises(ArrayError, match="from 0 to 4"):
                check_offsets("s", np.array(starts, dtype), 4)


ANY_TEXT = st.text(st.characters(), max_size=400)


@given(ANY_TEXT)
@example("\x1b]0;title\x07\u202egnp.exe\udcff\x9b2J\r\n\u2028\ue000")
def test_nothing_hidden_is_left_and_it_can_be_encoded(text):
    shown = printable(text)
    assert not any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in shown)
    shown.encode("utf-8")
    assert printable(shown) == shown


@given(ANY_TEXT, st.integers(10, 300))
@example("x" * 100_000, 200)
@example("\x00" * 5000, 20)
def test_one_line_keeps_to_its_length(text, limit):
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert shown.splitlines() in ([shown], [])
    if text.isprintable():
        assert shown == text or (len(text) > limit and shown[0] == text[0])
        assert shown[-1:] == text[-1:]


def test_what_is_to_be_kept_is_kept():
    assert printable("a\tb\nc\rd", keep="\n\t") == "a\tb\nc\\rd"
    for text in ("größer", "日本 語", "a\u00a0b", "Привет", "עברית"):
        assert printable(text) == text
