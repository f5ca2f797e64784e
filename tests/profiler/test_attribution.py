"""What a stage's time is shared out to, at hand-made roofs: planted causes, contradictions, and what holds of any."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiler_sessions import LARGE, REPLAY, ROOFS, SCORE, STAGES, fake_session, law, session_of, spans_of, tracked

from profiler.analysis.attribution import FEWEST, SHARES, HotReplays, Pairs, Shares, by_law
from profiler.analysis.breakdown import breakdown
from profiler.analysis.categories import NOT_ATTRIBUTED
from profiler.analysis.machine_costs import Sums, counted
from profiler.analysis.track import CostTrack
from profiler.costs import KERNEL_CALL, NUMPY_CALL, Accesses, Cost, Linear
from profiler.machine.roofs.table import RoofTable
from profiler.spans import Stage
from tests.category_times import categories_ns


def named(shares: Shares, ns: float = 1.0) -> dict[str, float]:
    return dict(zip(SHARES, (shares.likely * ns).tolist(), strict=True))


def shares_of(duration: int, cost: Cost, hot: float | None) -> dict[str, float]:
    return named(all_of(duration, cost, hot))


def ns_of(duration: int, cost: Cost, hot: float | None) -> dict[str, float]:
    return named(all_of(duration, cost, hot), duration)


def test_hot_time_is_arithmetic_and_the_rest_of_it_instructions():
    # At the best repeat, 110 operations a ns.
    got = shares_of(20_000, law(gemm=1.1e6), 0.75)
    assert (got["arithmetic"], got["instructions"]) == pytest.approx((0.5, 0.25))


def all_of(duration: int, cost: Cost, hot: float | None) -> Shares:
    found = tracked(session_of(duration, cost, hot)).attribution.of(SCORE, 0)
    assert found is not None
    return found


def test_waiting_is_shared_by_what_data_and_accesses_take_more_from_afar():
    """Of 5 MB in order some 0.03 ns a byte, and 100 ns an access."""
    cost = law(gemm=1e5, read=5e6, chase=500)
    got = shares_of(2_000_000, cost, 0.9)
    hot = shares_of(2_000_000, cost, 1.0)
    waited = [got[name] - hot[name] for name in ("bandwidth", "latency")]
    assert sum(waited) == pytest.approx(0.1)
    assert min(waited) > 0.01
    one, other = law(gemm=1e5, read=5e6), law(gemm=1e5, chase=500)
    assert shares_of(2_000_000, one, 0.99)["latency"] == 0
    assert shares_of(2_000_000, other, 0.99)["bandwidth"] == 0


def test_what_no_near_cache_holds_is_hot_time():
    """Where the group goes through 64 MB, a replay finds data and accesses as far away as that."""
    ns = 4_000_000
    near = shares_of(ns, law(gemm=1e6, chase=500), 1.0)["latency"]
    far = shares_of(ns, law(gemm=1e6, read=float(LARGE), chase=500), 1.0)["latency"]
    assert near < far
    assert far * ns == pytest.approx(500 * 100, rel=0.1)
    streams = shares_of(ns, law(gemm=1e6, read=float(LARGE)), 1.0)
    assert streams["bandwidth"] == pytest.approx(LARGE * 0.03 / 4e6, rel=0.01)
    assert streams["latency"] == streams["not_attributed"] == 0


def test_calls_take_what_the_hot_time_has_room_for_between_two_costs():
    # At the best repeats, 90 and 900 each.
    for room, wanted in ((2_000, 2_000), (15_000, 9_000), (500, 900)):
        got = ns_of(20_000, law(gemm=110.0 * (20_000 - room), calls=10), 1.0)
        assert got["calls"] == pytest.approx(wanted, rel=0.06), room
    # The least is too much for what there is: as much is a contradiction.
    assert got["not_attributed"] == pytest.approx(400, rel=0.1)


def test_waiting_is_at_most_what_all_data_and_first_calls_could_take():
    got = ns_of(10_000, law(calls=1, chase=60), 0.2)
    # Of calls 2000 of waiting, and 900 hot.
    assert (got["latency"], got["calls"]) == pytest.approx((6_000, 2_900), rel=0.03)
    # Ten accesses, each from memory, are 1 µs; the rest is not attributed.
    got = ns_of(10_000, law(chase=10), 0.5)
    assert (got["latency"], got["not_attributed"]) == pytest.approx((1_020, 3_980))


@pytest.mark.parametrize("replays", [0, FEWEST - 1])
def test_without_enough_replays_the_law_says_the_least_and_the_rest_is_open(replays):
    session = session_of(20_000, law(gemm=1.1e6, calls=2), 0.5, blocks=4 * replays + 3)
    (row,) = breakdown(session).stages
    assert (row.replays, row.verdict) == (0, "undecided")
    shares = [row.parts.share(name) for name in ("arithmetic", "calls", "not_attributed")]
    assert shares == pytest.approx([0.5, 0.09, 0.41])
    assert row.parts.ends("latency") == pytest.approx((0.0, 0.41), abs=0.02)


def test_replays_tell_of_blocks_under_the_same_law_alone():
    session = session_of(20_000, law(gemm=1e5), 0.5)
    session.costs[SCORE, 1] = law(gemm=1e6)
    session.costs[SCORE, 2] = law(gemm=1e5)
    found = HotReplays()
    found.update(session)
    assert [len(found.of(session, SCORE, epoch)) for epoch in (0, 1, 2)] == [10, 0, 10]
    assert found.of(session, SCORE, 0).ratio == pytest.approx(0.5)


def test_fewer_replays_and_wider_ones_give_wider_intervals():
    def width(spread: float, blocks: int) -> float:
        session = session_of(20_000, law(gemm=1e5, chase=100), 0.5, blocks=blocks)
        replays = session.spans["stage"] == REPLAY
        noise = np.random.default_rng(1).normal(1.0, spread, replays.sum())
        session.spans["duration_ns"][replays] = session.spans["duration_ns"][replays] * noise
        found = tracked(session).attribution.of(SCORE, 0)
        return float(found.high[1] - found.low[1])

    assert width(0.2, 400) < width(0.2, 40)
    assert width(0.05, 40) < width(0.2, 40)


def test_the_standard_error_of_a_ratio_is_that_of_its_spread():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(500):
        timed = rng.uniform(500, 1500, 20)
        ratios.append(Pairs(0.6 * timed * rng.normal(1.0, 0.2, 20), timed))
    spread = float(np.std([pairs.ratio for pairs in ratios]))
    assert float(np.mean([pairs.error for pairs in ratios])) == pytest.approx(spread, rel=0.1)


def test_a_device_waits_for_launches_only_beyond_its_work():
    roofs = RoofTable(tuple(replace(r, name=f"{r.name}@cuda") for r in ROOFS.roofs))
    calls = {"numba@cuda": Linear(150.0)}
    cost = Cost({"gemm@cuda": Linear(1.1e6)}, Linear(1e5), Linear(1e5), 1e6, device="cuda", calls=calls)
    got = named(by_law(cost, Sums(30_000.0, 0.0, 1.0, 16.0, (0.0, 0.0, 0.0)), roofs), 30_000)
    parts = [got[name] for name in ("arithmetic", "bandwidth", "calls", "not_attributed")]
    assert parts == pytest.approx([10_000, 1_000, 15_000 - 11_000, 15_000])


def test_of_scattered_data_nothing_is_a_parameter():
    sums = Sums(1e6, 0.0, 10.0, 160.0, (30.0, 0.0, 0.0))
    dense = Cost({}, Linear(100.0, per_work=(4.0, 0.0, 0.0)), Linear(500.0), 1e3)
    found = counted(dense, sums)
    assert (found.parameters, found.streamed, found.most_streamed) == (1000.0, 120.0, 5000.0)
    scattered = Cost({}, Linear(100.0), Linear(100.0), 1e3, scattered=True)
    assert counted(scattered, sums).parameters == 0.0
    some = Cost(accesses=(Accesses(Linear(per_work=(2.0, 0.0, 0.0)), 1e6),))
    assert counted(some, sums).touched == 64 * 60
    many = Cost(calls={KERNEL_CALL: Linear(fixed=3.0)})
    each = Cost(calls={KERNEL_CALL: Linear(per_frame=2.0)})
    assert [counted(c, sums).first_calls for c in (many, each)] == [10.0, 160.0]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 10**7), st.floats(0.0, 2.0), st.tuples(*[st.floats(0.0, 1e6)] * 2, *[st.floats(0.0, 1e3)] * 2))
@example(1, 1.0, (0.0, 0.0, 0.0, 2.2e-313))
def test_shares_make_a_whole_and_lie_within_their_intervals(duration, hot, counts):
    gemm, read, chase, calls = counts
    cost = law(gemm, read, chase, calls)
    if cost.is_empty:
        return
    found = all_of(duration, cost, hot)
    assert found.likely.sum() == pytest.approx(1.0)
    assert (found.likely >= 0).all()
    assert (found.low <= found.likely).all()
    assert (found.likely <= found.high).all()
    assert (found.high <= 1 + 1e-9).all()


def test_categories_and_stages_share_the_time_out_alike():
    session = session_of(20_000, law(gemm=6e5, read=5e5, chase=40, calls=2), 0.6)
    track = tracked(session)
    found = breakdown(session, track=track)
    (row,) = found.stages
    wall = found.wall_ns
    assert found.categories["compute"] / wall == pytest.approx(row.compute_ns / wall, abs=1e-3)
    assert found.categories["memory"] / wall == pytest.approx(row.memory_ns / wall, abs=1e-3)
    assert sum(found.categories.values()) == wall
    # A stretch has the same shares.
    (part,) = breakdown(session, 0, 160, track).stages
    assert part.parts.share("bandwidth") == pytest.approx(row.parts.share("bandwidth"))


def test_more_replays_change_earlier_frames_and_the_track_reports_it():
    whole = session_of(20_000, law(gemm=1e5, chase=100), 0.5)
    track = CostTrack()
    before = fake_session(whole.spans[:9], STAGES, whole.costs, ROOFS)
    track.update(before)
    generation, memory = track.generation, categories_ns(track)[0, 1]
    assert memory == 0.0
    track.update(whole)
    assert track.generation > generation
    assert categories_ns(track)[0, 1] > 0.4 * 20_000 / 16
    assert not track.update(whole)


def test_a_group_has_parts_where_a_stage_of_it_has_a_law():
    stages = [
        Stage(0, "decode", "decode"),
        Stage(1, "score.a", "scoring"),
        Stage(2, "score.b", "scoring"),
        Stage(3, "search.a", "search"),
    ]
    spans = spans_of([(0, 4000, 1, 0, 1), (4000, 2000, 2, 0, 1), (6000, 3000, 3, 0, 1), (0, 9000, 0, 0, 1)])
    calls = Cost({"gemm": Linear(1.0)}, calls={NUMPY_CALL: Linear(2.0)})
    found = breakdown(fake_session(spans, stages, {(1, 0): calls, (3, 0): Cost(unmodelled="a library's own")}))
    scoring = found.parts_of("scoring")
    assert scoring.time_ns == pytest.approx(6000)
    # At the best repeat, 450 ns each; the time of a stage without parts is not attributed.
    assert scoring.likely["calls"] == pytest.approx(900)
    assert scoring.likely[NOT_ATTRIBUTED] == pytest.approx(5100, abs=1)
    assert scoring.low[NOT_ATTRIBUTED] >= 2000
    assert scoring.notable == [NOT_ATTRIBUTED, "calls"]
    assert found.parts_of("search") is None
