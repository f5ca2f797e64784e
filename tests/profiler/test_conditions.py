"""What of the time was not the recogniser's own, and a session read in pieces."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_conditions import BLOCK, EMIT, LAW, ROOFS, SCORE, STAGES, replay, session_of
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import NOT_OWN, OTHER_PROGRAMS, THROTTLED
from profiler.analysis.comparison.arms import FrameSums
from profiler.analysis.conditions import OTHER_COUNT, lost_shares
from profiler.analysis.track import CostTrack
from profiler.export.table import COLUMNS, _between
from profiler.spans import Stage

# -- what was not its own -----------------------------------------------------------------------


def test_what_is_lost_is_a_part_of_each_tile_and_at_most_all_of_it() -> None:
    tiles = spans_of(
        [
            (0, 1000, BLOCK, 0, 4, 300, 200),
            (0, 500, BLOCK, 4, 4),
            (0, 10, BLOCK, 0, 4, 99),
            # What stood still comes first, and a limit before other programs.
            (0, 4_000_000, BLOCK, 0, 4, 2_000_000, 1_000_000, 2),
        ]
    )
    stages = {stage.id: stage for stage in STAGES}
    assert lost_shares(tiles, stages).tolist() == [[0.3, 0.0, 1.0, 0.25], [0.2, 0.0, 0.0, 0.25], [0.0, 0.0, 0.0, 0.5]]
    # A session of an older program counts other programs, or none.
    for work, of_others in (((OTHER_COUNT,), [0.3, 0.0, 1.0, 0.5]), ((), [0.0] * 4)):
        old = {BLOCK: Stage(BLOCK, "decode.block", "decode", work)}
        assert lost_shares(tiles, old).tolist() == [of_others, [0.0] * 4, [0.0] * 4]


def test_it_leaves_every_category_and_is_a_part_of_stages() -> None:
    spans = spans_of([(0, 600, SCORE, 0, 4, 100), (600, 200, EMIT, 0, 4), (0, 1000, BLOCK, 0, 4, 300, 100)])
    session = session_of(spans, utterances=[SimpleNamespace(first_frame=0, n_frames=4, audio_s=0.04)])
    found = breakdown(session)
    assert [found.categories[name] for name in NOT_OWN] == pytest.approx([300, 100])
    assert FrameSums(session).wall[-1] == pytest.approx(600), "nor of a side of a comparison"
    # 200 of the search and 200 between the stages, of which six tenths are their own.
    assert found.categories["search"] == pytest.approx(120)
    assert found.categories["overhead"] == pytest.approx(120)
    assert found.wall_ns == 1000
    score, emit = found.stages
    assert [score.parts.likely[name] for name in NOT_OWN] == pytest.approx([180, 60])
    assert score.lost_ns == pytest.approx({OTHER_PROGRAMS: 180, THROTTLED: 60})
    assert score.sentence.startswith("360 ns per block: "), "a stage's own time"
    assert emit.parts is None
    assert (emit.time_ns, emit.own_ns) == pytest.approx((200, 120))


def test_what_stood_still_is_no_time_of_anything() -> None:
    """Four seconds in a block of ten microseconds were compute and memory of the stage they fell into."""
    stop = 4_000 * 10**6
    spans = spans_of(
        [
            (0, 6_000, SCORE, 0, 4, 100),
            (6_000, 2_000 + stop, EMIT, 0, 4),
            (0, 10_000 + stop, BLOCK, 0, 4, 0, 0, 4_000),
            (stop + 10_000, 6_000, SCORE, 4, 4, 100),
            (stop + 10_000, 10_000, BLOCK, 4, 4),
        ]
    )
    session = session_of(spans, utterances=[SimpleNamespace(first_frame=0, n_frames=8, audio_s=0.08)])
    found = breakdown(session)
    assert found.wall_ns == pytest.approx(20_000, abs=0.01)
    assert found.stopped_ns == pytest.approx(stop, abs=0.01)
    assert found.rtf == pytest.approx(20e-6 / 0.08)
    assert sum(row.time_ns for row in found.stages) + found.between_ns == pytest.approx(found.wall_ns)
    sums = FrameSums(session)
    assert sums.wall[-1] == pytest.approx(20_000, abs=10)
    assert sums.wall[4] == pytest.approx(10_000, abs=10)


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
