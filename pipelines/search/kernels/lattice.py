"""The lattice, compiled: which ways into a token lost to the best one, by how much, and what follows.

Recorded only when alternatives are wanted, in a pass of its own after each frame: every way into every
token (self-loop, emitting arcs, epsilon arcs) is priced again, and one that lies within the lattice
beam of the best becomes an alternative of a history entry made for that purpose (arc -1). Two ways
from the same entry differ in neither words nor alternatives and need none. An entry's cost is thus 0
for its best way and `delta` for the others, so that a path's cost above the best is the sum of the
deltas along it. This is the raw state-level lattice of Kaldi's lattice-faster decoder, stored by what
was lost at each recombination; alternatives that no path within the beam can use are dropped whenever
the history is collected (`history.collect`).

Word posteriors: F. Wessel, R. Schlueter, K. Macherey, H. Ney, "Confidence measures for large vocabulary
continuous speech recognition", IEEE Trans. Speech and Audio Processing 9(3), 2001.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numba
import numpy as np

from pipelines.search.kernels.layout import (
    ALTERNATIVES,
    BY_ENTRY,
    CHOSEN,
    CONTENDERS,
    DONE,
    FRAME,
    HISTORY,
    INFINITY,
    NEED_HISTORY,
    M,
    N,
)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _decide(
    i: Any,
    tokens: Any,
    history: Any,
    used: int,
    frame: Any,
    lattice: Any,
    kept: int,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Settle a token's entry among its contenders; (entries used, alternatives kept)."""
    new_hist, come = tokens[4], tokens[5]
    _, alternative, delta, head, way_cost, way_entry, way_next, _, _ = lattice
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
        history[used, 0] = entry
        history[used, 1] = -1
        history[used, 2] = frame
        entry = np.int32(used)
        used += 1
    new_hist[i] = entry
    come[i] = BY_ENTRY
    return used, kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def record_frame(
    graph: Any,
    tokens: Any,
    emitting: Any,
    slot: Any,
    history: Any,
    lattice: Any,
    registers: Any,
    row: Any,
    limit: Any,
    queue: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Give every token of the frame its entry, with an alternative for each way that nearly won.

    `lattice`: beam, alternative int32 [capacity, 2] (entry, the losing way's entry) ascending by entry,
    delta f32 [capacity]; head [places] and the three columns of a pool of contenders, linked by token;
    rank int32 [n_epsilon_states] orders states so that epsilon arcs lead upwards, and how many ranks
    there are. Epsilon arcs that lead downwards (a cycle) bring no alternatives.
    """
    states, arcs, _, n_epsilon_states, penalty = graph
    state, cost, hist, new_cost, _, _, loop_label, loop_weight = tokens
    source, _, _, target, record, total, chosen = emitting
    beam, alternative, _, head, way_cost, way_entry, way_next, rank, n_ranks = lattice
    n, m = registers[N], registers[M]
    used, kept = registers[HISTORY], registers[ALTERNATIVES]
    frame = np.int32(registers[FRAME])
    extra = np.float32(penalty)
    ways = 0
    for i in range(m):
        head[i] = -1
    for i in range(n):
        value = cost[i] + loop_weight[i] + row[loop_label[i]]
        if value < INFINITY and value <= new_cost[i] + beam:
            way_cost[ways] = value
            way_entry[ways] = hist[i]
            way_next[ways] = -1
            head[i] = ways
            ways += 1
    # Each token and each arc below needs at most one entry.
    if used + registers[CHOSEN] + m > len(history):
        return NEED_HISTORY
    for j in range(registers[CHOSEN]):
        e = chosen[j]
        place = slot[target[e]]
        if total[e] <= new_cost[place] + beam:
            entry = hist[source[e]]
            if record[e] >= 0:
                history[used, 0] = entry
                history[used, 1] = record[e]
                history[used, 2] = frame
                entry = np.int32(used)
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
    for level in range(n_ranks):
        for j in range(waiting):
            i = queue[j]
            at = state[i]
            if rank[at] != level:
                continue
            room = states[at + 1].first - states[at].epsilon + 1
            if used + room > len(history) or kept + ways > len(alternative):
                return NEED_HISTORY
            used, kept = _decide(i, tokens, history, used, frame, lattice, kept)
            head[i] = -1
            for k in range(np.uint32(states[at].epsilon), np.uint32(states[at + 1].first)):
                value = new_cost[i] + arcs[k].weight
                if arcs[k].olabel != 0:
                    value += extra
                goal = np.uint32(arcs[k].target)
                if value > limit or (goal < n_epsilon_states and rank[goal] <= level):
                    continue
                place = slot[goal]
                if place >= m or state[place] != goal:
                    continue  # over the limit by a rounding only
                if value <= new_cost[place] + beam:
                    entry = tokens[4][i]
                    if arcs[k].olabel != 0:
                        history[used, 0] = entry
                        history[used, 1] = k
                        history[used, 2] = frame
                        entry = np.int32(used)
                        used += 1
                    way_cost[ways] = value
                    way_entry[ways] = entry
                    way_next[ways] = head[place]
                    head[place] = ways
                    ways += 1
    if used + m > len(history) or kept + ways > len(alternative):
        return NEED_HISTORY
    for i in range(m):
        used, kept = _decide(i, tokens, history, used, frame, lattice, kept)
    registers[HISTORY] = used
    registers[ALTERNATIVES] = kept
    work[CONTENDERS] += ways
    return DONE


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add(a: float, b: float) -> float:  # pragma: no cover - compiled
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def posteriors(
    history: Any, used: int, first: Any, other: Any, lost: Any, ends: Any, above: Any, beam: float
) -> Any:  # pragma: no cover - compiled
    """Log posterior of each history entry, f64 [used]: forward-backward over the lattice.

    Alternatives of entry u: other, lost[first[u] : first[u + 1]]. `ends`: last entries of the paths
    (-1: an empty one), `above` their costs above the best. Alternatives of which no path lies within
    `beam` of the best do not count, whether or not they have been collected.
    """
    least = np.full(used, np.inf)
    for i in range(len(ends)):
        if ends[i] >= 0:
            least[ends[i]] = min(least[ends[i]], above[i])
    delta = lost.astype(np.float64)
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
    backward = np.full(used, -np.inf)
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
    return forward + backward - whole


@numba.njit(cache=True, nogil=True, error_model="numpy")
def words_before(
    arcs: Any,
    history: Any,
    first: Any,
    other: Any,
    delta: Any,
    entries: Any,
    above: Any,
    beam: float,
    cost: Any,
) -> tuple[Any, Any, float]:  # pragma: no cover - compiled
    """Entries with a word that lie next before `entries`, no other word between.

    (entries, their least costs above the best path, the same for the beginning of the utterance or
    +inf). `above` are the costs of `entries`, `beam` the most that is followed. `cost` f64 [used] is
    scratch, +inf all over before and after.
    """
    begin = np.inf
    # Entries lead backwards only: the last one waiting has met all its ways.
    heap = [np.int64(0)]
    heap.pop()
    for i in range(len(entries)):
        u = entries[i]
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
