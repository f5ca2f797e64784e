"""Compiled loops of composition with label look-ahead; see `compose.compose`.

A state is a triple (state of HCL, state of G, pending). Pending is AFTER_WORD where G may still back off, WITHIN where
it may not before the next word, or the label of a word that was already taken from G and is still ahead in HCL.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from profiler.arrays import F32, F64, I32, I64, Bool

AFTER_WORD, WITHIN = 0, -1
DONE, ARCS, STATES, TABLE, LATER = range(5)
"""Why `expand` came back: all states have their arcs, one of the arrays is full, or it has done its share."""
_EMPTY = -1
_FEW = 8  # Weights that are added one by one; the sum of more is the difference of two sums
_LEAST = 1e-8  # Of that difference to the sums: float64 has 1e-16
_MORE = 8  # How much longer looking for a label in a state's arcs takes than looking at a bit


class Graph(NamedTuple):
    """A transducer as arrays: `openfst.Fst`'s."""

    first: I64
    ilabel: I32
    olabel: I32
    weight: F32
    target: I32
    final: F32


class Reach(NamedTuple):
    """Which labels paths from a state of HCL come to first: those of the intervals begin … end - 1 from first on.

    `final`: whether it comes to a final state before any label. `first` int64 [states + 1], ascending. The states of
    most intervals have a column of bits, `column` int32 [states] (others -1): `bits` int64 [labels, columns / 64].
    """

    first: I64
    begin: I32
    end: I32
    final: Bool
    column: I32
    bits: I64


class Model(NamedTuple):
    """G with what is looked up in it: `graph` sorted by input labels, epsilons first.

    `words` int64 [states]: the first arc that is none of epsilon; `shares` float64 [arcs]: exp(-weight); `sums`: of a
    state's arcs up to that one. `largest`: the state of most arcs, `rank` int64 [labels]: the number of its first arc
    with that label or a larger one.
    """

    graph: Graph
    words: I64
    shares: F64
    sums: F64
    largest: int
    rank: I64


class States(NamedTuple):
    """The triples, their potential (what was taken of the weights ahead), first arc and final weight."""

    hcl: I32
    g: I32
    pending: I32
    potential: F64
    first: I64
    final: F32
    loop_label: I32
    loop_weight: F32


class Arcs(NamedTuple):
    """The arcs of the composed states."""

    ilabel: I32
    olabel: I32
    weight: F32
    target: I32


class Made(NamedTuple):
    """The composed states and arcs, the table of triples, and how much there is: states with arcs, states, arcs."""

    states: States
    table: I32
    arcs: Arcs
    counts: I64


@numba.njit(cache=True, nogil=True, inline="always")
def _from(model: Model, state: int, label: int) -> int:  # pragma: no cover - compiled
    """The first arc of a state of G whose label is `label` or larger, epsilons aside."""
    if state == model.largest:
        return int(model.rank[min(label, len(model.rank) - 1)])
    low, high = model.words[state], model.graph.first[state + 1]
    while low < high:
        middle = (low + high) >> 1
        if model.graph.ilabel[middle] < label:
            low = middle + 1
        else:
            high = middle
    return int(low)


@numba.njit(cache=True, nogil=True, inline="always")
def _sum(model: Model, state: int, begin: int, end: int) -> float:  # pragma: no cover - compiled
    """The sum of exp(-weight) over arcs of a state of G."""
    if end - begin > _FEW:
        before = model.sums[begin - 1] if begin > model.words[state] else 0.0
        total = model.sums[end - 1] - before
        if total > _LEAST * before:
            return float(total)
    total = 0.0
    for arc in range(begin, end):
        total += model.shares[arc]
    return float(total)


@numba.njit(cache=True, nogil=True, inline="always")
def _reaches(reach: Reach, state: int, label: int) -> bool:  # pragma: no cover - compiled
    """Whether a path from a state of HCL comes to that label first."""
    column = reach.column[state]
    if column >= 0:
        return label < len(reach.bits) and bool((reach.bits[label, column >> 6] >> (column & 63)) & 1)
    low, high = reach.first[state], reach.first[state + 1]
    while low < high:
        middle = (low + high) >> 1
        if reach.end[middle] <= label:
            low = middle + 1
        else:
            high = middle
    return bool(low < reach.first[state + 1] and reach.begin[low] <= label)


