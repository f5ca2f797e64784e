"""Parts, categories and intervals of stages, at hand-made roofs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_laws import LARGE, ROOFS, law, one
from profiler_sessions import roof

from profiler.analysis.attribution import assign
from profiler.analysis.categories import (
    LAW_PARTS,
    MEASURED_PARTS,
    NOT_ATTRIBUTED,
    PARTS,
    SCORING_CATEGORIES,
)
from profiler.analysis.parts import (
    MEMORY_PARTS,
    Split,
    at_least_waiting,
    fitted,
    intervals,
    slowed,
    split,
)
from profiler.analysis.per_frame import GRAIN
from profiler.analysis.waiting import Waited
from profiler.costs import ACCESS, CALL, KERNEL, STREAM, Cost, Linear, Term
from profiler.machine.roofs import table
from profiler.machine.roofs.table import RoofTable
from profiler.spans import SPAN


def parts_of(duration: int, cost: Cost | None, **beside: np.ndarray) -> dict[str, float]:
    found = split(one(duration), cost, ROOFS, **beside).parts[:, 0]
    return dict(zip(MEASURED_PARTS, found.tolist(), strict=True))


def about(**ns: float) -> dict[str, float]:
    return {name: pytest.approx(ns.get(name, 0.0)) for name in MEASURED_PARTS}


# -- split --------------------------------------------------------------------------------------


def test_each_term_has_a_part_and_the_rest_is_left() -> None:
    cost = law(gemm=1e6, units=25_000, read=1e5, chase=20, calls=1)
    assert parts_of(50_000, cost) == about(
        arithmetic=10_000, instructions=15_000, bandwidth=3_000, latency=2_000, calls=1_000
    )


def test_other_programs_come_first_and_leave_less_for_the_law() -> None:
    cost = law(units=25_000)
    assert parts_of(50_000, cost, other=np.array([9_000.0])) == about(
        instructions=25_000, other_programs=9_000
    )
    # 24 µs is within the roof's best repeat, 22.7 µs.
    assert parts_of(50_000, cost, other=np.array([26_000.0])) == about(
        instructions=24_000, other_programs=26_000
    )
    assert parts_of(50_000, cost, other=np.array([90_000.0])) == about(other_programs=50_000)
    assert parts_of(50_000, None, other=np.array([9_000.0])) == about(other_programs=9_000)


def test_a_law_that_says_more_than_the_time_is_taken_back_evenly_down_to_its_least() -> None:
    cost = law(units=20_000, calls=20)
    instructions, calls = 20_000 / 1.1, 18_000.0
    least = instructions + calls
    back = (37_000 - least) / (40_000 - least)
    assert 0 < back < 1
    found = parts_of(37_000, cost)
    assert found == about(
        instructions=instructions + back * (20_000 - instructions), calls=calls + back * 2_000
    )
    assert sum(found.values()) == pytest.approx(37_000)
    # Below even the least, what there is is shared out as the least are.
    short = parts_of(10_000, cost)
    assert sum(short.values()) == pytest.approx(10_000)
    assert short["instructions"] / short["calls"] == pytest.approx(instructions / calls)


def test_a_slow_machine_makes_arithmetic_and_memory_take_longer_each() -> None:
    cost = law(units=10_000, read=1e5, chase=10, calls=1)
    slowness = np.array([[1.5], [2.0]])
    assert parts_of(90_000, cost, slowness=slowness) == about(
        instructions=15_000, bandwidth=6_000, latency=2_000, calls=1_500
    )
    ones = np.ones((len(LAW_PARTS), 2))
    assert slowed(ones, np.array([[1, 3], [2, 4]])).tolist() == [
        [1, 3],
        [1, 3],
        [2, 4],
        [2, 4],
        [1, 3],
    ]


@pytest.mark.parametrize(
    ("slowness", "least", "most"), [(1.5, 1 / 1.1, 1.5 / 0.9), (0.5, 0.5 / 1.1, 1 / 0.9)]
)
def test_a_probe_is_a_moment_the_ends_of_the_roofs_stay_possible(
    slowness: float, least: float, most: float
) -> None:
    found = split(one(90_000), law(units=10_000), ROOFS, slowness=np.array([[slowness], [1.0]]))
    row = LAW_PARTS.index("instructions")
    ends = (found.least[row, 0], found.likely[row, 0], found.most[row, 0])
    assert ends == pytest.approx((10_000 * least, 10_000 * slowness, 10_000 * most))


def test_a_device_is_not_slowed_by_what_slows_the_processor() -> None:
    there = RoofTable((roof(table.BANDWIDTH, "read@cuda", 100e9, LARGE),))
    cost = Cost(terms=(Term(STREAM, "read", Linear(1e6), LARGE),), device="cuda")
    found = split(one(90_000), cost, there, slowness=np.full((2, 1), 3.0)).parts
    assert found[MEASURED_PARTS.index("bandwidth"), 0] == pytest.approx(10_000)


def share_of(low: float, mid: float, high: float) -> Waited:
    return Waited(*(np.array([share]) for share in (low, mid, high)))


def test_memory_is_at_least_what_hot_replay_saw_waiting() -> None:
    cost = law(units=10_000, read=1e5, chase=10)
    # What streams take, 3 000, they take of the hot time too.
    for share, bandwidth, latency in ((0.0, 3_000, 1_000), (0.2, 9_750, 3_250)):
        assert parts_of(50_000, cost, waiting=share_of(share, share, share)) == about(
            instructions=10_000, bandwidth=bandwidth, latency=latency
        )
    # A law that knows of no memory: then it was latency, as streams are in the law where there are any.
    waiting = share_of(0.1, 0.2, 0.3)
    assert parts_of(50_000, law(units=10_000), waiting=waiting) == about(
        instructions=10_000, latency=10_000
    )
    # A share of the time that the stage had the processor.
    assert parts_of(
        50_000, law(units=10_000), waiting=share_of(0.2, 0.2, 0.2), other=np.array([10_000.0])
    ) == about(instructions=10_000, latency=8_000, other_programs=10_000)


def test_branches_that_a_replay_had_learned_are_no_waiting() -> None:
    whole = Linear(10_000)
    loop = Term(KERNEL, "tile", whole.times(0.9), most=whole, by_heart=0.35)
    waiting = share_of(0.4, 0.5, 0.6)
    ends = split(one(20_000), Cost(terms=(loop,)), ROOFS, waiting=waiting)
    row, learned = LAW_PARTS.index("latency"), 3_500
    assert [end[row, 0] for end in ends[1:]] == pytest.approx(
        [8_000 - learned, 10_000 - learned / 2, 12_000]
    )
    barely = split(one(20_000), Cost(terms=(loop,)), ROOFS, waiting=share_of(0.0, 0.0, 0.1))
    assert [end[row, 0] for end in barely[1:]] == pytest.approx([0, 0, 2_000])


def after_others(time: int, waiting: Waited | None) -> Split:
    """Of a loop of 10 000 ns and a call that takes 9 000 after other data were read, in a span of `time`."""
    late = 1 << 20
    roofs = RoofTable((*ROOFS.roofs, roof(table.OVERHEAD, "kernel call", 9_000.0, late)))
    loop = Term(KERNEL, "tile", Linear(10_000.0))
    call = Term(CALL, "kernel call", Linear(1.0), late)
    return split(one(time), Cost(terms=(loop, call)), roofs, waiting=waiting)


LATENCY_ROW = LAW_PARTS.index("latency")


@pytest.mark.parametrize(
    ("time", "waited", "latency"),
    [
        (20_000, 0.50, 1_000),  # what it took hot is the loop: the call waited for 9 000
        (20_000, 0.40, 1_000),  # 2 000 of the call were in the hot time
        (20_000, 0.20, 1_000),  # 6 000
        (20_000, 0.05, 1_000),  # all of it
        (40_000, 0.50, 20_000),  # and the hot time has room for more
        (20_000, 0.90, 9_000),  # no room for the loop either: the call is no more than it is
    ],
)
def test_what_a_call_waited_for_is_not_memory_once_more(
    time: int, waited: float, latency: float
) -> None:
    found = after_others(time, share_of(waited, waited, waited))
    assert found.likely[LATENCY_ROW, 0] == pytest.approx(latency)


CALLS_ROW = LAW_PARTS.index("calls")
LOOP = 10_000 / 1.1
"""ns that the loop takes at least, as its roof is an interval."""


@pytest.mark.parametrize(
    ("time", "waited", "calls"),
    [
        (25_000, 0.4, 8_100),  # there is room for it
        (15_000, 0.4, 15_000 - LOOP),  # less was pushed out than its law says
        (15_000, 0.0, 15_000 - LOOP),  # hot it took no less: the call found all that it needs
        (8_000, 0.4, 0),  # the loop alone is more than there is, which stays to be seen
        (15_000, None, 8_100),  # no replay says how much it waited
    ],
)
def test_a_call_after_other_data_is_at_least_what_the_time_leaves_it(
    time: int, waited: float | None, calls: float
) -> None:
    waiting = None if waited is None else share_of(waited, waited, waited)
    found = after_others(time, waiting)
    assert found.least[CALLS_ROW, 0] == pytest.approx(calls)
    loop = found.least[:, 0].sum() - found.least[CALLS_ROW, 0] - found.least[LATENCY_ROW, 0]
    assert loop == pytest.approx(LOOP)


@pytest.mark.parametrize(
    ("waited", "calls"),
    [
        ((0.55, 0.58, 0.61), 0.39 * 11_400 + 0.55 * 11_400),
        ((0.2, 0.58, 0.9), 6_000.0),  # it is sure of less than the roof is
        (None, 6_000.0),
    ],
)
def test_what_a_replay_is_sure_that_a_call_waited_is_the_least_that_it_took(
    waited: tuple[float, float, float] | None, calls: float
) -> None:
    """A call after other data takes twice as long at some moments, so that its roof is wide."""
    late = 1 << 20
    wide = dataclasses.replace(
        roof(table.OVERHEAD, "kernel call", 13_000.0, late), low=6_000.0, high=28_000.0
    )
    cost = Cost(terms=(Term(CALL, "kernel call", Linear(1.0), late),))
    waiting = None if waited is None else share_of(*waited)
    found = split(one(11_400), cost, RoofTable((wide,)), waiting=waiting)
    assert found.least[CALLS_ROW, 0] == pytest.approx(calls)


def test_a_call_that_does_not_wait_is_never_less_than_its_law_says() -> None:
    found = split(one(10_500), law(units=10_000, calls=1), ROOFS, waiting=share_of(0.4, 0.4, 0.4))
    assert found.least[CALLS_ROW, 0] == pytest.approx(900)


def test_what_a_call_waited_for_comes_off_all_ends_alike() -> None:
    """By the likely law and the likely hot time: a call that waited more leaves less to memory."""
    found = after_others(20_000, share_of(0.35, 0.45, 0.6))
    assert [end[LATENCY_ROW, 0] for end in found[1:]] == pytest.approx([0, 1_000, 4_000])


def test_a_call_right_after_another_takes_as_long_in_a_replay() -> None:
    waiting = share_of(0.5, 0.6, 0.7)
    found = split(one(20_000), law(units=10_000, calls=1), ROOFS, waiting=waiting)
    assert [end[LATENCY_ROW, 0] for end in found[1:]] == pytest.approx([10_000, 12_000, 14_000])


def test_waiting_that_the_law_had_counted_is_counted_once() -> None:
    found = parts_of(40_000, law(units=10_000, read=1e6), waiting=share_of(0.7, 0.7, 0.7))
    assert found == about(instructions=10_000, bandwidth=30_000)


def test_what_law_and_replay_do_not_account_for_is_not_attributed() -> None:
    waiting = share_of(0.5, 0.6, 0.7)
    found = parts_of(100_000, law(units=10_000, read=1e5), waiting=waiting)
    assert found == about(instructions=10_000, bandwidth=63_000)
    ends = split(one(100_000), law(units=10_000, read=1e5), ROOFS, waiting=waiting)
    row = LAW_PARTS.index("bandwidth")
    streamed = split(one(100_000), law(units=10_000, read=1e5), ROOFS)
    assert [end[row, 0] for end in ends[1:]] == pytest.approx(
        [50_000 + streamed.least[row, 0], 63_000, 70_000 + streamed.most[row, 0]]
    )


def test_of_the_hot_time_streams_take_what_instructions_leave_and_accesses_nothing() -> None:
    cost = law(units=10_000, read=1e6)
    assert parts_of(60_000, cost, waiting=share_of(0.0, 0.0, 0.0)) == about(
        instructions=10_000, bandwidth=30_000
    )
    # Hot it took 30 000: 10 000 of instructions, and of the law's 30 000 what is left.
    assert parts_of(60_000, cost, waiting=share_of(0.5, 0.5, 0.5)) == about(
        instructions=10_000, bandwidth=50_000
    )
    waiting = share_of(0.5, 0.5, 0.5)
    assert parts_of(60_000, law(units=10_000, chase=300), waiting=waiting) == about(
        instructions=10_000, latency=30_000
    )


def test_what_replays_are_sure_of_is_the_least_that_memory_may_be() -> None:
    cost = law(units=10_000, read=1e5, chase=10)
    at = [LAW_PARTS.index(name) for name in MEMORY_PARTS]

    def least(sure: float) -> tuple[float, float]:
        found = split(one(50_000), cost, ROOFS, waiting=share_of(sure, 0.96, 0.97)).least[:, 0]
        return found[at].sum(), found.sum() - found[at].sum()

    memory, own = least(0.0)
    assert 0 < memory < 20_000
    for sure in (0.4, 0.6):
        # The replays that say most leave no hot time for streams beside instructions.
        assert least(sure) == pytest.approx((sure * 50_000, own))
    # What the kernel's own instructions take at least is never taken from them.
    assert least(0.95) == pytest.approx((50_000 - own, own))


def test_waiting_below_what_the_law_says_changes_nothing() -> None:
    times = np.array([[1.0], [2.0], [30.0], [10.0], [5.0]])
    assert at_least_waiting(times, np.array([39.0]), times).tolist() == times.tolist()
    raised = at_least_waiting(times, np.array([80.0]), times)
    assert raised.tolist() == [[1.0], [2.0], [60.0], [20.0], [5.0]]


def test_without_law_or_roofs_nothing_is_explained() -> None:
    assert parts_of(100, None) == about()
    reasoned = Cost(unmodelled="a library reads the file", terms=(Term(CALL, "numpy", Linear(1)),))
    assert parts_of(100_000, reasoned) == about()
    found = split(one(100), law(units=10), RoofTable())
    assert [values.sum() for values in found] == [0, 0, 0, 0]


TIMES = st.floats(0, 1e9)
COLUMN = st.tuples(*[st.tuples(TIMES, TIMES)] * 3)


@given(st.lists(COLUMN, min_size=1, max_size=20), st.data())
def test_fitted_parts_lie_between_least_and_likely_and_within_the_time(
    columns: list[tuple[tuple[float, float], ...]], data: st.DataObject
) -> None:
    pairs = np.sort(np.array(columns), axis=2)
    least, likely = pairs[:, :, 0].T, pairs[:, :, 1].T
    time = np.array(data.draw(st.lists(TIMES, min_size=len(columns), max_size=len(columns))))
    found = fitted(least, likely, time)
    slack = 1e-9 * (1 + likely)
    assert (found >= 0).all()
    assert (found <= likely + slack).all()
    assert (found.sum(axis=0) <= time * (1 + 1e-9) + 1e-6).all()
    room = least.sum(axis=0) <= time
    assert (found >= least - slack)[:, room].all()
    enough = likely.sum(axis=0) <= time
    assert np.array_equal(found[:, enough], likely[:, enough])


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 2**32 - 1)), min_size=1, max_size=40),
    st.tuples(*[st.floats(0, 1e3)] * 5),
    st.integers(0, 40),
    st.booleans(),
)
def test_split_is_within_the_span_and_the_same_in_pieces(
    rows: list[tuple[int, int]], factors: tuple[float, ...], cut: int, beside: bool
) -> None:
    spans = np.zeros(len(rows), SPAN)
    spans["duration_ns"], spans["work0"] = np.array(rows).T
    gemm, units, read, chase, calls = (Linear(f, per_work=(f, 0, 0)) for f in factors)
    cost = Cost(
        {"gemm": gemm},
        read,
        terms=(
            Term(KERNEL, "tile", units),
            Term(STREAM, "read", read, LARGE, Linear(10.0)),
            Term(ACCESS, "chase", chase, LARGE),
            Term(CALL, "kernel call", calls),
        ),
    )
    draw = np.random.default_rng(len(rows))
    other = draw.integers(0, 10**6, len(rows)).astype(float) if beside else None
    slowness = draw.uniform(0.8, 8, (2, len(rows))) if beside else None
    waiting = Waited(*np.sort(draw.uniform(0, 1, (3, len(rows))), axis=0)) if beside else None

    def piece(at: slice) -> list[np.ndarray]:
        return list(
            split(
                spans[at],
                cost,
                ROOFS,
                None if other is None else other[at],
                None if slowness is None else slowness[:, at],
                None if waiting is None else Waited(*(ends[at] for ends in waiting)),
            )
        )

    whole = piece(slice(None))
    assert (whole[0] >= 0).all()
    assert (whole[0].sum(axis=0) <= spans["duration_ns"] * (1 + 1e-9) + 1e-6).all()
    for at_once, head, tail in zip(whole, piece(slice(cut)), piece(slice(cut, None)), strict=True):
        assert np.array_equal(np.concatenate([head, tail], axis=1), at_once)


# -- categories ---------------------------------------------------------------------------------


def test_scoring_is_split_and_every_other_group_is_a_category_by_itself() -> None:
    cost = law(gemm=1e6, units=15_000, read=1e5, calls=1)
    found = assign("scoring", one(50_000), cost, ROOFS, np.array([4_000.0]))
    assert {name: float(ns[0]) for name, ns in found.items()} == {
        "compute": pytest.approx(16_000, abs=GRAIN),
        "memory": pytest.approx(3_000, abs=GRAIN),
        "unexplained": pytest.approx(27_000, abs=2 * GRAIN),
        "other_programs": 4_000,
    }
    assert set(found) == set(SCORING_CATEGORIES)
    for group in ("search", "frontend", "transfer"):
        assert assign(group, one(7), cost, ROOFS)[group].tolist() == [7.0]


@given(st.integers(0, 10**7), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e7))
def test_categories_are_grains_that_add_up_without_a_rest(
    duration: int, units: float, read: float, other: float
) -> None:
    found = assign("scoring", one(duration), law(units=units, read=read), ROOFS, np.array([other]))
    values = np.array([ns[0] for ns in found.values()])
    assert values.sum() == duration
    assert (values >= 0).all()
    assert (values % GRAIN == 0).all()


# -- intervals ----------------------------------------------------------------------------------


def test_intervals_leave_room_for_the_least_of_the_others() -> None:
    found = intervals([10, 0, 40, 0, 0, 10], [8, 0, 30, 0, 0, 10], [20, 0, 90, 0, 0, 10], 100)
    assert found.likely[NOT_ATTRIBUTED] == 40
    assert found.time_ns == 100
    assert found.share("bandwidth") == 0.4
    # Bandwidth may be 100 less the 18 that the others are at least.
    assert (found.low["bandwidth"], found.high["bandwidth"]) == (30, 82)
    assert (found.low["arithmetic"], found.high["arithmetic"]) == (8, 20)
    assert (found.low["other_programs"], found.high["other_programs"]) == (10, 10)
    # What is left of the time is off as the sum of parts is that were measured apart.
    assert found.low[NOT_ATTRIBUTED] == 0
    assert found.high[NOT_ATTRIBUTED] == pytest.approx(40 + (2**2 + 10**2) ** 0.5)
    found = intervals([10, 0, 20, 0, 0, 0], [8, 0, 16, 0, 0, 0], [13, 0, 24, 0, 0, 0], 100)
    assert found.low[NOT_ATTRIBUTED] == pytest.approx(70 - 5)
    assert found.high[NOT_ATTRIBUTED] == pytest.approx(70 + (2**2 + 4**2) ** 0.5)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES), min_size=6, max_size=6), st.floats(1, 1e10))
def test_an_interval_holds_its_likely_part(
    ends: list[tuple[float, float, float]], time: float
) -> None:
    low, likely, high = np.sort(np.array(ends), axis=1).T
    likely = fitted(low[:, None], likely[:, None], np.array([time]))[:, 0]
    found = intervals(likely.tolist(), low.tolist(), high.tolist(), time)
    assert found.time_ns == pytest.approx(time)
    for name in PARTS:
        assert 0 <= found.low[name] <= found.likely[name] <= found.high[name]
