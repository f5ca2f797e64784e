"""N-gram models in OpenFst's `ngram` files: a tree of contexts as bit strings (extensions/ngram/ngram-fst.h).

After the header: numbers of states S, n-grams F and final states as 64-bit integers; three bit strings in 64-bit words,
least significant first: tree of contexts [2 S + 1], n-grams of each state [F + S + 1], final states [S]; words of
contexts [S + 1] and of n-grams [F], int32; weights of contexts' backing off [S + 1], of final states, of n-grams
[F + 1], float32. A context is a node of a tree whose root is the empty context: a child adds an older word, and its
parent is where it backs off to.
"""

from typing import NamedTuple

import numba
import numpy as np

from pipelines.search.graph.openfst import LABELS, Fst, Header
from pipelines.search.graph.wfst import GraphError
from profiler.arrays import F32, I32, I64

SOUND, CONTEXTS, FUTURES, FINALS, DEEP, WORDS = range(6)
"""What is wrong: the tree of contexts, the n-grams of the states, the final weights, too many words, the labels."""
MOST_WORDS = 64  # Words of a context


class Tree(NamedTuple):
    """Of each context, int32 [S]: its `parent`, its number of words, and its children `first` [S + 1]."""

    parent: I32
    depth: I32
    first: I32


class Model(NamedTuple):
    """The arrays of a file: words of contexts int32 [S + 1] and of n-grams int32 [F], and their weights."""

    context_words: I32
    future_words: I32
    backoff: F32
    future_weights: F32


@numba.njit(cache=True, nogil=True, inline="always")
def _bit(bits: I64, at: int) -> bool:  # pragma: no cover - compiled
    """The bit at `at`."""
    return bool((bits[at >> 6] >> (at & 63)) & 1)


@numba.njit(cache=True, nogil=True)
def grow(bits: I64, words: I32, tree: Tree) -> int:  # pragma: no cover - compiled
    """Fill `tree` from `bits`: 10, then for each context one 1 for each child, and 0; breadth first."""
    parent, depth, first = tree
    n = len(parent)
    if not _bit(bits, 0) or _bit(bits, 1):
        return CONTEXTS
    at, child = 2, 1
    parent[0], depth[0] = 0, 0
    for state in range(n):
        if state >= child:
            return CONTEXTS
        first[state] = child
        while at < 2 * n + 1 and _bit(bits, at):
            if child >= n:
                return CONTEXTS
            parent[child], depth[child] = state, depth[state] + 1
            if depth[child] > MOST_WORDS:
                return DEEP
            if child > first[state] and words[child] <= words[child - 1]:
                return WORDS
            at += 1
            child += 1
        at += 1
    first[n] = child
    return SOUND if child == n and at == 2 * n + 1 else CONTEXTS


@numba.njit(cache=True, nogil=True)
def degrees(bits: I64, first: I64, futures: int) -> int:  # pragma: no cover - compiled
    """Fill `first` [S + 1] from `bits` [F + S + 1]: 0, then for each state one 1 for each n-gram, and 0.

    A state's arcs are its n-grams and, but for the root, the arc to where it backs off.
    """
    n = len(first) - 1
    if _bit(bits, 0):
        return FUTURES
    at, found = 1, 0
    first[0] = 0
    for state in range(n):
        while at < futures + n + 1 and _bit(bits, at):
            at += 1
            found += 1
        at += 1
        first[state + 1] = found + state
    return SOUND if found == futures and at == futures + n + 1 else FUTURES


@numba.njit(cache=True, nogil=True)
def finals(bits: I64, weights: F32, final: F32) -> int:  # pragma: no cover - compiled
    """Fill `final` [S] (infinite: not final); `bits` [S] say which states have one of `weights`."""
    found = 0
    for state in range(len(final)):
        if _bit(bits, state):
            if found == len(weights):
                return FINALS
            final[state] = weights[found]
            found += 1
    return SOUND if found == len(weights) else FINALS


