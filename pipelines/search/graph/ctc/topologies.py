"""H: the ways in which frames spell the units of a CTC net, laid over a transducer of units.

The result is that of composing H with the transducer; with a state per unit that enters a state it can be written down
at once. Topologies as in Laptev, Majumdar and Ginsburg, "CTC Variations Through New WFST Topologies", 2022: *standard*
(there correct-CTC), *compact*, *minimal*.
"""

import numpy as np

from pipelines.models.ctc.layouts import Units
from pipelines.search.graph.openfst import Fst, from_arcs, ranges
from pipelines.search.graph.topology import Topology, epsilon_first
from pipelines.search.graph.wfst import GraphError
from profiler.arrays import I32, I64, Array

MOST_ARCS = 1 << 26  # Of a graph: 1 GiB, and a few times that to make it


def apply(lg: Fst, units: Units, topology: str) -> Topology:
    """`lg`, whose input labels are unit + 1 and 0 for epsilon, with frames as input: labels are again unit + 1.

    GraphError where it has too many arcs.
    """
    if topology == "minimal":
        return epsilon_first(Topology(lg, *_loops(units, lg.n_states, np.empty(0, np.int32))))
    label, state = _entered(lg, through_epsilons=topology == "standard")
    degree = np.diff(lg.first)
    made = lg.n_arcs + len(state) + (int(degree[state].sum()) if topology == "standard" else 0)
    if made > MOST_ARCS:
        raise GraphError(
            f"The graph has {made:,} arcs where {MOST_ARCS:,} can be searched; fewer words or n-grams have fewer, and "
            "so has graph.topology=compact."
        )
    home = lg.source, lg.ilabel, lg.olabel, lg.weight, _copy(lg, label, state, lg.ilabel, lg.target)
    zero, copies = np.zeros(len(state), np.int32), lg.n_states + np.arange(len(state))
    # A unit has a state of its own before the state that it leads to, where it may last.
    if topology == "compact":
        parts = [home, (copies, zero, zero, zero, state)]
        final = np.full(len(state), np.inf, np.float32)
    else:
        blank = copies, zero + units.blank + 1, zero, zero, state
        each = np.repeat(np.arange(len(state)), degree[state])
        arc = ranges(lg.first[state], degree[state])
        # The same unit again would be the same one still.
        other = lg.ilabel[arc] != label[each]
        each, arc = each[other], arc[other]
        entering = np.where(lg.ilabel[arc] > 0, lg.ilabel[arc], label[each])
        target = _copy(lg, label, state, entering, lg.target[arc])
        parts = [home, blank, (copies[each], *lg.labels(arc), target)]
        final = lg.final[state]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    # What stands for one state of L and G lies together, so that tokens that pass from one to the other find it cached.
    order = np.argsort(np.concatenate([np.arange(lg.n_states), state]), kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    columns[0], columns[-1] = number[columns[0]], number[columns[-1]]
    final = np.concatenate([lg.final, final])[order]
    labels, weights = _loops(units, lg.n_states, label)
    whole = from_arcs(len(order), int(number[lg.start]), final, *columns)
    return epsilon_first(Topology(whole, labels[order], weights))


def _loops(units: Units, n: int, label: I32) -> tuple[Array, Array]:
    """Labels and weights of the self-loops: of the blank in the first `n` states, of `label` in the others."""
    labels = np.concatenate([np.full(n, units.blank + 1, np.int32), label])
    return labels, np.zeros(len(labels), np.float32)


def _entered(lg: Fst, through_epsilons: bool) -> tuple[I32, I64]:
    """All pairs of a unit's label and a state that it leads to, also if epsilons follow it: ascending."""
    n = lg.n_states
    unit = lg.ilabel > 0
    found = np.unique(lg.ilabel[unit].astype(np.int64) * n + lg.target[unit])
    if through_epsilons:
        silent = np.flatnonzero(~unit)
        count = np.bincount(lg.source[silent], minlength=n)
        first, new = np.cumsum(count) - count, found
        while len(new):
            state = new % n
            label = np.repeat(new // n, count[state])
            after = lg.target[silent[ranges(first[state], count[state])]]
            new = np.setdiff1d(label * n + after, found)
            found = np.union1d(found, new)
    return (found // n).astype(np.int32), found % n


def _copy(lg: Fst, label: I32, state: I64, entering: Array, target: Array) -> Array:
    """The state that arcs with label `entering` lead to: the target's own, or of a unit that before it."""
    pairs = label.astype(np.int64) * lg.n_states + state
    at = np.searchsorted(pairs, entering.astype(np.int64) * lg.n_states + target)
    return np.where(entering > 0, lg.n_states + at, target)
