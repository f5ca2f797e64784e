"""Waiting for data, by hot replays: of which spans they tell, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest
from made_conditions import BLOCK, EMIT, LAW, ROOFS, SCORE, STAGES, at, replay, session_of
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.analysis.waiting import BY_TIME, FEWEST, LATEST, ONE_REPLAY, Waiting
from profiler.costs import KERNEL, Cost, Linear, Term
from profiler.machine.roofs.table import RoofTable
from profiler.spans import Stage


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
    off = ONE_REPLAY["scoring"] / 2**0.5
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
    rows: list[tuple[int, ...]] = [
        (0, 900, SCORE, 0, 4, 100),
        (900, 50, EMIT, 0, 4),
        (0, 1000, BLOCK, 0, 4, 0),
    ]
    track, seen = CostTrack(), []
    for i in range(FEWEST + 2):
        track.update(session_of(spans_of(rows)))
        seen.append((track.generation, track.categories_ns[0].tolist()))
        rows.append(replay(2000 + 1000 * i, 300, 1000))
    generations, costs = zip(*seen, strict=True)
    # A stage that was not replayed changes nothing.
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


def test_waiting_that_differs_from_block_to_block_leaves_a_verdict_open() -> None:
    """Of 1 000 ns the law has 450; replays say that 200 to 700 were waiting, about 480: more, but not surely."""
    hot = (300, 800, 450, 520, 400, 650)
    rows = [span for i in range(len(hot)) for span in block(10_000 * i, 1000, units=450)]
    rows += [replay(10_000 * i + 2_000, ns, 1000) for i, ns in enumerate(hot)]
    law = Cost(terms=(Term(KERNEL, "tile", Linear(per_work=(1.0, 0.0, 0.0))),))
    session = fake_session(
        spans_of(sorted(rows, key=lambda row: row[0])), STAGES, {(SCORE, 0): law}, ROOFS
    )
    (row,) = (row for row in breakdown(session).stages if row.name == "score.some")
    assert row.parts is not None
    assert row.parts.likely["latency"] > row.parts.likely["instructions"]
    assert row.verdict == "mixed"
    assert "too close to tell which is more" in row.sentence


# -- by the time of all blocks --------------------------------------------------------------------

UNITS = 100


def block(start: int, took: int, units: int = UNITS, other: int = 0) -> list[tuple[int, ...]]:
    """A block of nothing but scoring."""
    return [(start, took, SCORE, 0, 4, units), (start, took, BLOCK, 0, 4, other)]


def made(*blocks: tuple[int, int | None], units: int = UNITS, other: int = 0) -> np.ndarray:
    """Blocks that took so long, and the hot time of those that were replayed."""
    rows: list[tuple[int, ...]] = []
    now = 0
    for took, hot in blocks:
        rows += block(now, took, units, other)
        now += took
        if hot is not None:
            rows.append(replay(now, hot, took))
            now += hot
    return spans_of(rows)


def both(by_time: float, by_work: float, group: str = "scoring") -> float:
    return BY_TIME[group] * by_time + (1 - BY_TIME[group]) * by_work


def hot_part(found: Waiting, law: Cost | None = LAW, stage: str = "score.some") -> float:
    share = found.share(stage, law, at(10**12))
    assert share is not None
    return 1.0 - float(share.likely[0])


def test_most_is_told_by_the_work_of_which_all_blocks_time_is_known() -> None:
    """A block that took twice as long as others says that it waited, not that they did."""
    found = waiting_of(made(*[(1000, None)] * 8, (2000, 900)))
    assert hot_part(found) == pytest.approx(both(900 / 2000, 900 * 9 / 10_000))
    # Of less work it is as much more.
    spans = made(*[(1000, None)] * 8, (2000, 900))
    spans["work0"][np.flatnonzero(spans["stage"] == SCORE)[-1]] = UNITS // 2
    usual, half = 500 + UNITS, 500 + UNITS // 2
    by_work = 900 / half * (8 * usual + half) / 10_000
    assert hot_part(waiting_of(spans)) == pytest.approx(both(900 / 2000, by_work))


def test_of_the_search_the_time_of_a_block_says_more() -> None:
    assert BY_TIME["search"] > BY_TIME["scoring"]
    spans = made(*[(1000, None)] * 8, (2000, 900))
    stages = [
        Stage(
            stage.id,
            stage.name.replace("score.", "search."),
            stage.group.replace("scoring", "search"),
        )
        if "score." in stage.name
        else stage
        for stage in STAGES
    ]
    found = Waiting()
    found.update(fake_session(spans, stages, {(SCORE, 0): LAW}, ROOFS))
    expected = both(900 / 2000, 900 * 9 / 10_000, "search")
    assert hot_part(found, LAW, "search.some") == pytest.approx(expected)
    assert found.hot("search.some", LAW, 1).tolist() == pytest.approx([expected])
    assert found.hot("score.some", LAW, 1).tolist() == []


def test_all_blocks_are_those_since_the_replay_before_the_latest() -> None:
    once = [(3000, 500)]
    found = waiting_of(made(*[(5000, None)] * 50, *once, *[(1000, 500)] * LATEST))
    assert hot_part(found) == pytest.approx(0.5)


def test_blocks_that_others_disturbed_are_not_among_all() -> None:
    calm, slow = made((1000, None), (1000, 500)), made((9000, None), other=2000)
    slow["start_ns"] += 10**6
    late = made((1000, 500))
    late["start_ns"] += 10**7
    found = waiting_of(np.concatenate([calm, slow, late]))
    assert hot_part(found) == pytest.approx(0.5)


def test_where_the_work_of_a_block_is_not_known_its_time_alone_tells() -> None:
    spans = made(*[(1000, None)] * 8, (2000, 900))
    expected = pytest.approx(900 / 2000)
    # Its spans are not those that the replay compares with.
    other = spans.copy()
    other["work0"][-1] = 2100
    assert hot_part(waiting_of(other)) == pytest.approx(900 / 2100)
    # No law, and none that says anything.
    for costs in ({}, {(SCORE, 0): Cost(unmodelled="no", terms=LAW.terms)}):
        found = Waiting()
        found.update(fake_session(spans, STAGES, costs, ROOFS))
        assert hot_part(found, costs.get((SCORE, 0))) == expected
    # No roofs.
    found = Waiting()
    found.update(fake_session(spans, STAGES, {(SCORE, 0): LAW}, RoofTable(())))
    assert hot_part(found) == expected
    # No tiles.
    assert hot_part(waiting_of(spans[spans["stage"] != BLOCK])) == expected


def test_a_block_is_all_of_its_spans_and_no_more() -> None:
    """And what lies before the first tile, a warm-up, is of no block."""
    rows: list[tuple[int, ...]] = [(0, 5000, SCORE, 0, 4, 3 * UNITS)]
    for n, took in enumerate((500, 500, 1000)):
        start = 5000 + 10_000 * n
        rows += [(start + i * took, took, SCORE, 0, 4, UNITS) for i in range(2)]
        rows += [(start, 2 * took, BLOCK, 0, 4, 0)]
    rows.append(replay(40_000, 900, 2000))
    by_work = 900 / (2 * 600) * (6 * 600) / 4000
    assert hot_part(waiting_of(spans_of(rows))) == pytest.approx(both(900 / 2000, by_work))


def test_blocks_under_another_law_are_not_among_all() -> None:
    other = Cost(terms=(Term(KERNEL, "tile", Linear(2.0)),))
    spans = made(*[(9000, None)] * 8, *[(1000, None)] * 8, (1000, 500))
    spans["epoch"][:16] = 1
    found = Waiting()
    found.update(fake_session(spans, STAGES, {(SCORE, 0): LAW, (SCORE, 1): other}, ROOFS))
    assert hot_part(found) == pytest.approx(0.5)


def test_read_span_by_span_it_is_what_it_is_at_once() -> None:
    """Bit for bit, of counts whose sums depend on the order that they are added in."""
    random = np.random.default_rng(5)
    took, hot = random.integers(500, 2000, (2, 60)).tolist()
    spans = made(
        *((t, h if n % 3 == 2 else None) for n, (t, h) in enumerate(zip(took, hot, strict=True)))
    )
    spans["work0"][spans["stage"] == SCORE] = random.integers(1, 1000, 60)
    costs = {(SCORE, 0): Cost(terms=(Term(KERNEL, "tile", Linear(per_work=(1 / 3, 0.0, 0.0))),))}
    at_once, in_pieces = Waiting(), Waiting()
    at_once.update(fake_session(spans, STAGES, costs, ROOFS))
    for end in range(len(spans) + 1):
        in_pieces.update(fake_session(spans[:end], STAGES, costs, ROOFS))
    one, other = (
        each.share("score.some", costs[SCORE, 0], spans["start_ns"])
        for each in (at_once, in_pieces)
    )
    assert one is not None
    assert np.array(one).tobytes() == np.array(other).tobytes()
    # By time alone it is something else.
    alone = waiting_of(spans[spans["stage"] != BLOCK]).share("score.some", LAW, at(10**12))
    assert alone is not None
    assert alone.likely != one.likely[-1]


@pytest.mark.parametrize("seed", range(3))
def test_an_interval_is_narrower_for_it_where_blocks_differ_and_their_work_does_not(
    seed: int,
) -> None:
    random = np.random.default_rng(seed)
    took = (1000 * random.gamma(8, 1 / 8, 400)).astype(int) + 500
    hot = [int(450 + 20 * x) if n % 50 == 49 else None for n, x in enumerate(random.random(400))]
    spans = made(*zip(took.tolist(), hot, strict=True))
    by_both = waiting_of(spans).share("score.some", LAW, at(10**12))
    alone = waiting_of(spans[spans["stage"] != BLOCK]).share("score.some", LAW, at(10**12))
    assert by_both is not None
    assert alone is not None
    truth = 1 - 460 / took.mean()
    assert by_both.least <= truth <= by_both.most
    width, before = (float((each.most - each.least)[0]) for each in (by_both, alone))
    assert width < 0.7 * before
