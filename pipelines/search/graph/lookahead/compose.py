"""Composition of HCL with a language model G as OpenFst's look-ahead composition does it.

Paths are followed only where a word that HCL comes to has an arc in the state of G. G backs off right after a word and
at no other time, so that no path is there twice. The weights of the words ahead are taken as soon as others are ruled
out: -ln of the sum of their exp(-weight), given back when the word is known (Allauzen, Riley and Schalkwyk, "A
Generalized Composition Algorithm for Weighted Finite-State Transducers", 2009).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pipelines.search.graph.lookahead import _compose
from pipelines.search.graph.lookahead._compose import Arcs, Graph, Made, Model, Reach, States
from pipelines.search.graph.openfst import Fst
from pipelines.search.graph.wfst import GraphError
from pipelines.search.kernels.layout import ARC, STATE
from profiler.arrays import F32, I32, I64, Array, Bool
from profiler.errors import Cancelled

FIRST_ROOM = 1 << 16  # States, and arcs, at first; the arrays grow by doubling
SHARE = 1 << 17  # States between two looks at whether the work was cancelled
MOST_ARCS = 1 << 27  # Of a composed graph: 2 GiB
MOST_TIMES, FEW_ARCS = 16, 1 << 19
"""How many times the arcs of both files that may be, from a small graph on: vosk-model-small-ko has 3.4 times them."""
COLUMNS, BITS = 1024, 1 << 29  # States whose reach is kept as bits as well, and the most bits of all: 64 MiB


class Composed(NamedTuple):
    """States, STATE [n + 1], arcs, ARC [m], and final weights as `wfst.Graph` has them."""

    states: Array
    arcs: Array
    final: F32
    start: int
    n_epsilon_states: int


class LookAhead(NamedTuple):
    """Labels that paths from a state come to first: the intervals begin … end - 1 from `first` on, ascending.

    `first` int64 [states + 1], `begin`, `end` int32; `final` bool [states]: a final state comes before any label.
    """

    first: I64
    begin: I32
    end: I32
    final: Bool


def compose(
    hcl: Fst,
    ahead: LookAhead,
    g: Fst,
    progress: Callable[[int], None] = lambda states: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Composed:
    """The part of `hcl` composed with `g` that lies on paths from the start to a final state, self-loops apart.

    Input labels are HCL's, output labels G's. `progress` gets the number of states so far. GraphError where the result
    has no path or too many arcs; Cancelled.
    """
    reach = _reach(ahead)
    model, alike = _model(g)
    given = Graph(hcl.first, hcl.ilabel, hcl.olabel, hcl.weight, hcl.target, hcl.final)
    states, arcs = States(*_grown((), _STATES, FIRST_ROOM)), Arcs(*_grown((), _ARCS, FIRST_ROOM))
    table: I32 = np.full(4 * FIRST_ROOM, -1, np.int32)
    counts: I64 = np.array([0, 1, 0], np.int64)
    both = hcl.n_arcs + g.n_arcs
    most = min(MOST_ARCS, max(MOST_TIMES * both, FEW_ARCS))
    states.hcl[0], states.g[0], states.pending[0], states.potential[0] = hcl.start, g.start, _compose.AFTER_WORD, 0.0
    _compose.enter_all(table, states, 1)
    while True:
        made = Made(states, table, arcs, counts)
        if (why := _compose.expand(given, reach, model, made, alike, SHARE)) == _compose.DONE:
            break
        if cancelled():
            raise Cancelled
        progress(int(counts[1]))
        full = {_compose.ARCS: len(arcs.target), _compose.STATES: len(states.hcl)}.get(why, 0)
        if full >= most:
            raise GraphError(
                f"the composed graph has over {most:,} states or arcs, the files have {both:,} arcs; "
                f"at most {MOST_TIMES} times as many are composed, {MOST_ARCS:,} in all"
            )
        if why == _compose.ARCS:
            arcs = Arcs(*_grown(arcs, _ARCS, min(2 * full, most)))
        elif why == _compose.STATES:
            states = States(*_grown(states, _STATES, min(2 * full, most)))
        elif why == _compose.TABLE:
            table = np.full(2 * len(table), -1, np.int32)
            _compose.enter_all(table, states, int(counts[1]))
    del table, made
    return _packed(states, arcs, int(counts[1]), int(counts[2]))


_STATES = (np.int32, np.int32, np.int32, np.float64, np.int64, np.float32, np.int32, np.float32)
_ARCS = (np.int32, np.int32, np.float32, np.int32)


def _grown(old: Sequence[Array], kinds: Sequence[DTypeLike], length: int) -> list[Array]:
    """Columns of `length` that begin with those of `old`."""
    columns = [np.empty(length, kind) for kind in kinds]
    for column, before in zip(columns, old, strict=False):
        column[: len(before)] = before
    return columns


def _reach(ahead: LookAhead) -> Reach:
    """Look-ahead data with columns."""
    labels = int(ahead.end.max(initial=0))
    sets = np.diff(ahead.first)
    columns = min(COLUMNS, BITS // max(labels, 1))
    wide = np.argsort(-sets, kind="stable")[:columns]
    wide = wide[sets[wide] > 1]
    column: I32 = np.full(len(sets), -1, np.int32)
    column[wide] = np.arange(len(wide))
    reach = Reach(*ahead, column, np.zeros((labels, -(-len(wide) // 64)), np.int64))
    _compose.set_bits(reach)
    return reach


def _model(g: Fst) -> tuple[Model, int]:
    """G sorted, with what is looked up in it; and the most arcs with one label that a state has."""
    source = g.source
    graph = Graph(g.first, g.ilabel, g.olabel, g.weight, g.target, g.final)
    inside = source[1:] == source[:-1]
    if ((g.ilabel[1:] < g.ilabel[:-1]) & inside).any():
        order = np.lexsort((g.ilabel, source))
        graph = Graph(g.first, g.ilabel[order], g.olabel[order], g.weight[order], g.target[order], g.final)
    words = g.first[:-1] + np.bincount(source[graph.ilabel == 0], minlength=g.n_states)
    with np.errstate(over="ignore"):  # of weights that the finished graph is refused for
        shares = np.exp(-graph.weight.astype(np.float64))
    sums = shares.copy()
    _compose.add_up(sums, words, g.first)
    largest = int(np.argmax(g.first[1:] - words))
    labels = graph.ilabel[words[largest] : g.first[largest + 1]]
    rank = words[largest] + np.searchsorted(labels, np.arange(int(labels.max(initial=0)) + 2))
    changes = np.flatnonzero(np.append(~(inside & (graph.ilabel[1:] == graph.ilabel[:-1])), True))
    alike = int(np.diff(np.append(-1, changes)).max(initial=1))
    return Model(graph, words, shares, sums, largest, rank), alike


def _packed(states: States, arcs: Arcs, n: int, m: int) -> Composed:
    """The states from which a final one is reached, those with epsilon arcs first, and their arcs as records."""
    first, target = states.first[: n + 1], arcs.target[:m]
    kept: Bool = np.isfinite(states.final[:n])
    _compose.to_final(first, target, kept, np.zeros(n + 1, np.int64), np.empty(m, np.int32), np.empty(n, np.int32))
    if not kept[0]:
        raise GraphError("no path leads through HCLr.fst and Gr.fst together")
    number: I32 = np.empty(n, np.int32)
    n_epsilon, n_kept, m_kept = _compose.renumber(kept, first, arcs, number)
    records = np.zeros(n_kept + 1, STATE), np.empty(m_kept, ARC)
    whole: list[I32] = [record.view(np.int32).reshape(-1, 4) for record in records]
    broken: list[F32] = [record.view(np.float32).reshape(-1, 4) for record in records]
    _compose.pack(kept, number, states, arcs, whole[0], whole[1], broken[0], broken[1])
    final: F32 = np.empty(n_kept, np.float32)
    final[number[kept]] = states.final[:n][kept]
    return Composed(*records, final, int(number[0]), n_epsilon)