@numba.njit(cache=True, nogil=True)
def ahead(reach: Reach, model: Model, hcl: int, g: int) -> tuple[int, int, float]:  # pragma: no cover - compiled
    """How many arcs of `g` have words that `hcl` comes to first, one of them, and -ln of the sum of their exp(-weight).

    A final state counts as two: nothing is pending at an end.
    """
    found, one, total = 0, 0, 0.0
    words, last = model.words[g], model.graph.first[g + 1]
    sets = reach.first[hcl + 1] - reach.first[hcl]
    if last - words < sets * (_MORE if reach.column[hcl] >= 0 else 1):
        for arc in range(words, last):
            if _reaches(reach, hcl, model.graph.ilabel[arc]):
                found += 1
                one = arc
                total += model.shares[arc]
    else:
        for interval in range(reach.first[hcl], reach.first[hcl + 1]):
            begin = _from(model, g, reach.begin[interval])
            end = _from(model, g, reach.end[interval])
            if end > begin:
                found += end - begin
                one = begin
                total += _sum(model, g, begin, end)
    if reach.final[hcl] and model.graph.final[g] < np.inf:
        found += 2
        total += math.exp(-np.float64(model.graph.final[g]))
    return found, one, -math.log(total) if total > 0 else 0.0


@numba.njit(cache=True, nogil=True)
def set_bits(reach: Reach) -> None:  # pragma: no cover - compiled
    """Fill the columns of `reach`."""
    for state in range(len(reach.column)):
        column = reach.column[state]
        if column >= 0:
            for interval in range(reach.first[state], reach.first[state + 1]):
                for label in range(reach.begin[interval], min(reach.end[interval], len(reach.bits))):
                    reach.bits[label, column >> 6] |= np.int64(1) << (column & 63)


@numba.njit(cache=True, nogil=True, inline="always")
def _slot(table: I32, states: States, hcl: int, g: int, pending: int) -> int:  # pragma: no cover - compiled
    """Where a triple is, or should be put, in a table of a power of 2 entries."""
    # Multiplicative hashing: 2^64 / golden ratio and two other odd numbers.
    key = np.uint64(hcl) * np.uint64(0x9E3779B97F4A7C15)
    key += np.uint64(g) * np.uint64(0xC2B2AE3D27D4EB4F)
    key += np.uint64(pending + 2) * np.uint64(0x165667B19E3779F9)
    key ^= key >> np.uint64(29)
    key *= np.uint64(0xBF58476D1CE4E5B9)
    mask = len(table) - 1
    at = np.int64(key >> np.uint64(20)) & mask
    while table[at] != _EMPTY:
        state = table[at]
        if states.hcl[state] == hcl and states.g[state] == g and states.pending[state] == pending:
            break
        at = (at + 1) & mask
    return int(at)


@numba.njit(cache=True, nogil=True)
def enter_all(table: I32, states: States, count: int) -> None:  # pragma: no cover - compiled
    """Put the first `count` triples into an empty table."""
    for state in range(count):
        table[_slot(table, states, states.hcl[state], states.g[state], states.pending[state])] = state


@numba.njit(cache=True, nogil=True, inline="always")
def _state(made: Made, hcl: int, g: int, pending: int, potential: float) -> int:  # pragma: no cover - compiled
    """The number of a triple, which is entered if it is new."""
    states, table = made.states, made.table
    at = _slot(table, states, hcl, g, pending)
    if table[at] == _EMPTY:
        new = made.counts[1]
        table[at] = new
        states.hcl[new], states.g[new], states.pending[new] = hcl, g, pending
        states.potential[new] = potential
        made.counts[1] = new + 1
    return int(table[at])


