"""Token passing, compiled: the emit step over a packed graph, and the loop over frames.

The rules are those of Kaldi's FasterDecoder: per frame a cutoff from beam and histogram (`pruning`),
emitting arcs against a cutoff for the next frame, then a worklist over epsilon arcs (`epsilon`). What
differs is the layout. A token keeps its place as long as it lives, and the arcs that leave it are copied once,
when it is made, into lists without gaps: so a frame first computes all arcs' costs in one pass, knows
the exact cutoff for the next frame before it makes a token, and then touches only arcs that pass.
Tokens are found by a sparse set; the history holds only arcs with a word or into a phone's first state.

Tokens are structs of arrays of length n_states + 1 (the last is scratch): `state`; `cost`, `hist` before
the frame (`cost` +inf: dead); `new_cost` after it and `come`, how it came about: number of a listed
emitting arc, BY_LOOP, or BY_ENTRY (its history is in `new_hist`); `loop_label`, `loop_weight` from the
graph. Places [0, n) have their arcs listed, [n, m) are new. `slot[state]` is a token's place if that
place names the state. Emitting arcs: `source` (place), `label`, `weight` (insertion penalty included),
`target` (state), `record` (the arc's number where the history wants it, else -1), and per frame `total`
(cost) and `chosen` (which passed); epsilon arcs the same without `label`. Indices are unsigned, which
spares Python's rule for negative ones. History is int32 [capacity, 3]: previous entry (-1: none), arc, frame.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipelines.search.kernels.epsilon import close
from pipelines.search.kernels.lattice import record_frame
from pipelines.search.kernels.layout import (
    ADAPTIVE,
    BEST,
    BY_LOOP,
    CHOSEN,
    CONTENDERS,
    DONE,
    EMIT_ARCS,
    EMITTING,
    EPSILON_ARCS,
    EXAMINED,
    FRAME,
    INFINITY,
    LARGEST,
    LIMIT,
    PENDING,
    SENONES,
    TOKENS,
    M,
    N,
)
from pipelines.search.kernels.prefetch import prefetch
from pipelines.search.kernels.pruning import REDUCING, below, prune
from profiler.kernel_spans import HAS_CLOCK, now_ns, put

AHEAD = 16
"""Arcs between the prefetch of a target's slot and its use."""


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=REDUCING)
def _loop(
    n: int, cost: Any, weight: Any, label: Any, row: Any, new_cost: Any, come: Any
) -> Any:  # pragma: no cover - compiled
    """Pass tokens over their self-loops; the least cost."""
    low = INFINITY
    for i in range(n):
        total = cost[i] + weight[i] + row[label[i]]
        new_cost[i] = total
        low = min(low, total)
    for i in range(n):
        come[i] = BY_LOOP
    return low


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=REDUCING)
def _price(
    n: int, cost: Any, source: Any, weight: Any, label: Any, row: Any, total: Any
) -> Any:  # pragma: no cover - compiled
    """Cost over each listed emitting arc; the least of them."""
    low = INFINITY
    for e in range(n):
        value = cost[source[e]] + weight[e] + row[label[e]]
        total[e] = value
        low = min(low, value)
    return low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mark(n: int, cost: Any, label: Any, asked: Any) -> None:  # pragma: no cover - compiled
    """Mark in asked [n_senones + 1] the labels of those whose cost is finite."""
    for i in range(n):
        asked[label[i] if cost[i] < INFINITY else np.uint32(0)] = 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def emit(
    states: Any,
    tokens: Any,
    emitting: Any,
    slot: Any,
    registers: Any,
    floats: Any,
    row: Any,
    asked: Any,
    work: Any,
) -> Any:  # pragma: no cover - compiled
    """Pass tokens over self-loops and emitting arcs; returns the cutoff for the new tokens.

    `row[label]`: cost of each senone by label, row[0] = inf for states without a self-loop.
    """
    state, cost, _, new_cost, _, come, loop_label, loop_weight = tokens
    source, label, weight, target, _, total, chosen = emitting
    n, n_arcs = registers[N], registers[EMITTING]
    low = _loop(n, cost, loop_weight, loop_label, row, new_cost, come)
    low = min(low, _price(n_arcs, cost, source, weight, label, row, total))
    limit = np.float32(low + floats[ADAPTIVE])
    passed = 0
    for e in range(n_arcs):
        chosen[passed] = e
        passed += total[e] < limit
    mark(n_arcs, total, label, asked)
    mark(n, cost, loop_label, asked)
    m = n
    nowhere = np.uint32(len(new_cost) - 1)
    for j in range(passed):
        if j + AHEAD < passed:
            prefetch(slot, target[chosen[j + AHEAD]])  # type: ignore[call-arg]
        e = chosen[j]
        goal = target[e]
        place = slot[goal]
        if not (place < m and state[place] == goal):
            prefetch(states, goal)  # type: ignore[call-arg]
            place = np.uint32(m)
            state[m] = goal
            new_cost[m] = INFINITY
            slot[goal] = m
            m += 1
        # Which of two is better nobody can predict: what loses is written where nobody reads.
        at = place if total[e] < new_cost[place] else nowhere
        new_cost[at] = total[e]
        come[at] = e
    n_asked = 0
    asked[0] = 0
    for s in range(len(asked)):
        n_asked += asked[s]
        asked[s] = 0
    registers[M] = m
    registers[CHOSEN] = passed
    floats[BEST] = low
    work[TOKENS] += below(cost, n, INFINITY)
    work[EMIT_ARCS] += n + n_arcs
    work[SENONES] += n_asked
    return limit


