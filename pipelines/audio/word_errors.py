"""Word errors: recognised words compared with spoken words, with one normal form and one alignment for all users.

The word error rate is (substitutions + deletions + insertions) / reference words, after both sides were brought
to the same form; a total sums the counts of its utterances, not their rates. The alignment is the one with the
minimum edit distance (`edit_distance`). The window's process loads this module, before there is numpy.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

Kind = Literal["same", "substituted", "deleted", "inserted"]
SAME: Kind = "same"
SUBSTITUTED: Kind = "substituted"
DELETED: Kind = "deleted"
INSERTED: Kind = "inserted"

_FILLER = re.compile(r"<[^<>\s]*>|\[[^\[\]\s]*\]|\+\+[^+\s]*\+\+")  # <sil>, [NOISE], ++UM++
_VARIANT = re.compile(r"\(\d+\)")  # second pronunciation: read(2)
_APOSTROPHES = re.compile("[\u2019\u2018\u201b\u02bc\u02bb`\u00b4\u2032\uff07\uff40]")
"""What is written in place of an apostrophe."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default_Ignorable_Code_Point of Unicode, less the two joiners and the zero width space, which parts words."""
_JOINERS = "\u200c\u200d"
"""They choose the form of neighbouring letters (Indic, Arabic); at the edge of a word they are removed."""


class _Gaps(dict[int, int]):
    """For `str.translate`: what is no letter, mark, digit, joiner or apostrophe is a space."""

    def __missing__(self, code: int) -> int:
        char = chr(code)
        inside = char.isalnum() or char == "'" or char in _JOINERS
        found = code if inside or unicodedata.category(char)[0] == "M" else ord(" ")
        self[code] = found
        return found


_GAPS = _Gaps()


class Aligned(NamedTuple):
    """One step of an alignment. The side that has no word there is None, as is its index.

    Indices count the words as they were given: a given word may be two compared ones (well-known) or none (a filler).
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
    """The words of `text` in the form used for comparison: runs of letters, marks, digits and joiners.

    Without case (full case folding), without invisible characters, and the same whichever way accents are written;
    fillers in brackets and marks of pronunciation variants removed; punctuation parts words, except an apostrophe
    inside one (an outer one is as likely a quotation mark).
    """
    text = _INVISIBLE.sub("", text)
    # Decomposed before and composed after: canonical caseless matching of Unicode (3.13, D145).
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    text = spelled(_FILLER.sub(" ", _APOSTROPHES.sub("'", text)))
    return [word for part in text.translate(_GAPS).split() if (word := part.strip(f"'{_JOINERS}"))]


@lru_cache(maxsize=1 << 14)
def parts(word: str) -> tuple[str, ...]:
    """Return the words that `word` is compared as: mostly one, none for a filler, two for well-known."""
    return tuple(words(word))


def spelled(entry: str) -> str:
    """Return the word of a dictionary entry without its pronunciation number: `the` for `the(2)`."""
    return _VARIANT.sub("", entry)


def align(reference: Sequence[str], hypothesis: Sequence[str], partial: bool = False) -> list[Aligned]:
    """The alignment with the fewest errors, in order; every compared word occurs once.

    `partial`: the hypothesis is still growing, so the reference may go on after it at no cost.
    """
    # Not before there are words: the window is shown while numpy is not loaded yet.
    from pipelines.audio.edit_distance import steps_between

    left, right = _indexed(reference), _indexed(hypothesis)
    steps = []
    for i, j in steps_between([word for word, _ in left], [word for word, _ in right], partial):
        spoken, at = (None, None) if i is None else left[i]
        recognised, place = (None, None) if j is None else right[j]
        kind = SAME if spoken == recognised else SUBSTITUTED
        if spoken is None:
            kind = INSERTED
        elif recognised is None:
            kind = DELETED
        steps.append(Aligned(kind, spoken, recognised, at, place))
    return steps


def count(reference: str, hypothesis: str) -> Count:
    """Word errors of one utterance."""
    return counted(align(reference.split(), hypothesis.split()))


def counted(steps: Iterable[Aligned]) -> Count:
    """Word errors of an alignment."""
    kinds = [step.kind for step in steps]
    return Count(
        kinds.count(SUBSTITUTED),
        kinds.count(DELETED),
        kinds.count(INSERTED),
        len(kinds) - kinds.count(INSERTED),
    )


def scored(reference: str | None, hypothesis: str) -> Count | None:
    """Word errors of one utterance, or None without a reference word: such an utterance is not scored."""
    found = count(reference, hypothesis) if reference else None
    return found if found is not None and found.reference_words else None


def total(pairs: Iterable[tuple[str | None, str]]) -> Count:
    """Word errors over (reference, hypothesis) pairs, those that are `scored`."""
    found = (scored(reference, hypothesis) for reference, hypothesis in pairs)
    return sum((each for each in found if each is not None), Count())


# -- of utterances whose errors were counted when they were decoded ---------------------------------


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Word errors of some utterances; `rate` is None where nothing is known of what was said."""

    errors: int = 0
    words: int = 0

    @property
    def rate(self) -> float | None:
        """Errors per word of the reference."""
        return self.errors / self.words if self.words else None


class Decoded(Protocol):
    """An utterance with its word errors, None where nothing is known, and the configurations it ran under."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def reference(self) -> str | None: ...  # noqa: D102
    @property
    def errors(self) -> int | None: ...  # noqa: D102
    @property
    def reference_words(self) -> int | None: ...  # noqa: D102
    @property
    def epochs(self) -> Sequence[int]: ...  # noqa: D102


def errors_of(utterance: Decoded) -> ErrorCount | None:
    """Word errors of an utterance as its session has them, or None where it counts for no word error rate.

    One without a word of reference does not, nor one that was stopped, nor one that was decoded under more than
    one configuration and so says nothing of either.
    """
    if utterance.errors is None or not utterance.reference_words or len(set(utterance.epochs)) > 1:
        return None
    return ErrorCount(utterance.errors, utterance.reference_words)


def word_errors(utterances: Iterable[Decoded]) -> ErrorCount:
    """Word errors of all utterances that count, all decoded with the same settings.

    One that was decoded again counts once, as it was decoded last: a noisy one that comes more often than others says
    no more of the settings.
    """
    return total_of(last_of_each(utterances).values())


def last_of_each(utterances: Iterable[Decoded]) -> dict[tuple[str, str], ErrorCount]:
    """Word errors of each utterance that counts, by name and file, as it was decoded last."""
    return {(u.name, u.path): count for u in utterances if (count := errors_of(u)) is not None}


def total_of(counts: Iterable[ErrorCount]) -> ErrorCount:
    """The sum of some counts."""
    known = list(counts)
    return ErrorCount(sum(c.errors for c in known), sum(c.words for c in known))


class Transcribed(NamedTuple):
    """How many utterances have a transcript, of how many."""

    utterances: int
    of: int


def transcribed(utterances: Iterable[Decoded]) -> Transcribed:
    """Count the utterances with a transcript; one that is decoded again counts once."""
    known = {(u.name, u.path): u.reference is not None for u in utterances}
    return Transcribed(sum(known.values()), len(known))


def _indexed(texts: Sequence[str]) -> list[tuple[str, int]]:
    return [(word, i) for i, each in enumerate(texts) for word in parts(each)]
