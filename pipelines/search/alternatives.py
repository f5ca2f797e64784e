"""N-best word sequences and word confidences, from the lattice that the search kept.

The n best *different* word sequences are found by determinising the lattice from its end while
searching it: a hypothesis's ending (its last words) stands for the set of all history entries that
the rest may end in, with their costs. Costs in the lattice are relative to the best way into an entry,
so the least cost of that set is exactly what the best whole path with this ending costs above the
best one: a best-first search meets complete sequences in order, and none twice (M. Mohri, M. Riley,
"An efficient algorithm for the n-best-strings problem", ICSLP 2002, with the set built on the fly).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import lattice as lattice_kernels
from profiler.arrays import F32, F64, I32, I64, Array, ArrayError, check, check_indices

FIRST_ALTERNATIVES = 1 << 18
"""Alternatives (12 bytes) that there is room for at first; it grows with the history."""
MOST_RANKS = 256
"""A longer chain of epsilon arcs than any language model's backoff; more only on a cycle."""


class Hypothesis(NamedTuple):
    """A word sequence and its least cost (nat)."""

    words: list[str]
    cost: float


@dataclass(frozen=True, eq=False)
class Lattice:
    """What the search kept, cut to its used part, and where its paths end.

    `history` int32 [used, 3], `alternative` int32 [n, 2] ascending, `delta` f32 [n], as in
    `lattice_kernels`; `ends` int64 [k]: last entries of the paths (-1: an empty one); `above` f64 [k]: their
    costs above the best, which is `best_cost`. ArrayError where something leads nowhere.
    """

    history: I32
    alternative: I32
    delta: F32
    ends: I64
    above: F64
    best_cost: float

    def __post_init__(self) -> None:
        used = len(self.history)
        check("history", self.history, np.int32, (None, 3))
        check("alternatives", self.alternative, np.int32, (None, 2))
        check("their costs", self.delta, np.float32, (len(self.alternative),))
        check("ends", self.ends, np.int64, (None,))
        check("their costs", self.above, np.float64, (len(self.ends),))
        owner = self.alternative[:, 0]
        # Entries point backwards only: that is what lets one pass reach all.
        backwards = self.history[:, 0] < np.arange(used)
        if not backwards.all() or (self.alternative[:, 1] >= owner).any():
            raise ArrayError("the lattice has an entry that does not point backwards")
        if (owner[1:] < owner[:-1]).any():
            raise ArrayError("the lattice's alternatives are not in the order of their entries")
        check_indices("owners", owner, used)
        for entries in (self.history[:, 0], self.alternative[:, 1], self.ends):
            check_indices("entries + 1", entries + 1, used + 1)

    def first(self) -> I64:
        """[used + 1]: where the alternatives of each entry begin."""
        return np.searchsorted(self.alternative[:, 0], np.arange(len(self.history) + 1))


