"""The last steps from HCLG without self-loops to the graph that is searched.

Disambiguation symbols become epsilons; epsilon chains are folded into their neighbours; a state entered by several
senones, or by a senone and by an epsilon, is split so that its self-loop belongs to the senone that was entered;
transition probabilities are added; states are numbered so that those with epsilon arcs come first.
"""

from dataclasses import dataclass, replace

import numpy as np

from pipelines.search.graph.openfst import Fst, from_arcs, ranges, reached
from profiler.arrays import F32, I32

COPY_ARCS = 2  # A split state with at most this many arcs is copied; a larger one is reached by an epsilon
MAX_FOLDS = 4


@dataclass
class Topology:
    """A searchable graph: `fst` without self-loops, and per state the loop's label and weight.

    `loop_label` int32 [states]: senone + 1, or 0 where a state has no self-loop.
    """

    fst: Fst
    loop_label: I32
    loop_weight: F32


def finish(fst: Fst, n_senones: int, stay: F32, leave: F32) -> Topology:
    """All steps; `stay`, `leave` float32 [n_senones]: -ln of a state's transition probabilities."""
    ilabel = np.where(fst.ilabel > n_senones, 0, fst.ilabel).astype(np.int32)
    return epsilon_first(add_loops(fold_epsilons(replace(fst, ilabel=ilabel)), stay, leave))


def fold_epsilons(fst: Fst) -> Fst:
    """Remove epsilon arcs that can go without adding an arc.

    An arc into a state whose only way on is one silent epsilon goes straight to its end; an epsilon
    into a state that nothing else enters is replaced by that state's arcs.
    """
    for _ in range(MAX_FOLDS):
        before = fst.n_arcs
        if not before:
            break
        fst = _fold_single_entries(_fold_single_exits(fst))
        if fst.n_arcs == before:
            break
    return trim(fst)


def _fold_single_exits(fst: Fst) -> Fst:
    here = np.arange(fst.n_states, dtype=np.int32)
    single = (np.diff(fst.first) == 1) & np.isinf(fst.final)
    arc = np.minimum(fst.first[:-1], max(fst.n_arcs - 1, 0))
    single &= (fst.ilabel[arc] == 0) & (fst.target[arc] != here)
    # A word on the epsilon moves to the arcs before it, which must then all be free of words.
    labelled = np.zeros(fst.n_states, dtype=bool)
    labelled[fst.target[fst.olabel != 0]] = True
    labelled[fst.start] = True
    single &= (fst.olabel[arc] == 0) | ~labelled
    # Not two folds in a row in one round: chains shorten from round to round.
    single &= ~single[fst.target[arc]]
    onward = np.where(single, fst.target[arc], here)
    toll = np.where(single, fst.weight[arc], np.float32(0.0))
    word = np.where(single, fst.olabel[arc], 0)
    olabel = np.maximum(fst.olabel, word[fst.target]).astype(np.int32)
    weight, target = fst.weight + toll[fst.target], onward[fst.target].astype(np.int32)
    return replace(fst, olabel=olabel, weight=weight, target=target)


def _fold_single_entries(fst: Fst) -> Fst:
    source = fst.source
    entries = np.bincount(fst.target, minlength=fst.n_states)
    entries[fst.start] += 1
    degree = np.diff(fst.first)
    epsilon = (fst.ilabel == 0) & (entries[fst.target] == 1) & np.isinf(fst.final[fst.target])
    epsilon &= fst.target != source
    # Labels of both arcs must fit on one.
    labelled = np.zeros(fst.n_states, dtype=bool)
    labelled[source[fst.olabel != 0]] = True
    epsilon &= (fst.olabel == 0) | ~labelled[fst.target]
    # Not two folds in a row in one round: the inner state's arcs would be taken twice.
    folding = np.zeros(fst.n_states, dtype=bool)
    folding[source[epsilon]] = True
    epsilon &= ~folding[fst.target]
    arcs = np.nonzero(epsilon)[0]
    copies = degree[fst.target[arcs]]
    owner = np.repeat(arcs, copies)
    inner = ranges(fst.first[fst.target[arcs]], copies)
    keep = ~epsilon
    ilabel, olabel, weight = (np.concatenate(pair) for pair in zip(fst.labels(keep), fst.labels(inner), strict=True))
    taken = len(weight) - len(inner)
    olabel[taken:] = np.maximum(olabel[taken:], fst.olabel[owner])
    weight[taken:] += fst.weight[owner]
    source, target = np.append(source[keep], source[owner]), np.append(fst.target[keep], fst.target[inner])
    return from_arcs(fst.n_states, fst.start, fst.final, source, ilabel, olabel, weight, target)


