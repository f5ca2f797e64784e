"""Compiled loops that turn an n-gram model of OpenFst's `ngram` kind into arcs; see `ngram.read`.

A context is a node of a tree whose root is the empty context: a child adds an older word, and its parent is where it
backs off to. Bits are those of a bit string in 64-bit words, least significant first. S states, F n-grams.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from profiler.arrays import F32, I32, I64

SOUND, CONTEXTS, FUTURES, FINALS, DEEP, LABELS = range(6)
"""What is wrong: the tree of contexts, the n-grams of the states, the final weights, too many words, the labels."""
MOST_WORDS = 64
"""Words of a context."""


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
    """Fill `tree` from `bits` [2 S + 1]: 10, then for each context one 1 for each child, and 0; breadth first."""
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
                return LABELS
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
                return LABELS
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
