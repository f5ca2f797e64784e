from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.spans import (
    LAYOUT,
    RECORD_BYTES,
    SPAN,
    Cost,
    Lane,
    Linear,
    NullLane,
    Recorder,
    measure_ns_per_span,
)

U16, U32, I64 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**62)


def test_the_record_is_forty_two_bytes_in_both_descriptions() -> None:
    assert struct.calcsize(LAYOUT) == SPAN.itemsize == RECORD_BYTES == 42


@given(
    st.lists(st.tuples(U16, I64, st.integers(0, 2**40), U32, U32, U32, U32, U32), max_size=20), U16
)
def test_what_is_put_is_taken(rows: list[tuple[int, ...]], epoch: int) -> None:
    lane = Lane(7, "x", "cpu", False, capacity=32)
    lane.epoch = epoch
    for stage, start, duration, *rest in rows:
        lane.put(stage, start, start + duration, *rest)
    taken = np.frombuffer(lane.take(), SPAN)
    assert len(taken) == len(rows) == lane.recorded
    for got, (stage, start, duration, first, frames, *work) in zip(
        taken.tolist(), rows, strict=True
    ):
        assert got == (start, duration, stage, 7, epoch, frames, first, *work)


def test_the_ring_wraps_and_takes_oldest_first() -> None:
    lane = Lane(0, "x", "cpu", False, capacity=8)
    seen: list[int] = []
    for i in range(50):
        lane.put(1, i, i + 1)
        if i % 3 == 0:
            seen += np.frombuffer(lane.take(2), SPAN)["start_ns"].tolist()
    while lane.waiting:
        seen += np.frombuffer(lane.take(3), SPAN)["start_ns"].tolist()
    assert seen[:20] == list(range(20))
    assert len(seen) == lane.recorded == 50 - lane.dropped
    assert seen == sorted(seen)


def test_a_full_ring_drops_and_counts() -> None:
    lane = Lane(0, "x", "cpu", False, capacity=4)
    for i in range(7):
        lane.put(1, i, i)
    assert (lane.recorded, lane.dropped, lane.waiting) == (4, 3, 4)
    assert np.frombuffer(lane.take(), SPAN)["start_ns"].tolist() == [0, 1, 2, 3]
    lane.put(1, 9, 9)
    assert np.frombuffer(lane.take(), SPAN)["start_ns"].tolist() == [9]


@pytest.mark.parametrize("bad", [{"work0": 2**32}, {"frames": 2**32}, {"first_frame": -1}])
def test_counts_that_do_not_fit_are_not_silently_cut(bad: dict[str, int]) -> None:
    lane = Lane(0, "x", "cpu", False)
    with pytest.raises(struct.error):
        lane.put(1, 0, 1, **bad)
    assert lane.recorded == 0


def test_null_lane_has_the_same_put() -> None:
    null = NullLane()
    null.put(1, 2, 3, 4, 5, 6, 7, 8)
    null.epoch = 3
    assert (null.recorded, null.dropped) == (0, 0)


def test_stages_are_registered_once() -> None:
    recorder = Recorder()
    assert recorder.stage("a", "search", ("arcs",)) == recorder.stage("a", "search", ["arcs"]) == 0
    assert recorder.stage("b", "scoring") == 1
    with pytest.raises(ValueError, match="already registered"):
        recorder.stage("a", "scoring")
    with pytest.raises(ValueError, match="none of"):
        recorder.stage("c", "cooking")
    with pytest.raises(ValueError, match="at most 3"):
        recorder.stage("c", "search", ("a", "b", "c", "d"))


def test_costs_are_registered_once_and_checked() -> None:
    recorder = Recorder()
    stage = recorder.stage("a", "search")
    recorder.cost(stage, 0, Cost({"fma": Linear(1)}))
    recorder.cost(stage, 0, Cost({"fma": Linear(1)}))
    recorder.cost(stage, 1, Cost({"fma": Linear(1)}))
    assert len(recorder.costs) == 2
    with pytest.raises(ValueError, match="no such stage"):
        recorder.cost(5, 0, Cost())
    with pytest.raises(ValueError, match="epoch"):
        recorder.cost(stage, 70000, Cost())


FACTOR = st.floats(0, 1e6)


@given(
    FACTOR,
    FACTOR,
    st.tuples(FACTOR, FACTOR, FACTOR),
    st.lists(st.tuples(U16, U32, U32, U32), max_size=8),
)
def test_linear_is_the_sum_of_its_terms(
    fixed: float,
    per_frame: float,
    per_work: tuple[float, float, float],
    rows: list[tuple[int, int, int, int]],
) -> None:
    law = Linear(fixed, per_frame, per_work)
    spans = np.zeros(len(rows), SPAN)
    for span, (frames, *work) in zip(spans, rows, strict=True):
        span["frames"] = frames
        span["work0"], span["work1"], span["work2"] = work
    wanted = [
        fixed + per_frame * frames + sum(f * w for f, w in zip(per_work, work, strict=True))
        for frames, *work in rows
    ]
    assert law.of(spans) == pytest.approx(wanted)
    totals = [float(sum(row[i] for row in rows)) for i in range(4)]
    assert law.total(len(rows), totals[0], (totals[1], totals[2], totals[3])) == pytest.approx(
        sum(wanted)
    )
    assert Linear.from_list(law.as_list()) == law


def test_cost_survives_storage_and_refuses_nonsense() -> None:
    cost = Cost({"gemm": Linear(1, 2, (3, 4, 5))}, Linear(1), Linear(2), 3.0, Linear(4))
    assert Cost.from_dict(cost.as_dict()) == cost
    for bad in (None, {}, {"operations": 3}, {**cost.as_dict(), "working_set_bytes": "x"}):
        with pytest.raises(ValueError):
            Cost.from_dict(bad)
    for numbers in ([1, 2], [1, 2, 3, 4, "5"], [1, 2, 3, 4, float("nan")], "12345"):
        with pytest.raises(ValueError, match="five sensible numbers"):
            Linear.from_list(numbers)


def test_measuring_the_recorder_gives_plausible_figures() -> None:
    measured = measure_ns_per_span()
    assert 0 < measured["ns_per_put"] < measured["ns_per_span"] < 1e6


def test_hot_path_import_is_light() -> None:
    code = "import profiler.spans, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    heavy = {"numba", "torch", "psutil", "sqlite3", "msgspec", "scipy", "PySide6", "statistics"}
    assert not heavy & set(loaded.split())
