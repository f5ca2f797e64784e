"""L: the dictionary as a transducer from position-dependent phones to words, with fillers.

As in Kaldi's make_lexicon_fst, silence (and here each filler word of the model's noise list) may stand before, between
and after words with a fixed probability. Homophones, and pronunciations that are the beginning of others, end in a
disambiguation symbol. The comparison is by *base* phone, for the tying of triphones can erase a word's position.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipelines.models.dictionary import Dictionary
from pipelines.models.sphinx.definition import BEGIN, END, INTERNAL, POSITIONS, SINGLE, ModelDefinition
from pipelines.search.graph.openfst import Fst, from_arcs

Arc = tuple[int, int, int, float, int]  # Source, input label, output label, weight, target


@dataclass(frozen=True)
class PhoneLabels:
    """Input labels of L: `1 + phone * 4 + position` for phones, then `#0`, `#1` …"""

    n_phones: int
    n_disambiguation: int

    @property
    def backoff(self) -> int:
        return 1 + self.n_phones * POSITIONS

    def phone(self, phone: int, position: int) -> int:
        return 1 + phone * POSITIONS + position


def positions(length: int) -> list[int]:
    """Word position of each phone of a pronunciation of `length` phones."""
    if length == 1:
        return [SINGLE]
    return [BEGIN, *[INTERNAL] * (length - 2), END]


def disambiguate(prons: Sequence[tuple[int, ...]]) -> list[int]:
    """For each pronunciation 0, or k for `#k`: what tells it from homophones and longer ones."""
    homophones = Counter(prons)
    # Sorted, what begins with a pronunciation follows it.
    prefixes = {a for a, b in pairwise(sorted(homophones)) if b[: len(a)] == a}
    used: Counter[tuple[int, ...]] = Counter()
    result = []
    for pron in prons:
        if homophones[pron] > 1 or pron in prefixes:
            used[pron] += 1
        result.append(used[pron])
    return result


def transducer(
    definition: ModelDefinition,
    dictionary: Dictionary,
    word_labels: Mapping[str, int],
    backoff_word: int,
    fillers: Mapping[str, float],
) -> tuple[Fst, PhoneLabels]:
    """L over all words of `dictionary`; `fillers`: filler phone -> probability at a word boundary.

    States: 0 before or after a word where fillers may stand (start), 1 where a word may begin
    (final, and home of the `#0` loop for back-off arcs of G).
    """
    entries = [
        (word_labels[word], tuple(definition.phone(p) for p in pron))
        for word in dictionary.words()
        for pron in dictionary[word]
    ]
    marks = disambiguate([pron for _, pron in entries])
    labels = PhoneLabels(definition.n_ci, 1 + max(marks, default=0))
    between, begin, n_states = 0, 1, 2
    arcs: list[Arc] = [
        (between, 0, 0, -float(np.log1p(-sum(fillers.values()))), begin),
        (begin, labels.backoff, backoff_word, 0.0, begin),
    ]
    for name, probability in fillers.items():
        if probability > 0.0:
            label = labels.phone(definition.phone(name), SINGLE)
            arcs.append((between, label, 0, -float(np.log(probability)), between))
    for (word, pron), mark in zip(entries, marks, strict=True):
        inputs = [labels.phone(p, at) for p, at in zip(pron, positions(len(pron)), strict=True)]
        if mark:
            inputs.append(labels.backoff + mark)
        n_states = add_chain(arcs, n_states, inputs, (begin, between), word)
    return of_arcs(arcs, n_states, between, begin), labels


def add_chain(
    arcs: list[Arc], n_states: int, inputs: Sequence[int], ends: tuple[int, int], word: int, cost: float = 0.0
) -> int:
    """Add arcs that read `inputs` from one of the `ends` to the other; the first says `word` and costs `cost`.

    Returns how many states there are then.
    """
    states = [ends[0], *range(n_states, n_states + len(inputs) - 1), ends[1]]
    for i, (label, (source, target)) in enumerate(zip(inputs, pairwise(states), strict=True)):
        arcs.append((source, label, 0 if i else word, 0.0 if i else cost, target))
    return n_states + len(inputs) - 1


def of_arcs(arcs: list[Arc], n_states: int, start: int, end: int) -> Fst:
    """The transducer of these arcs, `end` its only final state."""
    final = np.full(n_states, np.inf, dtype=np.float32)
    final[end] = 0.0
    return from_arcs(n_states, start, final, *(np.array(column) for column in zip(*arcs, strict=True)))
