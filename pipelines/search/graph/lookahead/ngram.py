"""N-gram models in OpenFst's `ngram` files: a tree of contexts as bit strings (extensions/ngram/ngram-fst.h).

After the header: numbers of states S, n-grams F and final states as 64-bit integers; three bit strings in 64-bit words:
tree of contexts [2 S + 1], n-grams of each state [F + S + 1], final states [S]; words of contexts [S + 1] and of
n-grams [F], int32; weights of contexts' backing off [S + 1], of final states, of n-grams [F + 1], float32.
"""

from __future__ import annotations

import numpy as np

from pipelines.search.graph.lookahead import _ngram
from pipelines.search.graph.lookahead._ngram import Model, Tree
from pipelines.search.graph.openfst import LABELS, Fst, Header
from pipelines.search.graph.wfst import GraphError
from profiler.arrays import F32, I32, I64

VERSION = 4
LARGEST_LABEL = 4_000_000
"""As of symbol tables."""
_WRONG = {
    _ngram.CONTEXTS: "its tree of contexts is none",
    _ngram.FUTURES: "its n-grams do not fit its states",
    _ngram.FINALS: "its final weights do not fit its states",
    _ngram.DEEP: f"it has contexts of over {_ngram.MOST_WORDS} words",
    _ngram.LABELS: "the words of a state do not ascend",
}


def read(header: Header) -> Fst:
    """The model as a transducer: state 0 is the empty context, 1 the start; GraphError in one sentence."""
    if header.version != VERSION:
        raise GraphError(f"{header.path} is an ngram FST of version {header.version}, read is {VERSION}.")
    counts = header.array("<i8", 3, header.body)
    states, futures, finals = counts.tolist()
    if not (2 <= states < LABELS and 0 <= futures < LABELS and 0 <= finals <= states):
        raise GraphError(f"{header.path} is damaged: it cannot have {states:,} states and {futures:,} n-grams.")
    places, at = [], header.body + counts.nbytes
    bits = [2 * states + 1, futures + states + 1, states]
    for kind, size, count in (
        *(("<i8", 8, -(-count // 64)) for count in bits),
        *(("<i4", 4, count) for count in (states + 1, futures)),
        *(("<f4", 4, count) for count in (states + 1, finals, futures + 1)),
    ):
        places.append((kind, count, at))
        at += size * count
    if at != header.size:
        raise GraphError(f"{header.path} is cut short, or longer than its {states:,} states and {futures:,} n-grams.")
    tree_bits, future_bits, final_bits, context_words, future_words, backoff, final_weights, weights = (
        header.array(*place) for place in places
    )
    tree = Tree(*(np.zeros(n, np.int32) for n in (states, states, states + 1)))
    first: I64 = np.zeros(states + 1, np.int64)
    final: F32 = np.full(states, np.inf, np.float32)
    _sound(header, _ngram.grow(tree_bits, context_words, tree))
    _sound(header, _ngram.degrees(future_bits, first, futures))
    _sound(header, _ngram.finals(final_bits, final_weights, final))
    largest = max(int(future_words.max(initial=0)), int(context_words[1:states].max(initial=0)))
    if largest > LARGEST_LABEL or int(context_words[1:states].min(initial=0)) < 0:
        raise GraphError(f"{header.path} has word {largest:,}; words up to {LARGEST_LABEL:,} are read.")
    of_root: I32 = np.full(largest + 1, -1, np.int32)
    children = slice(1, int(tree.first[1]))
    of_root[context_words[children]] = np.arange(states, dtype=np.int32)[children]
    label, target = (np.empty(futures + states - 1, np.int32) for _ in range(2))
    weight: F32 = np.empty(futures + states - 1, np.float32)
    model = Model(context_words, future_words, backoff, weights)
    _sound(header, _ngram.fill_arcs(model, tree, first, of_root, label, weight, target))
    return Fst(1, final, first, label, label, weight, target)


def _sound(header: Header, outcome: int) -> None:
    if outcome != _ngram.SOUND:
        raise GraphError(f"{header.path} is damaged: {_WRONG[outcome]}.")
