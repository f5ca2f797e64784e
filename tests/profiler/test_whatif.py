"""Amdahl and cost laws against figures worked out by hand."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from profiler_sessions import fake_session, law, session_of, spans_of

from profiler.analysis import whatif
from profiler.analysis.breakdown import Breakdown, StageRow, breakdown
from profiler.analysis.categories import NOT_ATTRIBUTED, NOT_OWN, PARTS
from profiler.analysis.comparison.perturbation import Perturbation, conclude, expected, per_unit, weigh
from profiler.analysis.comparison.statistics import Ratio
from profiler.analysis.verdict import VERDICT_OF, Evidence, Parts, judge
from profiler.costs import Cost, Linear
from profiler.errors import BadInput
from profiler.machine.roofs.table import RoofTable
from profiler.spans import Stage
from tests.each import each

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


def between(**ends: tuple[float, float, float]) -> Parts:
    """Parts of these lowest, likely and highest times."""
    return Parts(*({name: ends.get(name, (0.0,) * 3)[end] for name in PARTS} for end in (1, 0, 2)))


def known(wide: float = 0.0, **ns: float) -> Parts:
    """Parts of these likely times, each known to `wide` of itself each way."""
    return between(**{name: ((1 - wide) * v, v, (1 + wide) * v) for name, v in ns.items()})


@pytest.fixture
def prediction() -> whatif.Prediction:
    return whatif.unchanged(session_parts())


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
def test_amdahl(prediction, factors, wanted):
    scaled = whatif.scaled(prediction, factors)
    assert scaled.predicted_ns == pytest.approx(wanted, abs=0.1)
    assert scaled.wall_ns == prediction.predicted_ns == 100_000
    assert prediction.rtf == prediction.predicted_rtf == pytest.approx(1e-4 / 0.1)
    assert len(scaled.assumptions) == len(factors)
    assert ("took no time in this session" in scaled.assumptions[0]) == (wanted == 100_000)


def test_unknown_names_and_bad_factors_are_one_sentence(prediction):
    with pytest.raises(BadInput, match=r"no stage or group 'gpu'.*score\.a.*scoring.*memory"):
        whatif.scaled(prediction, [("gpu", 0.5)])
    assert whatif.parse_factor("search = 0.5") == ("search", 0.5)
    for text in ("search", "search=", "search=x", "=1", "search=-1", "search=nan", "search=inf"):
        with pytest.raises(BadInput, match="must be STAGE=FACTOR"):
            whatif.parse_factor(text)
    for factor in (math.nan, -1.0, math.inf, 1e308):
        with pytest.raises(BadInput, match=r"The factor of search must be a number from 0 to 1,000,000, not "):
            whatif.scaled(prediction, [("search", factor)])


def test_what_other_programs_took_is_a_part_of_every_stage():
    stages = [Stage(0, "decode.block", "decode", ("other_programs_ns",)), *STAGES[1:]]
    spans = spans_of([(0, 40_000, 1, 0, 10), (0, 80_000, 0, 0, 10, 20_000)])
    prediction = whatif.unchanged(breakdown(fake_session(spans, stages, COSTS)))
    scaled = whatif.scaled(prediction, [("other_programs", 0.0)])
    # Half of the tile is scoring: so is half of the 20 µs.
    assert [line.predicted_ns for line in scaled.lines] == pytest.approx([30_000, 30_000], abs=0.1)


def test_stages_change_as_they_did_where_both_settings_were_tried(prediction):
    before, after = {"score.a": 5.0, "score.b": 1.0}, {"score.a": 1.0, "score.c": 1.0}
    changed = whatif.changed(prediction, before, after, "scoring")
    # The session's scoring took 60 µs for 6: the newcomer's 1 become 10. What was tried with neither stays.
    assert {line.name: line.predicted_ns for line in changed.lines} == pytest.approx(
        {"score.a": 8_000, "score.b": 0, "score.c": 10_000, "search.emit": 30_000, "overhead": 10_000}
    )
    assert [line.name for line in changed.lines] == ["score.a", "score.b", "score.c", "search.emit", "overhead"]
    (sentence,) = changed.assumptions
    assert "score.c" in sentence


STAGES_PERTURBED = [Stage(0, "decode.block", "decode"), Stage(1, "score.mixture", "scoring", ("components",))]
BLOCK = {"compute-bound": 1.0, "bandwidth-bound": 0.5, "call-bound": 0.5, "none of these": 1.0}


def stage(calls: int, op: float, moved: float, work: int = 0) -> StageRow:
    """240 frames in `calls` calls of `op` operations and `moved` bytes each."""
    frames = 240 // calls
    rows = []
    for i in range(calls):
        rows += [(i * 1000, 1000, 1, i * frames, frames, work // calls), (i * 1000, 1000, 0, i * frames, frames)]
    cost = Cost({"gemm": Linear(op)}, Linear(moved), Linear(moved), 1 << 26)
    (row,) = breakdown(fake_session(spans_of(rows), STAGES_PERTURBED, {(1, 0): cost})).stages
    return row


def test_each_verdict_predicts_by_its_own_roof():
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
    return replace(stage(24, 1e5, 9e5), verdict=verdict, parts=known(**shares))


def test_the_verdict_in_question_predicts_by_all_parts_it_was_given_with():
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


def test_a_smaller_model_is_compared_per_unit_of_work():
    before, after = stage(24, 1e5, 9e5, 2400), stage(24, 5e4, 3e5, 1200)
    ratios = expected(before, after, 500.0, "components")
    assert ratios["compute-bound"] == pytest.approx(1.0)
    assert ratios["bandwidth-bound"] == pytest.approx(2 / 3)
    assert ratios["call-bound"] == pytest.approx(2.0)
    assert per_unit(Ratio(0.4, 0.3, 0.5), before, after, "components") == Ratio(0.8, 0.6, 1.0)


@each(
    "verdict, measured, agrees",
    [
        # Distinguished from compute-bound and none of these; call-bound would do the same.
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
def test_weighing(verdict, measured, agrees):
    found = weigh("block ×2", "block 8 → 16", verdict, BLOCK, measured)
    assert found.agrees is agrees
    json.dumps(found.as_dict(), allow_nan=False)
    alike = weigh("x", "", "compute-bound", dict.fromkeys(BLOCK, 1.0), Ratio(0.6, 0.5, 0.7))
    assert (alike.agrees, "says nothing" in alike.why) == (None, True)


@each(
    "agreements, survives",
    [([True], True), ([True, None], True), ([False, None], False), ([True, False], None), ([None], None), ([], None)],
)
def test_conclusion(agreements, survives):
    change = Perturbation("c", measured=Ratio(1.0, 0.9, 1.1), predicted=1.0, agrees=None, why="w")
    changes = [Perturbation("d", unavailable="there is none"), *(replace(change, agrees=a) for a in agreements)]
    found, sentence = conclude("compute-bound", changes)
    assert found is survives
    assert sentence.endswith(".")
    assert conclude(None, changes)[0] is conclude("undecided", changes)[0] is None


@each(
    "parts, verdict",
    [
        # What the window showed as "instruction", with these figures beside it.
        (between(latency=(34, 36, 41), instructions=(19, 21, 26)), "latency-bound"),
        (between(latency=(20, 36, 41), instructions=(19, 21, 26)), "mixed"),
        (between(bandwidth=(40, 50, 60), instructions=(20, 40, 41)), "mixed"),
        (between(bandwidth=(41, 50, 60), instructions=(20, 40, 41)), "bandwidth-bound"),
        (between(not_attributed=(30, 50, 70), instructions=(20, 40, 41)), "undecided"),
    ],
)
def test_a_verdict_names_the_largest_part_or_mixed(parts, verdict):
    assert judge(Evidence(100.0, 1, 1, parts, replayed=True)).verdict == verdict


@each("seed", range(40))
def test_a_verdict_never_names_another_part_than_the_largest_of_its_own(seed):
    draw = np.random.default_rng(seed)
    likely = dict(zip(PARTS, draw.exponential(10.0, len(PARTS)), strict=True))
    parts = between(**{name: tuple(v * (1 + draw.uniform(0, 0.5) * np.arange(-1, 2))) for name, v in likely.items()})
    first = max((name for name in PARTS if name not in NOT_OWN), key=likely.__getitem__)
    judged = judge(Evidence(sum(likely.values()), 1, 1, parts, replayed=True))
    assert judged.verdict in (VERDICT_OF[first], "mixed")
    assert (judged.verdict == "mixed") == (judged.too_close is not None)


def test_other_programs_hide_no_verdict_and_parts_too_close_are_named():
    busy = judge(Evidence(100.0, 1, 1, known(0.1, other_programs=53, bandwidth=40, instructions=7), replayed=True))
    assert busy.verdict == "bandwidth-bound"
    assert "53 % preempted by other programs" in busy.sentence
    near = judge(Evidence(100.0, 1, 1, known(0.2, latency=46, instructions=40, not_attributed=14), replayed=True))
    close = "memory latency and instructions are too close to tell which is more"
    assert (near.verdict, near.too_close) == ("mixed", close)
    assert near.sentence.endswith(f"; {close}.")


@each(
    "parts, verdict",
    [
        (known(0.5, calls=41, arithmetic=40), "mixed"),
        (known(0.5, arithmetic=41, calls=40), "mixed"),
        (known(1.0, calls=82, arithmetic=40), "launch-bound"),
    ],
)
def test_launches_are_judged_by_what_was_measured(parts, verdict):
    assert judge(Evidence(parts.time_ns, 1, 1, parts, device=True, launches=3)).verdict == verdict


def row(duration: int, cost: Cost | None, hot: float | None = None, **more: Any) -> StageRow:
    """The row of a stage that recorded one such span a block."""
    (found,) = breakdown(session_of(duration, cost, hot, **more)).stages
    return found


@each(
    "duration, cost, hot, verdict, grade",
    [
        (20_000, law(gemm=1.5e6), 1.0, "compute-bound", "B"),
        (20_000, law(gemm=1e5), 1.0, "instruction-bound", "B"),
        (20_000, law(gemm=1e5, read=5e5), 0.3, "bandwidth-bound", "B"),
        (20_000, law(gemm=1e5, chase=150), 0.3, "latency-bound", "B"),
        (2_000, law(calls=1), 0.3, "call-bound", "B"),
        (20_000, law(gemm=1e5, calls=18), 1.0, "call-bound", "B"),
        (20_000, law(gemm=9e5, chase=150), 0.5, "latency-bound", "B"),
        # Nothing measured it, and the law accounts for most.
        (20_000, law(gemm=1.5e6), None, "compute-bound", "C"),
        (20_000, law(gemm=5e5), None, "undecided", "C"),
    ],
)
def test_verdicts_of_a_recording(duration, cost, hot, verdict, grade):
    found = row(duration, cost, hot)
    assert (found.verdict, found.evidence, found.defect) == (verdict, grade, None)
    assert found.sentence.endswith(".")
    assert found.parts.time_ns == pytest.approx(found.time_ns)
    assert found.replays == (10 if hot is not None else 0)


def test_the_sentence_tells_the_parts_and_what_a_unit_of_scattered_work_takes():
    sentence = row(900_000, law(gemm=40e6, read=1e7), 0.7).sentence
    for part in ("10 MB per block at 11.1 GB/s", "48 % waiting on memory bandwidth", "40 % arithmetic"):
        assert part in sentence
    assert "20 ns per arc; " in row(1_000, replace(law(chase=8), scattered=True), 0.5).sentence


def test_running_faster_than_the_roofs_allow_is_a_defect_of_the_tool():
    # The best repeat of the calibration was 10 % faster than the median.
    assert row(10_000, law(gemm=1.1e6 - 1), 1.0).defect is None
    found = row(10_000, law(gemm=1.32e6), 1.0)
    assert "83 % of the least time" in found.defect
    assert found.parts.share(NOT_ATTRIBUTED) == pytest.approx(0.2, abs=0.001)


def test_what_is_not_known_is_said_and_not_zero():
    unnamed = row(20_000, Cost({"gemm:int8": Linear(1e6)}), 1.0)
    assert (unnamed.verdict, unnamed.evidence) == ("undecided", "D")
    assert unnamed.sentence.endswith("; not measured here: gemm:int8.")
    unknown = judge(Evidence(5_000.0, 5, 5))
    assert (unknown.verdict, unknown.evidence) == (None, "–")
    assert unknown.sentence == "Takes 1 µs per frame; what it computes is not modelled."
    for found, reason in (
        (row(5_000, Cost(unmodelled="a library reads the file")), "Takes 5 µs per block; a library reads the file."),
        (row(5_000, law(gemm=100), roofs=RoofTable()), "roofs were not measured"),
    ):
        assert found.verdict is found.compute_ns is found.unexplained_ns is None
        assert reason in found.sentence
    assert judge(Evidence(0.0, 0, 0)).verdict is None
