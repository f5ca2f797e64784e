"""What the machine did beside the spans: other programs, its speed by probes, waiting for data by hot replays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiler_sessions import ROOF_TABLE, fake_session, roof, spans_of

from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.categories import OTHER_PROGRAMS
from profiler.analysis.conditions import (
    FEWEST,
    LATEST,
    ONE_REPLAY,
    OTHER_COUNT,
    REPLAYED,
    Speed,
    Waiting,
    shared_out,
)
from profiler.analysis.stage_sums import StageSums
from profiler.analysis.track import CostTrack
from profiler.costs import CALL, KERNEL, Cost, Linear, Term
from profiler.export.table import COLUMNS, _between
from profiler.machine.roofs import table
from profiler.machine.roofs.table import (
    LEAST_SLOWNESS,
    MOST_SLOWNESS,
    OVERHEAD,
    PROBES,
    PROBES_TOGETHER,
    RoofTable,
)
from profiler.spans import Stage

BLOCK, SCORE, EMIT, ARITHMETIC, MEMORY, REPLAY = range(6)
STAGES = [
    Stage(BLOCK, "decode.block", "decode", (OTHER_COUNT,)),
    Stage(SCORE, "score.some", "scoring", ("units",)),
    Stage(EMIT, "search.emit", "search"),
    Stage(ARITHMETIC, PROBES[0], "setup", ("repeats",)),
    Stage(MEMORY, PROBES[1], "setup", ("repeats",)),
    Stage(REPLAY, f"{REPLAYED}score.some", "setup", ("timed_ns",)),
]
ROOFS = ROOF_TABLE.merged(
    RoofTable(
        (
            roof(table.KERNEL, "tile", 1e9),
            # 30 µs and 200 µs a repeat.
            roof(table.KERNEL, PROBES[0], 1e9 / 30_000),
            roof(table.KERNEL, PROBES[1], 5_000.0),
            roof(OVERHEAD, "kernel call", 1000.0),
        )
    )
)
LAW = Cost(
    terms=(
        Term(KERNEL, "tile", Linear(per_work=(1.0, 0.0, 0.0))),
        Term(CALL, "kernel call", Linear(0.5)),
    )
)


def session_of(spans: np.ndarray, **more: Any) -> Any:
    return fake_session(spans, STAGES, {(SCORE, 0): LAW}, ROOFS, **more)


def at(*times: int) -> np.ndarray:
    return np.array(times, np.int64)


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


# -- waiting ------------------------------------------------------------------------------------


def replay(start: int, hot: int, timed: int) -> tuple[int, ...]:
    return (start, hot, REPLAY, 0, 0, timed)


def waiting_of(spans: np.ndarray) -> Waiting:
    found = Waiting()
    found.update(session_of(spans))
    return found


def test_what_a_block_took_longer_than_with_its_data_hot_it_waited() -> None:
    found = waiting_of(spans_of([replay(1000, 600, 1000), replay(5000, 900, 1000)]))
    assert found.replayed("score.some", LAW) == 2
    share = found.share("score.some", LAW, at(0, 1599, 1600, 5900, 10**9))
    assert share is not None
    # The first few tell of what came before them too, and are taken together.
    assert share.likely.tolist() == pytest.approx([0.25] * 5)
    # One or two are as uncertain as single ones are found to be.
    off = ONE_REPLAY / 2**0.5
    assert share.least.tolist() == pytest.approx([0.25 - off] * 5)
    assert share.most.tolist() == pytest.approx([0.25 + off] * 5)
    assert found.share("score.other", LAW, at(0)) is None
    assert found.replayed("score.other", LAW) == 0


def test_later_replays_say_nothing_of_what_came_before_them() -> None:
    rows = [replay(10_000 * (i + 1), 500, 1000) for i in range(FEWEST)]
    rows.append(replay(10**6, 900, 1000))
    share = waiting_of(spans_of(rows)).share("score.some", LAW, at(0, 10**6, 10**6 + 900))
    assert share is not None
    assert share.likely.tolist() == pytest.approx([0.5, 0.5, 1 - 2400 / 4000])


def test_a_replay_tells_of_blocks_under_its_own_law() -> None:
    """Of 64 frames at once it says nothing about one frame at a time, and comes to count again with the settings."""
    other = Cost(terms=(Term(KERNEL, "tile", Linear(2.0)),))
    spans = spans_of([replay(1000 * i, 400 + 300 * (i % 2), 1000) for i in range(6)])
    spans["epoch"] = [0, 1, 0, 1, 2, 3]
    session = fake_session(
        spans, STAGES, {(SCORE, 0): LAW, (SCORE, 1): other, (SCORE, 2): LAW}, ROOFS
    )
    found = Waiting()
    assert found.update(session)
    assert [found.replayed("score.some", law) for law in (LAW, other, None)] == [3, 2, 1]
    for law, wanted in ((LAW, 0.6), (other, 0.3), (None, 0.3)):
        share = found.share("score.some", law, at(10**9))
        assert share is not None
        assert share.likely.tolist() == pytest.approx([wanted])
    assert found.share("score.some", Cost(), at(0)) is None


def test_the_first_replays_change_what_is_said_of_earlier_frames() -> None:
    rows: list[tuple[int, ...]] = [(0, 900, SCORE, 0, 4, 100), (0, 1000, BLOCK, 0, 4, 0)]
    track, seen = CostTrack(), []
    for i in range(FEWEST + 2):
        track.update(session_of(spans_of(rows)))
        seen.append((track.generation, track.categories_ns[0].tolist()))
        rows.append(replay(2000 + 1000 * i, 300, 1000))
    generations, costs = zip(*seen, strict=True)
    assert np.diff(generations).tolist() == [1] * FEWEST + [0]
    assert costs[0] != costs[1]


def test_only_the_latest_replays_count_and_a_hot_one_that_took_longer_is_no_waiting() -> None:
    rows = [replay(1000 * i, 100, 1000) for i in range(LATEST)]
    rows += [replay(10**6 + 1000 * i, 500, 1000) for i in range(LATEST)]
    rows += [replay(10**7 + 3000 * i, 2000, 1000) for i in range(LATEST)]
    share = waiting_of(spans_of(rows)).share("score.some", LAW, at(10**5, 10**6 + 10**5, 10**9))
    assert share is not None
    assert np.array(share).tolist() == pytest.approx(np.array([[0.9, 0.5, 0.0]] * 3))


def test_replays_that_agree_are_sure() -> None:
    hot = (500, 520, 480, 500, 510, 490, 500, 500)
    share = waiting_of(spans_of([replay(1000 * i, ns, 1000) for i, ns in enumerate(hot)])).share(
        "score.some", LAW, at(10**9)
    )
    assert share is not None
    error = 3 * np.std(hot, ddof=1) / 1000 / np.sqrt(len(hot))
    assert [one.item() for one in share] == pytest.approx([0.5 - error, 0.5, 0.5 + error])


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
            rows.append(replay(now, hot, draw(st.integers(0, 10**6))))
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
    speed, waiting = Speed(), Waiting()
    for cut in [*sorted(cuts), len(spans)]:
        part = session_of(spans[:cut])
        speed.update(part)
        waiting.update(part)
    times = np.concatenate([spans["start_ns"], [0, 2**62]]).astype(np.int64)
    for got, wanted in (
        (speed.at(times), speed_of(spans).at(times)),
        (
            waiting.share("score.some", LAW, times),
            waiting_of(spans).share("score.some", LAW, times),
        ),
    ):
        assert (got is None) == (wanted is None)
        if got is not None and wanted is not None:
            assert np.array(got).tobytes() == np.array(wanted).tobytes()
    found = speed.at(times)
    assert found is None or ((found >= LEAST_SLOWNESS) & (found <= MOST_SLOWNESS)).all()
    share = waiting.share("score.some", LAW, times)
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
