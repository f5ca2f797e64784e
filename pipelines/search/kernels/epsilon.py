"""Epsilon closure of a frame's tokens, compiled; `token_passing` says what the arrays are."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipelines.search.kernels.lattice import record_frame
from pipelines.search.kernels.layout import (
    BEST,
    BY_ENTRY,
    DONE,
    ENDLESS,
    EPSILON_ARCS,
    EPSILONS,
    FRAME,
    HISTORY,
    INFINITY,
    MOST_EPSILONS,
    NEED_HISTORY,
    M,
    N,
)
from pipelines.search.kernels.prefetch import prefetch


@numba.njit(cache=True, nogil=True, error_model="numpy")
def entry_of(
    i: int, tokens: Any, emitting: Any, history: Any, used: int, frame: Any
) -> tuple[Any, int]:  # pragma: no cover - compiled
    """(history entry of a token after the frame, written if need be; entries now used)."""
    _, _, hist, _, new_hist, come, _, _ = tokens
    source, _, _, _, record, _, _ = emitting
    e = come[i]
    if e == BY_ENTRY:
        return new_hist[i], used
    entry = hist[i]
    if e >= 0:
        entry = hist[source[e]]
        if record[e] >= 0:
            history[used, 0] = entry
            history[used, 1] = record[e]
            history[used, 2] = frame
            entry = np.int32(used)
            used += 1
    new_hist[i] = entry
    come[i] = BY_ENTRY
    return entry, used


@numba.njit(cache=True, nogil=True, error_model="numpy")
def close(
    graph: Any,
    tokens: Any,
    emitting: Any,
    epsilons: Any,
    slot: Any,
    history: Any,
    registers: Any,
    floats: Any,
    limit: Any,
    queue: Any,
    queued: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the new tokens within `limit`.

    Listed arcs first, which are few enough to price at once; tokens that these or the emit step made
    or bettered follow from a queue, first in first out: so each round lengthens paths by an arc, and
    after as many rounds as there are states only a cycle that makes paths cheaper goes on (ENDLESS).
    """
    states, arcs, _, n_epsilon_states, penalty = graph
    state, _, _, new_cost, new_hist, come, _, _ = tokens
    source, weight, target, record, total, chosen = epsilons
    n, m, n_arcs, used = registers[N], registers[M], registers[EPSILONS], registers[HISTORY]
    frame = np.int32(registers[FRAME])
    best = np.float32(floats[BEST])
    extra = np.float32(penalty)
    room = len(history) - 2
    status = DONE
    head, waiting, size = 0, 0, len(queue)
    endless = n_arcs + min((n_epsilon_states + 1) * (len(arcs) + 1), MOST_EPSILONS)
    for x in range(n_arcs):
        total[x] = new_cost[source[x]] + weight[x]
    passed = 0
    for x in range(n_arcs):
        chosen[passed] = x
        passed += total[x] <= limit
    for i in range(n, m):
        queue[waiting] = i
        queued[i] = state[i] < n_epsilon_states and new_cost[i] <= limit
        waiting += queued[i]
    for j in range(waiting):
        prefetch(arcs, states[state[queue[j]]].epsilon)  # type: ignore[call-arg]
    for j in range(passed):
        x = chosen[j]
        i = source[x]
        value = new_cost[i] + weight[x]
        goal = target[x]
        place = slot[goal]
        if place < m and state[place] == goal:
            if not value < new_cost[place]:
                continue
        else:
            place = np.uint32(m)
            state[m] = goal
            slot[goal] = m
            queued[m] = 0
            m += 1
        if used > room:
            status = NEED_HISTORY
            break
        entry, used = entry_of(i, tokens, emitting, history, used, frame)
        if record[x] >= 0:
            history[used, 0] = entry
            history[used, 1] = record[x]
            history[used, 2] = frame
            entry = np.int32(used)
            used += 1
        new_cost[place] = value
        new_hist[place] = entry
        come[place] = BY_ENTRY
        best = min(best, value)
        if goal < n_epsilon_states and queued[place] == 0:
            queue[waiting] = place
            queued[place] = 1
            waiting += 1
    while waiting > 0 and status == DONE:
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
        begin, end = np.uint32(states[at].epsilon), np.uint32(states[at + 1].first)
        n_arcs += end - begin
        if n_arcs > endless:
            status = ENDLESS
        for k in range(begin, end):
            word = arcs[k].olabel != 0
            value = here + arcs[k].weight
            if word:
                value += extra
            if value > limit:
                continue
            goal = np.uint32(arcs[k].target)
            place = slot[goal]
            if place < m and state[place] == goal:
                if not value < new_cost[place]:
                    continue
            else:
                place = np.uint32(m)
                state[m] = goal
                slot[goal] = m
                queued[m] = 0
                m += 1
            if used > room:
                status = NEED_HISTORY
                break
            entry, used = entry_of(i, tokens, emitting, history, used, frame)
            if word:
                history[used, 0] = entry
                history[used, 1] = k
                history[used, 2] = frame
                entry = np.int32(used)
                used += 1
            new_cost[place] = value
            new_hist[place] = entry
            come[place] = BY_ENTRY
            best = min(best, value)
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
    floats[BEST] = best
    work[EPSILON_ARCS] += n_arcs
    return status


@numba.njit(cache=True, nogil=True, error_model="numpy")
def begin(
    graph: Any,
    tokens: Any,
    emitting: Any,
    epsilons: Any,
    slot: Any,
    history: Any,
    lattice: Any,
    registers: Any,
    floats: Any,
    row: Any,
    queue: Any,
    queued: Any,
    work: Any,
) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the token at place 0, before the first frame."""
    status = close(
        graph,
        tokens,
        emitting,
        epsilons,
        slot,
        history,
        registers,
        floats,
        INFINITY,
        queue,
        queued,
        work,
    )
    if status == DONE and lattice[0] >= 0:
        status = record_frame(
            graph, tokens, emitting, slot, history, lattice, registers, row, INFINITY, queue, work
        )
    return status
