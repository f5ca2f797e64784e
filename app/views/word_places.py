"""Where the texts of words stand on the time axis: at their time, on some rows, never over another.

Places are whole pixels counted from the start of the session, not from the left of the chart: a range that moves
leaves them where they are. So each utterance is laid out once; only the one under way is laid out again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from app.model.alignment import Token
from app.views.words_model import Spoken
from pipelines.audio.word_errors import DELETED, INSERTED, SAME

GAP = 6
"""Pixels between two words of a row."""

ASIDE = 10
"""Largest distance of a word from its time, pixels."""

REMEMBERED = 256
"""Utterances whose places are kept: more than are ever in view with words."""

NOWHERE = -(1 << 40)
"""Where a row ends on which nothing stands."""


class Placed(NamedTuple):
    """A word on the time axis: its text from pixel `left` on, `width` pixels, on a row (0: the upper one)."""

    token: Token
    text: str
    left: int
    width: int
    row: int


class _Known(NamedTuple):
    """Places of the words of an utterance at a scale of the time axis, and after what stood there before."""

    spoken: Spoken
    where: tuple[float, tuple[int, ...]]
    placed: tuple[Placed, ...]


def shown_text(token: Token) -> str:
    """A word with the sign of its error."""
    return "+" + token.text if token.kind == INSERTED else token.text


def tokens_of(spoken: Spoken) -> tuple[Token, ...]:
    lost = [token for token in spoken.said or () if token.kind == DELETED]
    return tuple(sorted([*spoken.heard, *lost], key=lambda token: token.first_s))


class WordPlaces:
    """Lays out utterance after utterance, remembering those that are as they were.

    Args:
        wide: width of a text in pixels.
    """

    def __init__(self, wide: Callable[[str], float]) -> None:
        self._wide = wide
        self._known: dict[int, _Known] = {}

    def forget(self) -> None:
        self._known.clear()

    def place(self, spoken: Iterable[Spoken], pixels_per_s: float, first: int, width: int, rows: int) -> list[Placed]:
        """Return the words that are whole in view, their places counted from the left of the chart.

        Args:
            spoken: utterances in order of time.
            pixels_per_s: scale of the time axis.
            first: pixel of the time axis at the left of the chart.
            width: pixels of the chart.
            rows: rows of words.
        """
        found: list[Placed] = []
        ends = (NOWHERE,) * rows
        for one in spoken:
            placed = self._utterance(one, pixels_per_s, ends)
            ends = tuple(
                max((p.left + p.width for p in placed if p.row == row), default=ends[row]) for row in range(rows)
            )
            found += placed
        # Made anew rather than replaced, which takes four times as long.
        seen = [
            Placed(token, text, left - first, wide, row)
            for token, text, left, wide, row in found
            if -wide < left - first < width
        ]
        return _within(seen, width, rows)

    def _utterance(self, spoken: Spoken, pixels_per_s: float, ends: tuple[int, ...]) -> tuple[Placed, ...]:
        # Only what reaches into it matters of the utterance before.
        start = math.floor(spoken.first_s * pixels_per_s) - ASIDE - GAP
        where = pixels_per_s, tuple(end if end > start else NOWHERE for end in ends)
        known = self._known.get(id(spoken))
        if known is None or known.spoken is not spoken or known.where != where:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            placed = self._lay_out(tokens_of(spoken), *where)
            known = self._known[id(spoken)] = _Known(spoken, where, placed)
        return known.placed

    def _lay_out(self, tokens: tuple[Token, ...], pixels_per_s: float, ends: tuple[int, ...]) -> tuple[Placed, ...]:
        """Find room for as many words as possible, the wrong ones first: they are what users look for."""
        order = sorted(range(len(tokens)), key=lambda i: (tokens[i].kind == SAME, i))
        taken: list[list[tuple[int, int]]] = [[(NOWHERE, end)] for end in ends]
        found: dict[int, Placed] = {}
        for index in order:
            token = tokens[index]
            text = shown_text(token)
            start, long = round(token.first_s * pixels_per_s), math.ceil(self._wide(text))
            rooms = [(_room(row, start, long), number) for number, row in enumerate(taken)]
            there = [(left, number) for left, number in rooms if left is not None]
            if there:
                left, number = min(there, key=lambda place: abs(place[0] - start))
                taken[number].append((left, left + long))
                found[index] = Placed(token, text, left, long, number)
        return tuple(found[index] for index in sorted(found))


def _room(taken: list[tuple[int, int]], start: int, long: int) -> int | None:
    """Where a text fits less than `ASIDE` pixels from `start`, the nearest place first; None where nowhere."""
    near = [(begin, end) for begin, end in taken if end + GAP > start - ASIDE and begin - GAP < start + long + ASIDE]
    places = [start, *(end + GAP for _, end in near), *(begin - GAP - long for begin, _ in near)]
    for left in sorted(places, key=lambda x: abs(x - start)):
        if abs(left - start) >= ASIDE:
            return None
        if all(left >= end + GAP or left + long + GAP <= begin for begin, end in near):
            return left
    return None


def _within(placed: list[Placed], width: int, rows: int) -> list[Placed]:
    """Leave out what the ends of the chart would cut off; what nearly fits moves inside where it has room."""
    found = []
    for row in range(rows):
        here = sorted((one for one in placed if one.row == row), key=lambda one: one.left)
        for number, one in enumerate(here):
            after = here[number + 1].left - GAP if number + 1 < len(here) else width
            before = here[number - 1].left + here[number - 1].width + GAP if number else 0
            left = min(max(one.left, 0), width - one.width)
            moved = abs(left - one.left)
            if left == one.left or (moved < ASIDE and max(before, 0) <= left and left + one.width <= min(after, width)):
                found.append(one if not moved else one._replace(left=left))
    return sorted(found, key=lambda one: one.token.first_s)
