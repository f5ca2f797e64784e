"""A roof of several moments: which of them counts, how wide its interval is, and what the machine usually is."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.costs import KERNEL
from profiler.machine.roofs import timing
from profiler.machine.roofs.calibration import KEPT_MOMENTS, MOMENT_SECONDS, MOMENTS, Calibration
from profiler.machine.roofs.table import LATENCY, OVERHEAD, RATE, Roof


def test_of_the_moments_of_a_roof_that_depends_on_nothing_shared_the_best_counts() -> None:
    known = Calibration()
    for rate in (2e9, 3e9, 1e9):
        known.add([Roof(KERNEL, "tile", "", 1, 0, rate, rate, rate, "x")], "run", 0.0)
    for again in (known, Calibration.from_dict(known.as_dict())):
        (roof,) = again.roof_table.roofs
        assert (roof.low, roof.median) == (3e9, 3e9)
        assert again.settled(roof.key, 1e6, MOMENT_SECONDS)


@pytest.mark.parametrize(("size", "lately"), [(0, 1.9e9), (4 << 20, 1.7e9)])
def test_what_a_machine_usually_is_outlasts_the_latest_moments(size: int, lately: float) -> None:
    """Nine moments at 4e9, then five slower ones: of these alone the best or the middle one counts."""
    known = Calibration()
    slower = (1.5e9, 1.7e9, 1.6e9, 1.9e9, 1.8e9)
    for rate in (*[4e9] * 9, *slower):
        known.add([Roof(KERNEL, "tile", "", 1, size, rate, rate, rate, "x")], "run", 0.0)
    for again in (known, Calibration.from_dict(known.as_dict())):
        (now,) = again.roof_table.roofs
        (usually,) = again.roof_table.usual.roofs
        assert (now.median, usually.median) == (lately, 4e9)
        assert len(again.latest(now.key)) == MOMENTS
    # What was so long ago that it is no longer kept says nothing, nor does what is measured afresh.
    for _ in range(KEPT_MOMENTS // 2 + 1):
        known.add([Roof(KERNEL, "tile", "", 1, size, 3e9, 3e9, 3e9, "x")], "run", 0.0)
    assert [roof.median for roof in known.roof_table.usual.roofs] == [3e9]
    (moments,) = known.moments.values()
    assert len(moments) == KEPT_MOMENTS
    fresh = Roof(KERNEL, "tile", "", 1, size, 5e9, 5e9, 5e9, "x")
    known.add([fresh], "run", 0.0, replace=True)
    assert [roof.median for roof in known.roof_table.usual.roofs] == [5e9]


def test_the_fewer_moments_a_roof_was_taken_at_the_wider_its_interval() -> None:
    def ends(*rates: float) -> tuple[float, float, float]:
        known = Calibration()
        for rate in rates:
            taken = Roof(KERNEL, "tile", "", 1, 4 << 20, rate, 0.9 * rate, 1.1 * rate, "x")
            known.add([taken], "run", 0.0)
        (roof,) = known.roof_table.roofs
        return roof.low, roof.median, roof.high

    assert ends(1e9) == pytest.approx((0.9e9 / 1.3, 1e9, 1.1e9 * 1.3))
    assert ends(1e9, 2e9) == pytest.approx((0.9e9 / 1.15, 1e9, 2e9 * 1.15))
    # From three on by Student's distribution: the next may be another, as far as they differ.
    wide = 2.0 ** (1.1 * 2.920 * (4 / 3) ** 0.5)
    assert ends(1e9, 4e9, 2e9) == pytest.approx((2e9 / wide, 2e9, 2e9 * wide))
    near = 1.01 ** (1.1 * 2.132 * 1.2**0.5)
    rates = [1e9 * 1.01**n for n in (-1, -1, 0, 1, 1)]
    assert 1e9 / ends(*rates)[0] == pytest.approx(max(near, 1 / 0.9))
    # One that was far slower, as other programs had the cache, says nothing of how much faster another may be.
    rates = [1e9 * 1.1**n for n in (-10, -1, 0, 0, 1)]
    low, _, high = ends(*rates)
    assert high == pytest.approx(1e9 * 1.1 ** (1.1 * 2.132 * 1.2**0.5 * 0.5**0.5))
    assert low < 1e9 / 1.1**10
    # As wide at least as its own rounds.
    assert ends(1e9, 1e9, 1e9) == pytest.approx((0.9e9, 1e9, 1.1e9))


def test_how_far_moments_differ_is_known_of_all_that_are_kept() -> None:
    """Of five, one lucky moment made a call's interval half as wide again to either side."""

    def high(*rates: float) -> float:
        known = Calibration()
        for rate in rates:
            taken = Roof(KERNEL, "tile", "", 1, 4 << 20, rate, rate, rate, "x")
            known.add([taken], "run", 0.0)
        (roof,) = known.roof_table.roofs
        assert roof.median == 1e9
        return roof.high / roof.median

    lucky = 1e9, 1.4e9, 1e9, 1e9, 1e9
    of_five, of_ten = high(*lucky), high(*[1e9] * 5, *lucky)
    # The deviation of one of n is 1 / √n of how far it lies.
    assert of_five == pytest.approx(1.4 ** (1.1 * 2.132 * 1.2**0.5 / 5**0.5))
    assert of_ten == pytest.approx(max(1.4 ** (1.1 * 1.833 * 1.1**0.5 / 10**0.5), 1.4))
    assert 1.4 <= of_ten < of_five
    # One that is no longer among the latest says no more where the roof is, but still how far another may lie.
    assert high(*lucky, *[1e9] * 5) == pytest.approx(1.4 ** (1.1 * 1.833 * 1.1**0.5 / 10**0.5))
    assert high(*[1e9] * 9) == pytest.approx(1.1)


