"""Categories and frames: sums that add up to the wall time for any well-formed recording, fed in any way."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiler_sessions import BLOCKS, FRAMES, GAUSSIANS_COST, fake_session, spans_of, tracked

from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import CATEGORIES, NOT_OWN, OTHER_PROGRAMS, OVERHEAD, SCORING_CATEGORIES, THROTTLED
from profiler.analysis.comparison.arms import FrameSums
from profiler.analysis.own_cost import RecorderCost, recorder_cost
from profiler.analysis.per_frame import GRAIN
from profiler.analysis.stage_sums import COUNTS, OTHER_COUNT, lost_shares
from profiler.analysis.track import CHUNK_SPANS, CostTrack
from profiler.export.table import _between
from profiler.session.model import LaneInfo, Utterance
from profiler.session.reader import Session
from profiler.spans import SPAN, Cost, Linear, Stage
from tests.category_times import categories_ns

STAGES = [
    Stage(0, "decode.block", "decode", COUNTS),
    Stage(1, "decode.utterance", "prepare"),
    Stage(2, "score.gaussians", "scoring", ("gaussians", "senones")),
    Stage(3, "search.emit", "search", ("tokens", "arcs", "senones")),
    Stage(4, "frontend.mfcc", "frontend"),
    Stage(5, "move.scores", "transfer"),
    Stage(6, "idle.pace", "idle"),
    Stage(7, "setup.model", "setup"),
    Stage(8, "python.loop", "overhead"),
]
LEAVES = (2, 3, 4, 5, 8)
COSTS = {(2, 0): GAUSSIANS_COST}
SEARCH = CATEGORIES.index("search")


@st.composite
def recordings(draw: st.DrawFn) -> np.ndarray:
    """A well-formed decode lane: tiles in a row, leaves inside them, idle and set-up between them."""
    rows: list[tuple[int, ...]] = []
    now = draw(st.integers(0, 10**12))
    frame = 0
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            length = draw(st.integers(0, 10**7))
            stage, frames = draw(st.sampled_from((6, 7, 2))), draw(st.integers(0, 3))
            rows.append((now, length, stage, frame, frames))
            now += length + 1
        ahead = draw(st.integers(0, 5)) == 0
        frames = draw(st.integers(0, 40))
        start = now
        for _ in range(draw(st.integers(0, 5))):
            now += draw(st.integers(0, 1000))
            length = draw(st.integers(0, 10**6))
            first = frame + draw(st.integers(0, max(frames - 1, 0)))
            stage, work = draw(st.sampled_from(LEAVES)), draw(st.integers(0, 10**6))
            rows.append((now, length, stage, first, draw(st.integers(0, 40)), work))
            now += length
        now += draw(st.integers(0, 1000))
        lost = [draw(st.integers(0, 10**6)) if draw(st.booleans()) else 0 for _ in NOT_OWN]
        stopped_ms = draw(st.sampled_from((0, 0, 0, 1, 2, 2**32 - 1)))
        rows.append((start, now - start, 1 if ahead else 0, frame, frames, *lost, stopped_ms))
        frame += 0 if ahead else frames
    return spans_of(rows)


def tile_time(spans: np.ndarray) -> int:
    """Of all tiles, without what stood still."""
    tiles = spans[spans["stage"] <= 1]
    stopped = np.where(tiles["stage"] == 0, tiles["work2"].astype(np.int64) * 1_000_000, 0)
    return int((tiles["duration_ns"] - np.minimum(stopped, tiles["duration_ns"])).sum())


def everything(track: CostTrack) -> np.ndarray:
    """The sums over all frames, those beyond the decoded ones too."""
    sums = track._sums
    return np.array([sums.row(row, sums.frames).total(0, sums.frames) for row in range(len(CATEGORIES))])


@settings(deadline=None, max_examples=20)
@given(recordings())
def test_categories_partition_the_wall_time(spans):
    session = fake_session(spans, STAGES, COSTS)
    track = tracked(session)
    # What stood still is shared by length, and rounded down.
    assert everything(track).sum() == pytest.approx(tile_time(spans), abs=len(spans) * GRAIN)
    sums = track._sums
    assert all((sums.row(row, sums.frames)[:] >= 0).all() for row in range(len(CATEGORIES) + 1))
    assert np.array_equal(categories_ns(track).sum(axis=1), track.wall_row[:])
    parts = breakdown(session, track=track)
    assert sum(parts.categories.values()) == parts.wall_ns
    assert track.misplaced == 0


@settings(deadline=None, max_examples=20)
@given(recordings(), st.data())
def test_a_group_is_the_sum_of_its_stages_without_what_was_not_their_own(spans, data):
    session = fake_session(spans, STAGES, COSTS)
    track = tracked(session)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, track.n_frames)] * 2)))
    parts = breakdown(session, first, last, track)
    # An edge cuts the sums of a stage and those of its frames at another grain.
    close = {"rel": 1e-9, "abs": 1e-3 * (1 + len(spans))}

    def own(group: str) -> float:
        return sum(row.own_ns for row in parts.stages if row.group == group and row.share is not None)

    for group in ("search", "frontend", "transfer"):
        assert own(group) == pytest.approx(parts.categories[group], **close)
    assert own("scoring") == pytest.approx(sum(parts.categories[name] for name in SCORING_CATEGORIES), **close)
    assert sum(parts.overhead().values()) == pytest.approx(parts.categories[OVERHEAD], **close)
    for name in NOT_OWN:
        # Of overhead with a name it is that of its tile, which may name other frames.
        of_stages = sum(row.lost_ns[name] for row in parts.stages if row.lost_ns and row.group != OVERHEAD)
        assert of_stages <= parts.categories[name] + close["abs"]
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, **close)


@settings(deadline=None, max_examples=20)
@given(recordings(), st.lists(st.integers(0, 60), max_size=10))
def test_feeding_in_pieces_gives_the_same_bits(spans, cuts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profiler.analysis.stage_sums.CHUNK", 2)
        whole, pieces = CostTrack(), CostTrack()
        whole.update(fake_session(spans, STAGES, COSTS))
        for cut in [*sorted(cuts), len(spans)]:
            pieces.update(fake_session(spans[:cut], STAGES, COSTS))
        assert sorted(pieces.stages.totals()) == sorted(whole.stages.totals())
    assert pieces.n_frames == whole.n_frames
    assert categories_ns(pieces).tobytes() == categories_ns(whole).tobytes()
    assert pieces.wall_row[:].tobytes() == whole.wall_row[:].tobytes()
    assert pieces.work_rows.keys() == whole.work_rows.keys()
    for name, values in whole.work_rows.items():
        assert pieces.work_rows[name][:].tobytes() == values[:].tobytes()


@settings(deadline=None, max_examples=10)
@given(recordings(), st.data())
def test_a_stretch_of_frames_and_the_rest_make_the_whole(spans, data):
    session = fake_session(spans, STAGES, COSTS)
    track = tracked(session)
    cut = data.draw(st.integers(0, track.n_frames))
    left, right, both = (breakdown(session, *ends, track) for ends in ((0, cut), (cut, None), (0, None)))
    assert left.wall_ns + right.wall_ns == both.wall_ns
    for name, ns in breakdown(session, track=track).categories.items():
        assert left.categories[name] + right.categories[name] == ns
    for row in both.stages:
        halves = [r.time_ns for part in (left, right) for r in part.stages if r.name == row.name]
        # What lies beyond the decoded frames is in neither half nor in the whole.
        assert sum(halves) == pytest.approx(row.time_ns)


def test_known_figures_of_a_small_recording(small):
    with Session.open(small) as session:
        track = CostTrack()
        assert track.update(session)
        assert not track.update(session)
        assert track.n_frames == FRAMES
        # gaussians: 3000·100 op at 110 Gop/s + 3000 exp at 1.1 Gop/s at best; 5000 B in the first cache.
        compute = 1500 / 1.1
        assert categories_ns(track)[0] == pytest.approx([compute, 0, 2500 - compute, 0, 0, 2000, 0, 250, 0], abs=2.5)
        assert categories_ns(track)[-1, SEARCH] == 2000 + BLOCKS - 1
        assert {name: row[:1].item() for name, row in track.work_rows.items()} == {
            "scoring gaussians": 750.0, "scoring senones": 50.0, "scoring bytes": 1250.0,
            "search tokens": 50.0, "search arcs": 200.0, "search senones": 30.0,
        }  # fmt: skip
        parts = breakdown(session)
        assert (parts.setup_ns, parts.idle_ns, parts.audio_s) == (5_000_000, BLOCKS * 3_000, FRAMES / 100)
        assert parts.rtf == pytest.approx(parts.wall_ns / 1e9 / parts.audio_s)
        gaussians, emit = parts.stages
        assert (gaussians.name, gaussians.lane, gaussians.calls) == ("score.gaussians", "decode", BLOCKS)
        assert gaussians.time_ns == BLOCKS * 10_000
        assert gaussians.flops == BLOCKS * 3000 * 101
        assert (gaussians.bytes_min, gaussians.bytes_max) == (BLOCKS * 5000, BLOCKS * 9040)
        assert gaussians.work == {"gaussians": 36_000, "senones": 2_400, "frames": FRAMES}
        assert (gaussians.verdict, gaussians.evidence) == ("compute-bound", "C")
        assert gaussians.share == pytest.approx(BLOCKS * 10_000 / parts.wall_ns)
        assert gaussians.intensity == pytest.approx(303000 / 5000)
        assert (emit.flops, emit.bytes_min, emit.verdict, emit.evidence) == (None, None, None, "–")
        recorder = recorder_cost(session, track)
        assert recorder.spans == 1 + 7 * BLOCKS
        # Of seven spans a block the tile is recorded between the stages, which is overhead.
        between = parts.categories[OVERHEAD]
        named = session.meta["recorder"]["ns_per_span"] * (1 + 6 * BLOCKS)
        assert recorder.perturbation == pytest.approx((between + named) / parts.wall_ns)
        assert recorder.bookkeeping == pytest.approx(between / parts.wall_ns)
        block, half = breakdown(session, 4, 8, track), breakdown(session, 4, 6, track)
        assert block.wall_ns == 10_000 + 4 * 2_001 + 1_000
        assert block.audio_s == pytest.approx(0.04)
        assert block.stages[0].calls == 1
        assert (half.stages[0].time_ns, half.stages[1].calls) == (5_000, 2)


def test_leaves_outside_every_tile_and_on_other_lanes_are_in_no_wall_time():
    rows = [(0, 50, 3, 0, 1), (100, 10, 3, 0, 1), (100, 30, 0, 0, 2), (200, 9, 3, 2, 1), (100, 25, 5, 0, 1)]
    spans = spans_of(rows)
    spans["lane"][4] = 1
    lanes = (LaneInfo(0, "decode", "cpu", True, 4, 0), LaneInfo(1, "stream", "cuda", False, 1, 0))
    parts = breakdown(fake_session(spans, STAGES, lanes=lanes))
    assert parts.wall_ns == 30
    assert (parts.categories["search"], parts.categories["transfer"]) == (10, 0)
    assert {row.lane: row.time_ns for row in parts.stages} == {"decode": 10, "stream": 25}
    assert next(row for row in parts.stages if row.lane == "stream").share is None


def test_work_done_ahead_is_seen_when_its_frames_are_decoded():
    rows: list[tuple[int, ...]] = [(0, 900, 4, 0, 30), (0, 900, 1, 0, 30), (900, 100, 0, 0, 10)]
    track = tracked(fake_session(spans_of(rows), STAGES))
    assert track.n_frames == 10
    assert track.wall_row[:].tolist() == [40.0] * 10
    track.update(fake_session(spans_of([*rows, (1000, 100, 0, 10, 20)]), STAGES))
    assert track.n_frames == 30
    assert track.wall_row[:].sum() == pytest.approx(1100)


def test_each_epoch_has_its_law_and_a_replaced_one_starts_the_track_again():
    spans = spans_of([(0, 1000, 2, 0, 1), (0, 1000, 0, 0, 1), (1000, 1000, 2, 1, 1), (1000, 1000, 0, 1, 1)])
    spans["epoch"][2:] = 1
    costs = {(2, 0): Cost({"gemm": Linear(10_000)}), (2, 1): Cost({"gemm": Linear(50_000)})}
    session = fake_session(spans, STAGES, costs)
    track = tracked(session)
    assert categories_ns(track)[:, 0] == pytest.approx([100 / 1.1, 500 / 1.1], abs=1)
    (row,) = breakdown(session, track=track).stages
    assert row.flops == 60_000
    session.costs[2, 0] = Cost({"gemm": Linear(20_000)})
    session.generation += 1
    track.update(session)
    assert categories_ns(track)[:, 0] == pytest.approx([200 / 1.1, 500 / 1.1], abs=1)
    # Where an epoch has none, or an empty one, nothing is known of the stage.
    for empty in (Cost(working_set_bytes=5.0), None):
        session.costs = {(2, 0): costs[2, 0]} | ({(2, 1): empty} if empty else {})
        (row,) = breakdown(session).stages
        assert (row.flops, row.bytes_min, row.verdict, row.evidence) == (None, None, None, "–")


def test_audio_counts_utterances_by_their_decoded_part():
    wave = np.empty((0, 2), np.int8)
    utterances = [
        Utterance(1, "a", "a", 0, 10, 0.115, None, None, (), None, (), None, None, True, wave),
        Utterance(2, "b", "b", 10, 10, 0.115, None, None, (), None, (), None, None, False, wave),
    ]
    spans = spans_of([(0, 10, 0, 0, 10), (10, 10, 0, 10, 5)])
    parts = breakdown(fake_session(spans, STAGES, utterances=utterances))
    assert parts.audio_s == pytest.approx(0.115 * 1.5)


def test_an_empty_session_has_a_breakdown():
    session, track = fake_session(np.empty(0, SPAN), [], lanes=()), CostTrack()
    track.update(session)
    parts = breakdown(session, track=track)
    assert (parts.wall_ns, parts.rtf, parts.stages) == (0.0, None, [])
    assert recorder_cost(session, track) == RecorderCost(None, 0, 0, 0, 0, None)


def test_more_spans_than_a_chunk():
    blocks = CHUNK_SPANS // 4
    spans = np.tile(spans_of([(0, 5, 3, 0, 1), (5, 5, 3, 0, 1), (0, 12, 0, 0, 1)]), 2 * blocks)
    spans["start_ns"] += np.repeat(np.arange(2 * blocks) * 12, 3)
    spans["first_frame"] = np.repeat(np.arange(2 * blocks), 3)
    track = tracked(fake_session(spans, STAGES))
    assert track.n_frames == 2 * blocks
    assert (track.wall_row[:] == 12).all()
    assert (categories_ns(track)[:, SEARCH] == 10).all()


BLOCK, SCORE, EMIT, LOOP = 0, 2, 3, 8


def session_of(spans: np.ndarray, frames: int) -> Any:
    """Of one utterance."""
    utterance = SimpleNamespace(first_frame=0, n_frames=frames, audio_s=frames / 100)
    return fake_session(spans, STAGES, COSTS, utterances=[utterance])


def test_what_is_lost_is_a_part_of_each_tile_and_at_most_all_of_it():
    tiles = spans_of(
        [
            (0, 1000, BLOCK, 0, 4, 300, 200),
            (0, 500, BLOCK, 4, 4),
            (0, 10, BLOCK, 0, 4, 99),
            # What stood still comes first, and a limit before other programs.
            (0, 4_000_000, BLOCK, 0, 4, 2_000_000, 1_000_000, 2),
        ]
    )
    # A session of an older program counts other programs, or none.
    for work, others, limit, stopped in (
        (COUNTS, [0.3, 0.0, 1.0, 0.25], [0.2, 0.0, 0.0, 0.25], [0.0, 0.0, 0.0, 0.5]),
        ((OTHER_COUNT,), [0.3, 0.0, 1.0, 0.5], [0.0] * 4, [0.0] * 4),
        ((), [0.0] * 4, [0.0] * 4, [0.0] * 4),
    ):
        stages = {BLOCK: Stage(BLOCK, "decode.block", "decode", work)}
        assert lost_shares(tiles, stages).tolist() == [others, limit, stopped]


def test_it_leaves_every_category_and_is_a_part_of_stages():
    spans = spans_of([(0, 600, SCORE, 0, 4, 100), (600, 200, EMIT, 0, 4), (0, 1000, BLOCK, 0, 4, 300, 100)])
    session = session_of(spans, 4)
    found = breakdown(session)
    assert found.wall_ns == 1000
    # 200 of the search and 200 between the stages, of which six tenths are their own.
    own = [found.categories[name] for name in (*NOT_OWN, "search", "overhead")]
    assert own == pytest.approx([300, 100, 120, 120])
    assert FrameSums(session).wall[-1] == pytest.approx(600), "nor of a side of a comparison"
    score, emit = found.stages
    assert [score.parts.likely[name] for name in NOT_OWN] == pytest.approx([180, 60])
    assert score.lost_ns == pytest.approx({OTHER_PROGRAMS: 180, THROTTLED: 60})
    assert "360 ns per block: " in score.sentence, "a stage's own time"
    assert emit.parts is None
    assert (emit.time_ns, emit.own_ns) == pytest.approx((200, 120))


def test_what_stood_still_is_no_time_of_anything():
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
    session = session_of(spans, 8)
    found = breakdown(session)
    assert (found.wall_ns, found.stopped_ns) == pytest.approx((20_000, stop), abs=0.01)
    assert found.rtf == pytest.approx(20e-6 / 0.08)
    assert sum(row.time_ns for row in found.stages) + found.between_ns == pytest.approx(found.wall_ns)
    assert FrameSums(session).wall[[4, -1]].tolist() == pytest.approx([10_000, 20_000], abs=10)


def test_they_take_as_large_a_part_of_named_overhead_as_of_what_lies_between():
    """What they took of 600 that have a name was taken off the 200 that have none, which came out below nothing."""
    spans = spans_of([(0, 200, SCORE, 0, 4), (200, 600, LOOP, 0, 4), (0, 1000, BLOCK, 0, 4, 500)])
    session = fake_session(spans, STAGES, COSTS)
    found = breakdown(session)
    assert found.categories["overhead"] == pytest.approx(400)
    assert found.overhead() == {BETWEEN: pytest.approx(100), "python.loop": pytest.approx(300)}
    assert {row["stage"]: row["time_ns"] for row in _between(session, found)} == {"overhead": 100, OTHER_PROGRAMS: 100}
