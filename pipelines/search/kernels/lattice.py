"""The lattice, compiled: which ways into a token lost to the best one, by how much, and what follows.

Recorded only when alternatives are wanted, in a pass after each frame: every way into every token is priced again, and
one within the lattice beam of the best becomes an alternative of a history entry made for that purpose (arc -1). Two
ways from the same entry need none. An entry's cost is 0 for its best way and `delta` for the others, so that a path's
cost above the best is the sum of the deltas along it: the raw state-level lattice of Kaldi's lattice-faster decoder,
stored by what was lost at each recombination. Alternatives that no path within the beam can use are dropped whenever
the history is collected (`history.collect`).

Word posteriors: F. Wessel, R. Schlueter, K. Macherey, H. Ney, "Confidence measures for large vocabulary continuous
speech recognition", IEEE Trans. Speech and Audio Processing 9(3), 2001.
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numba
import numpy as np

from pipelines.search.kernels import layout, sparse_set
from pipelines.search.kernels.history import append
from pipelines.search.kernels.layout import Arrays, Index, Lattice, Numbers, Tokens
from profiler.arrays import F32, F64, I32, I64, Array
from profiler.process.numba_flags import njit_inner


class Ways(NamedTuple):
    """A lattice that is done: `history`, and the alternatives of entry u, `other` and what they cost more, `delta`,
    in places first[u] … first[u + 1]."""

    history: I32
    first: I64
    other: I32
    delta: F32


@njit_inner
def _decide(
    i: np.uint32, tokens: Tokens, history: I32, used: int, frame: Index, lattice: Lattice, kept: int
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Settle a token's entry among its contenders; (entries used, alternatives kept)."""
    alternative, delta, head, way_cost, way_entry, way_next, _ = lattice
    best = head[i]
    if best < 0:
        return used, kept
    way = way_next[best]
    while way >= 0:
        if way_cost[way] < way_cost[best]:
            best = way
        way = way_next[way]
    entry = way_entry[best]
    first = kept
    way = head[i]
    while way >= 0:
        if way_entry[way] != entry:
            alternative[kept, 0] = used
            alternative[kept, 1] = way_entry[way]
            delta[kept] = way_cost[way] - way_cost[best]
            kept += 1
        way = way_next[way]
    if kept > first:
        entry = append(history, used, entry, np.int32(-1), frame)
        used += 1
    tokens.new_hist[i] = entry
    tokens.come[i] = layout.BY_ENTRY
    return used, kept


@njit_inner
def record_frame(arrays: Arrays, numbers: Numbers, limit: np.float32) -> int:  # pragma: no cover - compiled
    """Give every token of the frame its entry, with an alternative for each way that nearly won.

    Epsilon arcs that lead downwards in rank (a cycle) bring no alternatives.
    """
    states, arcs = arrays.graph.states, arrays.graph.arcs
    tokens, emitting, lattice = arrays.tokens, arrays.emitting, arrays.lattice
    state, cost, hist, new_cost = tokens.state, tokens.cost, tokens.hist, tokens.new_cost
    source, record, total = emitting.source, emitting.record, emitting.total
    target, chosen = emitting.target, emitting.chosen
    alternative, _, head, way_cost, way_entry, way_next, rank = lattice
    slot, queue = arrays.places.slot, arrays.places.queue
    history, decoder_state = arrays.books.history, arrays.books.decoder_state
    n_epsilon_states, beam = numbers.n_epsilon_states, numbers.lattice_beam
    n, m = decoder_state[layout.N], decoder_state[layout.M]
    used, kept = decoder_state[layout.HISTORY], decoder_state[layout.ALTERNATIVES]
    frame = np.int32(decoder_state[layout.FRAME])
    extra = np.float32(numbers.penalty)
    ways = 0
    for i in range(m):
        head[i] = -1
    for i in range(n):
        value = cost[i] + tokens.loop_weight[i] + arrays.labels.row[tokens.loop_label[i]]
        if value < layout.INFINITY and value <= new_cost[i] + beam:
            way_cost[ways] = value
            way_entry[ways] = hist[i]
            way_next[ways] = -1
            head[i] = ways
            ways += 1
    # Each token and each arc below needs at most one entry.
    if used + decoder_state[layout.CHOSEN] + m > len(history):
        return layout.NEED_HISTORY
    for j in range(decoder_state[layout.CHOSEN]):
        e = chosen[j]
        place = slot[target[e]]
        if total[e] <= new_cost[place] + beam:
            entry = hist[source[e]]
            if record[e] >= 0:
                entry = append(history, used, entry, record[e], frame)
                used += 1
            way_cost[ways] = total[e]
            way_entry[ways] = entry
            way_next[ways] = head[place]
            head[place] = ways
            ways += 1
    waiting = 0
    for i in range(m):
        queue[waiting] = i
        waiting += state[i] < n_epsilon_states and new_cost[i] <= limit
    for level in range(numbers.n_ranks):
        for j in range(waiting):
            i = queue[j]
            at = state[i]
            if rank[at] != level:
                continue
            room = states[at + 1].first - states[at].epsilon + 1
            if used + room > len(history) or kept + ways > len(alternative):
                return layout.NEED_HISTORY
            used, kept = _decide(i, tokens, history, used, frame, lattice, kept)
            head[i] = -1
            for k in range(np.uint32(states[at].epsilon), np.uint32(states[at + 1].first)):
                value = new_cost[i] + arcs[k].weight
                if arcs[k].olabel != 0:
                    value += extra
                goal = np.uint32(arcs[k].target)
                if value > limit or (goal < n_epsilon_states and rank[goal] <= level):
                    continue
                place = sparse_set.find(state, slot, goal, m)
                if place == m:
                    continue  # over the limit by a rounding only
                if value <= new_cost[place] + beam:
                    entry = tokens.new_hist[i]
                    if arcs[k].olabel != 0:
                        entry = append(history, used, entry, np.int32(k), frame)
                        used += 1
                    way_cost[ways] = value
                    way_entry[ways] = entry
                    way_next[ways] = head[place]
                    head[place] = ways
                    ways += 1
    if used + m > len(history) or kept + ways > len(alternative):
        return layout.NEED_HISTORY
    for i in range(m):
        used, kept = _decide(np.uint32(i), tokens, history, used, frame, lattice, kept)
    decoder_state[layout.HISTORY] = used
    decoder_state[layout.ALTERNATIVES] = kept
    arrays.books.work[layout.CONTENDERS] += ways
    return layout.DONE


