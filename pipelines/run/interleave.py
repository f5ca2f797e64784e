"""The order in which arms are run in turns: whatever drifts slower than an item hits all of them alike.

Everything that holds ways of doing the same work against each other goes by it: `ab`, `rerun` and the benches.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Turn(NamedTuple):
    """One item by one arm: the round, the item's place and the arm's number, from 0."""

    round: int
    place: int
    arm: int


def turns(arms: int, places: int, rounds: Iterable[int]) -> Iterator[Turn]:
    """Every item by all arms before the next, in each of `rounds`.

    Which arm begins changes from item to item and, for every item, from round to round. The next number of `rounds`
    is taken when a round is done; numbers below 0 are for rounds that warm up.
    """
    for number in rounds:
        for place in range(places):
            for step in range(arms):
                yield Turn(number, place, (number + place + step) % arms)
