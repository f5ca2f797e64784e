"""Compiles HCLG from a model, a dictionary and a language model, in this process.

The recipe is Kaldi's (Mohri, Pereira & Riley 2002; Povey et al. 2011): L and G are composed,
determinised and minimised, context is composed in, tied and determinised again, and the senones
are spelled out and determinised once more. The last minimisation is left out: with shared endings
(`context.spell`) it removes 28 states of 739 000 and takes a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.models import dictionary as dictionaries
from pipelines.models import sphinx
from pipelines.models.dictionary import Dictionary, DictionaryError
from pipelines.models.language import arpa, lm_bin, ngram
from pipelines.models.sphinx import ModelDefinition
from pipelines.search import context, grammar, lexicon, topology
from pipelines.search.openfst import from_kaldifst, to_kaldifst
from pipelines.search.wfst import Graph, GraphError, from_fst

COMPILER_VERSION = 1
"""Raised whenever the same inputs would give another graph; part of the cache key."""
SILENCE_PROBABILITY = 0.3
FILLER_PROBABILITY = 0.001
TRANSITION_SCALE = 0.3
"""Weight of the HMM transition probabilities beside the language model and the scaled acoustics.

These three were tuned together with acoustic scale and insertion penalty on the first 100
sentences of the synthetic development corpus (tests/bench/corpus.py): 552 word errors in 1 433, where
1.0 / 0.01 for transitions and fillers gave over 570 at their best. Kaldi's recipes scale self-loops
by 0.1.
"""

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what graph comes out, as JSON values."""

    model: str
    dictionary: str
    language_model: str
    vocabulary: int
    order: int
    bigrams: int
    trigrams: int = 200_000
    silence_probability: float = SILENCE_PROBABILITY
    filler_probability: float = FILLER_PROBABILITY
    transition_scale: float = TRANSITION_SCALE

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON values."""
        return asdict(self)


def read_language_model(path: str | Path, max_order: int) -> ngram.NGram:
    """Reads a `.lm.bin` or an ARPA file (also gzip), by what it begins with."""
    with Path(path).open("rb") as handle:
        magic = handle.read(len(lm_bin.MAGIC))
    reader = lm_bin.read if magic == lm_bin.MAGIC else arpa.read
    return reader(path, max_order)


def language(recipe: Recipe, definition: ModelDefinition) -> tuple[ngram.NGram, Dictionary]:
    """The pruned language model and the dictionary of its words, as the graph will have them."""
    words = dictionaries.read(recipe.dictionary).only_phones(
        [p for p, filler in zip(definition.phones, definition.filler, strict=True) if not filler]
    )
    model = read_language_model(recipe.language_model, recipe.order)
    chosen = ngram.most_probable(model, words.words(), recipe.vocabulary)
    if not chosen:
        raise DictionaryError(
            f"No word of {recipe.dictionary} is in the language model {recipe.language_model}."
        )
    model = ngram.restrict(model, chosen)
    model = ngram.prune(model, (recipe.bigrams, recipe.trigrams))
    return model, words.restrict(chosen)


def write_language(recipe: Recipe, folder: Path) -> tuple[Path, Path]:
    """The pruned language model (ARPA) and dictionary of `recipe`, as files for another decoder."""
    model, words = language(recipe, sphinx.load(recipe.model).mdef)
    paths = folder / "language.arpa", folder / "words.dict"
    arpa.write(model, paths[0])
    dictionaries.write(words, paths[1])
    return paths


def filler_phones(directory: Path, definition: ModelDefinition, recipe: Recipe) -> dict[str, float]:
    """Probability of each filler phone at a word boundary: silence, and the noise list's others."""
    silence = definition.phones[definition.silence]
    result = {silence: recipe.silence_probability}
    noise = directory / "noisedict"
    if noise.exists() and recipe.filler_probability > 0.0:
        for word, prons in dictionaries.read(noise).pronunciations.items():
            for pron in prons:
                if len(pron) != 1 or pron[0] not in definition.phones:
                    raise GraphError(f"{noise}: '{word}' should be one phone of the model.")
                result.setdefault(pron[0], recipe.filler_probability)
    return result