def trim(fst: Fst) -> Fst:
    """Drop states that the start state does not reach."""
    found = reached(fst)
    if found.all():
        return fst
    number = np.cumsum(found) - 1
    kept = found[fst.source]
    source, target = number[fst.source[kept]], number[fst.target[kept]]
    return from_arcs(int(found.sum()), int(number[fst.start]), fst.final[found], source, *fst.labels(kept), target)


def add_loops(fst: Fst, stay: F32, leave: F32) -> Topology:
    """Split states by how they are entered, then give each senone's state its loop and exit cost."""
    n = fst.n_states
    # Every (state, entering label) that occurs, the start being entered by an epsilon.
    width = int(fst.ilabel.max(initial=0)) + 1
    entry = fst.target.astype(np.int64) * width + fst.ilabel
    kinds, arc_kind = np.unique(np.append(entry, fst.start * width), return_inverse=True)
    state, label = kinds // width, (kinds % width).astype(np.int32)
    arc_kind = arc_kind[:-1]
    n_kinds = np.bincount(state, minlength=n)
    degree = np.diff(fst.first)
    # The kind that keeps the state itself: epsilon where there is one, else the first, unless the
    # state is large and has several kinds, when each gets a small state of its own before it.
    first_kind = np.concatenate([[True], state[1:] != state[:-1]])
    by_epsilon = (n_kinds > 1) & (degree + np.isfinite(fst.final) > COPY_ARCS)
    at_home = first_kind & ((label == 0) | ~by_epsilon[state])
    new_state = np.where(at_home, state, 0)
    away = ~at_home
    new_state[away] = n + np.arange(int(away.sum()))
    copied = away & ~by_epsilon[state]
    bridged = away & by_epsilon[state]

    total = n + int(away.sum())
    loop_label = np.zeros(total, dtype=np.int32)
    loop_label[new_state] = label
    senone = np.maximum(loop_label - 1, 0)
    loop_weight = np.where(loop_label > 0, stay[senone], np.float32(0.0)).astype(np.float32)
    exit_weight = np.where(loop_label > 0, leave[senone], np.float32(0.0)).astype(np.float32)

    final = np.full(total, np.inf, dtype=np.float32)
    final[:n] = fst.final
    final[new_state[copied]] = fst.final[state[copied]]
    final += np.where(np.isfinite(final), exit_weight, 0.0).astype(np.float32)
    goal = new_state[arc_kind]
    copies = degree[state[copied]]
    inner = ranges(fst.first[state[copied]], copies)
    source = np.concatenate([fst.source, np.repeat(new_state[copied], copies), new_state[bridged]])
    zeros = np.zeros(int(bridged.sum()), dtype=np.int32)
    ilabel, olabel, weight = (
        np.concatenate([column, copy, zeros])
        for column, copy in zip((fst.ilabel, fst.olabel, fst.weight), fst.labels(inner), strict=True)
    )
    target = np.concatenate([goal, goal[inner], state[bridged]])
    graph = from_arcs(total, fst.start, final, source, ilabel, olabel, weight + exit_weight[source], target)
    return Topology(graph, loop_label, loop_weight)


def epsilon_first(topology: Topology) -> Topology:
    """Renumber so that states with epsilon arcs come first; a decoder then knows them by number."""
    fst = topology.fst
    source = fst.source
    has_epsilon = np.zeros(fst.n_states, dtype=bool)
    has_epsilon[source[fst.ilabel == 0]] = True
    order = np.argsort(~has_epsilon, kind="stable")
    number = np.empty(fst.n_states, dtype=np.int64)
    number[order] = np.arange(fst.n_states)
    start, labels = int(number[fst.start]), (fst.ilabel, fst.olabel, fst.weight)
    renumbered = from_arcs(fst.n_states, start, fst.final[order], number[source], *labels, number[fst.target])
    return Topology(renumbered, topology.loop_label[order], topology.loop_weight[order])
