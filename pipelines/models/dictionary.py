"""Reads pronouncing dictionaries in cmudict's format, and a model's list of filler words.

One pronunciation per line, `word PH ON ES`; alternates are `word(2)`, `word(3)`. Lines with `;;;` or `##` in front are
comments, and so is what follows a `#` behind the phones. The filler list (`noisedict`) has the same format. Numbers
before the phones (Kaldi's `lexiconp.txt`, the Montreal Forced Aligner's) are probabilities and left out.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from pipelines.models.language.arpa import fields
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.plain import one_line, printable

MAX_FILE_BYTES = 32 << 20  # cmudict with its 134 000 words has 3.2 MB
MAX_PRONUNCIATIONS = 1_000_000
SHOWN_WORD = 40  # characters of a word that a sentence repeats
_ALTERNATE = re.compile(r"^(?P<word>.+)\((?P<number>\d+)\)$")
JOINERS = "\u200c\u200d"  # characters that do not show and that words of many scripts need
_COMMENT = (";;;", "##")
_PROBABILITY = re.compile(r"\d*\.\d+(?:[eE][-+]?\d+)?")
_STRESSED = re.compile(r"[A-Z]+[0-2]")  # A vowel of cmudict as CMU publishes it: AH0 is not stressed, AH1 and AH2 are
Pronunciation = tuple[str, ...]


class DictionaryError(BadInput):
    """A dictionary that cannot be read or used, in one sentence."""


@dataclass(frozen=True)
class Dictionary:
    """Word -> its pronunciations (phone names), in the order of the file, without repetitions.

    `path` is the file it was read from, None where it was made otherwise. `has_probabilities`: they are left out.
    """

    pronunciations: dict[str, tuple[Pronunciation, ...]]
    path: Path | None = None
    has_probabilities: bool = False

    @property
    def _name(self) -> str:
        return one_line(str(self.path)) if self.path else "The dictionary"

    def __len__(self) -> int:
        return len(self.pronunciations)

    def __contains__(self, word: str) -> bool:
        return word in self.pronunciations

    def __getitem__(self, word: str) -> tuple[Pronunciation, ...]:
        return self.pronunciations[word]

    def find(self, word: str) -> str | None:
        """Return the entry of `word`: as written, in another form of Unicode, or in other capitals; None if missing."""
        return word if word in self.pronunciations else self._folded.get(_folded(word))

    @cached_property
    def _folded(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for word in self.pronunciations:
            key = _folded(word)
            # Of several, the one in small letters.
            if key not in found or word == key:
                found[key] = word
        return found

    def words(self) -> list[str]:
        return list(self.pronunciations)

    def phones(self) -> frozenset[str]:
        return frozenset(p for prons in self.pronunciations.values() for pron in prons for p in pron)

    def without_stress(self, phones: Collection[str]) -> Dictionary:
        """The same without the stress digits of vowels that are not among `phones` as they stand."""
        return replace(
            self,
            pronunciations={
                word: tuple(dict.fromkeys(tuple(unstressed(p, phones) for p in pron) for pron in prons))
                for word, prons in self.pronunciations.items()
            },
        )

    def check_phones(self, phones: Iterable[str], fillers: Iterable[str] = ()) -> None:
        """Raise DictionaryError if a pronunciation has a phone outside these and `fillers`, the model's others."""
        known = frozenset(phones)
        unknown = {
            word: [p for pron in prons for p in pron if p not in known] for word, prons in self.pronunciations.items()
        }
        words = [word for word in unknown if unknown[word]]
        strange = dict.fromkeys(chain.from_iterable(unknown.values()))
        if not words:
            return
        lacking = [phone for phone in strange if phone not in frozenset(fillers)]
        if lacking:
            raise DictionaryError(
                f"{self._name} pronounces {listed(words)} with phones that the acoustic model lacks: {listed(lacking)}."
                " Choose a dictionary in its phones (graph.dictionary)."
            )
        raise DictionaryError(
            f"{self._name} pronounces {listed(words)} with fillers of the acoustic model, which stand between words "
            f"and not in them: {listed(list(strange))}."
        )


def unstressed(phone: str, known: Collection[str]) -> str:
    """`phone` without its stress digit, if only so it is among the `known` ones."""
    bare = phone[:-1]
    return bare if phone not in known and bare in known and _STRESSED.fullmatch(phone) else phone


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())


def same_capitals(word: str, other: str) -> bool:
    """Whether two words that are one to `Dictionary.find` have the same capitals."""
    return unicodedata.normalize("NFC", word) == unicodedata.normalize("NFC", other)


def listed(words: Sequence[str], shown: int = 4, quote: str = "'") -> str:
    """The first few of `words` in quotation marks, and how many there are besides."""
    names = ", ".join(f"{quote}{one_line(word, SHOWN_WORD)}{quote}" for word in words[:shown])
    more = len(words) - shown
    return f"{names} and {more} more" if more > 0 else names


def read(path: str | os.PathLike[str]) -> Dictionary:
    """The dictionary; DictionaryError (one sentence) for a file that is none."""
    file, name = Path(path), one_line(os.fspath(path))
    try:
        text = inputs.read_text(file, "a dictionary", MAX_FILE_BYTES)
    except inputs.InputError as error:
        raise DictionaryError(f"The dictionary cannot be read: {error}") from None
    lines = io.StringIO(text, newline=None).readlines()
    if len(lines) > MAX_PRONUNCIATIONS:
        raise DictionaryError(
            f"{name} has {len(lines):,} lines; a dictionary of more than {MAX_PRONUNCIATIONS:,} is not read."
        )
    found: dict[str, list[Pronunciation]] = {}
    has_probabilities = False
    for number, line in enumerate(lines, start=1):
        word, *phones = fields(line) or [""]
        if not word or line.startswith(_COMMENT):
            continue
        if "#" in phones:
            del phones[phones.index("#") :]
        while phones and _PROBABILITY.fullmatch(phones[0]):
            has_probabilities = True
            del phones[0]
        if not phones:
            raise DictionaryError(f"{name}, line {number}: a word and its phones should stand here.")
        if printable(word, JOINERS) != word:
            raise DictionaryError(
                f"{name}, line {number}: the word '{one_line(word, SHOWN_WORD)}' has a character that does not show."
            )
        if word[-1] == ")" and (alternate := _ALTERNATE.match(word)):
            word = alternate["word"]
        # There are few phones: one object for each.
        found.setdefault(word, []).append(tuple(map(sys.intern, phones)))
    if not found:
        raise DictionaryError(f"{name} holds no pronunciation.")
    return Dictionary({w: tuple(dict.fromkeys(prons)) for w, prons in found.items()}, file, has_probabilities)


def default_path() -> Path:
    """The US-English dictionary that the pocketsphinx package carries; DictionaryError if absent."""
    spec = importlib.util.find_spec("pocketsphinx")
    if spec is None or not spec.submodule_search_locations:
        raise DictionaryError("The package pocketsphinx, which carries the dictionary, is missing.")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model" / "en-us"
    return folder / "cmudict-en-us.dict"


def default() -> Dictionary:
    return read(default_path())