def compile_graph(recipe: Recipe, progress: Progress) -> Graph:
    """The graph of `recipe`; `progress(what, fraction)` is called before each step."""
    import kaldifst

    progress("reading the acoustic model", 0.0)
    model = sphinx.load(recipe.model)
    definition = model.mdef
    progress("reading the language model", 0.02)
    lm, words = language(recipe, definition)
    fillers = filler_phones(Path(recipe.model), definition, recipe)

    progress("composing dictionary and language model", 0.10)
    index = lm.index()
    labels = {word: grammar.word_label(index[word]) for word in words.words()}
    lex, phone_labels = lexicon.transducer(
        definition, words, labels, grammar.backoff_label(lm), fillers
    )
    lex_fst = to_kaldifst(lex)
    kaldifst.arcsort(lex_fst, "olabel")
    grammar_fst = to_kaldifst(grammar.acceptor(lm))
    kaldifst.arcsort(grammar_fst, "ilabel")
    fst = kaldifst.StdVectorFst(kaldifst.compose(lex_fst, grammar_fst))
    progress("determinising words", 0.14)
    _determinise(fst)
    progress("minimising words", 0.19)
    kaldifst.minimize_encoded(fst)
    progress("adding phone contexts", 0.26)
    fst, windows = kaldifst.compose_context(phone_labels.disambiguation, 3, 1, fst)
    tied, sequences, _ = context.tie(from_kaldifst(fst), windows, definition, phone_labels)
    progress("determinising phones", 0.42)
    fst = to_kaldifst(tied)
    del tied
    _determinise(fst)
    progress("minimising phones", 0.53)
    kaldifst.minimize_encoded(fst)
    progress("spelling out senones", 0.70)
    spelled = context.spell(from_kaldifst(fst), sequences, definition.n_senones + 1)
    progress("determinising senones", 0.78)
    fst = to_kaldifst(spelled)
    del spelled
    _determinise(fst)
    progress("adding self-loops", 0.90)
    scale = np.float32(recipe.transition_scale)
    stay, leave = (scale * c for c in transition_costs(definition, model.transitions))
    result = topology.finish(from_kaldifst(fst), definition.n_senones, stay, leave)
    del fst
    progress("checking the graph", 0.97)
    return from_fst(
        result.fst,
        result.loop_label,
        result.loop_weight,
        definition.n_senones,
        lm.words,
        [_phones(words, word, definition) for word in lm.words],
        definition.senone_phone,
        definition.senone_state,
        definition.filler,
        made={"recipe": recipe.as_dict(), "ngrams": list(lm.counts), "words": len(words)},
    )


def transition_costs(
    definition: ModelDefinition, transitions: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """-ln P(stay) and -ln P(go on) of the HMM state of each senone, float32 [n_senones] each."""
    matrix = definition.tmats[definition.senone_phone]
    state = definition.senone_state
    with np.errstate(divide="ignore"):
        stay = -np.log(transitions[matrix, state, state].astype(np.float64))
        leave = -np.log(transitions[matrix, state, state + 1].astype(np.float64))
    if not (np.isfinite(stay).all() and np.isfinite(leave).all()):
        raise GraphError("The acoustic model has a state that cannot be stayed in or left.")
    return stay.astype(np.float32), leave.astype(np.float32)


def _phones(words: Dictionary, word: str, definition: ModelDefinition) -> list[tuple[int, ...]]:
    if word not in words:
        return []
    return [tuple(definition.phone(p) for p in pron) for pron in words[word]]


def _determinise(fst: Any) -> None:
    import kaldifst

    # True means that it stopped at the limit of states; there is none.
    if kaldifst.determinize_star(fst, use_log=True):
        raise GraphError("The search graph could not be determinised.")


def from_mapping(values: Mapping[str, Any]) -> Recipe:
    """A recipe from its JSON form."""
    return Recipe(**values)
