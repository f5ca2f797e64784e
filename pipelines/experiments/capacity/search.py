"""Which number of streams to measure next: doubled until one fails, then bisected, with repeats at the bend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

REPEATS: Final = 3
"""Measurements of the largest number that holds and of the smallest that fails; most of them decide."""

RESOLUTION: Final = 0.05
"""The bend is known to this share of the number of streams, or to one stream."""

Outcomes = Mapping[int, Sequence[bool]]
"""Whether each measurement held, by number of streams."""


def holds(outcomes: Sequence[bool]) -> bool:
    return sum(outcomes) * 2 > len(outcomes)


def capacity(outcomes: Outcomes) -> int:
    """The largest number that holds, of those below the first that fails; 0: none does."""
    failing = first_failing(outcomes)
    return max((n for n, each in outcomes.items() if holds(each) and (failing is None or n < failing)), default=0)


def first_failing(outcomes: Outcomes) -> int | None:
    """The smallest number that fails; None: none does."""
    return min((n for n, each in outcomes.items() if not holds(each)), default=None)


def interval(outcomes: Outcomes) -> tuple[int, int]:
    """The largest number up to which every measurement held, and the largest of which any did; 0: none."""
    doubtful = min((n for n, each in outcomes.items() if not all(each)), default=None)
    sure = max((n for n in outcomes if doubtful is None or n < doubtful), default=0)
    return sure, max((n for n, each in outcomes.items() if any(each)), default=0)


def following(outcomes: Outcomes, low: int, high: int) -> int | None:
    """The number to measure next, from `low` to `high`; None: the bend is known, or lies outside."""
    if not outcomes:
        return low
    failing, held = first_failing(outcomes), capacity(outcomes)
    if failing is None:
        top = max(outcomes)
        if top < high:
            return min(2 * top, high)
        return top if len(outcomes[top]) < REPEATS else None
    below = held or low - 1
    if failing - below > max(1, int(held * RESOLUTION)):
        return (below + failing) // 2
    return next((n for n in (held, failing) if n and len(outcomes[n]) < REPEATS), None)


def remaining(outcomes: Outcomes, low: int, high: int, guess: int) -> list[int]:
    """The measurements that are still to come if up to `guess` streams hold, as far as what was measured allows it."""
    failing = first_failing(outcomes)
    guess = max(guess if failing is None else min(guess, failing - 1), capacity(outcomes))
    known = {n: list(each) for n, each in outcomes.items()}
    coming = []
    while (n := following(known, low, high)) is not None:
        known.setdefault(n, []).append(n <= guess)
        coming.append(n)
    return coming