def no_lattice() -> tuple[Any, ...]:
    """What kernels are given where no alternatives are kept."""
    pool = np.empty(1, dtype=np.float32), np.empty(1, dtype=np.int32), np.empty(1, dtype=np.int32)
    pairs = np.empty((1, 2), dtype=np.int32)
    head, rank = np.empty(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    return -1.0, pairs, np.empty(1, dtype=np.float32), head, *pool, rank, 0


def lattice_arrays(
    graph: Graph, on: bool, beam: float, before: tuple[Any, ...], empty: Any = np.empty
) -> tuple[Any, ...]:
    """What kernels record the lattice in, see `lattice_kernels.record_frame`; arrays of `before` serve again.

    `empty` makes the others, as `np.empty`.
    """
    if not on:
        return no_lattice()
    if before[0] >= 0:
        return float(beam), *before[1:]
    places = graph.n_states + 1
    # A token is reached by its self-loop and by each arc once at most; untouched pages cost nothing.
    ways = places + len(graph.arcs)
    found = epsilon_ranks(graph)
    rank = empty(len(found), np.int32)
    rank[:] = found
    return (
        float(beam),
        empty((FIRST_ALTERNATIVES, 2), np.int32),
        empty(FIRST_ALTERNATIVES, np.float32),
        empty(places, np.int32),
        empty(ways, np.float32),
        empty(ways, np.int32),
        empty(ways, np.int32),
        rank,
        int(rank.max(initial=0)) + 1,
    )


def grown(lattice: tuple[Any, ...], empty: Any = np.empty) -> tuple[Any, ...]:
    """The same with twice the room for alternatives."""
    beam, alternative, delta, *rest = lattice
    if beam < 0:
        return lattice
    room = len(delta)
    pairs, costs = empty((2 * room, 2), np.int32), empty(2 * room, np.float32)
    pairs[:room], costs[:room] = alternative, delta
    return beam, pairs, costs, *rest


def check_lattice(graph: Graph, lattice: tuple[Any, ...]) -> None:
    """ArrayError unless these are what `lattice_arrays` makes for `graph`, or `no_lattice`."""
    beam, alternative, delta, head, *pool, rank, ranks = lattice
    on = beam >= 0
    places = graph.n_states + 1
    ways = places + len(graph.arcs)
    check("alternatives", alternative, np.int32, (None, 2), writable=True)
    check("their costs", delta, np.float32, (len(alternative),), writable=True)
    check("head", head, np.int32, (places if on else 1,), writable=True)
    for column, kind in zip(pool, (np.float32, np.int32, np.int32), strict=True):
        check("ways", column, kind, (ways if on else 1,), writable=True)
    check("rank", rank, np.int32, (max(graph.n_epsilon_states, 1) if on else 1,), writable=True)
    check_indices("rank", rank, max(ranks, 1))


def epsilon_ranks(graph: Graph) -> I32:
    """int32 [n_epsilon_states]: ranks such that epsilon arcs lead to higher ones, but for cycles."""
    n = graph.n_epsilon_states
    states, arcs = graph.states, graph.arcs
    count = states["first"][1 : n + 1] - states["epsilon"][:n]
    source = np.repeat(np.arange(n), count)
    target = arcs["target"][arcs["ilabel"] == 0]
    inside = target < n
    source, target = source[inside], target[inside]
    rank = np.zeros(max(n, 1), dtype=np.int32)
    for _ in range(min(n, MOST_RANKS)):
        raised = rank.copy()
        np.maximum.at(raised, target, rank[source] + 1)
        if np.array_equal(raised, rank):
            break
        rank = raised
    return rank


def best_sequences(graph: Graph, lattice: Lattice, n: int, beam: float) -> list[Hypothesis]:
    """The `n` best different word sequences within `beam` (nat) of the best, best first."""
    first, other = lattice.first(), np.ascontiguousarray(lattice.alternative[:, 1])
    check_indices("arcs + 1", lattice.history[:, 1] + 1, len(graph.arcs) + 1)
    scratch = np.full(len(lattice.history), np.inf)
    number = count()
    # (least cost above the best, a number to keep order, last words as nested pairs, ends, costs).
    waiting: list[tuple[float, int, Any, Any, Any]] = [
        (0.0, next(number), None, lattice.ends, lattice.above)
    ]
    result: list[Hypothesis] = []
    while waiting and len(result) < n:
        cost, _, ending, entries, costs = heappop(waiting)
        if entries is None:
            result.append(Hypothesis(_unwound(graph, ending), lattice.best_cost + cost))
            continue
        found, above, begin = lattice_kernels.words_before(
            graph.arcs, lattice.history, first, other, lattice.delta, entries, costs, beam, scratch
        )
        if begin <= beam:
            heappush(waiting, (float(begin), next(number), ending, None, None))
        words = graph.arcs["olabel"][lattice.history[found, 1]]
        for word in np.unique(words).tolist():
            at = words == word
            before = lattice.history[found[at], 0].astype(np.int64)
            least = float(above[at].min())
            heappush(waiting, (least, next(number), (word, ending), before, above[at]))
    return result


def _unwound(graph: Graph, ending: Any) -> list[str]:
    words = []
    while ending is not None:
        word, ending = ending
        words.append(graph.words[word - 1])
    return words


def confidences(graph: Graph, lattice: Lattice, path: Array, beam: float) -> list[float]:
    """Posterior probability of each word of the path whose history entries are `path`, in order.

    The sum over the lattice's paths that say the same word between the neighbours of this one: what
    Wessel et al. (2001) call the accumulated posterior.
    """
    used = len(lattice.history)
    other = np.ascontiguousarray(lattice.alternative[:, 1])
    log_posterior = lattice_kernels.posteriors(
        lattice.history,
        used,
        lattice.first(),
        other,
        lattice.delta,
        lattice.ends,
        lattice.above,
        beam,
    )
    words = _words_of(graph, lattice.history[:, 1])
    frames = lattice.history[:, 2]
    posterior = np.exp(log_posterior)
    places = path[words[path] > 0]
    borders = [-2, *frames[places].tolist(), np.iinfo(np.int32).max]
    result = []
    for i, place in enumerate(places.tolist()):
        same = words == words[place]
        # Neighbours in the same frame leave no room between them.
        inside = (frames >= frames[place]) & (frames <= frames[place])
        inside |= (frames > borders[i]) & (frames < borders[i + 2])
        result.append(min(1.0, float(posterior[same & inside].sum())))
    return result


def _words_of(graph: Graph, arcs: Array) -> Array:
    """Word label of each history entry's arc; 0 where there is neither."""
    return np.where(arcs >= 0, graph.arcs["olabel"][np.maximum(arcs, 0)], 0)
