"""The order in which arms take turns: who begins, and that all meet the same items in the same round."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.run.interleave import turns
from tests.each import each


@each("arms", [1, 2, 3, 5])
def test_each_item_is_taken_by_all_arms_before_the_next(arms: int) -> None:
    order = list(turns(arms, 3, range(4)))
    assert len(order) == arms * 3 * 4
    for at in range(0, len(order), arms):
        some = order[at : at + arms]
        assert {(turn.round, turn.place) for turn in some} == {(at // arms // 3, at // arms % 3)}
        assert {turn.arm for turn in some} == set(range(arms))


def test_two_arms_swap_from_item_to_item_and_from_round_to_round() -> None:
    assert "".join("AB"[turn.arm] for turn in turns(2, 3, range(3))) == "ABBAABBAABBAABBAAB"


@pytest.mark.parametrize("arms", [2, 3])
def test_each_arm_begins_as_often_as_the_others_for_every_item(arms: int) -> None:
    order = list(turns(arms, 3, range(-arms, arms)))
    began = Counter((turn.place, turn.arm) for turn in order[::arms])
    assert began == {(place, arm): 2 for place in range(3) for arm in range(arms)}
