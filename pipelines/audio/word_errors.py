"""Word errors: recognised words compared with spoken words, with one normal form and one alignment for all users.

The word error rate is (substitutions + deletions + insertions) / reference words; a total sums counts, not rates. A
reference without spaces between its words, as Chinese or Thai is written, is compared character by character. The
window's process loads this module, before there is numpy.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pipelines.run.request import Decoded
    from profiler.session.model import Utterance

Kind = Literal["same", "substituted", "deleted", "inserted"]
SAME: Kind = "same"
SUBSTITUTED: Kind = "substituted"
DELETED: Kind = "deleted"
INSERTED: Kind = "inserted"
_SOUNDS = (
    r"laughs?|laughing|laughter|applause|music|coughs?|coughing|sighs?|breath|breathing|noise|background noise|"
    r"inaudible|unintelligible|silence|crosstalk"
)
_MARK = re.compile(
    r"<[^<>\s]*>|</?[^\W\d][^<>]{0,98}>"  # <sil>, <foreign lang="Spanish">
    rf"|\[[^\[\]]{{0,99}}\]|\((?:{_SOUNDS})\)"  # [NOISE], [background noise], (laughs)
    r"|\+\+[^+\s]*\+\+",  # ++UM++
    re.IGNORECASE,
)
"""What a transcriber writes of what is no word."""
_VARIANT = re.compile(r"\(\d+\)")  # second pronunciation: read(2)
_APART = re.compile(r"(?<=\w)(\s+)('(?:s|re|ve|ll|d|m|t))(?![\w'])", re.IGNORECASE)
"""The end of a contraction apart from its word, as TED-LIUM has it: we 're."""
_APOSTROPHES = re.compile("[\u2019\u2018\u201b\u02bc\u02bb`\u00b4\u2032\uff07\uff40]")
"""What is written in place of an apostrophe."""
_INVISIBLE = re.compile(
    "[\u00ad\u0640\u07fa\u180a\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default_Ignorable_Code_Point of Unicode, less the two joiners and the zero width space, which parts words; and what
makes a word longer to the eye alone (Arabic tatweel, N'Ko, Mongolian)."""
_JOINERS = "\u200c\u200d"
"""They choose the form of neighbouring letters (Indic, Arabic); at the edge of a word they are removed."""
_DOT = re.compile("(?<=[ij])\u0307")
"""Left over from a capital with a dot (Turkish) in small letters, which have one anyway."""
_SYLLABLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
_IDEOGRAPHS = "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_UNSPACED = f"{_SYLLABLES}{_IDEOGRAPHS}\U0001b000-\U0001b16f\U00020000-\U0003ffff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer and their kin; Han and kana."""
_LETTER = re.compile(f"[{_UNSPACED}]")
_SYLLABLE = re.compile(f"[{_SYLLABLES}]")
_SPACE = re.compile(f"(?<=[{_UNSPACED}])[\\s\u200b]+(?=[{_UNSPACED}])")
LONG_WORD, LONG_WORD_IN_SYLLABLES = 2, 6
"""Letters between two spaces, on average, from which on these are not between words: words of running text have 1.6 in
Chinese and 2 in Japanese, and 3 to 4.5 in Thai."""


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
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """The word error rate, which insertions may take beyond 1; None without any reference."""
        return self.errors / self.reference_words if self.reference_words else None

    def __add__(self, other: Count) -> Count:
        return Count(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def words(text: str) -> list[str]:
    """The words of `text` in the form used for comparison: runs of letters, marks, digits and joiners.

    Without case (full case folding), without invisible characters, and the same however a letter is written (NFKC);
    marks of what is no word and of pronunciation variants removed, contractions joined; punctuation parts words, except
    an apostrophe inside one (an outer one is as likely a quotation mark).
    """
    return [word for of_word in compared(text.split()) for word in of_word]


def compared(texts: Sequence[str], by_characters: bool = False) -> list[tuple[str, ...]]:
    """What each of the given words is compared as; the end of a contraction belongs to the word before it."""
    text = _APOSTROPHES.sub("'", "\n".join(texts))
    text = _MARK.sub(lambda mark: " " + "\n" * mark[0].count("\n"), text)
    found = [parts(each) for each in _APART.sub(r"\2\1", text).split("\n")][: len(texts)]
    return [tuple(c for word in of_word for c in _characters(word)) for of_word in found] if by_characters else found


@lru_cache(maxsize=1 << 14)
def parts(word: str) -> tuple[str, ...]:
    """Return the words that `word` alone is compared as: mostly one, none for a filler, two for well-known."""
    text = spelled(_MARK.sub(" ", _APOSTROPHES.sub("'", _INVISIBLE.sub("", word)))).translate(_GAPS)
    # Compatibility caseless matching of Unicode (3.13, D146).
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", text).casefold()).casefold()
    text = _APOSTROPHES.sub("'", _DOT.sub("", unicodedata.normalize("NFKC", text))).translate(_GAPS)
    return tuple(word for part in text.split() if (word := part.strip(f"'{_JOINERS}")))


def _characters(word: str) -> list[str]:
    """The letters of a word, each with its marks."""
    found: list[str] = []
    for char in word:
        if found and (char in _JOINERS or unicodedata.category(char)[0] == "M"):
            found[-1] += char
        else:
            found.append(char)
    return found


@lru_cache(maxsize=1 << 10)
def unspaced(reference: str) -> bool:
    """Whether a text has no spaces between its words: in scripts that have none, none or a few between phrases."""
    letters = sum(found[0].isalpha() for found in _LETTER.finditer(reference))
    spaces = len(_SPACE.findall(reference))
    longest = LONG_WORD_IN_SYLLABLES if _SYLLABLE.search(reference) else LONG_WORD
    words = sum(not _LETTER.search(word) for word in reference.split()) if letters else 0  # of other scripts
    return letters > max(words, longest * (spaces + 1) if spaces else 1)


def spelled(entry: str) -> str:
    """Return the word of a dictionary entry without its pronunciation number: `the` for `the(2)`."""
    return _VARIANT.sub("", entry)


def align(reference: Sequence[str], hypothesis: Sequence[str], partial: bool = False) -> list[Aligned]:
    """The alignment with the fewest errors, in order; every compared word occurs once.

    `partial`: the hypothesis is still growing, so the reference may go on after it at no cost.
    """
    # Not before there are words: the window is shown while numpy is not loaded yet.
    from pipelines.audio.edit_distance import steps_between

    by_characters = unspaced(" ".join(reference))
    left, right = _indexed(reference, by_characters), _indexed(hypothesis, by_characters)
    steps = []
    for i, j in steps_between([word for word, _ in left], [word for word, _ in right], partial):
        spoken, at = (None, None) if i is None else left[i]
        recognised, place = (None, None) if j is None else right[j]
        kind = INSERTED if spoken is None else DELETED if recognised is None else SUBSTITUTED
        kind = SAME if spoken == recognised else kind
        steps.append(Aligned(kind, spoken, recognised, at, place))
    return steps


def count(reference: str, hypothesis: str) -> Count:
    return counted(align(reference.split(), hypothesis.split()))


def counted(steps: Iterable[Aligned]) -> Count:
    kinds = Counter(step.kind for step in steps)
    return Count(kinds[SUBSTITUTED], kinds[DELETED], kinds[INSERTED], kinds.total() - kinds[INSERTED])


def scored(reference: str | None, hypothesis: str) -> Count | None:
    """Word errors of one utterance, or None without a reference word: such an utterance is not scored."""
    found = count(reference, hypothesis) if reference else None
    return found if found is not None and found.reference_words else None


def total(pairs: Iterable[tuple[str | None, str]]) -> Count:
    """Word errors over (reference, hypothesis) pairs, those that are `scored`."""
    found = (scored(reference, hypothesis) for reference, hypothesis in pairs)
    return sum((each for each in found if each is not None), Count())


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Word errors of some utterances; `rate` is None where nothing is known of what was said.

    In utterances whose reference has no spaces between words each character counts as a word: `of_characters`,
    `characters` are the errors and words of these.
    """

    errors: int = 0
    words: int = 0
    of_characters: int = 0
    characters: int = 0

    @property
    def rate(self) -> float | None:
        return self.errors / self.words if self.words else None

    @property
    def name(self) -> str:
        return "CER" if 0 < self.words == self.characters else "WER"

    @property
    def unit(self) -> tuple[str, str]:
        if self.name == "CER":
            return "character", "characters"
        return ("word or character", "words and characters") if self.characters else ("word", "words")

    @classmethod
    def of(cls, errors: int, words: int, reference: Sequence[str]) -> ErrorCount:
        by_characters = unspaced(" ".join(reference))
        return cls(errors, words, errors * by_characters, words * by_characters)


def errors_of(utterance: Utterance | Decoded) -> ErrorCount | None:
    """Word errors of an utterance as its session has them, or None where it counts for no word error rate.

    One without a word of reference does not, nor one that was stopped, nor one that was decoded under more than
    one configuration and so says nothing of either.
    """
    if utterance.errors is None or not utterance.reference_words or len(set(utterance.epochs)) > 1:
        return None
    return ErrorCount.of(utterance.errors, utterance.reference_words, (utterance.reference or "").split())


def word_errors(utterances: Iterable[Utterance | Decoded]) -> ErrorCount:
    """Word errors of all utterances that count, all decoded with the same settings.

    One that was decoded again counts once, as it was decoded last.
    """
    last = {(u.name, u.path): count for u in utterances if (count := errors_of(u)) is not None}
    return total_of(last.values())


def total_of(counts: Iterable[ErrorCount]) -> ErrorCount:
    known = list(counts)
    return ErrorCount(*map(sum, zip(*map(astuple, known), strict=True))) if known else ErrorCount()


class Transcribed(NamedTuple):
    """How many utterances have a transcript, of how many."""

    utterances: int
    of: int


def transcribed(utterances: Iterable[Utterance | Decoded]) -> Transcribed:
    known = {(u.name, u.path): u.reference is not None for u in utterances}
    return Transcribed(sum(known.values()), len(known))


def _indexed(texts: Sequence[str], by_characters: bool) -> list[tuple[str, int]]:
    return [(word, i) for i, of_word in enumerate(compared(texts, by_characters)) for word in of_word]


def rate_name(rate: float | None, cer: float | None) -> str:
    """What an error rate is called, where `cer` is that of the references without spaces between words; None: none."""
    return "CER" if cer is not None and cer == rate else "WER"
