"""How an interval decides on a claim, at its very ends too."""

from __future__ import annotations

from pipelines.labs.declaration import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Verdict, all_of, at_least, at_most
from profiler.analysis.comparison.statistics import Ratio
from tests.each import each

BOUND = 1.5


@each(
    "low, high, least, most",
    [
        (1.0, 1.4, FAILS, HOLDS),
        (1.0, 1.5, UNDECIDED, HOLDS),  # 1.5 is both: 1.5 or more, and 1.5 or less
        (1.4, 1.6, UNDECIDED, UNDECIDED),
        (1.5, 2.0, HOLDS, UNDECIDED),
        (1.6, 2.0, HOLDS, FAILS),
        (1.5, 1.5, HOLDS, HOLDS),
        (None, None, UNDECIDED, UNDECIDED),
    ],
)
def test_an_interval_decides_where_all_of_it_lies_on_one_side(
    low: float | None, high: float | None, least: Verdict, most: Verdict
) -> None:
    ratio = Ratio(1.5, low, high)
    assert at_least(ratio, BOUND) == least
    assert at_most(ratio, BOUND) == most


def test_without_a_ratio_nothing_is_decided() -> None:
    assert at_least(None, BOUND) == at_most(None, BOUND) == UNDECIDED


def test_the_worst_part_of_a_claim_decides() -> None:
    assert all_of(HOLDS, UNDECIDED, FAILS, IMPOSSIBLE) == FAILS
    assert all_of(HOLDS, UNDECIDED, IMPOSSIBLE) == UNDECIDED
    assert all_of(HOLDS, UNDECIDED, FAILS) == FAILS
    assert all_of(HOLDS, UNDECIDED) == UNDECIDED
    assert all_of(HOLDS, HOLDS) == HOLDS


def test_a_claim_of_which_a_part_cannot_be_tried_holds_in_part() -> None:
    assert all_of(HOLDS, IMPOSSIBLE) == PART
    assert all_of(IMPOSSIBLE, IMPOSSIBLE) == IMPOSSIBLE
