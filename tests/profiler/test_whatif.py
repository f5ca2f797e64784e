"""Amdahl and cost laws against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from profiler_sessions import fake_session, spans_of

from profiler.analysis import whatif
from profiler.analysis.breakdown import Breakdown, breakdown
from profiler.costs import Cost, Linear
from profiler.errors import BadInput
from profiler.spans import Stage

STAGES = [
    Stage(0, "decode.block", "decode"),
    Stage(1, "score.a", "scoring", ("gaussians",)),
    Stage(2, "score.b", "scoring"),
    Stage(3, "search.emit", "search"),
    Stage(4, "score.c", "scoring"),
]
FAR = 1 << 26
"""Bytes: a working set that is read at 25 GB/s, 0.03 ns a byte longer than from the first rung at 100 GB/s."""
# a: 1e6 op at 100 Gop/s = 10 µs, 5e5 B from far = 15 µs; b has no law.
COSTS = {(1, 0): Cost({"gemm": Linear(1e6)}, Linear(5e5), Linear(5e5), FAR)}


def session_parts() -> Breakdown:
    rows = [(0, 40_000, 1, 0, 10), (40_000, 20_000, 2, 0, 10), (60_000, 30_000, 3, 0, 10)]
    spans = spans_of([*rows, (0, 100_000, 0, 0, 10)])
    return breakdown(fake_session(spans, STAGES, COSTS))


@pytest.fixture
def prediction() -> whatif.Prediction:
    return whatif.unchanged(session_parts())


def test_unchanged_adds_up_to_the_wall_time(prediction) -> None:
    assert prediction.wall_ns == prediction.predicted_ns == 100_000
    assert {line.name: line.time_ns for line in prediction.lines} == {
        "score.a": 40_000, "score.b": 20_000, "search.emit": 30_000, "overhead": 10_000,
    }  # fmt: skip
    assert prediction.rtf == prediction.predicted_rtf == pytest.approx(1e-4 / 0.1)


@pytest.mark.parametrize(
    ("factors", "wanted"),
    [
        ([("scoring", 0.0)], 40_000),
        ([("search", 0.5)], 85_000),
        ([("score.a", 0.25)], 70_000),
        ([("score.a", 0.0), ("score.b", 0.0), ("overhead", 0.0)], 30_000),
        ([("scoring", 0.5), ("score.a", 0.5)], 60_000),
        ([("search", 2.0)], 130_000),
        ([("transfer", 0.0)], 100_000),
        # compute 10 at 1.1 times the rate, memory 15, the rest not attributed of score.a; all of score.b is not.
        ([("compute", 0.0)], 100_000 - 10_000 / 1.1),
        ([("memory", 0.0)], 85_000),
        ([("unexplained", 0.0)], 65_000 - 10_000 / 11),
        ([("other_programs", 0.0)], 100_000),
    ],
)
def test_amdahl(prediction, factors, wanted) -> None:
    scaled = whatif.scaled(prediction, factors)
    assert scaled.predicted_ns == pytest.approx(wanted, abs=0.1)
    assert scaled.wall_ns == 100_000
    assert len(scaled.assumptions) == len(factors)


def test_a_factor_that_acts_on_nothing_says_so(prediction) -> None:
    (sentence,) = whatif.scaled(prediction, [("transfer", 0.0)]).assumptions
    assert "took no time in this session" in sentence


def test_unknown_names_and_bad_factors_are_one_sentence(prediction) -> None:
    with pytest.raises(BadInput, match=r"no stage or group 'gpu'.*score\.a.*scoring.*memory"):
        whatif.scaled(prediction, [("gpu", 0.5)])
    assert whatif.parse_factor("search = 0.5") == ("search", 0.5)
    for text in ("search", "search=", "search=x", "=1", "search=-1", "search=nan", "search=inf"):
        with pytest.raises(BadInput, match="must be STAGE=FACTOR"):
            whatif.parse_factor(text)
    for factor in (math.nan, -1.0, math.inf, 1e308):
        with pytest.raises(BadInput, match=r"The factor of search must be a number from 0 to 1,000,000, not "):
            whatif.scaled(prediction, [("search", factor)])


def test_stages_change_as_they_did_where_both_settings_were_tried(prediction) -> None:
    changed = whatif.changed(prediction, {"score.a": 5.0}, {"score.a": 1.0}, "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(8_000)
    # Tried with neither: it stays, as does all that is no scoring.
    assert (times["score.b"], times["search.emit"], times["overhead"]) == (20_000, 30_000, 10_000)
    assert changed.predicted_ns == pytest.approx(68_000)
    assert changed.assumptions == ()


def test_what_other_programs_took_is_a_part_of_every_stage() -> None:
    stages = [Stage(0, "decode.block", "decode", ("other_programs_ns",)), *STAGES[1:]]
    spans = spans_of([(0, 40_000, 1, 0, 10), (0, 80_000, 0, 0, 10, 20_000)])
    prediction = whatif.unchanged(breakdown(fake_session(spans, stages, COSTS)))
    scaled = whatif.scaled(prediction, [("other_programs", 0.0)])
    # Half of the tile is scoring: so is half of the 20 µs.
    assert [line.predicted_ns for line in scaled.lines] == pytest.approx([30_000, 30_000], abs=0.1)


def test_stages_come_and_go_with_settings(prediction) -> None:
    before, after = {"score.a": 2.0, "score.b": 2.0}, {"score.a": 2.0, "score.c": 1.0}
    changed = whatif.changed(prediction, before, after, "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(40_000)
    assert times["score.b"] == 0.0
    # The session's scoring took 60 µs for 4: the newcomer's 1 become 15.
    assert times["score.c"] == pytest.approx(15_000)
    assert "score.c" in changed.assumptions[0]
    assert [line.name for line in changed.lines] == [
        "score.a", "score.b", "score.c", "search.emit", "overhead",
    ]  # fmt: skip
