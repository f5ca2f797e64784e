"""Token passing, compiled: the emit step over a packed graph, and which senones it will ask for.

The rules are those of Kaldi's FasterDecoder: per frame a cutoff from beam and histogram (`pruning`), emitting arcs
against a cutoff for the next frame, then a worklist over epsilon arcs (`epsilon`). What differs is the layout: a token
keeps its place as long as it lives, and the arcs that leave it are copied once into lists without gaps. So a frame
first computes all arcs' costs in one pass, knows the exact cutoff for the next frame before it makes a token, and then
touches only arcs that pass. The history holds only arcs with a word or into a phone's first state.
"""

import numpy as np

from pipelines.search.kernels import layout, sparse_set
from pipelines.search.kernels.intrinsics import prefetch
from pipelines.search.kernels.layout import Arrays
from pipelines.search.kernels.pruning import below
from profiler.arrays import F32, I32, U8, U32
from profiler.process.numba_flags import njit_inner, njit_reducing

AHEAD = 16  # Arcs between the prefetch of a target's slot and its use


@njit_inner
def price_labels(row: F32, scores: F32, t: int, minus: np.float32) -> None:  # pragma: no cover - compiled
    """The cost of each label in frame `t` of `scores`: `minus` times its senone's score."""
    row[0] = layout.INFINITY
    for s in range(scores.shape[1]):
        value = minus * scores[t, s]
        # Not a number, or no bad score at all: what comes of it could be no cost, nor any index.
        row[s + 1] = value if value >= -layout.LARGEST else layout.INFINITY


@njit_reducing
def _loop(
    n: int, cost: F32, weight: F32, label: U32, row: F32, new_cost: F32, come: I32
) -> np.float32:  # pragma: no cover - compiled
    """Pass tokens over their self-loops; the least cost."""
    low = layout.INFINITY
    for i in range(n):
        total = cost[i] + weight[i] + row[label[i]]
        new_cost[i] = total
        low = min(low, total)
    for i in range(n):
        come[i] = layout.BY_LOOP
    return low


@njit_reducing
def _price(
    n: int, cost: F32, source: U32, weight: F32, label: U32, row: F32, total: F32
) -> np.float32:  # pragma: no cover - compiled
    """Cost over each listed emitting arc; the least of them."""
    low = layout.INFINITY
    for e in range(n):
        value = cost[source[e]] + weight[e] + row[label[e]]
        total[e] = value
        low = min(low, value)
    return low


@njit_inner
def mark(n: int, cost: F32, label: U32, active: U8) -> None:  # pragma: no cover - compiled
    """Set active [n_senones + 1] at the label of each token whose cost is finite."""
    for i in range(n):
        # As a product: as a choice it is a branch, and which costs are finite nobody can predict.
        active[label[i] * np.uint32(cost[i] < layout.INFINITY)] = 1


@njit_inner
def emit(arrays: Arrays) -> np.float32:  # pragma: no cover - compiled
    """Pass tokens over self-loops and emitting arcs; returns the cutoff for the new tokens."""
    states = arrays.graph.states
    tokens, slot = arrays.tokens, arrays.places.slot
    state, cost, new_cost, come = tokens.state, tokens.cost, tokens.new_cost, tokens.come
    loop_label, loop_weight = tokens.loop_label, tokens.loop_weight
    source, label, weight, target, _, total, chosen = arrays.emitting
    row, active = arrays.labels.row, arrays.labels.active
    decoder_state, floats, work = arrays.books.decoder_state, arrays.books.floats, arrays.books.work
    n, n_arcs = decoder_state[layout.N], decoder_state[layout.EMITTING]
    low = _loop(n, cost, loop_weight, loop_label, row, new_cost, come)
    low = min(low, _price(n_arcs, cost, source, weight, label, row, total))
    limit = np.float32(low + floats[layout.ADAPTIVE])
    passed = 0
    for e in range(n_arcs):
        chosen[passed] = e
        passed += total[e] < limit
    mark(n_arcs, total, label, active)
    mark(n, cost, loop_label, active)
    m = n
    nowhere = np.uint32(len(new_cost) - 1)
    for j in range(passed):
        if j + AHEAD < passed:
            prefetch(slot, target[chosen[j + AHEAD]])  # type: ignore[call-arg]
        e = chosen[j]
        goal = target[e]
        place = sparse_set.find(state, slot, goal, m)
        if place == m:
            prefetch(states, goal)  # type: ignore[call-arg]
            sparse_set.insert(state, slot, goal, m)
            new_cost[m] = layout.INFINITY
            m += 1
        # Which of two is better nobody can predict: what loses is written where nobody reads.
        at = place if total[e] < new_cost[place] else nowhere
        new_cost[at] = total[e]
        come[at] = e
    n_active = 0
    active[0] = 0
    for s in range(len(active)):
        n_active += active[s]
        active[s] = 0
    decoder_state[layout.M] = m
    decoder_state[layout.CHOSEN] = passed
    floats[layout.BEST] = low
    work[layout.TOKENS] += below(cost, n, layout.INFINITY)
    work[layout.EMIT_ARCS] += n + n_arcs
    work[layout.PASSED] += passed
    work[layout.SENONES] += n_active
    return limit


@njit_inner
def active_senones(arrays: Arrays) -> tuple[int, int]:  # pragma: no cover - compiled
    """The senones that the next frame will look up: (how many, arcs gone over), ascending in `labels.found`."""
    cost, loop_label = arrays.tokens.cost, arrays.tokens.loop_label
    source, label = arrays.emitting.source, arrays.emitting.label
    active, found = arrays.labels.active, arrays.labels.found
    n, n_arcs = arrays.books.decoder_state[layout.N], arrays.books.decoder_state[layout.EMITTING]
    mark(n, cost, loop_label, active)
    for e in range(n_arcs):
        active[label[e] * np.uint32(cost[source[e]] < layout.INFINITY)] = 1
    active[0] = 0
    count = 0
    for s in range(1, len(active)):
        # Without a branch: whether a senone is active is as good as random.
        found[count] = s - 1
        count += active[s]
        active[s] = 0
    return count, n + n_arcs
