"""Reads pronouncing dictionaries in cmudict's format, and a model's list of filler words.

One pronunciation per line, `word PH ON ES`; alternates are `word(2)`, `word(3)`. Lines that begin
with `;;;` or `##` are comments. The filler list (`noisedict`) has the same format; its words never
appear in a transcript.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.errors import BadInput

MAX_FILE_BYTES = 256 * 1024 * 1024
_ALTERNATE = re.compile(r"^(?P<word>.+)\((?P<number>\d+)\)$")
_COMMENT = (";;;", "##")

Pronunciation = tuple[str, ...]


class DictionaryError(BadInput):
    """A dictionary that cannot be read or used, in one sentence."""


@dataclass(frozen=True)
class Dictionary:
    """Word -> its pronunciations (phone names), in the order of the file, without repetitions.

    `path` is the file it was read from, None where it was made otherwise.
    """

    pronunciations: dict[str, tuple[Pronunciation, ...]]
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.pronunciations)

    def __contains__(self, word: str) -> bool:
        return word in self.pronunciations

    def __getitem__(self, word: str) -> tuple[Pronunciation, ...]:
        return self.pronunciations[word]

    def words(self) -> list[str]:
        """All words, in the order of the file."""
        return list(self.pronunciations)

    def restrict(self, words: Iterable[str]) -> Dictionary:
        """Only these words; DictionaryError when one has no pronunciation."""
        chosen = list(words)
        for word in chosen:
            if word not in self.pronunciations:
                raise DictionaryError(f"The dictionary has no pronunciation of '{word}'.")
        return Dictionary({w: self.pronunciations[w] for w in chosen})

    def only_phones(self, phones: Sequence[str]) -> Dictionary:
        """Only pronunciations made of these phones; words left without one disappear."""
        known = frozenset(phones)
        kept = {
            word: tuple(p for p in prons if known.issuperset(p))
            for word, prons in self.pronunciations.items()
        }
        return Dictionary({w: p for w, p in kept.items() if p})


def read(path: str | os.PathLike[str]) -> Dictionary:
    """The dictionary; DictionaryError (one sentence) for a file that is none."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise DictionaryError(f"{file} is over {MAX_FILE_BYTES} bytes; no dictionary is.")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise DictionaryError(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise DictionaryError(f"{file} is not a dictionary: it is not UTF-8 text.") from None
    found: dict[str, dict[Pronunciation, None]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(_COMMENT):
            continue
        word, *phones = line.split()
        if not phones or not word.isprintable():
            raise DictionaryError(
                f"{file}, line {number}: a word and its phones should stand here."
            )
        alternate = _ALTERNATE.match(word)
        found.setdefault(alternate["word"] if alternate else word, {})[tuple(phones)] = None
    if not found:
        raise DictionaryError(f"{file} holds no pronunciation.")
    return Dictionary({word: tuple(prons) for word, prons in found.items()}, file)


def default_path() -> Path:
    """The US-English dictionary that the pocketsphinx package carries; DictionaryError if absent."""
    spec = importlib.util.find_spec("pocketsphinx")
    if spec is None or not spec.submodule_search_locations:
        raise DictionaryError("The package pocketsphinx, which carries the dictionary, is missing.")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model" / "en-us"
    return folder / "cmudict-en-us.dict"


def default() -> Dictionary:
    """The dictionary at `default_path`."""
    return read(default_path())


def write(dictionary: Dictionary, path: str | os.PathLike[str]) -> None:
    """Writes cmudict's format, alternates as `word(2)`; OSError where that is impossible."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as out:
        for word, prons in dictionary.pronunciations.items():
            for number, pron in enumerate(prons, start=1):
                label = word if number == 1 else f"{word}({number})"
                out.write(f"{label} {' '.join(pron)}\n")
