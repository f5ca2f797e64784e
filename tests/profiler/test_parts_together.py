"""The parts of several stages as one, and what a breakdown says of a group."""

from __future__ import annotations

import pytest
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import NOT_ATTRIBUTED, PARTS
from profiler.analysis.parts import Parts, together
from profiler.costs import NUMPY_CALL, Cost, Linear
from profiler.spans import Stage


def parts(**likely: float) -> Parts:
    """Parts with intervals from half to twice the figure."""
    values = dict.fromkeys(PARTS, 0.0) | likely
    return Parts(values, {name: ns / 2 for name, ns in values.items()}, {name: ns * 2 for name, ns in values.items()})


def test_parts_add_up_with_their_intervals() -> None:
    one, other = parts(arithmetic=4.0, calls=2.0), parts(arithmetic=1.0, latency=3.0)
    whole = together([(6.0, one), (4.0, other)])
    assert whole.time_ns == pytest.approx(10.0)
    assert (whole.likely["arithmetic"], whole.low["arithmetic"], whole.high["arithmetic"]) == (
        5.0, 2.5, 10.0,
    )  # fmt: skip
    assert whole.ends("latency") == pytest.approx((0.15, 0.6))


def test_the_time_of_a_stage_without_parts_is_not_attributed() -> None:
    whole = together([(6.0, parts(calls=6.0)), (2.0, None)])
    assert whole.likely[NOT_ATTRIBUTED] == whole.low[NOT_ATTRIBUTED] == 2.0
    assert whole.notable == ["calls", NOT_ATTRIBUTED]


def test_without_any_parts_there_are_none() -> None:
    assert together([(6.0, None), (2.0, None)]) is None
    assert together([]) is None


def test_a_group_has_parts_where_a_stage_of_it_has_a_law() -> None:
    stages = [
        Stage(0, "decode", "decode"),
        Stage(1, "score.a", "scoring"),
        Stage(2, "score.b", "scoring"),
        Stage(3, "search.a", "search"),
    ]
    spans = spans_of([(0, 4000, 1, 0, 1), (4000, 2000, 2, 0, 1), (6000, 3000, 3, 0, 1), (0, 9000, 0, 0, 1)])
    calls = Cost({"gemm": Linear(1.0)}, calls={NUMPY_CALL: Linear(2.0)})
    found = breakdown(fake_session(spans, stages, {(1, 0): calls, (3, 0): Cost(unmodelled="a library's own")}))
    scoring = found.parts_of("scoring")
    assert scoring.time_ns == pytest.approx(6000)
    # At the best repeat, 450 ns each.
    assert scoring.likely["calls"] == pytest.approx(900)
    assert scoring.likely[NOT_ATTRIBUTED] == pytest.approx(5100, abs=1)
    assert found.parts_of("search") is None
