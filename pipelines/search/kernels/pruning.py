"""Between two frames, compiled: the cutoff, the tokens' history, and the lists of what they can do next.

The cutoff is Kaldi's (FasterDecoder::GetCutoff): the beam, tightened to the `max_active`-th token,
widened to the `min_active`-th. A token over it keeps its place with cost +inf, so that nothing moves
and a path that comes back finds its arcs still listed; once a quarter of the places is dead, all lists
are closed up. `token_passing` says what the arrays are.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipelines.search.kernels.layout import (
    ADAPTIVE,
    BEST,
    BY_LOOP,
    CUTOFF,
    DONE,
    EMITTING,
    EPSILONS,
    EXAMINED,
    FRAME,
    HISTORY,
    INFINITY,
    NEED_HISTORY,
    NO_TOKENS,
    OFFSET,
    PENDING,
    M,
    N,
)
from pipelines.search.kernels.prefetch import prefetch

BINS = 512
"""Of the histogram that finds the cutoff for max_active before an exact selection."""
DEAD_SHARE = 4
"""One in so many places may be dead before the lists are closed up."""
# Without these LLVM leaves reductions over floats as they stand; costs are never NaN here.
REDUCING = {"nnan", "nsz"}


@numba.njit(cache=True, nogil=True, error_model="numpy")
def select(values: Any, n: int, k: int) -> Any:  # pragma: no cover - compiled
    """The k-th smallest (from 0) of values[:n], which are reordered; Hoare's quickselect."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def below(values: Any, n: int, limit: Any) -> Any:  # pragma: no cover - compiled
    """How many of values[:n] are less than `limit`."""
    count = np.int32(0)
    for i in range(n):
        count += np.int32(values[i] < limit)
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def cutoff(
    costs: Any, m: int, best: Any, beam: float, max_active: int, min_active: int, scratch: Any
) -> Any:  # pragma: no cover - compiled
    """Cost from which tokens are dropped, as Kaldi's GetCutoff; +inf drops none."""
    values, _, bins, _, counts = scratch
    limit = np.float32(best + beam)
    inside = below(costs, m, limit)
    if inside > max_active:
        # Bins over the beam (the last: all beyond), then a selection within the one with the rank.
        scale, last = np.float32(BINS / beam), np.float32(BINS)
        for i in range(m):
            place = (costs[i] - best) * scale
            # In this order: what is not below the last bin is in it, whatever it is.
            bins[i] = np.int32(min(last, place))
        counts[:] = 0
        for i in range(m):
            counts[bins[i]] += 1
        rank = max_active
        chosen = 0
        while rank >= counts[chosen]:
            rank -= counts[chosen]
            chosen += 1
        n = 0
        for i in range(m):
            values[n] = costs[i]
            n += bins[i] == chosen
        return select(values, n, rank)
    if inside <= min_active:
        n = 0
        for i in range(m):
            values[n] = costs[i]
            n += costs[i] < INFINITY
        if n <= min_active:
            return INFINITY
        kth = select(values, n, min_active)
        if kth > limit:
            return kth
    return limit


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=REDUCING)
def _take_off(
    n: int, new_cost: Any, cost: Any, cut: Any, best: Any
) -> Any:  # pragma: no cover - compiled
    """cost = new_cost - best where it is under the cutoff, +inf elsewhere; how many are."""
    alive = np.int32(0)
    for i in range(n):
        keep = new_cost[i] < cut
        cost[i] = new_cost[i] - best if keep else INFINITY
        alive += np.int32(keep)
    return alive


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _write_history(
    tokens: Any, emitting: Any, m: int, cut: Any, frame: Any, history: Any, used: int, scratch: Any
) -> int:  # pragma: no cover - compiled
    """Give each token under the cutoff that came over an arc its place in the history."""
    _, _, hist, new_cost, new_hist, come, _, _ = tokens
    source, _, _, _, record, _, _ = emitting
    _, places, entries, _, _ = scratch
    count = 0
    for i in range(m):
        places[count] = i
        count += (come[i] != BY_LOOP) & (new_cost[i] < cut)
    for j in range(count):
        i = places[j]
        e = come[i]
        entry = new_hist[i]
        if e >= 0:
            entry = hist[source[e]]
            arc = record[e]
            history[used, 0] = entry
            history[used, 1] = arc
            history[used, 2] = frame
            entry = np.int32(used) if arc >= 0 else entry
            used += arc >= 0
        entries[j] = entry
    # Only now: another token's way may have begun where this one stands.
    for j in range(count):
        hist[places[j]] = entries[j]
    return used


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _close_up(
    tokens: Any, emitting: Any, epsilons: Any, slot: Any, registers: Any, n: int, moved: Any
) -> int:  # pragma: no cover - compiled
    """Take dead tokens and their arcs out of the lists; returns how many tokens are left."""
    state, cost, hist, _, _, _, loop_label, loop_weight = tokens
    kept = 0
    for i in range(n):
        keep = cost[i] < INFINITY
        at = state[i]
        state[kept] = at
        cost[kept] = cost[i]
        hist[kept] = hist[i]
        loop_label[kept] = loop_label[i]
        loop_weight[kept] = loop_weight[i]
        # Of a dead token this names a place that the next one takes: so it is none.
        slot[at] = kept
        moved[i] = kept if keep else -1
        kept += keep
    source, label, weight, target, record, _, _ = emitting
    to = 0
    for e in range(registers[EMITTING]):
        place = moved[source[e]]
        source[to] = place
        label[to] = label[e]
        weight[to] = weight[e]
        target[to] = target[e]
        record[to] = record[e]
        to += place >= 0
    registers[EMITTING] = to
    source, weight, target, record, _, _ = epsilons
    to = 0
    for e in range(registers[EPSILONS]):
        place = moved[source[e]]
        source[to] = place
        weight[to] = weight[e]
        target[to] = target[e]
        record[to] = record[e]
        to += place >= 0
    registers[EPSILONS] = to
    return kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def prune(
    graph: Any,
    tokens: Any,
    emitting: Any,
    epsilons: Any,
    slot: Any,
    history: Any,
    registers: Any,
    floats: Any,
    limits: Any,
    scratch: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Drop tokens over the cutoff, write history for the others, list the arcs of the new ones."""
    states, arcs, entering, _, penalty = graph
    state, cost, hist, new_cost, _, _, loop_label, loop_weight = tokens
    _, places, _, moved, _ = scratch
    beam, beam_delta, max_active, min_active = limits
    n, m = registers[N], registers[M]
    if registers[HISTORY] + m > len(history):
        return NEED_HISTORY
    best = np.float32(floats[BEST])
    if not best < INFINITY:
        # Nothing lives on: what there was before the frame is the best partial result.
        registers[M] = n
        registers[FRAME] -= 1
        registers[PENDING] = 0
        return NO_TOKENS
    cut = np.float32(cutoff(new_cost, m, best, beam, max_active, min_active, scratch))
    floats[ADAPTIVE] = beam if cut == np.float32(best + beam) else cut - best + beam_delta
    floats[CUTOFF] = cut - best
    frame = np.int32(registers[FRAME] - 1)
    registers[HISTORY] = _write_history(
        tokens, emitting, m, cut, frame, history, registers[HISTORY], scratch
    )
    alive = _take_off(n, new_cost, cost, cut, best)
    kept = n
    if DEAD_SHARE * (n - alive) > n:
        kept = _close_up(tokens, emitting, epsilons, slot, registers, n, moved)
    count = 0
    for i in range(n, m):
        places[count] = i
        count += new_cost[i] < cut
    for j in range(count):
        prefetch(arcs, states[state[places[j]]].first)  # type: ignore[call-arg]
    source, label, weight, target, record, _, _ = emitting
    e_source, e_weight, e_target, e_record, _, _ = epsilons
    extra = np.float32(penalty)
    e, x = registers[EMITTING], registers[EPSILONS]
    for j in range(count):
        i = places[j]
        at = state[i]
        state[kept] = at
        cost[kept] = new_cost[i] - best
        hist[kept] = hist[i]
        slot[at] = kept
        loop_label[kept] = states[at].loop_label
        loop_weight[kept] = states[at].loop_weight
        middle = np.uint32(states[at].epsilon)
        for k in range(np.uint32(states[at].first), middle):
            word = arcs[k].olabel != 0
            senone = np.uint32(arcs[k].ilabel)
            source[e] = kept
            label[e] = senone
            weight[e] = arcs[k].weight + extra if word else arcs[k].weight
            target[e] = arcs[k].target
            record[e] = k if word or entering[senone] else -1
            e += 1
        for k in range(middle, np.uint32(states[at + 1].first)):
            word = arcs[k].olabel != 0
            e_source[x] = kept
            e_weight[x] = arcs[k].weight + extra if word else arcs[k].weight
            e_target[x] = arcs[k].target
            e_record[x] = k if word else -1
            x += 1
        kept += 1
    registers[EMITTING] = e
    registers[EPSILONS] = x
    floats[OFFSET] += best
    registers[N] = kept
    registers[M] = kept
    registers[PENDING] = 0
    work[EXAMINED] += m
    return DONE


@numba.njit(cache=True, nogil=True, error_model="numpy")
def reprice(
    graph: Any, emitting: Any, epsilons: Any, registers: Any
) -> None:  # pragma: no cover - compiled
    """Give listed arcs with words the present insertion penalty."""
    _, arcs, _, _, penalty = graph
    extra = np.float32(penalty)
    _, _, weight, _, record, _, _ = emitting
    for e in range(registers[EMITTING]):
        if record[e] >= 0 and arcs[record[e]].olabel != 0:
            weight[e] = arcs[record[e]].weight + extra
    _, weight, _, record, _, _ = epsilons
    for e in range(registers[EPSILONS]):
        if record[e] >= 0:
            weight[e] = arcs[record[e]].weight + extra
