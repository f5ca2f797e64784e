"""Word alignment of what was said with what was heard, for drawing errors on words.

Minimum edit distance over words (Levenshtein 1966) with unit costs, the alignment that word error
rate counts. A partial hypothesis is aligned with the best-matching *prefix* of the reference, so
words that have not been spoken yet are not shown as deleted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_CELLS = 4_000_000
"""Largest table (reference words × heard words) that is aligned: about 30 ms and 4 MB."""

_PUNCTUATION = re.compile(r"[^\w']|_")

SAME, SUBSTITUTED, DELETED, INSERTED = "same", "substituted", "deleted", "inserted"


@dataclass(frozen=True)
class Pair:
    """One column of the alignment; an index is None where that side has no word."""

    kind: str
    said: int | None
    heard: int | None


@dataclass(frozen=True)
class Counts:
    """Errors of an alignment."""

    substituted: int
    deleted: int
    inserted: int
    said: int

    @property
    def errors(self) -> int:
        """Substitutions + deletions + insertions."""
        return self.substituted + self.deleted + self.inserted


def normal(word: str) -> str:
    """A word as it is compared: case and punctuation do not count."""
    bare = _PUNCTUATION.sub("", word.casefold().replace("’", "'"))
    return bare or word.casefold()


def align(
    said: Sequence[str], heard: Sequence[str], partial: bool = False
) -> tuple[Pair, ...] | None:
    """Align the words said with the words heard at the least number of errors.

    Args:
        said: reference words.
        heard: hypothesis words.
        partial: the hypothesis is still growing; the reference may go on after it at no cost.

    Returns:
        One `Pair` per column in order of time, or None when the table would pass `MAX_CELLS`.
    """
    rows, columns = len(said), len(heard)
    if (rows + 1) * (columns + 1) > MAX_CELLS:
        return None
    codes: dict[str, int] = {}
    left = np.array([codes.setdefault(normal(w), len(codes)) for w in said], dtype=np.int64)
    top = np.array([codes.setdefault(normal(w), len(codes)) for w in heard], dtype=np.int64)
    steps = np.arange(columns + 1, dtype=np.int32)
    cost = np.empty((rows + 1, columns + 1), dtype=np.int32)
    cost[0] = steps
    row = np.empty(columns + 1, dtype=np.int32)
    for i in range(rows):
        above = cost[i]
        row[0] = above[0] + 1
        np.minimum(above[1:] + 1, above[:-1] + (top != left[i]), out=row[1:])
        # An insertion chain is a running minimum once the slope of one per word is taken out.
        np.minimum.accumulate(row - steps, out=cost[i + 1])
        cost[i + 1] += steps
    i = int(np.argmin(cost[:, columns])) if partial else rows
    j = columns
    pairs: list[Pair] = []
    while i or j:
        here = cost[i, j]
        if i and j and here == cost[i - 1, j - 1] + (left[i - 1] != top[j - 1]):
            kind = SAME if left[i - 1] == top[j - 1] else SUBSTITUTED
            pairs.append(Pair(kind, i - 1, j - 1))
            i, j = i - 1, j - 1
        elif i and here == cost[i - 1, j] + 1:
            pairs.append(Pair(DELETED, i - 1, None))
            i -= 1
        else:
            pairs.append(Pair(INSERTED, None, j - 1))
            j -= 1
    return tuple(reversed(pairs))


def count(pairs: Sequence[Pair]) -> Counts:
    """Count the errors of an alignment."""
    kinds = [pair.kind for pair in pairs]
    return Counts(
        substituted=kinds.count(SUBSTITUTED),
        deleted=kinds.count(DELETED),
        inserted=kinds.count(INSERTED),
        said=len(kinds) - kinds.count(INSERTED),
    )
