"""The compiled functions of the search that Python calls.

The arrays cross as a `table` of addresses, everything else in plain tuples, and names exist only inside: numba derives
the types of NamedTuples in Python, which makes a call two to three times as slow (ten arrays: 1.2 µs instead of 0.5).
"""

from __future__ import annotations

import numpy as np

from pipelines.search.kernels import epsilon, pruning, token_passing
from pipelines.search.kernels.intrinsics import arrays_at
from pipelines.search.kernels.lattice import record_frame
from pipelines.search.kernels.layout import (
    BLANK,
    CLOSED_UP,
    CONTENDERS,
    DONE,
    EMIT_ARCS,
    ENTERED,
    EPSILON_ARCS,
    EXAMINED,
    FOLLOWED,
    FRAME,
    HISTORY,
    INFINITY,
    LIMIT,
    MISFIT,
    N_WORK,
    PASSED,
    PENDING,
    RANKED,
    RANKING_NS,
    SENONES,
    SKIPPED,
    TOKENS,
    Arrays,
    Books,
    Emitting,
    Epsilons,
    Labels,
    Lattice,
    Numbers,
    Places,
    Records,
    Scratch,
    Steps,
    Tokens,
)
from profiler.arrays import F32, I64
from profiler.process.numba_flags import njit_called, njit_inlined, njit_inner
from profiler.recording.kernel_spans import HAS_CLOCK, now_ns, put, put_open
from profiler.recording.layout import Lent

Recording = tuple[Lent, Steps, int]
"""Where spans go: a lent ring, the stages, and when the call was made (ns)."""
Advanced = tuple[int, int]
"""Frames done so far, and why it stopped."""


@njit_inlined
def named(table: I64) -> Arrays:  # pragma: no cover - compiled
    """The arrays of a table by their names."""
    plain = arrays_at(table)
    return Arrays(
        Records(*plain[0]),
        Tokens(*plain[1]),
        Emitting(*plain[2]),
        Epsilons(*plain[3]),
        Scratch(*plain[4]),
        Lattice(*plain[5]),
        Places(*plain[6]),
        Labels(*plain[7]),
        Books(*plain[8]),
    )


@njit_inlined
def numbers_of(arrays: Arrays) -> Numbers:  # pragma: no cover - compiled
    """What stays as it is while a kernel runs."""
    held = arrays.books.numbers[0]
    return Numbers(
        held.n_epsilon_states,
        held.n_ranks,
        held.lattice_beam,
        held.penalty,
        held.beam,
        held.beam_delta,
        held.max_active,
        held.min_active,
        held.blank,
        held.skip_above,
    )


@njit_called
def begin(table: I64, lattice: bool | None) -> int:  # pragma: no cover - compiled
    """Epsilon closure of the token at place 0, before the first frame; returns DONE or the reason for stopping."""
    arrays: Arrays = named(table)
    numbers = numbers_of(arrays)
    status = epsilon.close(arrays, numbers, INFINITY)
    if lattice is not None:  # noqa: SIM102 - numba leaves out what a look at None alone decides
        if status == DONE:
            status = record_frame(arrays, numbers, INFINITY)
    return status


