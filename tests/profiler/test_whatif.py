"""Amdahl and cost laws against figures worked out by hand."""

from __future__ import annotations

import pytest
from profiler_sessions import fake_session, roof, spans_of

from profiler.analysis import whatif
from profiler.analysis.breakdown import Breakdown, breakdown
from profiler.costs import CALL, KERNEL, STREAM, Cost, Linear, Term
from profiler.errors import BadInput
from profiler.machine.roofs.table import BANDWIDTH, RoofTable
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
        # compute 10, memory 15, not attributed 15 of score.a; all of score.b is not attributed.
        ([("compute", 0.0)], 90_000),
        ([("memory", 0.0)], 85_000),
        ([("unexplained", 0.0)], 65_000),
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


def rows(costs, *stages):
    """Rows of ten frames whose times mean nothing."""
    spans = [(i, 1, stage, 0, 10) for i, stage in enumerate(stages)]
    spans.append((0, len(stages), 0, 0, 10))
    laws = {(stage, 0): law for stage, law in costs.items()}
    return breakdown(fake_session(spans_of(spans), STAGES, laws)).stages


def law(op: float, moved: float = 0.0) -> Cost:
    terms = (Term(STREAM, "read", Linear(moved), FAR),)
    return Cost({"gemm": Linear(op)}, Linear(moved), Linear(moved), FAR, terms=terms)


def test_other_settings_keep_the_distance_from_the_roofs(prediction) -> None:
    # Before: 10 + 15 µs at best, taken 40 µs. After: 5 + 0 µs, so a fifth of the time.
    before, after = rows({1: law(1e6, 5e5)}, 1), rows({1: law(0.5e6)}, 1)
    changed = whatif.changed(prediction, before, after, "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(8_000)
    # Counted in neither: it stays, as does all that is no scoring.
    assert (times["score.b"], times["search.emit"], times["overhead"]) == (20_000, 30_000, 10_000)
    assert changed.predicted_ns == pytest.approx(68_000)
    assert "cost law" in changed.assumptions[0]


def test_every_term_of_a_law_counts(prediction) -> None:
    # Before: 10 µs of arithmetic and 60 calls of 500 ns; after: the same with none. A quarter is left of 40 µs.
    calls = Term(CALL, "numpy", Linear(60.0))
    before = Cost({"gemm": Linear(1e6)}, terms=(calls,))
    after = Cost({"gemm": Linear(1e6)}, terms=())
    changed = whatif.changed(prediction, rows({1: before}, 1), rows({1: after}, 1), "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(10_000)


def test_a_law_without_terms_counts_by_arithmetic_and_traffic(prediction) -> None:
    # Before: 10 µs of arithmetic, 10 of 1e6 B at 100 GB/s; after: the bytes alone. Half is left of 40 µs.
    before = Cost({"gemm": Linear(1e6)}, Linear(1e6), Linear(1e6), 1e3)
    after = Cost({}, Linear(1e6), Linear(1e6), 1e3)
    changed = whatif.changed(prediction, rows({1: before}, 1), rows({1: after}, 1), "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(20_000)


def test_what_other_programs_took_is_a_part_of_scoring() -> None:
    stages = [Stage(0, "decode.block", "decode", ("other_programs_ns",)), *STAGES[1:]]
    spans = spans_of([(0, 40_000, 1, 0, 10), (0, 80_000, 0, 0, 10, 20_000)])
    prediction = whatif.unchanged(breakdown(fake_session(spans, stages, COSTS)))
    # Half of the tile is scoring: so is half of the 20 µs.
    assert whatif.scaled(prediction, [("other_programs", 0.0)]).predicted_ns == pytest.approx(
        70_000, abs=0.1
    )


def test_stages_come_and_go_with_settings(prediction) -> None:
    before = rows({1: law(1e6), 2: law(1e6)}, 1, 2)
    after = rows({1: law(1e6), 4: law(0.5e6)}, 1, 4)
    changed = whatif.changed(prediction, before, after, "scoring")
    times = {line.name: line.predicted_ns for line in changed.lines}
    assert times["score.a"] == pytest.approx(40_000)
    assert times["score.b"] == 0.0
    # Scoring takes 60 µs where 20 µs were possible; the newcomer's 5 µs become 15.
    assert times["score.c"] == pytest.approx(15_000)
    assert "score.c" in changed.assumptions[1]
    assert [line.name for line in changed.lines] == [
        "score.a", "score.b", "score.c", "search.emit", "overhead",
    ]  # fmt: skip


def test_more_blocks_bring_more_calls_of_the_search_and_more_of_their_ends() -> None:
    # 6 of the 30 µs of the search are 12 calls of 500 ns; of 10 µs between stages 4 are at the ends of blocks.
    search = Cost(terms=(Term(CALL, "numpy", Linear(12.0)),))
    stages = [*STAGES, Stage(5, "decode.end", "overhead")]
    spans = [(0, 40_000, 1, 0, 10), (40_000, 20_000, 2, 0, 10), (60_000, 30_000, 3, 0, 10)]
    spans += [(90_000, 4_000, 5, 0, 10), (0, 100_000, 0, 0, 10)]
    session = fake_session(spans_of(spans), stages, COSTS | {(3, 0): search})
    prediction = whatif.in_blocks(whatif.unchanged(breakdown(session)), 4.0)
    times = {line.name: line.predicted_ns for line in prediction.lines}
    assert times["search.emit"] == pytest.approx(30_000 + 3 * 6_000)
    assert times["overhead"] == pytest.approx(10_000 + 3 * 4_000)
    assert (times["score.a"], times["score.b"]) == (40_000, 20_000)
    assert "once a block" in prediction.assumptions[0]


def test_shared_evenly_threads_do_together_what_each_does_alone() -> None:
    alone = [roof(BANDWIDTH, "read", 20e9, 1 << 20), roof(KERNEL, "tile", 1e9)]
    busy = roof(KERNEL, "tile", 1.1e9, threads=2)
    table = RoofTable((*alone, busy)).evenly(1, 2)
    two = table.kernel("tile", 2)
    assert two is not None
    assert (two.threads, two.median) == (2, 2e9)
    assert table.kernel("tile") == alone[1]
    wide = table.bandwidth(1 << 20, 2)
    assert wide is not None
    assert wide.median == 40e9


@pytest.mark.parametrize(("mib", "doubted"), [(2, False), (11, True), (14, True), (64, False)])
def test_data_as_large_as_a_cache_make_a_prediction_doubtful(mib: int, doubted: bool) -> None:
    ladder = ((1, 100e9), (11, 95e9), (14, 30e9), (256, 28e9))
    table = RoofTable(tuple(roof(BANDWIDTH, "read", rate, size << 20) for size, rate in ladder))
    sizes = {"score.a": mib << 20, "score.b": 1 << 20}
    costs = {
        name: Cost(terms=(Term(KERNEL, "a kernel", Linear(1.0), float(size)),))
        for name, size in sizes.items()
    }
    said = whatif.doubts(costs, table)
    assert bool(said) == doubted
    if doubted:
        assert "score.a" in said[0]
        assert "score.b" not in said[0]
        assert f"{mib} MiB" in said[0]
