"""What a graph can say: words with pronunciations, and G, from a language model or a grammar."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pipelines.models import dictionary as dictionaries
from pipelines.models.dictionary import Dictionary, DictionaryError, listed, same_capitals, unstressed
from pipelines.models.grammar import jsgf, phrases
from pipelines.models.grammar.expression import MAX_FILE_BYTES, Grammar, GrammarError, Word
from pipelines.models.language import arpa, lm_bin, ngram
from pipelines.models.sphinx import ModelDefinition
from pipelines.search.graph import grammar
from pipelines.search.graph.openfst import Fst
from pipelines.search.graph.recipe import Recipe
from profiler.files import inputs
from profiler.plain import one_line

MARKS = frozenset({"<s>", "</s>", "<unk>", "<eps>"})
"""Entries of language models and dictionaries that are no words, in lower case."""
FILLER = re.compile(r"<.+>|\[.+\]|\{.+\}|\+\+.+\+\+")  # How noises and silence are written there
NOTED = 8  # Words that a note names


@dataclass(frozen=True)
class Source:
    """G as an acceptor with labels `words` index + 1, and the dictionary of those with sound.

    `about`: figures for the graph's own record; `notes`: what was left out or read otherwise, a sentence each.
    """

    acceptor: Fst
    words: tuple[str, ...]
    dictionary: Dictionary
    about: Mapping[str, object]
    notes: tuple[str, ...] = ()


class Entries(Protocol):
    """How the acoustic model says words; `missing`: those that were looked up and that it cannot say."""

    missing: list[str]

    def find(self, word: str) -> str | None:
        """The entry of `word`; None where it has none, and for sentence marks, which no hypothesis has."""

    def pronunciations(self, shown: Mapping[str, str]) -> tuple[Dictionary, list[str]]:
        """Return the pronunciations of the words in `shown` (displayed word → entry), and notes."""


def source(recipe: Recipe, entries: Entries) -> Source:
    """What `recipe` can say, with words as `entries` say them; BadInput (one sentence) if it cannot be read."""
    if recipe.grammar:
        return _sentences(recipe, entries)
    model, words = language(recipe, entries)
    return Source(grammar.ngram_acceptor(model), model.words, words, {"ngrams": list(model.counts)}, model.notes)


def read_language_model(path: str | Path, max_order: int) -> ngram.NGram:
    """Reads a `.lm.bin` or an ARPA file (also packed), by what it begins with."""
    try:
        with inputs.open_input(path, "a language model", arpa.MAX_BYTES) as handle:
            magic = handle.read(len(lm_bin.MAGIC))
    except inputs.InputError as error:
        raise ngram.LanguageModelError(f"The language model cannot be read: {error}") from None
    reader = lm_bin.read if magic == lm_bin.MAGIC else arpa.read
    return reader(path, max_order)


def language(recipe: Recipe, entries: Entries) -> tuple[ngram.NGram, Dictionary]:
    """The pruned language model, with notes, and the dictionary of its words, as the graph will have them."""
    model = read_language_model(recipe.language_model, recipe.order)
    found = {word: entry for word in model.words if (entry := entries.find(word)) is not None}
    chosen = ngram.most_probable(model, list(found), recipe.vocabulary)
    if not chosen:
        raise DictionaryError(
            f"{one_line(recipe.dictionary) or 'The net'} pronounces no word of the language model "
            f"{one_line(recipe.language_model)}, which lists {listed(entries.missing) or 'none'}."
        )
    shown = {word: found[word] for word in chosen}
    words, notes = entries.pronunciations(shown)
    notes = [
        *model.notes,
        *_left_out(model, chosen, len(found), entries.missing),
        *_in_other_capitals(shown, "language model"),
        *notes,
    ]
    model = ngram.restrict(model, chosen)
    model = ngram.prune(model, (recipe.bigrams, recipe.trigrams), recipe.pruning)
    return replace(model, notes=tuple(notes)), words


def _left_out(model: ngram.NGram, chosen: list[str], pronounced: int, missing: list[str]) -> list[str]:
    """The note on words without a pronunciation that would have been chosen."""
    limited = len(chosen) < pronounced
    if limited:
        index, prob = model.index(), model.log_prob[0]
        least = min(prob[index[word]] for word in chosen)
        missing = [word for word in missing if prob[index[word]] > least]
    if not missing:
        return []
    have = "have no pronunciation and are" if len(missing) > 1 else "has no pronunciation and is"
    return [
        f"{len(missing):,} of {len(chosen) + len(missing):,} {'most probable ' if limited else ''}words of the "
        f"language model {have} left out: {_named(missing)}"
    ]


def _named(words: Sequence[str]) -> str:
    return listed(words, NOTED, quote="")


class DictionaryEntries:
    """The dictionary as the acoustic model can say it; `missing`: words that were looked up and are not in it."""

    def __init__(self, recipe: Recipe, definition: ModelDefinition) -> None:
        self._words = dictionaries.read(recipe.dictionary)
        phones = list(zip(definition.phones, definition.filler, strict=True))
        self._fillers = frozenset(phone for phone, filler in phones if filler)
        self._speech = frozenset(phone for phone, filler in phones if not filler)
        self._lacking: list[str] = []
        self.missing: list[str] = []

    def find(self, word: str) -> str | None:
        """The entry of `word`; None where it has none, and for sentence marks and fillers, which no hypothesis has."""
        entry = self._words.find(word)
        filler = FILLER.fullmatch(word) is not None
        if word.lower() in MARKS or (filler and entry is None):
            return None
        if entry is None:
            self.missing.append(word)
            return None
        phones = {phone for pron in self._words[entry] for phone in pron}
        if phones <= self._fillers:
            return None
        if filler and not {unstressed(phone, self._speech) for phone in phones} <= self._speech:
            self._lacking.append(word)
            return None
        return entry

    def pronunciations(self, shown: Mapping[str, str]) -> tuple[Dictionary, list[str]]:
        """Return the dictionary of the words in `shown` (displayed word → entry), in phones of speech, and notes.

        Raises DictionaryError if the acoustic model lacks a phone.
        """
        prons = {word: self._words[entry] for word, entry in shown.items()}
        written = Dictionary(prons, self._words.path)
        words = written.without_stress(self._speech)
        words.check_phones(self._speech, self._fillers)
        notes = []
        if stressed := sorted(written.phones() - self._speech):
            notes.append(
                "stress digits of the dictionary are left out, as the acoustic model has no phones with them: "
                f"{_named(stressed)}"
            )
        if self._words.has_probabilities:
            notes.append("probabilities of pronunciations in the dictionary are left out")
        if self._lacking:
            notes.append(f"fillers whose phones the acoustic model lacks are left out: {_named(self._lacking)}")
        return words, notes


def _in_other_capitals(entries: Mapping[str, str], source: str) -> list[str]:
    """The note on words of `source` whose entries, their values, have other capitals."""
    other = [f"{w} ({e})" for w, e in entries.items() if not same_capitals(w, e)]
    if not other:
        return []
    have = "words of the {} have" if len(other) > 1 else "word of the {} has"
    return [f"{len(other):,} {have.format(source)} other capitals in the dictionary: {_named(other)}"]


def read_grammar(path: str | Path) -> Grammar:
    """Reads JSGF, which begins with `#JSGF` or is named like it, or a plain list of phrases."""
    file = Path(path)
    try:
        with inputs.open_input(file, "a grammar", MAX_FILE_BYTES) as handle:
            head = handle.read(phrases.HEAD_BYTES)
    except inputs.InputError as error:
        raise GrammarError(f"The grammar cannot be read: {error}") from None
    if other := phrases.named(head):
        raise GrammarError(f"{one_line(str(file))} is {other}.")
    is_jsgf = jsgf.begins(head) or file.suffix.lower() in (".jsgf", ".gram")
    return jsgf.read(file) if is_jsgf else phrases.read(file)


def _sentences(recipe: Recipe, entries: Entries) -> Source:
    """G of a grammar, whose words are shown as the dictionary has them."""
    read = read_grammar(recipe.grammar)
    found: dict[str, str | None] = {}
    labels: dict[str, int] = {}

    def label(word: Word) -> int:
        text = word.text
        if text not in found:
            found[text] = entries.find(text)
            if entries.missing[-1:] == [text]:
                found[text] = text
        entry = found[text]
        return 0 if entry is None else labels.setdefault(entry, len(labels) + 1)

    fst = grammar.acceptor(read, label)
    if entries.missing:
        raise DictionaryError(
            f"{one_line(recipe.grammar)} has words that {one_line(recipe.dictionary) or 'the net'} does not pronounce: "
            f"{listed(entries.missing)}."
        )
    words, notes = entries.pronunciations({entry: entry for entry in labels})
    notes += _in_other_capitals({w: e for w, e in found.items() if e is not None}, "grammar")
    about = {"grammar": {"states": fst.n_states, "arcs": fst.n_arcs}}
    return Source(fst, tuple(labels), words, about, tuple(notes))