@pytest.mark.parametrize("count", timing.STUDENT)
def test_one_of_twenty_lies_beyond_students_bound(count: int) -> None:
    """Of draws of so many normal numbers and one more, from their mean in units of their deviation."""
    rng = np.random.default_rng(count)
    drawn = rng.standard_normal((1 << 17, count + 1))
    others = drawn[:, :-1]
    far = (drawn[:, -1] - others.mean(1)) / (others.std(1, ddof=1) * np.sqrt(1 + 1 / count))
    assert np.mean(far > timing.STUDENT[count]) == pytest.approx(0.05, abs=0.003)


def test_moments_that_agree_leave_room_for_a_run_that_is_faster() -> None:
    known = Calibration()
    for _ in range(4):
        known.add([Roof(KERNEL, "tile", "", 1, 4 << 20, 1e9, 1e9, 1e9, "x")], "run", 0.0)
    (roof,) = known.roof_table.roofs
    assert (roof.low, roof.high) == (1e9, pytest.approx(1.1e9))


def test_a_slow_moment_of_an_access_time_leaves_its_fast_end_where_it_was() -> None:
    def ends(*times: float) -> tuple[float, float]:
        known = Calibration()
        for ns in times:
            known.add([Roof(LATENCY, "chase", "", 1, 64 << 20, ns, ns, ns, "ns")], "run", 0.0)
        (roof,) = known.roof_table.roofs
        return roof.low, roof.high

    calm, disturbed = ends(99.0, 100.0, 100.0, 101.0), ends(99.0, 100.0, 100.0, 300.0)
    assert disturbed[0] == pytest.approx(calm[0], rel=0.01)
    assert disturbed[1] > 300.0


def test_a_further_moment_of_a_roof_of_the_core_s_own_may_only_be_better() -> None:
    def ends(kind: str, *figures: float) -> tuple[float, float, float]:
        known = Calibration()
        for figure in figures:
            taken = Roof(kind, "own", "", 1, 0, figure, 0.99 * figure, 1.01 * figure, "x")
            known.add([taken], "run", 0.0)
        (roof,) = known.roof_table.roofs
        return roof.low, roof.median, roof.high

    assert ends(KERNEL, 1e9) == pytest.approx((0.99e9, 1e9, 1.13e9))
    assert ends(KERNEL, 1e9, 0.9e9, 0.95e9) == pytest.approx((0.99e9, 1e9, 1.045e9))
    # Of a call's time less is better.
    assert ends(OVERHEAD, 200.0) == pytest.approx((200.0 / 1.13, 200.0, 202.0))
    assert ends(OVERHEAD, 300.0, 200.0, 250.0) == pytest.approx((200.0 / 1.045, 200.0, 202.0))
    # What kernels are compared with is known as well as they.
    assert ends(RATE, 0.9e9, 1e9) == ends(KERNEL, 0.9e9, 1e9)


def test_of_a_call_after_more_than_a_core_s_own_caches_hold_the_middle_moment_counts() -> None:
    """One lucky moment of a cache that others share once halved the time of a first call."""

    def taken(size: int) -> Roof:
        known = Calibration()
        for ns in (300.0, 100.0, 310.0):
            known.add([Roof(OVERHEAD, "call", "", 1, size, ns, ns, ns, "ns")], "run", 0.0)
        found = known.roof_table.call("call", size)
        assert found is not None
        return found

    assert taken((1 << 20) - 1).median == 100.0
    found = taken(1 << 20)
    assert found.median == 300.0
    assert found.low < 100.0
    assert found.high > 310.0