@numba.njit(cache=True, nogil=True, inline="always")
def _put(made: Made, ilabel: int, olabel: int, weight: float, target: int) -> None:  # pragma: no cover - compiled
    arcs, at = made.arcs, made.counts[2]
    arcs.ilabel[at], arcs.olabel[at], arcs.target[at] = ilabel, olabel, target
    arcs.weight[at] = weight
    made.counts[2] = at + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _step(
    reach: Reach, model: Model, made: Made, ilabel: int, olabel: int, weight: float, hcl: int, g: int
) -> None:  # pragma: no cover - compiled
    """An arc to where a word ends or G backs off. Where G cannot back off any more, what is ahead is known."""
    if model.words[g] > model.graph.first[g]:
        _put(made, ilabel, olabel, weight, _state(made, hcl, g, AFTER_WORD, 0.0))
        return
    found, _, potential = ahead(reach, model, hcl, g)
    if found:
        _put(made, ilabel, olabel, weight + potential, _state(made, hcl, g, WITHIN, potential))


@numba.njit(cache=True, nogil=True)
def expand(
    hcl: Graph, reach: Reach, model: Model, made: Made, alike: int, share: int
) -> int:  # pragma: no cover - compiled
    """Give states their arcs, `share` of them, while the arrays have room.

    `alike`: the largest number of arcs of a state of G with one label.
    """
    states, table, arcs, counts = made
    g = model.graph
    last = counts[0] + share
    while counts[0] < counts[1]:
        if counts[0] == last:
            return LATER
        state = counts[0]
        h, at, pending = states.hcl[state], states.g[state], states.pending[state]
        most = (hcl.first[h + 1] - hcl.first[h]) * alike + model.words[at] - g.first[at]
        if counts[2] + most > len(arcs.target):
            return ARCS
        # One more, for where the arcs of the last state end.
        if counts[1] + most >= len(states.hcl):
            return STATES
        if 2 * (counts[1] + most) > len(table):
            return TABLE
        before = states.potential[state]
        states.first[state] = counts[2]
        states.loop_label[state], states.loop_weight[state], states.final[state] = 0, 0.0, np.inf
        if pending == AFTER_WORD:
            for arc in range(g.first[at], model.words[at]):
                _step(reach, model, made, 0, g.olabel[arc], g.weight[arc] - before, h, g.target[arc])
        if pending <= AFTER_WORD and hcl.final[h] < np.inf and g.final[at] < np.inf:
            states.final[state] = np.float64(hcl.final[h]) + np.float64(g.final[at]) - before
        single = hcl.first[h + 1] - hcl.first[h] == 1
        for arc in range(hcl.first[h], hcl.first[h + 1]):
            label, ilabel, target = hcl.olabel[arc], hcl.ilabel[arc], hcl.target[arc]
            weight = np.float64(hcl.weight[arc]) - before
            if label == 0 and target == h:
                # A self-loop changes nothing; the first of several is the state's own.
                if ilabel and states.loop_label[state] == 0:
                    states.loop_label[state], states.loop_weight[state] = ilabel, hcl.weight[arc]
                elif ilabel:
                    _put(made, ilabel, 0, hcl.weight[arc], state)
            elif pending > AFTER_WORD:
                if label == pending:
                    _step(reach, model, made, ilabel, 0, weight, target, at)
                elif label == 0 and (single or _reaches(reach, target, pending)):
                    _put(made, ilabel, 0, weight, _state(made, target, at, pending, 0.0))
            elif label == 0:
                found, one, potential = ahead(reach, model, target, at)
                if found == 1:
                    weight += np.float64(g.weight[one])
                    goal = _state(made, target, g.target[one], g.ilabel[one], 0.0)
                    _put(made, ilabel, g.olabel[one], weight, goal)
                elif found:
                    goal = _state(made, target, at, WITHIN, potential)
                    _put(made, ilabel, 0, weight + potential, goal)
            else:
                word = _from(model, at, label)
                while word < g.first[at + 1] and g.ilabel[word] == label:
                    total = weight + np.float64(g.weight[word])
                    _step(reach, model, made, ilabel, g.olabel[word], total, target, g.target[word])
                    word += 1
        counts[0] = state + 1
        states.first[state + 1] = counts[2]
    return DONE


@numba.njit(cache=True, nogil=True)
def add_up(sums: F64, words: I64, first: I64) -> None:  # pragma: no cover - compiled
    """Make each value the sum of those of its state up to it."""
    for state in range(len(words)):
        for arc in range(words[state] + 1, first[state + 1]):
            sums[arc] += sums[arc - 1]


