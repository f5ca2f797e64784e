"""G: a back-off n-gram model as a weighted acceptor of words.

One state per history that has longer n-grams; an n-gram arc goes to the longest suffix of history + word that is a
state, a back-off arc (input `#0`, no output) to the shortened history. The decoder therefore takes the better of an
explicit n-gram and its back-off path, as in Kaldi, and not what the model says where an n-gram lies below its back-off.
Exact would be failure arcs, which a decoder over a static graph cannot follow, or a copy of the shorter history without
those words (Allauzen, Mohri & Roark 2003), which multiplies the graph. An n-gram that can never win is left out, which
changes no best path.
"""

from __future__ import annotations

import numpy as np

from pipelines.models.language.ngram import SENTENCE_END, SENTENCE_START, NGram
from pipelines.search.graph.openfst import Fst, from_arcs
from profiler.arrays import I32, I64, Array


def backoff_label(n_words: int) -> int:
    """Label of `#0`: one above the last word's, whose labels are their ids plus 1."""
    return n_words + 1


def acceptor(model: NGram) -> Fst:
    """G, start state at the history `<s>`; P(`</s>` | history) are final weights.

    Labels: id in the model plus 1 for words, 0 for epsilon.
    """
    index = model.index()
    end, start = index[SENTENCE_END], index[SENTENCE_START]
    has_children = [
        np.bincount(model.find(model.ids[k][:, :-1]), minlength=model.counts[k - 1]) > 0 for k in range(1, model.order)
    ]
    # State of each history: 0 is the empty one.
    states: list[I64] = []
    n_states = 1
    for children in has_children:
        numbers = np.full(len(children), -1, dtype=np.int64)
        numbers[children] = n_states + np.arange(int(children.sum()))
        n_states += int(children.sum())
        states.append(numbers)

    def suffix_state(grams: I32) -> I64:
        """State of the longest suffix (at most order - 1 words) that has longer n-grams."""
        result = np.zeros(len(grams), dtype=np.int64)
        for k in range(1, min(grams.shape[1], model.order - 1) + 1):
            row = model.find(grams[:, -k:])
            # The -1 at the end is what a gram that is not listed (row -1) gets.
            state = np.append(states[k - 1], -1)[row]
            result = np.where(state >= 0, state, result)
        return result

    final = np.full(n_states, np.inf, dtype=np.float32)
    arcs: list[tuple[Array, Array, Array, Array, Array]] = []
    for k in range(1, model.order + 1):
        grams = model.ids[k - 1]
        weight = -model.log_prob[k - 1]
        source = np.zeros(len(grams), dtype=np.int64) if k == 1 else states[k - 2][model.find(grams[:, :-1])]
        ends = grams[:, -1] == end
        final[source[ends]] = weight[ends]
        target = suffix_state(grams)
        words = ~ends & (grams[:, -1] != start)
        if k > 1:
            history = model.find(grams[:, :-1])
            backed_off = model.log_backoff[k - 2][history] + model.score(grams[:, 1:])
            same_target = target == suffix_state(grams[:, 1:])
            words &= (model.log_prob[k - 1] > backed_off) | ~same_target
        label = grams[words, -1] + 1
        arcs.append((source[words], label, label, weight[words], target[words]))
        if k < model.order:
            histories = has_children[k - 1]
            shorter = suffix_state(grams[histories][:, 1:]) if k > 1 else np.zeros(int(histories.sum()), dtype=np.int64)
            source = states[k - 1][histories]
            label = np.full(len(source), backoff_label(len(model.words)))
            weight = -model.log_backoff[k - 1][histories]
            arcs.append((source, label, np.zeros_like(label), weight, shorter))
    columns = [np.concatenate(column) for column in zip(*arcs, strict=True)]
    first_state = int(suffix_state(np.array([[start]], dtype=np.int32))[0])
    return from_arcs(n_states, first_state, final, *columns)
