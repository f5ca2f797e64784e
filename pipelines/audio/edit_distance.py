"""Minimum edit distance with unit costs (Levenshtein 1966) between words, in bounded memory (Hirschberg 1975)."""

from collections.abc import Sequence

import numpy as np

from profiler.arrays import Array

TABLE_CELLS = 4_000_000
"""Largest table of costs (16 MB) that is filled at once; longer texts are cut in two where they align."""
Step = tuple[int | None, int | None]
"""Indices of a reference word and a hypothesis word; None on the side that has none."""


def steps_between(reference: Sequence[str], hypothesis: Sequence[str], partial: bool) -> list[Step]:
    """The steps from reference to hypothesis; `partial`: the reference may go on after the hypothesis at no cost.

    Of beginnings that fit equally well the longest is taken, which prefers substitutions to insertions.
    """
    codes: dict[str, int] = {}
    left, right = (
        np.array([codes.setdefault(word, len(codes)) for word in side], dtype=np.int64)
        for side in (reference, hypothesis)
    )
    if partial:
        costs = _costs(right, left)
        left = left[: len(left) - int(np.argmin(costs[::-1]))]
    return _steps(left, right)


def _steps(left: Array, right: Array) -> list[Step]:
    """The steps between two lists of codes."""
    if len(left) > len(right):  # numpy goes along the longer one
        return [(i, j) for j, i in _steps(right, left)]
    if len(left) < 2 or (len(left) + 1) * (len(right) + 1) <= TABLE_CELLS:
        return _by_table(left, right)
    middle = len(left) // 2
    before = _costs(left[:middle], right)
    cut = int(np.argmin(before + _costs(left[middle:][::-1], right[::-1])[::-1]))
    after = _steps(left[middle:], right[cut:])
    shifted = [(None if i is None else i + middle, None if j is None else j + cut) for i, j in after]
    return _steps(left[:middle], right[:cut]) + shifted


def _costs(left: Array, right: Array, table: Array | None = None) -> Array:
    """Fewest errors of all of `left` against the first j of `right`, int32 [len(right) + 1].

    `table`: int32 [len(left) + 1, len(right) + 1], where those of the first i of `left` are wanted too.
    """
    steps = np.arange(len(right) + 1, dtype=np.int32)
    row, next_row = steps.copy(), np.empty_like(steps)
    if table is not None:
        table[0] = row
    for i, code in enumerate(left, start=1):
        next_row[0] = i
        np.minimum(row[1:] + 1, row[:-1] + (right != code), out=next_row[1:])
        # An insertion chain is a running minimum once the slope of one per word is taken out.
        np.minimum.accumulate(next_row - steps, out=row)
        row += steps
        if table is not None:
            table[i] = row
    return row


def _by_table(left: Array, right: Array) -> list[Step]:
    i, j = len(left), len(right)
    cost = np.empty((i + 1, j + 1), dtype=np.int32)
    _costs(left, right, cost)
    steps: list[Step] = []
    while i or j:
        here = cost[i, j]
        if i and j and here == cost[i - 1, j - 1] + (left[i - 1] != right[j - 1]):
            i, j = i - 1, j - 1
            steps.append((i, j))
        elif i and here == cost[i - 1, j] + 1:
            i -= 1
            steps.append((i, None))
        else:
            j -= 1
            steps.append((None, j))
    return steps[::-1]