@numba.njit(cache=True, nogil=True)
def to_final(first: I64, target: I32, kept: Bool, into: I64, source: I32, stack: I32) -> None:  # pragma: no cover
    """Mark in `kept`, which marks final states, all from which one is reached.

    `into` int64 [states + 1] zeros, `source` int32 [arcs] and `stack` int32 [states] are room for what enters a state.
    """
    n = len(kept)
    for arc in range(len(target)):
        into[target[arc] + 1] += 1
    for state in range(n):
        into[state + 1] += into[state]
    for state in range(n):
        for arc in range(first[state], first[state + 1]):
            # The place of the last arc into a state goes down to that of the first.
            into[target[arc] + 1] -= 1
            source[into[target[arc] + 1]] = state
    depth = 0
    for state in range(n):
        if kept[state]:
            stack[depth] = state
            depth += 1
    while depth:
        depth -= 1
        state = stack[depth]
        end = into[state + 2] if state + 2 <= n else len(target)
        for arc in range(into[state + 1], end):
            if not kept[source[arc]]:
                kept[source[arc]] = True
                stack[depth] = source[arc]
                depth += 1


@numba.njit(cache=True, nogil=True, inline="always")
def _has_epsilons(kept: Bool, first: I64, arcs: Arcs, state: int) -> bool:  # pragma: no cover - compiled
    found = False
    for arc in range(first[state], first[state + 1]):
        found |= arcs.ilabel[arc] == 0 and kept[arcs.target[arc]]
    return found


@numba.njit(cache=True, nogil=True)
def renumber(kept: Bool, first: I64, arcs: Arcs, number: I32) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """Number the kept states, those with epsilon arcs first; returns how many these are, all, and their arcs."""
    epsilons, others, n_arcs = 0, 0, 0
    for state in range(len(kept)):
        if kept[state]:
            epsilons += _has_epsilons(kept, first, arcs, state)
    n_epsilon, epsilons = epsilons, 0
    for state in range(len(kept)):
        if not kept[state]:
            continue
        if _has_epsilons(kept, first, arcs, state):
            number[state] = epsilons
            epsilons += 1
        else:
            number[state] = n_epsilon + others
            others += 1
        for arc in range(first[state], first[state + 1]):
            n_arcs += kept[arcs.target[arc]]
    return n_epsilon, n_epsilon + others, n_arcs


@numba.njit(cache=True, nogil=True)
def pack(
    kept: Bool,
    number: I32,
    states: States,
    arcs: Arcs,
    made_states: I32,
    made_arcs: I32,
    loop_weights: F32,
    weights: F32,
) -> None:  # pragma: no cover - compiled
    """Fill the records of kept states and their arcs; the last two are the same memory as the two before them.

    `made_states` int32 [kept states + 1, 4]: first arc, first epsilon arc, self-loop and its weight; `made_arcs`
    int32 [arcs, 4]: target, input label, output label and weight.
    """
    n = len(made_states) - 1
    # Numbers of arcs first, then where they begin.
    for state in range(len(kept)):
        if kept[state]:
            new = number[state]
            made_states[new, 2], loop_weights[new, 3] = states.loop_label[state], states.loop_weight[state]
            for arc in range(states.first[state], states.first[state + 1]):
                if kept[arcs.target[arc]]:
                    made_states[new, 0] += 1
                    made_states[new, 1] += arcs.ilabel[arc] > 0
    at = 0
    for new in range(n):
        count = made_states[new, 0]
        made_states[new, 0] = at
        made_states[new, 1] += at
        at += count
    made_states[n, 0] = made_states[n, 1] = at
    for state in range(len(kept)):
        if kept[state]:
            emitting, epsilon = made_states[number[state], 0], made_states[number[state], 1]
            for arc in range(states.first[state], states.first[state + 1]):
                if kept[arcs.target[arc]]:
                    if arcs.ilabel[arc] > 0:
                        place = emitting
                        emitting += 1
                    else:
                        place = epsilon
                        epsilon += 1
                    made_arcs[place, 0] = number[arcs.target[arc]]
                    made_arcs[place, 1], made_arcs[place, 2] = arcs.ilabel[arc], arcs.olabel[arc]
                    weights[place, 3] = arcs.weight[arc]
