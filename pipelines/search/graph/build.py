"""Compiles HCLG from a model, a dictionary and a language model or grammar, in this process.

The recipe is Kaldi's (Mohri, Pereira & Riley 2002; Povey et al. 2011) without minimisation after phones are put into
context: `expansion` already merges contexts that the tying does not distinguish, and shares endings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models import dictionary as dictionaries
from pipelines.models import kaldi
from pipelines.models.kaldi import contexts
from pipelines.models.kaldi.contexts import Hmms
from pipelines.models.sphinx import ModelDefinition, parameters
from pipelines.models.sphinx import definition as definitions
from pipelines.search.graph import expansion, lexicon, topology
from pipelines.search.graph.grammar import backoff_label
from pipelines.search.graph.openfst import Fst, from_arcs, from_kaldifst, to_kaldifst
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.sources import DictionaryEntries, Source, source
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import Graph, GraphError, Senones, from_topology
from profiler.arrays import Array
from profiler.files.inputs import there
from profiler.plain import one_line

if TYPE_CHECKING:
    import kaldifst

COMPILER_VERSION = 3  # Raised whenever the same inputs would give another graph; part of the cache key
MAX_PHONES = 5_000_000
"""Of all pronunciations that are put together, each as often as its word can be said: it bounds the memory."""
MAX_GRAMMAR_STATES = 500_000
"""Of a grammar's words spelled in phones and minimised: each of them becomes many, with their arcs, once spelled in
senones, which is where a graph takes most memory."""
Progress = Callable[[str, float], None]


def filler_phones(directory: Path, definition: ModelDefinition, recipe: Recipe) -> dict[str, float]:
    """Probability of each filler phone at a word boundary: silence, and the noise list's others."""
    silence = definition.phones[definition.silence]
    result = {silence: recipe.silence_probability}
    noise = directory / "noisedict"
    if there(noise) and recipe.filler_probability > 0.0:
        for word, prons in dictionaries.read(noise).pronunciations.items():
            for pron in prons:
                if len(pron) != 1 or pron[0] not in definition.phones:
                    raise GraphError(f"{noise}: '{word}' should be one phone of the model.")
                result.setdefault(pron[0], recipe.filler_probability)
    return result


def compile_graph(recipe: Recipe, progress: Progress) -> Graph:
    """The graph of `recipe`; `progress(what, fraction)` is called before each step."""
    progress("reading the acoustic model", 0.0)
    folder = Path(recipe.model)
    # HMMs of a Kaldi model have any form, those of CMUSphinx are chains of three states.
    own = contexts.read(folder) if kaldi.lies_in(folder) else None
    if own is None:
        definition = definitions.read(folder / "mdef")
        costs = transition_costs(definition, parameters.read_transitions(folder / "transition_matrices"))
    else:
        definition = own.definition
    fillers = filler_phones(folder, definition, recipe)
    progress("reading language model or grammar", 0.02)
    language = source(recipe, DictionaryEntries(recipe, definition))

    check_phones(language, recipe)
    progress("composing words and pronunciations", 0.15)
    labels = {word: i for i, word in enumerate(language.words, start=1) if word in language.dictionary}
    backoff = backoff_label(len(language.words))
    lex, phone_labels = lexicon.transducer(definition, language.dictionary, labels, backoff, fillers)
    fst = words_in_units(lex, language.acceptor, progress, (0.2, 0.25))
    del lex
    if recipe.grammar and fst.num_states > MAX_GRAMMAR_STATES:
        raise GraphError(
            f"{one_line(recipe.grammar)} says too much for one graph: {fst.num_states:,} phones that differ by "
            f"what comes before or after, where {MAX_GRAMMAR_STATES:,} can be compiled."
        )
    progress("adding phone contexts", 0.4)
    tied, sequences = expansion.expand(from_kaldifst(fst), definition, phone_labels)
    del fst
    scale = np.float32(recipe.transition_scale)
    if own is not None:
        result = _with_hmms(tied, own.hmms(sequences), scale, progress)
    else:
        progress("spelling out senones", 0.45)
        spelled = expansion.spell(tied, sequences, definition.n_senones + 1)
        del tied
        progress("determinising senones", 0.55)
        fst = to_kaldifst(spelled)
        del spelled
        determinise(fst)
        progress("adding self-loops", 0.85)
        stay, leave = (scale * c for c in costs)
        result = topology.finish(from_kaldifst(fst), definition.n_senones, stay, leave)
        del fst
    progress("checking the graph", 0.95)
    said = language.dictionary
    ways = [[tuple(map(definition.phone, pron)) for pron in said[w]] if w in said else [] for w in language.words]
    senones = Senones(definition.senone_phone, definition.senone_state, definition.filler)
    return from_topology(result, senones, language.words, ways, about(language, recipe.as_dict()))


