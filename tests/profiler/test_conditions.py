"""What the machine did beside the spans: other programs and its speed by probes; and a session read in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_conditions import (
    ARITHMETIC,
    BLOCK,
    EMIT,
    LAW,
    MEMORY,
    ROOFS,
    SCORE,
    STAGES,
    at,
    replay,
    session_of,
)
from profiler_sessions import ROOF_TABLE, fake_session, spans_of

from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import OTHER_PROGRAMS
from profiler.analysis.conditions import Speed, shared_out
from profiler.analysis.stage_sums import StageSums
from profiler.analysis.track import CostTrack
from profiler.analysis.waiting import Waiting
from profiler.costs import KERNEL, Cost, Linear, Term
from profiler.export.table import COLUMNS, _between
from profiler.machine.roofs.table import (
    LEAST_SLOWNESS,
    MOST_SLOWNESS,
    PROBES_TOGETHER,
)
from profiler.spans import Stage

# -- other programs -----------------------------------------------------------------------------


def test_other_programs_are_shared_out_by_the_length_of_the_leaves() -> None:
    tiles = spans_of([(0, 1000, BLOCK, 0, 4, 300), (1000, 500, BLOCK, 4, 4, 0)])
    leaves = spans_of([(0, 600, SCORE, 0, 4), (600, 200, EMIT, 0, 4), (1000, 400, SCORE, 4, 4)])
    stages = {stage.id: stage for stage in STAGES}
    got = shared_out(leaves, tiles, np.array([0, 0, 1]), stages)
    assert got.tolist() == pytest.approx([180, 60, 0])


def test_no_tile_gives_more_than_it_lasted() -> None:
    tiles, leaves = spans_of([(0, 1000, BLOCK, 0, 4, 5000)]), spans_of([(0, 600, SCORE, 0, 4)])
    stages = {stage.id: stage for stage in STAGES}
    assert shared_out(leaves, tiles, np.array([0]), stages).tolist() == [600]
    # A session of an older program counts none.
    old = {BLOCK: Stage(BLOCK, "decode.block", "decode")}
    assert shared_out(leaves, tiles, np.array([0]), old).tolist() == [0]


def test_they_are_a_category_of_scoring_and_of_the_rest_and_a_part_of_stages() -> None:
    spans = spans_of(
        [(0, 600, SCORE, 0, 4, 100), (600, 200, EMIT, 0, 4), (0, 1000, BLOCK, 0, 4, 300)]
    )
    found = breakdown(session_of(spans))
    # 600 of scoring and 200 between the stages, each by the three tenths of the block.
    assert found.categories[OTHER_PROGRAMS] == pytest.approx(180 + 60)
    assert found.categories["overhead"] == pytest.approx(140)
    assert found.categories["search"] == 200
    score, emit = found.stages
    assert score.parts is not None
    assert score.parts.likely[OTHER_PROGRAMS] == pytest.approx(180)
    assert score.other_ns == pytest.approx(180)
    assert emit.parts is None


def test_they_take_as_large_a_part_of_named_overhead_as_of_what_lies_between() -> None:
    """What they took of 600 that have a name was taken off the 200 that have none, which came out below nothing."""
    stages = [*STAGES, Stage(9, "device.latency", "overhead")]
    spans = spans_of([(0, 200, SCORE, 0, 4), (200, 600, 9, 0, 4), (0, 1000, BLOCK, 0, 4, 500)])
    session = fake_session(spans, stages, {(SCORE, 0): LAW}, ROOFS)
    found = breakdown(session)
    assert found.categories["overhead"] == pytest.approx(400)
    assert found.overhead() == {BETWEEN: pytest.approx(100), "device.latency": pytest.approx(300)}
    shown = {row[COLUMNS.index("stage")]: row for row in _between(session, found)}
    assert shown["overhead"][COLUMNS.index("time_ns")] == 100
    assert shown[OTHER_PROGRAMS][COLUMNS.index("time_ns")] == 100


# -- speed --------------------------------------------------------------------------------------


def probe(start: int, arithmetic: int, memory: int) -> list[tuple[int, ...]]:
    return [
        (start, arithmetic, ARITHMETIC, 0, 0, 1),
        (start + arithmetic, memory, MEMORY, 0, 0, 1),
    ]


def speed_of(spans: np.ndarray) -> Speed:
    found = Speed()
    found.update(session_of(spans))
    return found


def test_the_last_probes_before_say_how_slow_the_machine_is() -> None:
    spans = spans_of([*probe(1000, 30_000, 400_000), *probe(10**7, 60_000, 200_000)])
    found = speed_of(spans).at(at(0, 30_999, 31_000, 431_000, 10_060_000, 2 * 10**7))
    assert found is not None
    # Before the first nothing is known, and the roofs hold; of several the fastest counts.
    assert found[0].tolist() == pytest.approx([1, 1, 1, 1, 1, 1])
    assert found[1].tolist() == pytest.approx([1, 1, 1, 2, 2, 1])
    assert speed_of(spans).mean() == (pytest.approx(1.5), pytest.approx(1.5))


def test_a_machine_that_stays_slow_is_slow() -> None:
    spans = spans_of([row for n in range(5) for row in probe(n * 10**7, 60_000 + n, 200_000)])
    found = speed_of(spans).at(at(10**6, 10**8))
    assert found is not None
    assert found[0].tolist() == pytest.approx([2, 2], rel=1e-3)
    # The last PROBES_TOGETHER alone: one that was fast long ago does not count.
    fast = spans_of(
        [
            row
            for n, ns in enumerate((30_000, 60_000, 60_000, 60_000))
            for row in probe(n * 10**7, ns, 200_000)
        ]
    )
    later = speed_of(fast).at(at(10**8))
    assert later is not None
    assert PROBES_TOGETHER == 3
    assert later[0].tolist() == pytest.approx([2])


def test_repeats_of_a_probe_count() -> None:
    found = speed_of(spans_of([(0, 90_000, ARITHMETIC, 0, 0, 2)])).at(at(90_000))
    assert found is not None
    assert found[:, 0].tolist() == pytest.approx([1.5, 1.0])


@pytest.mark.parametrize("factor", [LEAST_SLOWNESS * 0.99, MOST_SLOWNESS * 1.01])
def test_a_probe_beyond_belief_is_left_out(factor: float) -> None:
    lost = probe(0, round(30_000 * factor), round(200_000 * factor))
    assert speed_of(spans_of(lost)).at(at(10**6)) is None
    found = speed_of(
        spans_of([*probe(0, 33_000, 200_000), *[(10**6 + start, *rest) for start, *rest in lost]])
    ).at(at(10**7))
    assert found is not None
    assert found[:, 0].tolist() == pytest.approx([1.1, 1.0])


def test_without_probes_or_their_roofs_nothing_is_slowed() -> None:
    assert Speed().at(at(0)) is None
    assert Speed().mean() is None
    without = fake_session(spans_of(probe(0, 60_000, 200_000)), STAGES, {}, ROOF_TABLE)
    found = Speed()
    found.update(without)
    assert found.at(at(10**6)) is None
    # The roofs came later: what was read before counts by then.
    without.calibration, without.generation = ROOFS, 1
    found.update(without)
    values = found.at(at(10**6))
    assert values is not None
    assert values[0, 0] == pytest.approx(2)


# -- all of it, in pieces -----------------------------------------------------------------------


@st.composite
def recordings(draw: st.DrawFn) -> np.ndarray:
    """Blocks of two leaves, with probes and replays between them."""
    rows: list[tuple[int, ...]] = []
    now = draw(st.integers(0, 10**9))
    for block in range(draw(st.integers(0, 12))):
        score, emit = draw(st.integers(0, 10**6)), draw(st.integers(0, 10**5))
        rows.append((now, score, SCORE, 4 * block, 4, draw(st.integers(0, 10**6))))
        rows.append((now + score, emit, EMIT, 4 * block, 4))
        rows.append((now, score + emit, BLOCK, 4 * block, 4, draw(st.integers(0, 10**6))))
        now += score + emit
        if draw(st.booleans()):
            hot = draw(st.integers(1, 10**6))
            timed = draw(st.sampled_from([score, draw(st.integers(0, 10**6))]))
            rows.append(replay(now, hot, timed))
            now += hot
        if draw(st.booleans()):
            pair = draw(st.integers(10_000, 300_000)), draw(st.integers(10_000, 2_000_000))
            rows += probe(now, *pair)
            now += sum(pair)
    return spans_of(rows)


@given(recordings(), st.lists(st.integers(0, 80), max_size=8))
def test_speed_and_waiting_in_pieces_are_those_at_once_and_within_bounds(
    spans: np.ndarray, cuts: list[int]
) -> None:
    speed, waiting, at_once = Speed(), Waiting(), Waiting()
    # Of counts whose sums depend on the order that they are added in.
    law = Cost(terms=(Term(KERNEL, "tile", Linear(per_work=(1 / 3, 0.0, 0.0))),))
    costs = {(SCORE, 0): law}
    at_once.update(fake_session(spans, STAGES, costs, ROOFS))
    for cut in [*sorted(cuts), len(spans)]:
        part = fake_session(spans[:cut], STAGES, costs, ROOFS)
        speed.update(part)
        waiting.update(part)
    times = np.concatenate([spans["start_ns"], [0, 2**62]]).astype(np.int64)
    for got, wanted in (
        (speed.at(times), speed_of(spans).at(times)),
        (
            waiting.share("score.some", law, times),
            at_once.share("score.some", law, times),
        ),
    ):
        assert (got is None) == (wanted is None)
        if got is not None and wanted is not None:
            assert np.array(got).tobytes() == np.array(wanted).tobytes()
    found = speed.at(times)
    assert found is None or ((found >= LEAST_SLOWNESS) & (found <= MOST_SLOWNESS)).all()
    share = waiting.share("score.some", law, times)
    if share is not None:
        ends = np.array(share)
        assert ((ends >= 0) & (ends <= 1)).all()
        assert (np.diff(ends, axis=0) >= 0).all()
    # At time 0 nothing had been probed.
    assert found is None or found[:, -2].tolist() == [1, 1]


@given(recordings(), st.lists(st.integers(0, 80), max_size=8))
def test_a_session_followed_live_gives_the_sums_of_one_read_at_once(
    spans: np.ndarray, cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profiler.analysis.stage_sums.CHUNK", 2)
        whole, pieces, sums, parts = CostTrack(), CostTrack(), StageSums(), StageSums()
        whole.update(session_of(spans))
        sums.update(session_of(spans))
        for cut in [*sorted(cuts), len(spans)]:
            pieces.update(session_of(spans[:cut]))
            parts.update(session_of(spans[:cut]))
        assert pieces.categories_ns.tobytes() == whole.categories_ns.tobytes()
        everything = session_of(spans)
        got, wanted = (sorted(s.within(everything, None, None)) for s in (parts, sums))
        assert got == wanted
    assert whole.wall_ns.sum() == spans["duration_ns"][spans["stage"] == BLOCK].sum()
