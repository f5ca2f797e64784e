"""Token passing, compiled: prune, emit and epsilon steps over a packed graph.

The rules are those of Kaldi's FasterDecoder: per frame a cutoff from beam and histogram (GetCutoff
with its adaptive beam), emitting arcs against a cutoff for the next frame that tightens as better
tokens appear, then a worklist over epsilon arcs. What differs is the layout: a token keeps its place
as long as it lives (self-loops become one vectorised pass), tokens are found by a sparse set, and
history is written only when a token that came over an arc survives or is expanded.

Tokens are structs of arrays of length n_states, of which [0, n) live before a frame and [0, m)
after it: `state`; `cost`, `hist` before the frame; `new_cost`, `new_hist`, `new_arc` after it
(`new_arc` -1: by self-loop, or already in the history); `first`, `epsilon`, `loop_label`,
`loop_weight` copied from the graph. `slot[state]` is a token's place if that place names the state.
History is int32 [capacity, 3]: previous entry (-1: none), arc, frame.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipelines.search._intrinsics import prefetch
from pipelines.search._layout import (
    ADAPTIVE,
    DONE,
    EMIT_ARCS,
    EPSILON_ARCS,
    EXAMINED,
    FRAME,
    HISTORY,
    INFINITY,
    LIMIT,
    NEED_HISTORY,
    NO_TOKENS,
    OFFSET,
    PENDING,
    SENONES,
    TOKENS,
    M,
    N,
)
from profiler.kernel_spans import HAS_CLOCK, now_ns, put

BINS = 512
"""Of the histogram that finds the cutoff for max_active before an exact selection."""
AHEAD = 12
"""Tokens between the prefetch of a token's arcs and their use."""


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
def cutoff(
    costs: Any, m: int, best: Any, beam: float, max_active: int, min_active: int, scratch: Any
) -> Any:  # pragma: no cover - compiled
    """Cost from which tokens are dropped, as Kaldi's GetCutoff; +inf drops none."""
    limit = np.float32(best + beam)
    inside = 0
    for i in range(m):
        inside += costs[i] < limit
    if inside > max_active:
        # Bins over the beam, then a selection within the one bin that holds the rank.
        counts = np.zeros(BINS, dtype=np.int32)
        scale = np.float32(BINS / beam)
        low = np.float32(best)
        for i in range(m):
            if costs[i] < limit:
                counts[min(int((costs[i] - low) * scale), BINS - 1)] += 1
        rank = max_active
        chosen = 0
        while rank >= counts[chosen]:
            rank -= counts[chosen]
            chosen += 1
        n = 0
        for i in range(m):
            if costs[i] < limit and min(int((costs[i] - low) * scale), BINS - 1) == chosen:
                scratch[n] = costs[i]
                n += 1
        return select(scratch, n, rank)
    if inside <= min_active:
        if m <= min_active:
            return np.inf
        n = 0
        for i in range(m):
            scratch[i] = costs[i]
        kth = select(scratch, m, min_active)
        if kth > limit:
            return kth
    return limit


