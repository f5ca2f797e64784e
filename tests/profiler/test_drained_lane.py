"""A lane that takes its own spans out as the ring fills loses none, whoever records."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.recording.drained_lane import DrainedLane
from profiler.recording.kernel_spans import put as kernel_put
from profiler.recording.lanes import Lane
from profiler.spans import Recorder

STAGE = 7


@numba.njit
def record(spans: Any, begin: int, n: int) -> None:
    for i in range(begin, begin + n):
        kernel_put(spans, STAGE, 10 * i, 10 * i + 5, i, 1, (i, 0, 0))


@given(
    st.integers(4, 40), st.lists(st.tuples(st.sampled_from(["put", "lap", "kernel"]), st.integers(1, 30)), max_size=30)
)
def test_no_span_is_lost_in_a_small_ring(capacity: int, turns: list[tuple[str, int]]) -> None:
    lane = DrainedLane(0, "small", "cpu", True, capacity, clock=lambda: 0)
    n = 0
    for how, count in turns:
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
        n += count
    assert lane.recorded == n
    assert lane.dropped == 0
    spans = lane.drain()
    assert spans["work0"].tolist() == spans["first_frame"].tolist() == list(range(n))
    assert set(spans["stage"].tolist()) <= {STAGE}
    assert len(lane.drain()) == 0


def test_the_configuration_stays_with_its_spans() -> None:
    lane = DrainedLane(0, "small", "cpu", True, 8)
    for i in range(100):
        lane.epoch = i // 7
        lane.put(STAGE, i, i + 1, i, 1)
    assert lane.drain()["epoch"].tolist() == [i // 7 for i in range(100)]


def test_a_subclass_may_hold_less() -> None:
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
