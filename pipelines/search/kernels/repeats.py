"""The search's kernels done again and again on the same lists, compiled, so that the calls do not count: see `roofs`.

What a kernel has changed is put back where the next repeat would otherwise do less. Scores and costs differ from
repeat to repeat, as those of frames do: else the processor would learn which way each branch goes.
"""

from __future__ import annotations

import numpy as np

from pipelines.search.kernels import calls, epsilon, lattice, layout, pruning, token_passing
from pipelines.search.kernels.intrinsics import prefetch
from pipelines.search.kernels.numba_flags import njit_called, njit_inlined
from profiler.arrays import F32, I32, I64, U32

MIXING = 2531
"""From one repeat's order to the next: odd, so that of 2^k orders none comes back before all others came."""


@njit_inlined
def _mixed(i: int, by: int, count: int) -> int:  # pragma: no cover - compiled
    """Another place below `count` for each place `i`; where there is none, the same."""
    place = i ^ by
    return place if place < count else i


@njit_called
def emit(table: I64, bank: F32, limit: float, repeats: int) -> int:  # pragma: no cover - compiled
    """Emit with labels at other costs each time; how many arcs passed."""
    arrays = calls.named(table)
    row, floats, state = arrays.labels.row, arrays.books.floats, arrays.books.decoder_state
    passed = 0
    first = 0
    for _ in range(repeats):
        for s in range(1, len(row)):
            row[s] = bank[first + s]
        first = first + 1 if first + 1 < len(row) else 0
        floats[layout.ADAPTIVE] = limit
        token_passing.emit(arrays)
        passed += state[layout.CHOSEN]
    return int(passed)


@njit_called
def labels(table: I64, scores: F32, repeats: int) -> None:  # pragma: no cover - compiled
    """Price the labels of a frame and emit."""
    arrays = calls.named(table)
    for _ in range(repeats):
        token_passing.price_labels(arrays.labels.row, scores, 0, np.float32(-0.1))
        token_passing.emit(arrays)


@njit_called
def close(
    table: I64, bank: F32, come: I32, limit: float, repeats: int
) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the same places at other costs each time; how many arcs were gone over."""
    arrays = calls.named(table)
    named = calls.numbers_of(arrays)
    tokens, state, work = arrays.tokens, arrays.books.decoder_state, arrays.books.work
    m, used = state[layout.M], state[layout.HISTORY]
    work[layout.EPSILON_ARCS] = 0
    first = 0
    for _ in range(repeats):
        for i in range(m):
            tokens.new_cost[i] = bank[first + i]
            tokens.come[i] = come[i]
        first = first + 1 if first + 1 < m else 0
        state[layout.M], state[layout.HISTORY] = m, used
        epsilon.close(arrays, named, np.float32(limit))
    state[layout.M], state[layout.HISTORY] = m, used
    return int(work[layout.EPSILON_ARCS])


@njit_called
def prune(
    table: I64, new: U32, come: I32, at: I64, repeats: int
) -> None:  # pragma: no cover - compiled
    """Prune again and again; `new` [at least as many as there are]: the states of the new tokens, others each time.

    `come` [as many as there are tokens]: how they came about. Which token has which of both differs from repeat to
    repeat. `at` [2]: where in both the next call goes on. States are fetched ahead, as the step that makes tokens does.
    """
    arrays = calls.named(table)
    named = calls.numbers_of(arrays)
    state, floats = arrays.books.decoder_state, arrays.books.floats
    n, m, used = state[layout.N], state[layout.M], state[layout.HISTORY]
    emitting, epsilons = state[layout.EMITTING], state[layout.EPSILONS]
    first, mixed = at[0], at[1]
    # As many states as there are new tokens come in another order, more of them in turns.
    step = m - n if len(new) > m - n else 0
    for _ in range(repeats):
        # Not further along only: a processor knows a row of branches by what it begins with, wherever that is.
        for i in range(m):
            arrays.tokens.come[i] = come[_mixed(i, mixed, m)]
        for i in range(n, m):
            place = _mixed(i - n, mixed, m - n) + first
            goal = new[place if place < len(new) else place - len(new)]
            prefetch(arrays.graph.states, goal)  # type: ignore[call-arg]
            arrays.tokens.state[i] = goal
        mixed = (mixed + MIXING) % max(m, 1)
        first += step
        if first >= len(new):
            first -= len(new)
        pruning.prune(arrays, named)
        state[layout.N], state[layout.M], state[layout.HISTORY] = n, m, used
        state[layout.EMITTING], state[layout.EPSILONS] = emitting, epsilons
        floats[layout.OFFSET] = 0.0
    at[0], at[1] = first, mixed


@njit_called
def close_up(
    table: I64, cost: F32, source: U32, repeats: int
) -> None:  # pragma: no cover - compiled
    """Close up lists of tokens with `cost` [tokens], +inf the dead ones, and arcs with `source` [arcs]."""
    arrays = calls.named(table)
    state, tokens = arrays.books.decoder_state, arrays.tokens
    n, emitting = state[layout.N], state[layout.EMITTING]
    for _ in range(repeats):
        for i in range(n):
            tokens.cost[i] = cost[i]
        for e in range(emitting):
            arrays.emitting.source[e] = source[e]
        pruning.close_up(arrays)
        state[layout.EMITTING] = emitting


@njit_called
def rank(table: I64, bank: F32, repeats: int) -> np.float32:  # pragma: no cover - compiled
    """Find the cost with the rank max_active among as many others each time; their sum."""
    arrays = calls.named(table)
    named = calls.numbers_of(arrays)
    m = arrays.books.decoder_state[layout.M]
    first = 0
    total = np.float32(0.0)
    for _ in range(repeats):
        # Where they lie: copying them is no part of it.
        costs = bank[first:]
        first = first + 1 if first + 1 < m else 0
        total += pruning.ranked(costs, m, m, np.float32(0.0), named, arrays.scratch)
    return total


@njit_called
def active(table: I64, repeats: int) -> None:  # pragma: no cover - compiled
    """Find the active senones."""
    arrays = calls.named(table)
    for _ in range(repeats):
        token_passing.active_senones(arrays)


@njit_called
def record(table: I64, repeats: int) -> int:  # pragma: no cover - compiled
    """Record the ways of the same frame again and again; how many they are."""
    arrays = calls.named(table)
    named = calls.numbers_of(arrays)
    state, work = arrays.books.decoder_state, arrays.books.work
    used, kept = state[layout.HISTORY], state[layout.ALTERNATIVES]
    work[layout.CONTENDERS] = 0
    for _ in range(repeats):
        lattice.record_frame(arrays, named, np.float32(100.0))
        state[layout.HISTORY], state[layout.ALTERNATIVES] = used, kept
    return int(work[layout.CONTENDERS])