@numba.njit(cache=True, nogil=True, inline="always")
def _child(words: I32, low: int, high: int, word: int) -> int:  # pragma: no cover - compiled
    """The child of low … high that adds `word`, or -1."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and words[low] == word else -1


@numba.njit(cache=True, nogil=True)
def fill_arcs(
    model: Model, tree: Tree, first: I64, of_root: I32, label: I32, weight: F32, target: I32
) -> int:  # pragma: no cover - compiled
    """Fill the arcs of all states, epsilon to the shorter context first.

    An n-gram leads to the longest context that its last words are. `of_root` [labels]: the root's child that adds the
    word, or -1.
    """
    context_words, future_words, backoff, future_weights = model
    parent, depth, children = tree
    older = np.empty(MOST_WORDS, dtype=np.int32)
    future = 0
    for state in range(len(parent)):
        at = first[state]
        if state:
            label[at], weight[at], target[at] = 0, backoff[state], parent[state]
            at += 1
        # Words of the context, the last one first.
        node = state
        for place in range(depth[state] - 1, -1, -1):
            older[place] = context_words[node]
            node = parent[node]
        last = 0
        while at < first[state + 1]:
            word = future_words[future]
            if word <= last or word >= len(of_root):
                return WORDS
            node = max(of_root[word], 0)
            if node:
                for place in range(depth[state]):
                    longer = _child(context_words, children[node], children[node + 1], older[place])
                    if longer < 0:
                        break
                    node = longer
            label[at], weight[at], target[at] = word, future_weights[future], node
            last = word
            future += 1
            at += 1
    return SOUND


VERSION = 4
LARGEST_LABEL = 4_000_000  # As of symbol tables
_WRONG = {
    CONTEXTS: "its tree of contexts is none",
    FUTURES: "its n-grams do not fit its states",
    FINALS: "its final weights do not fit its states",
    DEEP: f"it has contexts of over {MOST_WORDS} words",
    WORDS: "the words of a state do not ascend",
}


def read(header: Header) -> Fst:
    """The model as a transducer: state 0 is the empty context, 1 the start; GraphError in one sentence."""
    if header.version != VERSION:
        raise GraphError(f"{header.path} is an ngram FST of version {header.version}, read is {VERSION}.")
    counts = header.array("<i8", 3, header.body)
    states, futures, n_final = counts.tolist()
    if not (2 <= states < LABELS and 0 <= futures < LABELS and 0 <= n_final <= states):
        raise GraphError(f"{header.path} is damaged: it cannot have {states:,} states and {futures:,} n-grams.")
    places, at = [], header.body + counts.nbytes
    bits = [2 * states + 1, futures + states + 1, states]
    for kind, size, count in (
        *(("<i8", 8, -(-count // 64)) for count in bits),
        *(("<i4", 4, count) for count in (states + 1, futures)),
        *(("<f4", 4, count) for count in (states + 1, n_final, futures + 1)),
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
    _sound(header, grow(tree_bits, context_words, tree))
    _sound(header, degrees(future_bits, first, futures))
    _sound(header, finals(final_bits, final_weights, final))
    largest = max(int(future_words.max(initial=0)), int(context_words[1:states].max(initial=0)))
    if largest > LARGEST_LABEL or int(context_words[1:states].min(initial=0)) < 0:
        raise GraphError(f"{header.path} has word {largest:,}; words up to {LARGEST_LABEL:,} are read.")
    of_root: I32 = np.full(largest + 1, -1, np.int32)
    children = slice(1, int(tree.first[1]))
    of_root[context_words[children]] = np.arange(states, dtype=np.int32)[children]
    label, target = (np.empty(futures + states - 1, np.int32) for _ in range(2))
    weight: F32 = np.empty(futures + states - 1, np.float32)
    model = Model(context_words, future_words, backoff, weights)
    _sound(header, fill_arcs(model, tree, first, of_root, label, weight, target))
    return Fst(1, final, first, label, label, weight, target)


def _sound(header: Header, outcome: int) -> None:
    if outcome != SOUND:
        raise GraphError(f"{header.path} is damaged: {_WRONG[outcome]}.")
