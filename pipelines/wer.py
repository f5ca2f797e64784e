"""Word errors: what was recognised against what was said.

The word error rate is (substitutions + deletions + insertions) / reference words, after both sides
were brought to the same form; a total sums the counts of its utterances, not their rates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple, cast

Kind = Literal["equal", "substitute", "delete", "insert"]

_FILLER = re.compile(r"<[^<>\s]*>|\[[^\[\]\s]*\]|\+\+[^+\s]*\+\+")  # <sil>, [NOISE], ++UM++
_VARIANT = re.compile(r"\(\d+\)")  # second pronunciation: read(2)
_NOT_IN_WORDS = re.compile(r"[^\w']|_")


class Aligned(NamedTuple):
    """One step of an alignment. The side that has no word there is None, as is its index.

    Indices count the words as they were given, parted by blanks: a given word may be two compared
    ones (well-known) or none (a filler).
    """

    kind: Kind
    reference: str | None
    hypothesis: str | None
    reference_index: int | None
    hypothesis_index: int | None


@dataclass(frozen=True, slots=True)
class Count:
    """Word errors of one or more utterances."""

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    reference_words: int = 0

    @property
    def errors(self) -> int:
        """All errors."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """The word error rate, which insertions may take beyond 1; None without any reference."""
        return self.errors / self.reference_words if self.reference_words else None

    def __add__(self, other: Count) -> Count:
        return Count(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.reference_words + other.reference_words,
        )


def words(text: str) -> list[str]:
    """The words of `text` as they are compared.

    Lower case; fillers in brackets and marks of pronunciation variants removed; punctuation parts
    words, except an apostrophe inside one (an outer one is as likely a quotation mark).
    """
    text = _VARIANT.sub("", _FILLER.sub(" ", text.lower().replace("\u2019", "'")))
    parts = _NOT_IN_WORDS.sub(" ", text).split()
    return [word for part in parts if (word := part.strip("'"))]


def align(reference: str, hypothesis: str) -> list[Aligned]:
    """The alignment with the fewest errors, in order; every compared word occurs once."""
    said, heard = _indexed(reference), _indexed(hypothesis)
    if not said or not heard:  # jiwer refuses an empty reference
        deleted = [Aligned("delete", word, None, i, None) for word, i in said]
        return deleted + [Aligned("insert", None, word, None, i) for word, i in heard]
    import jiwer  # slow to import, and not needed by a run without transcripts

    output = jiwer.process_words(
        " ".join(word for word, _ in said), " ".join(word for word, _ in heard)
    )
    steps: list[Aligned] = []
    for chunk in output.alignments[0]:
        kind = cast(Kind, chunk.type)
        left = said[chunk.ref_start_idx : chunk.ref_end_idx]
        right = heard[chunk.hyp_start_idx : chunk.hyp_end_idx]
        for (ref, i), (hyp, j) in zip_longest(left, right, fillvalue=(None, None)):
            steps.append(Aligned(kind, ref, hyp, i, j))
    return steps


def _indexed(text: str) -> list[tuple[str, int]]:
    return [(word, i) for i, given in enumerate(text.split()) for word in words(given)]


def count(reference: str, hypothesis: str) -> Count:
    """Word errors of one utterance."""
    kinds = [step.kind for step in align(reference, hypothesis)]
    return Count(
        kinds.count("substitute"),
        kinds.count("delete"),
        kinds.count("insert"),
        len(kinds) - kinds.count("insert"),
    )


def total(pairs: Iterable[tuple[str, str]]) -> Count:
    """Word errors over (reference, hypothesis) pairs."""
    return sum((count(reference, hypothesis) for reference, hypothesis in pairs), Count())