@njit_inner
def _add(a: float, b: float) -> float:  # pragma: no cover - compiled
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def posteriors(ways: Ways, ends: I64, above: F64, beam: float) -> F64:  # pragma: no cover - compiled
    """Log posterior of each history entry, f64 [used]: forward-backward over the lattice.

    `ends`: last entries of the paths (-1: an empty one), `above` their costs above the best. Alternatives of which no
    path lies within `beam` do not count.
    """
    history, first, other = ways.history, ways.first, ways.other
    used = len(history)
    least = np.full(used, np.inf)
    for i in range(len(ends)):
        if ends[i] >= 0:
            least[ends[i]] = min(least[ends[i]], above[i])
    delta = ways.delta.astype(np.float64)
    for u in range(used - 1, -1, -1):
        previous = history[u, 0]
        if previous >= 0:
            least[previous] = min(least[previous], least[u])
        for a in range(first[u], first[u + 1]):
            if least[u] + delta[a] > beam:
                delta[a] = np.inf
            elif other[a] >= 0:
                least[other[a]] = min(least[other[a]], least[u] + delta[a])
    forward = np.zeros(used)
    for u in range(used):
        previous = history[u, 0]
        value = forward[previous] if previous >= 0 else 0.0
        for a in range(first[u], first[u + 1]):
            losing = forward[other[a]] if other[a] >= 0 else 0.0
            value = _add(value, losing - delta[a])
        forward[u] = value
    backward = least  # its memory
    backward[:] = -np.inf
    whole = -np.inf
    for i in range(len(ends)):
        end = ends[i]
        whole = _add(whole, (forward[end] if end >= 0 else 0.0) - above[i])
        if end >= 0:
            backward[end] = _add(backward[end], -above[i])
    for u in range(used - 1, -1, -1):
        here = backward[u]
        if here == -np.inf:
            continue
        previous = history[u, 0]
        if previous >= 0:
            backward[previous] = _add(backward[previous], here)
        for a in range(first[u], first[u + 1]):
            if other[a] >= 0:
                backward[other[a]] = _add(backward[other[a]], here - delta[a])
    for u in range(used):
        backward[u] += forward[u] - whole
    return backward


@numba.njit(cache=True, nogil=True, error_model="numpy")
def words_before(
    arcs: Array, ways: Ways, backpointers: I64, above: F64, beam: float, cost: F64
) -> tuple[I64, F64, float]:  # pragma: no cover - compiled
    """Entries with a word that lie next before `backpointers`, no other word between; their least costs above the best
    path; the same for the beginning of the utterance, or +inf.

    `above`: the costs of `backpointers`; `beam`: the most that is followed; `cost` f64 [used]: scratch, +inf all over.
    """
    history, first, other, delta = ways
    begin = np.inf
    # Entries lead backwards only: the last one waiting has met all its ways.
    heap = [np.int64(0)]
    heap.pop()
    for i in range(len(backpointers)):
        u = backpointers[i]
        if u < 0:
            begin = min(begin, above[i])
        else:
            if cost[u] == np.inf:
                heappush(heap, -np.int64(u))
            cost[u] = min(cost[u], above[i])
    found = [np.int64(0)]
    found.pop()
    costs = [0.0]
    costs.pop()
    while len(heap) > 0:
        u = -heappop(heap)
        here = cost[u]
        cost[u] = np.inf
        if history[u, 1] >= 0 and arcs[history[u, 1]].olabel != 0:
            found.append(u)
            costs.append(here)
            continue
        for a in range(first[u] - 1, first[u + 1]):
            before = history[u, 0] if a < first[u] else other[a]
            value = here if a < first[u] else here + delta[a]
            if value > beam:
                continue
            if before < 0:
                begin = min(begin, value)
                continue
            if cost[before] == np.inf:
                heappush(heap, -np.int64(before))
            cost[before] = min(cost[before], value)
    return np.array(found, dtype=np.int64), np.array(costs), begin
