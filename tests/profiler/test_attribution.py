"""Verdicts of stages and what is said of them, at hand-made roofs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_laws import LARGE, ROOFS, law
from profiler_sessions import fake_session, roof, spans_of

from profiler.analysis.attribution import VERDICT_OF, Evidence, judge
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.categories import (
    LAW_PARTS,
    MEASURED_PARTS,
    NOT_ATTRIBUTED,
    OTHER_PROGRAMS,
    PART_NAMES,
    PARTS,
)
from profiler.analysis.parts import Parts, intervals
from profiler.costs import ACCESS, KERNEL, Cost, Linear, Term
from profiler.machine.roofs.table import RoofTable
from profiler.spans import Stage


def known(wide: float = 0.0, **ns: float) -> Parts:
    """Parts of these likely times, each known to `wide` of itself each way."""
    likely = {name: ns.get(name, 0.0) for name in PARTS}
    return Parts(
        likely,
        {name: (1 - wide) * v for name, v in likely.items()},
        {name: (1 + wide) * v for name, v in likely.items()},
    )


def test_the_largest_part_says_what_bounds_a_stage() -> None:
    assert set(VERDICT_OF) == set(PARTS)
    for name, verdict in VERDICT_OF.items():
        small = {other: 10.0 for other in PARTS if other != name}
        judged = judge(Evidence(100.0, 1, 1, known(**{**small, name: 40.0})))
        assert judged.verdict == verdict, name
    assert VERDICT_OF[OTHER_PROGRAMS] == "preempted"
    assert VERDICT_OF["calls"] == "call-bound"


@pytest.mark.parametrize(
    ("wide", "verdict"), [(0.0, "bandwidth-bound"), (0.15, "bandwidth-bound"), (0.2, "undecided")]
)
def test_without_a_law_the_measurement_must_tell_which_part_is_larger(
    wide: float, verdict: str
) -> None:
    # 50 and 40 are 10 apart; off by 0.15 of each, 9.6 together, by 0.2 of each, 12.8.
    parts = known(wide, bandwidth=50, instructions=40, not_attributed=10)
    assert judge(Evidence(100.0, 1, 1, parts)).verdict == verdict


def by_law(**ns: float) -> dict[str, float]:
    """What a law alone has of these parts."""
    return {name: ns.get(name, 0.0) for name in LAW_PARTS}


TOO_CLOSE = (
    "; memory latency and instructions beyond peak are too close to tell which is more; "
    "run and cost law together have "
)


@pytest.mark.parametrize(
    ("instructions", "latency", "first"),
    [(50, 0, "instructions"), (50, 48, "latency"), (50, 40, "instructions"), (0, 50, "latency")],
)
def test_of_parts_too_close_to_tell_run_and_law_name_one_and_the_sentence_says_so(
    instructions: float, latency: float, first: str
) -> None:
    """The run has latency 7 % of both before instructions: the law decides if it has the other by more."""
    parts = known(0.2, latency=46, instructions=40, not_attributed=14)
    law_says = by_law(instructions=instructions, latency=latency)
    judged = judge(Evidence(100.0, 1, 1, parts, by_law=law_says))
    assert judged.verdict == {"latency": "latency-bound"}.get(first, "instruction-bound")
    assert judged.sentence.endswith(f"{TOO_CLOSE}{PART_NAMES[first]} first.")


def test_how_long_the_law_takes_is_no_matter_for_what_it_has_first() -> None:
    """Its figures are of the work, those of a disturbed run are longer: shares are compared."""
    parts = known(0.2, latency=46, instructions=40, not_attributed=14)
    verdicts = {
        judge(
            Evidence(100.0, 1, 1, parts, by_law=by_law(instructions=5 * size, latency=4 * size))
        ).verdict
        for size in (0.1, 1.0, 10.0, 1000.0)
    }
    assert verdicts == {"instruction-bound"}


@pytest.mark.parametrize(
    ("instructions", "verdict"), [(29, "latency-bound"), (31, "instruction-bound")]
)
def test_of_what_a_run_had_twice_as_much_is_the_verdict_whatever_the_law_has_first(
    instructions: float, verdict: str
) -> None:
    parts = known(0.2, latency=60, instructions=instructions, not_attributed=10)
    judged = judge(Evidence(100.0, 1, 1, parts, by_law=by_law(instructions=30, latency=5)))
    assert judged.verdict == verdict
    assert "too close" not in judged.sentence


def test_a_part_surely_larger_in_one_run_is_not_the_verdict_where_the_law_has_another_by_far() -> (
    None
):
    """A neighbour had slowed memory down for all of the run."""
    parts = known(0.05, latency=50, instructions=35, not_attributed=15)
    judged = judge(Evidence(100.0, 1, 1, parts, by_law=by_law(instructions=67, latency=22)))
    assert judged.verdict == "instruction-bound"
    assert judged.sentence.endswith(
        "; memory latency was more than instructions beyond peak in this run; "
        "run and cost law together have instructions beyond peak first."
    )
    # If the law has it by no more than the run has the other, the run's word stands, and needs no words.
    judged = judge(Evidence(100.0, 1, 1, parts, by_law=by_law(instructions=35, latency=32)))
    assert (judged.verdict, judged.too_close) == ("latency-bound", None)


def test_a_neighbour_that_slows_memory_for_a_while_changes_no_verdict() -> None:
    """Waiting grows from run to run by less than it is known to; the law stays what it is."""
    verdicts = {
        judge(
            Evidence(
                70.0 + slower,
                1,
                1,
                replace(
                    known(0.05, instructions=33, latency=27 + slower, not_attributed=10),
                    low=known(instructions=32, latency=20 + 0.5 * slower).likely,
                    high=known(instructions=36, latency=37 + 1.5 * slower).likely,
                ),
                by_law=by_law(instructions=33, latency=11),
            )
        ).verdict
        for slower in range(13)
    }
    assert verdicts == {"instruction-bound"}


@pytest.mark.parametrize(
    ("parts", "law_says", "verdict"),
    [
        # The law's part is far from the largest, although that is not surely larger.
        (known(0.9, latency=60, instructions=20), "instructions", "undecided"),
        (known(0.9, latency=60, instructions=31), "instructions", "instruction-bound"),
        # Of both that were measured there was more than twice the law's, and their order is open.
        (known(0.15, latency=38, bandwidth=37, calls=18), "calls", "undecided"),
        # No law knows of other programs, nor of what nothing accounts for.
        (known(0.9, other_programs=40, arithmetic=39), "arithmetic", "preempted"),
        (known(0.9, not_attributed=40, arithmetic=39), "arithmetic", "undecided"),
    ],
)
def test_a_law_decides_only_between_parts_that_it_knows_and_that_the_run_had(
    parts: Parts, law_says: str, verdict: str
) -> None:
    judged = judge(Evidence(parts.time_ns, 1, 1, parts, by_law=by_law(**{law_says: 50})))
    assert judged.verdict == verdict


def test_launches_are_judged_by_what_was_measured() -> None:
    parts = known(0.5, calls=41, arithmetic=40)
    judged = judge(Evidence(81.0, 1, 1, parts, launches=3, by_law=by_law(calls=50)))
    assert judged.verdict == "undecided"
    parts = known(0.5, arithmetic=41, calls=40)
    judged = judge(Evidence(81.0, 1, 1, parts, launches=3, by_law=by_law(calls=50)))
    assert judged.verdict == "undecided"


def row(duration: int, cost: Cost | None, roofs: RoofTable = ROOFS, blocks: int = 1) -> StageRow:
    """The row of a stage that recorded one such span a block."""
    spans = [
        span
        for i in range(blocks)
        for span in (
            (i * duration, duration, 1, 16 * i, 16, 50),
            (i * duration, duration, 0, 16 * i, 16),
        )
    ]
    stages = [Stage(0, "decode.block", "decode"), Stage(1, "score.some", "scoring", ("arcs",))]
    session = fake_session(spans_of(spans), stages, {(1, 0): cost} if cost else {}, roofs)
    (found,) = breakdown(session).stages
    return found


@pytest.mark.parametrize(
    ("duration", "cost", "verdict", "grade"),
    [
        (20_000, law(gemm=1.5e6, units=16_000), "compute-bound", "B"),
        (20_000, law(gemm=1e5, units=16_000), "instruction-bound", "B"),
        (20_000, law(gemm=1e5, units=2_000, read=5e5), "bandwidth-bound", "C"),
        (20_000, law(units=2_000, chase=150), "latency-bound", "B"),
        (2_000, law(units=200, calls=1), "call-bound", "B"),
        (20_000, law(units=2_000, calls=1), "undecided", "B"),
        (20_000, law(units=9_000, chase=85), "instruction-bound", "B"),
        (20_000, law(units=8_000, chase=95), "latency-bound", "B"),
    ],
)
def test_verdicts_of_a_recording(duration: int, cost: Cost, verdict: str, grade: str) -> None:
    found = row(duration, cost, blocks=3)
    assert (found.verdict, found.evidence, found.defect) == (verdict, grade, None)
    assert found.sentence[0].isupper()
    assert found.sentence.endswith(".")
    assert found.parts is not None
    assert found.parts.time_ns == pytest.approx(found.time_ns)


@pytest.mark.parametrize(
    ("usually", "verdict"), [(1e9, "instruction-bound"), (2e9, "latency-bound")]
)
def test_where_a_run_does_not_tell_the_law_decides_at_the_machines_usual_roofs(
    usually: float, verdict: str
) -> None:
    """The parts are those of the latest roofs: 9 µs and 8.5 µs, each 10 % off."""
    roofs = ROOFS.merged(RoofTable((), (roof(KERNEL, "tile", usually),)))
    found = row(20_000, law(units=9_000, chase=85), roofs, blocks=3)
    assert (found.verdict, found.too_close is not None) == (verdict, True)
    assert found.parts == row(20_000, law(units=9_000, chase=85), blocks=3).parts


def test_a_roof_that_was_not_measured_is_named_and_the_grade_is_the_worst() -> None:
    cost = Cost(
        {"int8": Linear(1e6)},
        terms=(Term(KERNEL, "tile", Linear(16_000)), Term(KERNEL, "tile/2", Linear(1e6))),
    )
    found = row(20_000, cost)
    assert (found.verdict, found.evidence) == ("instruction-bound", "D")
    assert found.sentence.endswith("; not measured here: int8, tile/2.")


def test_nothing_is_called_latency_that_neither_roof_nor_replay_measured() -> None:
    """Scattered work that its law cannot cost is not said to wait."""
    terms = Term(KERNEL, "tile", Linear(2_000)), Term(ACCESS, "leap", Linear(900), LARGE)
    found = row(20_000, Cost({}, Linear(1e3), scattered=True, terms=terms))
    assert (found.verdict, found.evidence) == ("undecided", "D")
    assert found.parts is not None
    assert found.parts.high["latency"] == 0
    assert found.parts.likely[NOT_ATTRIBUTED] == pytest.approx(18_000)
    assert "latency" not in found.sentence
    assert found.sentence.endswith("; not measured here: leap.")


def test_the_sentence_is_plain() -> None:
    assert row(900_000, law(gemm=40e6, units=500_000, read=1e7)).sentence == (
        "Moves 10 MB per block at 11.1 GB/s; of its 900 µs per block, 44 % are arithmetic at peak, "
        "33 % memory bandwidth, 11 % instructions beyond peak and 11 % not attributed."
    )
    assert row(1_000, law(calls=1)).sentence == "Of its 1 µs per block, 100 % is calls."


def test_scattered_work_says_what_a_unit_of_it_takes() -> None:
    cost = Cost({}, Linear(1e3), scattered=True, terms=(Term(ACCESS, "chase", Linear(8), LARGE),))
    assert "; each of its arcs takes 20 ns; " in row(1_000, cost).sentence


def test_what_is_counted_without_a_noun_is_named_in_plain_words() -> None:
    none = [0.0] * len(MEASURED_PARTS)
    found = intervals(none, none, none, 2_000.0)
    evidence = Evidence(2_000.0, 1, 1, found, 0.0, None, unit="examined", units=100.0)
    assert "Each item examined takes 20 ns; " in judge(evidence).sentence


def test_running_faster_than_the_roofs_allow_is_a_defect_of_the_tool() -> None:
    # The best repeat of the calibration was 10 % faster than the median.
    assert row(10_000, law(units=10_500)).defect is None
    assert row(10_000, law(units=11_000 - 1)).defect is None
    found = row(10_000, law(units=12_000))
    assert found.defect == (
        "It ran in 92 % of the least time that the machine's measured roofs allow, so its cost law or a roof "
        "is wrong."
    )
    assert found.parts is not None
    assert found.parts.likely[NOT_ATTRIBUTED] == 0
    assert found.law_ns == pytest.approx(12_000)


def test_a_law_of_an_older_session_gives_no_parts() -> None:
    found = row(20_000, Cost({"gemm": Linear(1.5e6)}, Linear(100.0), Linear(100.0), 1e3))
    assert found.parts is None
    assert (found.verdict, found.evidence) == ("compute-bound", "C")
    assert found.compute_ns == pytest.approx(15_000)


def test_what_is_not_known_is_said_and_not_zero() -> None:
    unknown = judge(Evidence(5_000.0, 5, 5))
    assert (unknown.verdict, unknown.evidence) == (None, "–")
    assert unknown.sentence == "Takes 1 µs per frame; what it computes is not modelled."
    reasoned = row(5_000, Cost(unmodelled="a library reads the file"))
    assert (reasoned.verdict, reasoned.compute_ns, reasoned.parts) == (None, None, None)
    assert reasoned.sentence == "Takes 5 µs per block; a library reads the file."
    unmeasured = row(5_000, law(units=100), RoofTable())
    assert (unmeasured.verdict, unmeasured.unexplained_ns) == (None, None)
    assert "roofs were not measured" in unmeasured.sentence
    assert judge(Evidence(0.0, 0, 0)).verdict is None