@numba.njit(cache=True, nogil=True, error_model="numpy")
def senones_asked(
    tokens: Any, emitting: Any, registers: Any, asked: Any, found: Any
) -> tuple[int, int]:  # pragma: no cover
    """The senones that the next frame will look up: (how many, arcs gone over), ascending in `found`.

    `asked` [n_senones + 1] is workspace, all zero before and after; `found` int64 [n_senones + 1].
    """
    _, cost, _, _, _, _, loop_label, _ = tokens
    source, label, _, _, _, _, _ = emitting
    n, n_arcs = registers[N], registers[EMITTING]
    mark(n, cost, loop_label, asked)
    for e in range(n_arcs):
        asked[label[e] if cost[source[e]] < INFINITY else np.uint32(0)] = 1
    asked[0] = 0
    count = 0
    for s in range(1, len(asked)):
        # Without a branch: whether a senone is asked for is as good as random.
        found[count] = s - 1
        count += asked[s]
        asked[s] = 0
    return count, n + n_arcs


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance(
    graph: Any,
    scores: Any,
    begin: int,
    end: int,
    scale: float,
    limits: Any,
    tokens: Any,
    emitting: Any,
    epsilons: Any,
    slot: Any,
    history: Any,
    lattice: Any,
    registers: Any,
    floats: Any,
    row: Any,
    asked: Any,
    queue: Any,
    queued: Any,
    scratch: Any,
    work: Any,
    patience_ns: int,
    spans: Any,
    stages: tuple[int, int, int, int],
    called_ns: int,
    first_frame: int,
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Frames begin … end of `scores`; (frames done so far, why it stopped).

    Comes back early to keep within `patience_ns`, when the history is full (the frame is then
    taken up again from where it can be) and when no token survives. Records a span each of emit,
    epsilon, prune and, where alternatives are kept, lattice (`stages`) for the frames done into the
    lent ring `spans`, one after another from `called_ns` on; `first_frame` is the run-global number
    of frame 0 of `scores`.
    """
    minus = np.float32(-scale)
    started = now_ns()
    emit_ns = epsilon_ns = prune_ns = lattice_ns = 0
    work[:] = 0
    before = work.copy()
    status = DONE
    t = begin
    while t < end:
        if registers[PENDING] != 0:
            t0 = now_ns()
            status = prune(
                graph,
                tokens,
                emitting,
                epsilons,
                slot,
                history,
                registers,
                floats,
                limits,
                scratch,
                work,
            )
            prune_ns += now_ns() - t0
            if status != DONE:
                break
        t1 = now_ns()
        row[0] = INFINITY
        for s in range(scores.shape[1]):
            value = minus * scores[t, s]
            # Not a number, or no bad score at all: what comes of it could be no cost, nor any index.
            row[s + 1] = value if value >= -LARGEST else INFINITY
        before[:] = work
        limit = emit(graph[0], tokens, emitting, slot, registers, floats, row, asked, work)
        t2 = now_ns()
        emit_ns += t2 - t1
        status = close(
            graph,
            tokens,
            emitting,
            epsilons,
            slot,
            history,
            registers,
            floats,
            limit,
            queue,
            queued,
            work,
        )
        t3 = now_ns()
        epsilon_ns += t3 - t2
        if status == DONE and lattice[0] >= 0:
            status = record_frame(
                graph, tokens, emitting, slot, history, lattice, registers, row, limit, queue, work
            )
            t4 = now_ns()
            lattice_ns += t4 - t3
            t3 = t4
        if status != DONE:
            work[:] = before
            break
        registers[PENDING] = 1
        floats[LIMIT] = limit
        registers[FRAME] += 1
        t += 1
        if t3 - started > patience_ns:
            break
    if HAS_CLOCK:
        # What the call itself costs around the steps belongs to the largest of them.
        at = max(now_ns() - epsilon_ns - prune_ns - lattice_ns, called_ns + emit_ns)
        first, frames = first_frame + begin, t - begin
        tokens_passed, arcs_passed, asked_for = work[TOKENS], work[EMIT_ARCS], work[SENONES]
        put(spans, stages[0], called_ns, at, first, frames, tokens_passed, arcs_passed, asked_for)
        put(spans, stages[1], at, at + epsilon_ns, first, frames, work[EPSILON_ARCS], 0, 0)
        at += epsilon_ns
        put(spans, stages[2], at, at + prune_ns, first, frames, work[EXAMINED], 0, 0)
        at += prune_ns
        if lattice[0] >= 0:
            put(spans, stages[3], at, at + lattice_ns, first, frames, work[CONTENDERS], 0, 0)
    return t, status
