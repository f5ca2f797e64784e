"""What a graph can say: words with pronunciations, and G, from a language model or a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.models import dictionary as dictionaries
from pipelines.models.dictionary import Dictionary, DictionaryError, listed
from pipelines.models.grammar import jsgf, phrases
from pipelines.models.grammar.expression import MAX_FILE_BYTES, Grammar, GrammarError, Word
from pipelines.models.language import arpa, lines, lm_bin, ngram
from pipelines.models.sphinx import ModelDefinition
from pipelines.search.graph import grammar, ngrams
from pipelines.search.graph.openfst import Fst
from pipelines.search.graph.recipe import Recipe
from profiler.files import inputs
from profiler.plain import one_line

JSGF_SUFFIXES = (".jsgf", ".gram")


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


def source(recipe: Recipe, definition: ModelDefinition) -> Source:
    """What `recipe` wants recognised; BadInput in one sentence for what cannot be."""
    if recipe.grammar:
        return _sentences(recipe, definition)
    model, words = language(recipe, definition)
    return Source(ngrams.acceptor(model), model.words, words, {"ngrams": list(model.counts)})


def read_language_model(path: str | Path, max_order: int) -> ngram.NGram:
    """Reads a `.lm.bin` or an ARPA file (also gzip), by what it begins with."""
    try:
        with inputs.open_input(path, "a language model", lines.MAX_BYTES) as handle:
            magic = handle.read(len(lm_bin.MAGIC))
    except inputs.InputError as error:
        raise ngram.LanguageModelError(f"The language model cannot be read: {error}") from None
    reader = lm_bin.read if magic == lm_bin.MAGIC else arpa.read
    return reader(path, max_order)


def language(recipe: Recipe, definition: ModelDefinition) -> tuple[ngram.NGram, Dictionary]:
    """The pruned language model and the dictionary of its words, as the graph will have them."""
    words = dictionaries.read(recipe.dictionary)
    model = read_language_model(recipe.language_model, recipe.order)
    chosen = ngram.most_probable(model, words.words(), recipe.vocabulary)
    if not chosen:
        marks = (ngram.SENTENCE_START, ngram.SENTENCE_END)
        lacking = [word for word in model.words if word not in marks]
        raise DictionaryError(
            f"{one_line(recipe.dictionary)} pronounces no word of the language model "
            f"{one_line(recipe.language_model)}, which lists {listed(lacking) or 'none'}."
        )
    words = words.restrict(chosen)
    words.check_phones(_speech(definition))
    model = ngram.restrict(model, chosen)
    return ngram.prune(model, (recipe.bigrams, recipe.trigrams), recipe.pruning), words


def read_grammar(path: str | Path) -> Grammar:
    """Reads JSGF, which begins with `#JSGF` or is named like it, or a plain list of phrases."""
    file = Path(path)
    try:
        with inputs.open_input(file, "a grammar", MAX_FILE_BYTES) as handle:
            is_jsgf = jsgf.MAGIC.encode() in handle.read(64)
    except inputs.InputError as error:
        raise GrammarError(f"The grammar cannot be read: {error}") from None
    is_jsgf |= file.suffix.lower() in JSGF_SUFFIXES
    return jsgf.read(file) if is_jsgf else phrases.read(file)


def _sentences(recipe: Recipe, definition: ModelDefinition) -> Source:
    """G of a grammar; a word that the dictionary does not have as written is taken in lower case."""
    read = read_grammar(recipe.grammar)
    words = dictionaries.read(recipe.dictionary)
    labels: dict[str, int] = {}

    def label(word: Word) -> int:
        text = word.text if word.text in words else word.text.lower()
        return labels.setdefault(text, len(labels) + 1)

    fst = grammar.acceptor(read, label)
    missing = [word for word in labels if word not in words]
    if missing:
        raise DictionaryError(
            f"{one_line(recipe.grammar)} has words that {one_line(recipe.dictionary)} does not pronounce: "
            f"{listed(missing)}."
        )
    words = words.restrict(labels)
    words.check_phones(_speech(definition))
    return Source(
        fst, tuple(labels), words, {"grammar": {"states": fst.n_states, "arcs": fst.n_arcs}}
    )


def _speech(definition: ModelDefinition) -> list[str]:
    """The phones that are not fillers."""
    return [
        phone
        for phone, filler in zip(definition.phones, definition.filler, strict=True)
        if not filler
    ]
