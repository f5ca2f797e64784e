"""Compiles the graph of a CTC net from its units, a lexicon and a language model or grammar, in this process.

L and G are composed, determinised and minimised; H, whose form is known, is laid over the result (`topologies`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipelines.models.ctc.units import Units
from pipelines.search.graph import topology
from pipelines.search.graph.build import check_phones, determinise
from pipelines.search.graph.ctc import lexicon, topologies
from pipelines.search.graph.ngrams import backoff_label
from pipelines.search.graph.openfst import Fst, from_arcs, from_kaldifst, to_kaldifst
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.sources import Source, source_of
from pipelines.search.graph.wfst import Graph, Senones, from_topology

Progress = Callable[[str, float], None]
SOUND_ALIKE = 0.01
"""Weight of the costs of words where their order is free: enough to choose among those that have the same units."""


def compile_graph(recipe: Recipe, progress: Progress) -> Graph:
    """The graph of `recipe`, which has units; `progress(what, fraction)` is called before each step."""
    units = Units(tuple(recipe.units), recipe.blank, recipe.boundary)
    if recipe.parts == "H":
        return of_units(units, recipe)
    language, lg = words_in_units(recipe, units, progress)
    progress("adding blanks and repetitions", 0.8)
    made = topologies.apply(lg, units, recipe.topology)
    del lg
    progress("checking the graph", 0.95)
    index = {symbol: n for n, symbol in enumerate(units.symbols)}
    said = language.dictionary.pronunciations
    return from_topology(
        made,
        senones(units),
        language.words,
        [[tuple(index[unit] for unit in way) for way in said.get(word, ())] for word in language.words],
        {
            "recipe": {**recipe.as_dict(), "units": len(units.symbols)},
            "words": len(language.dictionary),
            "notes": list(language.notes),
            **language.about,
        },
    )


def words_in_units(recipe: Recipe, units: Units, progress: Progress) -> tuple[Source, Fst]:
    """What can be said, and L composed with its G, or of parts HL with any order of its words.

    Input labels are unit + 1. BadInput in one sentence.
    """
    import kaldifst

    progress("reading language model or grammar", 0.0)
    language = source_of(recipe, lexicon.Lexicon(recipe, units, progress))
    check_phones(language, recipe)
    progress("composing words and pronunciations", 0.15)
    index = {symbol: n for n, symbol in enumerate(units.symbols)}
    ways = [
        (label, tuple(index[unit] for unit in way), recipe.alternative_cost if rank else 0.0)
        for label, word in enumerate(language.words, start=1)
        for rank, way in enumerate(language.dictionary.pronunciations.get(word, ()))
    ]
    spelled = to_kaldifst(lexicon.transducer(ways, units, backoff_label(len(language.words))))
    kaldifst.arcsort(spelled, "olabel")
    acceptor = to_kaldifst(language.acceptor if recipe.parts == "HLG" else _any_order(language, recipe))
    kaldifst.arcsort(acceptor, "ilabel")
    fst = kaldifst.StdVectorFst(kaldifst.compose(spelled, acceptor))
    progress("determinising words", 0.3)
    determinise(fst)
    progress("minimising words", 0.6)
    kaldifst.minimize_encoded(fst)
    result = from_kaldifst(fst)
    result.ilabel[result.ilabel > len(units.symbols)] = 0  # disambiguation symbols
    return language, topology.fold_epsilons(result)


def of_units(units: Units, recipe: Recipe) -> Graph:
    """H alone: units in any order, each shown as a word, but for the one between words."""
    said = np.array([n for n in range(len(units.symbols)) if n != units.blank])
    words = np.where(said == units.boundary, 0, said + 1)
    none = np.zeros(len(said), np.int32)
    loop = from_arcs(1, 0, np.zeros(1, np.float32), none, said + 1, words, none, none)
    return from_topology(
        topologies.apply(loop, units, recipe.topology),
        senones(units),
        units.symbols,
        [[(n,)] for n in range(len(units.symbols))],
        {"recipe": {"parts": recipe.parts, "topology": recipe.topology}, "words": int(np.count_nonzero(words))},
    )


def senones(units: Units) -> Senones:
    """Each unit is a phone of one state; the blank and the unit between words are no part of words."""
    number = np.arange(len(units.symbols))
    filler = (number == units.blank) | (number == (-1 if units.boundary is None else units.boundary))
    return Senones(number, np.zeros(len(number)), filler, units.blank)


def _any_order(language: Source, recipe: Recipe) -> Fst:
    """One state that each word leads back to: nearly at no cost, more probable ones at the least."""
    none, label = np.zeros(len(language.words), np.int32), np.arange(1, len(language.words) + 1)
    weight = np.zeros(len(label) + 2, np.float32)
    if not recipe.grammar:
        g = language.acceptor  # its first state is the empty history
        weight[g.ilabel[: g.first[1]]] = SOUND_ALIKE * g.weight[: g.first[1]]
    return from_arcs(1, 0, np.zeros(1, np.float32), none, label, label, weight[label], none)
