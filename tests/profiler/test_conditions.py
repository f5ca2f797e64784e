"""What other programs took of the processor, and a session read in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_conditions import BLOCK, EMIT, LAW, ROOFS, SCORE, STAGES, replay, session_of
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import OTHER_PROGRAMS
from profiler.analysis.conditions import other_share
from profiler.analysis.track import CostTrack
from profiler.export.table import COLUMNS, _between
from profiler.spans import Stage

# -- other programs -----------------------------------------------------------------------------


def test_other_programs_have_a_part_of_each_tile_and_at_most_all_of_it() -> None:
    tiles = spans_of([(0, 1000, BLOCK, 0, 4, 300), (0, 500, BLOCK, 4, 4), (0, 10, BLOCK, 0, 4, 99)])
    stages = {stage.id: stage for stage in STAGES}
    assert other_share(tiles, stages).tolist() == [0.3, 0.0, 1.0]
    # A session of an older program counts none.
    old = {BLOCK: Stage(BLOCK, "decode.block", "decode")}
    assert other_share(tiles, old).tolist() == [0.0, 0.0, 0.0]


def test_they_are_a_category_of_scoring_and_of_the_rest_and_a_part_of_stages() -> None:
    spans = spans_of([(0, 600, SCORE, 0, 4, 100), (600, 200, EMIT, 0, 4), (0, 1000, BLOCK, 0, 4, 300)])
    found = breakdown(session_of(spans))
    # 600 of scoring and 200 between the stages, each by the three tenths of the block.
    assert found.categories[OTHER_PROGRAMS] == pytest.approx(180 + 60)
    assert found.categories["overhead"] == pytest.approx(140)
    assert found.categories["search"] == 200
    score, emit = found.stages
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


# -- all of it, in pieces -----------------------------------------------------------------------


@st.composite
def recordings(draw: st.DrawFn) -> np.ndarray:
    """Blocks of two leaves, with replays between them."""
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
    return spans_of(rows)


@given(recordings(), st.lists(st.integers(0, 80), max_size=8))
def test_a_followed_session_has_the_same_sums(spans: np.ndarray, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profiler.analysis.stage_sums.CHUNK", 2)
        whole, pieces = CostTrack(), CostTrack()
        whole.update(session_of(spans))
        for cut in [*sorted(cuts), len(spans)]:
            pieces.update(session_of(spans[:cut]))
        assert pieces.categories_ns.tobytes() == whole.categories_ns.tobytes()
        assert sorted(pieces.stages.totals()) == sorted(whole.stages.totals())
    assert whole.wall_ns.sum() == spans["duration_ns"][spans["stage"] == BLOCK].sum()