def words_in_units(
    lex: Fst, acceptor: Fst, progress: Progress, fractions: tuple[float, float]
) -> kaldifst.StdVectorFst:
    """L composed with G, determinised and minimised; `fractions`: of the work that is done before these two steps."""
    import kaldifst

    spelled, words = to_kaldifst(lex), to_kaldifst(acceptor)
    kaldifst.arcsort(spelled, "olabel")
    kaldifst.arcsort(words, "ilabel")
    fst = kaldifst.StdVectorFst(kaldifst.compose(spelled, words))
    del spelled, words
    progress("determinising words", fractions[0])
    determinise(fst)
    progress("minimising words", fractions[1])
    kaldifst.minimize_encoded(fst)
    return fst


def about(language: Source, recipe: Mapping[str, object]) -> dict[str, object]:
    facts = {"recipe": recipe, "words": len(language.dictionary), "notes": list(language.notes)}
    return {**facts, **language.about}


def _with_hmms(tied: Fst, own: Hmms, scale: np.float32, progress: Progress) -> Topology:
    """Phones in context determinised and minimised, then spelled in the states of their HMMs."""
    import kaldifst

    progress("determinising phones in context", 0.45)
    fst = to_kaldifst(tied)
    determinise(fst)
    kaldifst.minimize_encoded(fst)
    progress("spelling out HMMs", 0.85)
    plain = from_kaldifst(fst)
    plain.ilabel[plain.ilabel > len(own.size)] = 0  # disambiguation symbols
    return unfold(topology.fold_epsilons(plain), own, scale)


def check_phones(language: Source, recipe: Recipe) -> None:
    """Raise GraphError if the pronunciations are too many to be combined."""
    lengths = {word: sum(map(len, language.dictionary[word])) for word in language.dictionary.words()}
    total = sum(lengths.values())
    if recipe.grammar:
        each = np.array([0, *(lengths.get(word, 0) for word in language.words)], np.int64)
        total = int(each[language.acceptor.ilabel].sum())
    if total > MAX_PHONES:
        raise GraphError(
            f"{one_line(recipe.grammar or recipe.dictionary)} says too much for one graph: its words, as often "
            f"as they stand there, have {total:,} phones where {MAX_PHONES:,} can be put together."
        )


def transition_costs(definition: ModelDefinition, transitions: Array) -> tuple[Array, Array]:
    """-ln P(stay) and -ln P(go on) of the HMM state of each senone, float32 [n_senones] each."""
    matrix = definition.tmats[definition.senone_phone]
    state = definition.senone_state
    with np.errstate(divide="ignore"):
        stay = -np.log(transitions[matrix, state, state].astype(np.float64))
        leave = -np.log(transitions[matrix, state, state + 1].astype(np.float64))
    if not (np.isfinite(stay).all() and np.isfinite(leave).all()):
        raise GraphError("The acoustic model has a state that cannot be stayed in or left.")
    return stay.astype(np.float32), leave.astype(np.float32)


def determinise(fst: kaldifst.StdVectorFst) -> None:
    """Determinise in place; GraphError where that fails."""
    import kaldifst

    # True means that it stopped at the limit of states; there is none.
    if kaldifst.determinize_star(fst, use_log=True):
        raise GraphError("The search graph could not be determinised.")


def unfold(fst: Fst, hmms: Hmms, scale: np.float32) -> Topology:
    """`fst` with labels number + 1 of `hmms`, others being epsilon; costs of transitions count `scale` times.

    Each arc with a phone in context becomes the states of its HMM. Arcs that end alike (same phone in context, same
    target) share them. A state is entered by arcs with its senone, has its self-loop, and an epsilon leads from the
    last ones to the target.
    """
    n, most = fst.n_states, hmms.pdfs.shape[1]
    phone = (fst.ilabel > 0) & (fst.ilabel <= len(hmms.size))
    pairs, which = np.unique((fst.ilabel[phone] - 1).astype(np.int64) * n + fst.target[phone], return_inverse=True)
    number, target = pairs // n, pairs % n
    size = hmms.size[number].astype(np.int64)
    begin = n + np.cumsum(size) - size
    total = n + int(size.sum())
    loop_label, loop_weight = np.zeros(total, np.int32), np.zeros(total, np.float32)
    source, silent = fst.source, ~phone
    columns = [
        (source[phone], hmms.pdfs[number, 0][which] + 1, fst.olabel[phone], fst.weight[phone], begin[which]),
        (source[silent], 0 * fst.ilabel[silent], fst.olabel[silent], fst.weight[silent], fst.target[silent]),
    ]
    for i, j in np.ndindex(most, most + 1):
        cost = scale * hmms.cost[number, i, j]
        there = np.flatnonzero(np.isfinite(cost))
        state = begin[there] + i
        if i == j:
            loop_label[state], loop_weight[state] = hmms.pdfs[number[there], i] + 1, cost[there]
        elif j == most:
            zeros = np.zeros(len(there), np.int32)
            columns.append((state, zeros, zeros, cost[there], target[there]))
        else:
            into = hmms.pdfs[number[there], j] + 1
            columns.append((state, into, 0 * into, cost[there], begin[there] + j))
    final = np.concatenate([fst.final, np.full(total - n, np.inf, np.float32)])
    arcs = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return epsilon_first(Topology(from_arcs(total, fst.start, final, *arcs), loop_label, loop_weight))
