"""Epsilon closure of a frame's tokens, compiled; `token_passing` says by what rules."""

from typing import NamedTuple

import numpy as np

from pipelines.search.kernels import layout, sparse_set
from pipelines.search.kernels.history import append
from pipelines.search.kernels.intrinsics import prefetch
from pipelines.search.kernels.layout import Arrays, Emitting, Index, Numbers, Tokens
from profiler.arrays import I32
from profiler.process.numba_flags import njit_inlined, njit_inner

AHEAD = 4  # Queued tokens between the prefetch of one's arcs and its turn


class Front(NamedTuple):
    """How far a closure is: why it must stop, if it must; tokens and history entries there are; the least cost;
    where the queue begins and how many places wait in it."""

    status: int
    m: int
    used: int
    best: np.float32
    head: int
    waiting: int


@njit_inner
def entry_of(
    i: np.uint32, tokens: Tokens, emitting: Emitting, history: I32, used: int, frame: Index
) -> tuple[np.int32, int]:  # pragma: no cover - compiled
    """(history entry of a token after the frame, written if need be; entries now used)."""
    come = tokens.come
    e = come[i]
    if e == layout.BY_ENTRY:
        return tokens.new_hist[i], used
    entry = tokens.hist[i]
    if e >= 0:
        entry = tokens.hist[emitting.source[e]]
        arc = emitting.record[e]
        if arc >= 0:
            entry = append(history, used, entry, arc, frame)
            used += 1
    tokens.new_hist[i] = entry
    come[i] = layout.BY_ENTRY
    return entry, used


@njit_inlined
def _relax(
    arrays: Arrays, n_epsilon_states: int, front: Front, i: np.uint32, goal: np.uint32, value: np.float32, record: Index
) -> Front:  # pragma: no cover - compiled
    """Take the token at place `i` into state `goal` for `value`, if that is better; `record`: the arc's number where
    the history wants it, else -1."""
    tokens, books, queued = arrays.tokens, arrays.books, arrays.places.queued
    state, slot, queue = tokens.state, arrays.places.slot, arrays.places.queue
    status, m, used, best, head, waiting = front
    place = sparse_set.find(state, slot, goal, m)
    if place == m:
        sparse_set.insert(state, slot, goal, m)
        queued[m] = 0
        m += 1
    elif not value < tokens.new_cost[place]:
        return front
    if used > len(books.history) - 2:
        return Front(layout.NEED_HISTORY, m, used, best, head, waiting)
    frame = np.int32(books.decoder_state[layout.FRAME])
    entry, used = entry_of(i, tokens, arrays.emitting, books.history, used, frame)
    if record >= 0:
        entry = append(books.history, used, entry, record, frame)
        used += 1
    tokens.new_cost[place] = value
    tokens.new_hist[place] = entry
    tokens.come[place] = layout.BY_ENTRY
    if goal < n_epsilon_states and queued[place] == 0:
        tail = head + waiting
        if tail >= len(queue):
            tail -= len(queue)
        queue[tail] = place
        prefetch(arrays.graph.states, goal)  # type: ignore[call-arg]
        queued[place] = 1
        waiting += 1
    return Front(status, m, used, min(best, value), head, waiting)


@njit_inner
def close(arrays: Arrays, numbers: Numbers, limit: np.float32) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the new tokens within `limit`.

    Listed arcs first, which are few enough to price at once; tokens that these or the emit step bettered follow from a
    queue. Each round lengthens paths by an arc, so after as many rounds as there are states only a cycle that makes
    paths cheaper goes on (ENDLESS).
    """
    states, arcs = arrays.graph.states, arrays.graph.arcs
    state, new_cost = arrays.tokens.state, arrays.tokens.new_cost
    listed, queue, queued = arrays.epsilons, arrays.places.queue, arrays.places.queued
    source, weight, total, chosen = listed.source, listed.weight, listed.total, listed.chosen
    decoder_state, floats = arrays.books.decoder_state, arrays.books.floats
    n_epsilon_states = numbers.n_epsilon_states
    n, m, n_arcs = decoder_state[layout.N], decoder_state[layout.M], decoder_state[layout.EPSILONS]
    extra = np.float32(numbers.penalty)
    waiting, size = 0, len(queue)
    endless = n_arcs + min((n_epsilon_states + 1) * (len(arcs) + 1), layout.MAX_EPSILONS)
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
    front = Front(layout.DONE, m, decoder_state[layout.HISTORY], np.float32(floats[layout.BEST]), 0, waiting)
    for j in range(passed):
        x = chosen[j]
        i = source[x]
        # Once more: a listed arc before this one may have made its source cheaper.
        value = new_cost[i] + weight[x]
        front = _relax(arrays, n_epsilon_states, front, i, listed.target[x], value, listed.record[x])
        if front.status != layout.DONE:
            break
    while front.waiting > 0 and front.status == layout.DONE:
        status, m, used, best, head, waiting = front
        i = queue[head]
        queued[i] = 0
        if waiting > AHEAD and head + AHEAD < size:
            prefetch(arcs, states[state[queue[head + AHEAD]]].epsilon)  # type: ignore[call-arg]
        head = 0 if head + 1 == size else head + 1
        here = new_cost[i]
        at = state[i]
        begin, end = np.uint32(states[at].epsilon), np.uint32(states[at + 1].first)
        if here > limit:
            end = begin
        n_arcs += end - begin
        if n_arcs > endless:
            status = layout.ENDLESS
        front = Front(status, m, used, best, head, waiting - 1)
        for k in range(begin, end):
            word = arcs[k].olabel != 0
            value = here + arcs[k].weight
            if word:
                value += extra
            if value > limit:
                continue
            record = np.int32(k) if word else np.int32(-1)
            goal = np.uint32(arcs[k].target)
            front = _relax(arrays, n_epsilon_states, front, i, goal, value, record)
            if front.status == layout.NEED_HISTORY:
                break
    _, m, used, best, head, waiting = front
    while waiting > 0:
        queued[queue[head]] = 0
        head = 0 if head + 1 == size else head + 1
        waiting -= 1
    decoder_state[layout.M] = m
    decoder_state[layout.HISTORY] = used
    floats[layout.BEST] = best
    arrays.books.work[layout.EPSILON_ARCS] += n_arcs
    arrays.books.work[layout.FOLLOWED] += n_arcs - decoder_state[layout.EPSILONS]
    return front.status
