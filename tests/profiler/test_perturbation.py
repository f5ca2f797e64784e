"""A verdict is confirmed by what only it predicts, refuted by what another predicts, and by nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.categories import PARTS
from profiler.analysis.comparison.perturbation import Perturbation, conclude, expected, per_unit, weigh
from profiler.analysis.comparison.statistics import Ratio
from profiler.analysis.parts import Parts
from profiler.spans import Cost, Linear, Stage
from tests.each import each

STAGES = [Stage(0, "decode.block", "decode"), Stage(1, "score.mixture", "scoring", ("components",))]
BLOCK = {"compute-bound": 1.0, "bandwidth-bound": 0.5, "call-bound": 0.5, "none of these": 1.0}


def stage(calls: int, op: float, moved: float, work: int = 0) -> StageRow:
    """240 frames in `calls` calls of `op` operations and `moved` bytes each."""
    frames = 240 // calls
    rows = []
    for i in range(calls):
        rows += [(i * 1000, 1000, 1, i * frames, frames, work // calls), (i * 1000, 1000, 0, i * frames, frames)]
    cost = Cost({"gemm": Linear(op)}, Linear(moved), Linear(moved), 1 << 26)
    (row,) = breakdown(fake_session(spans_of(rows), STAGES, {(1, 0): cost})).stages
    return row


def test_each_verdict_predicts_by_its_own_roof() -> None:
    # Twice the block: the arithmetic per call doubles, the parameters move half as often.
    ratios = expected(stage(24, 1e5, 9e5), stage(12, 2e5, 9e5), 500.0)
    assert ratios == {
        "none of these": 1.0,
        "compute-bound": pytest.approx(1.0),
        "instruction-bound": pytest.approx(1.0),
        "bandwidth-bound": pytest.approx(0.5),
        "call-bound": pytest.approx(0.5),
    }
    # Without traffic or a call's cost nothing is said of those.
    bare = expected(stage(24, 8e5, 0), stage(12, 16e5, 0), None)
    assert set(bare) == {"none of these", "compute-bound", "instruction-bound"}


def judged(verdict: str, **shares: float) -> StageRow:
    """A stage with such a verdict and such parts, of 100 ns."""
    likely = dict.fromkeys(PARTS, 0.0) | shares
    return replace(stage(24, 1e5, 9e5), verdict=verdict, parts=Parts(likely, likely, likely))


def test_the_verdict_in_question_predicts_by_all_parts_it_was_given_with() -> None:
    before, after = stage(24, 1e5, 9e5), stage(12, 2e5, 9e5)
    shares = {"bandwidth": 60.0, "arithmetic": 10.0, "instructions": 10.0, "calls": 8.0, "not_attributed": 12.0}
    plain = expected(before, after, 500.0, otherwise=0.9)
    found = expected(before, after, 500.0, otherwise=0.9, judged=judged("bandwidth-bound", **shares))
    # What is not attributed, and what the law has nothing of, is as if nothing had changed.
    assert found.pop("bandwidth-bound") == pytest.approx(0.6 * 0.5 + 0.2 + 0.08 * 0.5 + 0.12 * 0.9)
    assert plain.pop("bandwidth-bound") == pytest.approx(0.5)
    assert found == plain
    latency = {"latency": 70.0, "bandwidth": 30.0}
    # Of a verdict that no part of the law speaks of nothing is predicted.
    assert "latency-bound" not in expected(before, after, 500.0, judged=judged("latency-bound", **latency))
    assert expected(before, after, 500.0, judged=judged("undecided", **shares)) == expected(before, after, 500.0)


def test_a_smaller_model_is_compared_per_unit_of_work() -> None:
    before, after = stage(24, 1e5, 9e5, 2400), stage(24, 5e4, 3e5, 1200)
    ratios = expected(before, after, 500.0, "components")
    assert ratios["compute-bound"] == pytest.approx(1.0)
    assert ratios["bandwidth-bound"] == pytest.approx(2 / 3)
    assert ratios["call-bound"] == pytest.approx(2.0)
    assert per_unit(Ratio(0.4, 0.3, 0.5), before, after, "components") == Ratio(0.8, 0.6, 1.0)


@each(
    "verdict, measured, agrees",
    [
        # Told apart from compute-bound and none of these; call-bound would do the same.
        ("bandwidth-bound", Ratio(0.52, 0.50, 0.55), True),
        ("bandwidth-bound", Ratio(0.98, 0.95, 1.01), False),
        ("compute-bound", Ratio(0.98, 0.95, 1.01), True),
        ("compute-bound", Ratio(0.52, 0.50, 0.55), False),
        ("compute-bound", Ratio(0.75, 0.45, 1.20), None),
        ("compute-bound", Ratio(0.95), None),
        ("compute-bound", None, None),
        ("none of these", Ratio(1.0, 0.98, 1.02), True),
        ("undecided", Ratio(1.0, 0.98, 1.02), None),
    ],
)
def test_weighing(verdict: str, measured: Ratio | None, agrees: bool | None) -> None:
    found = weigh("block ×2", "block 8 → 16", verdict, BLOCK, measured)
    assert found.agrees is agrees
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_change_that_all_answer_alike_says_nothing() -> None:
    found = weigh("x", "", "compute-bound", dict.fromkeys(BLOCK, 1.0), Ratio(0.6, 0.5, 0.7))
    assert found.agrees is None
    assert "says nothing" in found.why


def change(agrees: bool | None) -> Perturbation:
    return Perturbation("c", measured=Ratio(1.0, 0.9, 1.1), predicted=1.0, agrees=agrees, why="w")


@each(
    "agreements, survives",
    [([True], True), ([True, None], True), ([False, None], False), ([True, False], None), ([None], None), ([], None)],
)
def test_conclusion(agreements: list[bool | None], survives: bool | None) -> None:
    changes = [Perturbation("d", unavailable="there is none"), *(change(a) for a in agreements)]
    assert conclude("compute-bound", changes)[0] is survives
    assert conclude("compute-bound", changes)[1].endswith(".")
    assert conclude(None, changes)[0] is None
    assert conclude("undecided", changes)[0] is None
