"""N-best word sequences and word confidences, from the lattice that the search kept.

The lattice is determinised from its end while it is searched: a hypothesis's ending (its last words) stands for all
history entries that the rest may end in, so a best-first search meets complete sequences in order, and none twice
(M. Mohri, M. Riley, "An efficient algorithm for the n-best-strings problem", ICSLP 2002).
"""

from bisect import insort
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import lattice as lattice_kernels
from profiler.arrays import F32, F64, I32, I64, Array, check_indices

MAX_RANKS = 256  # A longer chain of epsilon arcs than any language model's backoff; more only on a cycle


Ending = tuple[int, "Ending"] | None  # The last words of a hypothesis, the first of them outermost


class Hypothesis(NamedTuple):
    """A word sequence and its least cost (nat)."""

    words: list[str]
    cost: float


@dataclass(frozen=True, eq=False)
class Lattice:
    """What the search kept, cut to its used part, and where its paths end.

    `history` int32 [used, 3], `alternative` int32 [n, 2] ascending, `delta` f32 [n], as in `lattice_kernels`; `ends`
    int64 [k]: last entries of the paths (-1: an empty one); `above` f64 [k]: their costs above the best, which is
    `best_cost`.
    """

    history: I32
    alternative: I32
    delta: F32
    ends: I64
    above: F64
    best_cost: float

    def kernel_lattice(self) -> lattice_kernels.Ways:
        """Return the lattice in the form that the kernels read."""
        owner, other = self.alternative.T
        first = np.zeros(len(self.history) + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=len(self.history)), out=first[1:])
        return lattice_kernels.Ways(self.history, first, np.ascontiguousarray(other), self.delta)


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
    for _ in range(min(n, MAX_RANKS)):
        raised = rank.copy()
        np.maximum.at(raised, target, rank[source] + 1)
        if np.array_equal(raised, rank):
            break
        rank = raised
    return rank


def best_sequences(graph: Graph, lattice: Lattice, n: int, beam: float) -> list[Hypothesis]:
    """The `n` best different word sequences within `beam` (nat) of the best, best first."""
    ways = lattice.kernel_lattice()
    check_indices("arcs + 1", lattice.history[:, 1] + 1, len(graph.arcs) + 1)
    scratch = np.full(len(lattice.history), np.inf)
    number = count()
    # (least cost above the best, a number to keep order, last words as nested pairs, ends, costs), best first.
    waiting: list[tuple[float, int, Ending, I64 | None, F64]] = [(0.0, next(number), None, lattice.ends, lattice.above)]
    result: list[Hypothesis] = []
    while waiting and len(result) < n:
        cost, _, ending, backpointers, costs = waiting.pop(0)
        if backpointers is None:
            said = []
            while ending is not None:
                word, ending = ending
                said.append(graph.words[word - 1])
            result.append(Hypothesis(said, lattice.best_cost + cost))
            continue
        found, above, begin = lattice_kernels.words_before(graph.arcs, ways, backpointers, costs, beam, scratch)
        if begin <= beam:
            insort(waiting, (float(begin), next(number), ending, None, costs))
        words = graph.arcs["olabel"][lattice.history[found, 1]]
        for word in np.unique(words).tolist():
            at = words == word
            before = lattice.history[found[at], 0].astype(np.int64)
            least = float(above[at].min())
            insort(waiting, (least, next(number), (word, ending), before, above[at]))
        # Each of them ends a sequence of its own at its cost: more than are wanted are never needed.
        del waiting[n - len(result) :]
    return result


def confidences(graph: Graph, lattice: Lattice, path: Array, beam: float) -> list[float]:
    """Posterior probability of each word of the path whose history entries are `path`: the sum over the lattice's paths
    that say the same word between its neighbours, which Wessel et al. (2001) call the accumulated posterior."""
    log_posterior = lattice_kernels.posteriors(lattice.kernel_lattice(), lattice.ends, lattice.above, beam)
    # Of each entry's arc; 0 where there is neither.
    arcs = lattice.history[:, 1]
    words = np.where(arcs >= 0, graph.arcs["olabel"][np.maximum(arcs, 0)], 0)
    said = path[words[path] > 0]
    # Only entries with a word, which lie in the order of their frames.
    at = np.flatnonzero(words)
    words, frames, posterior = words[at], lattice.history[at, 2], np.exp(log_posterior[at])
    places = np.searchsorted(at, said)
    borders = [-2, *frames[places].tolist(), np.iinfo(np.int32).max]
    result = []
    for i, place in enumerate(places.tolist()):
        # Neighbours in the same frame leave no room between them.
        after = min(borders[i] + 1, borders[i + 1])
        before = max(borders[i + 2], borders[i + 1] + 1)
        begin, end = np.searchsorted(frames, (after, before))
        inside = slice(begin, end)
        same = words[inside] == words[place]
        result.append(min(1.0, float(posterior[inside][same].sum())))
    return result