@njit_called
def advance(
    table: I64,
    scores: F32,
    frames: tuple[int, int, int, int, int],
    scale: float,
    patience_ns: int,
    recording: Recording,
    lattice: bool | None,
) -> Advanced:  # pragma: no cover - compiled
    """Frames begin … end of `scores`.

    Comes back early to keep within `patience_ns`, when the history is full (the frame is then
    taken up again from where it can be) and when no token survives. Records a span each of epsilon,
    prune and, where there is anything of them, rank and lattice for the frames done, one after another from when the
    call was made; that of emit, with the call itself, is left open until it has returned. `frames`: begin, end,
    the run-global number of frame 0 of `scores`, and how many frames of the audio all of them and one of them stand
    for. `lattice`: None where none is recorded; numba leaves its kernels out then, which take seconds to compile.
    MISFIT, and nothing is touched, where `scores` have no such frames or senones: in Python a look at that takes
    microseconds.
    """
    arrays: Arrays = named(table)
    numbers = numbers_of(arrays)
    _, decoder_state, floats, work, before, _ = arrays.books
    row = arrays.labels.row
    first, end, first_frame, audio_frames, each = frames
    if scores.shape[1] != len(row) - 1 or not 0 <= first <= end <= scores.shape[0]:
        return first, MISFIT
    minus = np.float32(-scale)
    started = now_ns()
    epsilon_ns = prune_ns = lattice_ns = 0
    work[:] = 0
    status = DONE
    t = first
    while t < end:
        blank = scores[t, numbers.blank] > numbers.skip_above
        if blank and decoder_state[BLANK] != 0:
            # In the search nothing would change but costs, of all tokens alike, nearly: the time goes on without it.
            decoder_state[FRAME] += 1
            decoder_state[SKIPPED] += 1
            t += 1
            continue
        if decoder_state[PENDING] != 0:
            t0 = now_ns()
            status = pruning.prune(arrays, numbers)
            prune_ns += now_ns() - t0
            if status != DONE:
                break
        token_passing.price_labels(row, scores, t, minus)
        for n in range(N_WORK):
            before[n] = work[n]
        limit = token_passing.emit(arrays)
        t2 = now_ns()
        status = epsilon.close(arrays, numbers, limit)
        t3 = now_ns()
        epsilon_ns += t3 - t2
        if lattice is not None:  # noqa: SIM102 - as in `begin`
            if status == DONE:
                status = record_frame(arrays, numbers, limit)
                t4 = now_ns()
                lattice_ns += t4 - t3
                t3 = t4
        if status != DONE:
            for n in range(N_WORK):
                work[n] = before[n]
            break
        decoder_state[PENDING] = 1
        floats[LIMIT] = limit
        decoder_state[FRAME] += 1
        decoder_state[SKIPPED] = 0
        decoder_state[BLANK] = blank
        t += 1
        if t3 - started > patience_ns:
            break
    if HAS_CLOCK:
        took = epsilon_ns, prune_ns, lattice_ns
        begun = first * each
        _record(recording, first_frame + begun, min(t * each, audio_frames) - begun, work, took, numbers.n_ranks > 0)
    return t, status


@njit_inner
def _record(
    recording: Recording, begun: int, done: int, work: I64, took: tuple[int, int, int], ranked: bool
) -> None:  # pragma: no cover - compiled
    """Put the spans of `done` frames from the run's `begun` on, one after another; emit's is left open.

    `took`: ns of epsilon, of prune with rank, of lattice. `ranked`: whether a lattice is recorded.
    """
    spans, stages, at = recording
    epsilon_ns, prune_ns, lattice_ns = took
    # The active senones are counted by emit; its own three counts are those that its time follows.
    counts = work[EPSILON_ARCS], work[FOLLOWED], work[SENONES]
    put(spans, stages[1], at, at + epsilon_ns, begun, done, counts)
    at += epsilon_ns
    ranking_ns: int = work[RANKING_NS]
    prune_ns -= ranking_ns
    if work[EXAMINED] > 0:
        # Else it was pruned before the call, to know which senones are active.
        counts = work[EXAMINED], work[ENTERED], work[CLOSED_UP]
        put(spans, stages[2], at, at + prune_ns, begun, done, counts)
        at += prune_ns
    # As the counts beside it: numba takes a literal for a type, and compiles `put` for each.
    none = 0 * work[RANKED]
    if work[RANKED] > 0:
        put(spans, stages[4], at, at + ranking_ns, begun, done, (work[RANKED], none, none))
        at += ranking_ns
    if ranked:
        put(spans, stages[3], at, at + lattice_ns, begun, done, (work[CONTENDERS], none, none))
        at += lattice_ns
    counts = work[TOKENS], work[EMIT_ARCS], work[PASSED]
    put_open(spans, stages[0], at, begun, done, counts)


@njit_called
def prune(table: I64) -> int:  # pragma: no cover - compiled
    arrays: Arrays = named(table)
    return pruning.prune(arrays, numbers_of(arrays))


@njit_called
def active_senones(table: I64) -> tuple[int, int]:  # pragma: no cover - compiled
    return token_passing.active_senones(named(table))


@njit_called
def entry_of(place: int, table: I64) -> np.int32:  # pragma: no cover - compiled
    """History entry of the token at `place` after the last frame; the history must have room for one."""
    arrays: Arrays = named(table)
    history, decoder_state = arrays.books.history, arrays.books.decoder_state
    frame = np.int32(decoder_state[FRAME] - 1 - decoder_state[SKIPPED])
    entry, decoder_state[HISTORY] = epsilon.entry_of(
        np.uint32(place), arrays.tokens, arrays.emitting, history, decoder_state[HISTORY], frame
    )
    return entry