@numba.njit(cache=True, nogil=True, error_model="numpy")
def prune(
    states: Any,
    tokens: Any,
    slot: Any,
    history: Any,
    registers: Any,
    floats: Any,
    limits: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Drop tokens over the cutoff, write history for the others, close the gaps."""
    (
        state,
        cost,
        hist,
        new_cost,
        new_hist,
        new_arc,
        first,
        epsilon,
        loop_label,
        loop_weight,
        scratch,
    ) = tokens
    beam, beam_delta, max_active, min_active = limits
    n, m, used = registers[N], registers[M], registers[HISTORY]
    if used + m > len(history):
        return NEED_HISTORY
    best = INFINITY
    for i in range(m):
        best = min(best, new_cost[i])
    if not best < INFINITY:
        return NO_TOKENS
    cut = cutoff(new_cost, m, best, beam, max_active, min_active, scratch)
    floats[ADAPTIVE] = beam if cut == np.float32(best + beam) else cut - best + beam_delta
    limit = np.float32(cut)
    frame = np.int32(registers[FRAME] - 1)
    kept = 0
    for i in range(m):
        if new_cost[i] < limit:
            entry = new_hist[i]
            if new_arc[i] >= 0:
                history[used, 0] = entry
                history[used, 1] = new_arc[i]
                history[used, 2] = frame
                entry = np.int32(used)
                used += 1
            at = state[i]
            if i < n:
                first[kept] = first[i]
                epsilon[kept] = epsilon[i]
                loop_label[kept] = loop_label[i]
                loop_weight[kept] = loop_weight[i]
            else:
                first[kept] = states[at].first
                epsilon[kept] = states[at].epsilon
                loop_label[kept] = states[at].loop_label
                loop_weight[kept] = states[at].loop_weight
            state[kept] = at
            cost[kept] = new_cost[i] - best
            hist[kept] = entry
            slot[at] = kept
            kept += 1
    floats[OFFSET] += best
    registers[N] = kept
    registers[M] = kept
    registers[HISTORY] = used
    registers[PENDING] = 0
    work[EXAMINED] += m
    return DONE


@numba.njit(cache=True, nogil=True, error_model="numpy")
def emit(
    arcs: Any,
    states: Any,
    tokens: Any,
    slot: Any,
    registers: Any,
    floats: Any,
    row: Any,
    asked: Any,
    penalty: float,
    work: Any,
) -> Any:  # pragma: no cover - compiled
    """Pass tokens over self-loops and emitting arcs; returns the cutoff for the new tokens.

    `row[label]`: cost of each senone by label, row[0] = inf for states without a self-loop.
    """
    (state, cost, hist, new_cost, new_hist, new_arc, first, epsilon, loop_label, loop_weight, _) = (
        tokens
    )
    n = registers[N]
    adaptive = np.float32(floats[ADAPTIVE])
    extra = np.float32(penalty)
    for i in range(n):
        new_cost[i] = cost[i] + loop_weight[i] + row[loop_label[i]]
    lowest = INFINITY
    for i in range(n):
        lowest = min(lowest, new_cost[i])
    for i in range(n):
        new_hist[i] = hist[i]
        new_arc[i] = -1
    for i in range(n):
        asked[loop_label[i]] = 1
    limit = lowest + adaptive
    m = n
    n_arcs = 0
    for i in range(n):
        if i + AHEAD < n:
            prefetch(arcs, first[i + AHEAD])  # type: ignore[call-arg]
        here = cost[i]
        entry = hist[i]
        for k in range(first[i], epsilon[i]):
            label = arcs[k].ilabel
            asked[label] = 1
            total = here + arcs[k].weight + row[label]
            if arcs[k].olabel != 0:
                total += extra
            if total < limit:
                limit = min(limit, total + adaptive)
                goal = arcs[k].target
                place = slot[goal]
                if place < m and state[place] == goal:
                    if total < new_cost[place]:
                        new_cost[place] = total
                        new_hist[place] = entry
                        new_arc[place] = k
                else:
                    prefetch(states, goal)  # type: ignore[call-arg]
                    state[m] = goal
                    new_cost[m] = total
                    new_hist[m] = entry
                    new_arc[m] = k
                    slot[goal] = m
                    m += 1
        n_arcs += epsilon[i] - first[i]
    registers[M] = m
    n_asked = 0
    asked[0] = 0
    for s in range(len(asked)):
        n_asked += asked[s]
        asked[s] = 0
    loops = 0
    for i in range(n):
        loops += loop_label[i] > 0
    work[TOKENS] += n
    work[EMIT_ARCS] += n_arcs + loops
    work[SENONES] += n_asked
    return limit


@numba.njit(cache=True, nogil=True, error_model="numpy")
def close(
    arcs: Any,
    states: Any,
    tokens: Any,
    slot: Any,
    history: Any,
    registers: Any,
    n_epsilon_states: int,
    limit: Any,
    penalty: float,
    queue: Any,
    queued: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the new tokens within `limit`, first in first out."""
    (state, _, _, new_cost, new_hist, new_arc, _, _, _, _, _) = tokens
    m, used = registers[M], registers[HISTORY]
    size = len(queue)
    extra = np.float32(penalty)
    head, waiting = 0, 0
    for i in range(m):
        if state[i] < n_epsilon_states and new_cost[i] <= limit:
            queue[waiting] = i
            queued[i] = 1
            waiting += 1
    frame = np.int32(registers[FRAME])
    n_arcs = 0
    status = DONE
    while waiting > 0:
        i = queue[head]
        head += 1
        if head == size:
            head = 0
        waiting -= 1
        queued[i] = 0
        here = new_cost[i]
        if here > limit:
            continue
        at = state[i]
        begin, end = states[at].epsilon, states[at + 1].first
        if new_arc[i] >= 0:
            if used == len(history):
                status = NEED_HISTORY
                break
            history[used, 0] = new_hist[i]
            history[used, 1] = new_arc[i]
            history[used, 2] = frame
            new_hist[i] = used
            new_arc[i] = -1
            used += 1
        n_arcs += end - begin
        for k in range(begin, end):
            total = here + arcs[k].weight
            if arcs[k].olabel != 0:
                total += extra
            if total > limit:
                continue
            goal = arcs[k].target
            place = slot[goal]
            if place < m and state[place] == goal:
                if not total < new_cost[place]:
                    continue
            else:
                place = m
                state[m] = goal
                slot[goal] = m
                queued[m] = 0
                m += 1
            new_cost[place] = total
            new_hist[place] = new_hist[i]
            new_arc[place] = k
            if goal < n_epsilon_states and queued[place] == 0:
                tail = head + waiting
                if tail >= size:
                    tail -= size
                queue[tail] = place
                queued[place] = 1
                waiting += 1
    while waiting > 0:
        queued[queue[head]] = 0
        head += 1
        if head == size:
            head = 0
        waiting -= 1
    registers[M] = m
    registers[HISTORY] = used
    work[EPSILON_ARCS] += n_arcs
    return status


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance(
    states: Any,
    arcs: Any,
    n_epsilon_states: int,
    scores: Any,
    begin: int,
    end: int,
    scale: float,
    penalty: float,
    limits: Any,
    tokens: Any,
    slot: Any,
    history: Any,
    registers: Any,
    floats: Any,
    row: Any,
    asked: Any,
    queue: Any,
    queued: Any,
    work: Any,
    patience_ns: int,
    spans: Any,
    stages: tuple[int, int, int],
    called_ns: int,
    first_frame: int,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Frames begin … end of `scores`; (frames done so far, why it stopped).

    Comes back early to keep within `patience_ns`, when the history is full (the frame is then
    taken up again from where it can be) and when no token survives. Records a span each of emit,
    epsilon and prune (`stages`) for the frames done into the lent ring `spans`, one after another
    from `called_ns` on; `first_frame` is the run-global number of frame 0 of `scores`.
    """
    minus = np.float32(-scale)
    started = now_ns()
    emit_ns = epsilon_ns = prune_ns = 0
    work[:] = 0
    status = DONE
    t = begin
    while t < end:
        if registers[PENDING] != 0:
            t0 = now_ns()
            status = prune(states, tokens, slot, history, registers, floats, limits, work)
            prune_ns += now_ns() - t0
            if status != DONE:
                break
        t1 = now_ns()
        row[0] = INFINITY
        for s in range(scores.shape[1]):
            row[s + 1] = minus * scores[t, s]
        before = work[TOKENS], work[EMIT_ARCS], work[SENONES]
        limit = emit(arcs, states, tokens, slot, registers, floats, row, asked, penalty, work)
        t2 = now_ns()
        emit_ns += t2 - t1
        status = close(
            arcs,
            states,
            tokens,
            slot,
            history,
            registers,
            n_epsilon_states,
            limit,
            penalty,
            queue,
            queued,
            work,
        )
        t3 = now_ns()
        epsilon_ns += t3 - t2
        if status != DONE:
            work[TOKENS], work[EMIT_ARCS], work[SENONES] = before
            break
        registers[PENDING] = 1
        floats[LIMIT] = limit
        registers[FRAME] += 1
        t += 1
        if t3 - started > patience_ns:
            break
    if HAS_CLOCK:
        # What the call itself costs around the three steps belongs to the largest of them.
        at = max(now_ns() - epsilon_ns - prune_ns, called_ns + emit_ns)
        first, frames = first_frame + begin, t - begin
        tokens_passed, arcs_passed, asked_for = work[TOKENS], work[EMIT_ARCS], work[SENONES]
        put(spans, stages[0], called_ns, at, first, frames, tokens_passed, arcs_passed, asked_for)
        put(spans, stages[1], at, at + epsilon_ns, first, frames, work[EPSILON_ARCS], 0, 0)
        at += epsilon_ns
        put(spans, stages[2], at, at + prune_ns, first, frames, work[EXAMINED], 0, 0)
    return t, status


@numba.njit(cache=True, nogil=True)
def senones_asked(arcs: Any, tokens: Any, n: int, asked: Any) -> None:  # pragma: no cover
    """Mark in asked [n_senones + 1] the labels that the next frame's emit step will look up."""
    (_, _, _, _, _, _, first, epsilon, loop_label, _, _) = tokens
    for i in range(n):
        asked[loop_label[i]] = 1
        for k in range(first[i], epsilon[i]):
            asked[arcs[k].ilabel] = 1
    asked[0] = 0
