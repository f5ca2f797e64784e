"""Verdicts of stages and what is said of them, at hand-made roofs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from profiler_sessions import law, session_of

from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.categories import NOT_ATTRIBUTED, NOT_OWN, PARTS
from profiler.analysis.verdict import VERDICT_OF, Evidence, Parts, judge
from profiler.costs import Cost, Linear
from profiler.machine.roofs.table import RoofTable
from tests.each import each


def known(wide: float = 0.0, **ns: float) -> Parts:
    """Parts of these likely times, each known to `wide` of itself each way."""
    likely = {name: ns.get(name, 0.0) for name in PARTS}
    return Parts(
        likely,
        {name: (1 - wide) * v for name, v in likely.items()},
        {name: (1 + wide) * v for name, v in likely.items()},
    )


def test_the_largest_part_says_what_bounds_a_stage():
    assert {*VERDICT_OF, *NOT_OWN} == set(PARTS)
    for name, verdict in VERDICT_OF.items():
        small = {other: 10.0 for other in PARTS if other != name}
        judged = judge(Evidence(100.0, 1, 1, known(**{**small, name: 40.0}), replayed=True))
        assert judged.verdict == verdict, name
    assert VERDICT_OF["calls"] == "call-bound"


def between(**ends: tuple[float, float, float]) -> Parts:
    """Parts of these lowest, likely and highest times."""
    return Parts(*({name: ends.get(name, (0.0,) * 3)[end] for name in PARTS} for end in (1, 0, 2)))


@each(
    "parts, verdict",
    [
        # What the window showed as "instruction", with these figures beside it.
        (between(latency=(34, 36, 41), instructions=(19, 21, 26)), "latency-bound"),
        (between(latency=(36, 39, 46), instructions=(18, 20, 28)), "latency-bound"),
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
    off = draw.uniform(0, 0.5, len(PARTS))
    parts = Parts(
        likely,
        {name: (1 - o) * likely[name] for name, o in zip(PARTS, off, strict=True)},
        {name: (1 + o) * likely[name] for name, o in zip(PARTS, off, strict=True)},
    )
    own = [name for name in PARTS if name not in NOT_OWN]
    first = max(own, key=likely.__getitem__)
    judged = judge(Evidence(sum(likely.values()), 1, 1, parts, replayed=True))
    assert judged.verdict in (VERDICT_OF[first], "mixed")
    assert (judged.verdict == "mixed") == (judged.too_close is not None)


def test_other_programs_hide_no_verdict():
    """On a machine that others share, every stage was "preempted"."""
    parts = known(0.1, other_programs=53, bandwidth=40, instructions=7)
    judged = judge(Evidence(100.0, 1, 1, parts, replayed=True))
    assert judged.verdict == "bandwidth-bound"
    assert "53 % preempted by other programs" in judged.sentence


def test_parts_too_close_are_named():
    parts = known(0.2, latency=46, instructions=40, not_attributed=14)
    judged = judge(Evidence(100.0, 1, 1, parts, replayed=True))
    close = "memory latency and instructions are too close to tell which is more"
    assert (judged.verdict, judged.too_close) == ("mixed", close)
    assert judged.sentence.endswith(f"; {close}.")


def test_launches_are_judged_by_what_was_measured():
    for parts, verdict in (
        (known(0.5, calls=41, arithmetic=40), "mixed"),
        (known(0.5, arithmetic=41, calls=40), "mixed"),
        (known(1.0, calls=82, arithmetic=40), "launch-bound"),
    ):
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


def test_a_roof_that_was_not_measured_is_named_and_the_grade_is_the_worst():
    found = row(20_000, Cost({"gemm:int8": Linear(1e6)}), 1.0)
    assert (found.verdict, found.evidence) == ("undecided", "D")
    assert found.sentence.endswith("; not measured here: gemm:int8.")


def test_the_sentence_is_plain():
    assert row(900_000, law(gemm=40e6, read=1e7), 0.7).sentence == (
        "Moves 10 MB per block at 11.1 GB/s; 900 µs per block: 48 % waiting on memory bandwidth, "
        "40 % arithmetic (at peak rate), 12 % instructions (beyond the arithmetic)."
    )


def test_scattered_work_says_what_a_unit_of_it_takes():
    cost = replace(law(chase=8), scattered=True)
    assert "20 ns per arc; " in row(1_000, cost, 0.5).sentence


def test_what_is_counted_without_a_noun_is_named_in_plain_words():
    evidence = Evidence(2_000.0, 1, 1, known(not_attributed=2_000.0), 0.0, None)
    evidence = replace(evidence, unit="examined", units=100.0)
    assert "20 ns per item examined; " in judge(evidence).sentence


def test_running_faster_than_the_roofs_allow_is_a_defect_of_the_tool():
    # The best repeat of the calibration was 10 % faster than the median.
    assert row(10_000, law(gemm=1.05e6), 1.0).defect is None
    assert row(10_000, law(gemm=1.1e6 - 1), 1.0).defect is None
    found = row(10_000, law(gemm=1.32e6), 1.0)
    assert found.defect == (
        "It ran in 83 % of the least time that the machine's measured roofs allow, so its cost law or a roof is wrong."
    )
    assert found.parts.share(NOT_ATTRIBUTED) == pytest.approx(0.2, abs=0.001)


def test_what_is_not_known_is_said_and_not_zero():
    unknown = judge(Evidence(5_000.0, 5, 5))
    assert (unknown.verdict, unknown.evidence) == (None, "–")
    assert unknown.sentence == "Takes 1 µs per frame; what it computes is not modelled."
    reasoned = row(5_000, Cost(unmodelled="a library reads the file"))
    assert (reasoned.verdict, reasoned.compute_ns, reasoned.parts) == (None, None, None)
    assert reasoned.sentence == "Takes 5 µs per block; a library reads the file."
    unmeasured = row(5_000, law(gemm=100), roofs=RoofTable())
    assert (unmeasured.verdict, unmeasured.unexplained_ns) == (None, None)
    assert "roofs were not measured" in unmeasured.sentence
    assert judge(Evidence(0.0, 0, 0)).verdict is None
