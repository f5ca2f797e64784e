"""The compiled functions of the search that Python calls.

The arrays cross as a `table` of addresses, everything else in plain tuples: numba derives the types of NamedTuples in
Python, which makes a call two to three times as slow (ten arrays: 1.2 µs instead of 0.5).
"""

import numpy as np

from pipelines.search.kernels import epsilon, layout, pruning, token_passing
from pipelines.search.kernels.intrinsics import arrays_at
from pipelines.search.kernels.lattice import record_frame
from pipelines.search.kernels.layout import Arrays, Numbers, Steps
from profiler.arrays import F32, I64
from profiler.process.numba_flags import njit_called, njit_inlined, njit_inner
from profiler.recording.kernel_spans import now_ns, put, put_open
from profiler.recording.layout import Lent

Recording = tuple[Lent, Steps, int]  # Where spans go: a lent ring, the stages, and when the call was made (ns)
Advanced = tuple[int, int]  # Frames done so far, and why it stopped


@njit_inlined
def named(table: I64) -> Arrays:  # pragma: no cover - compiled
    """The arrays of a table by their names."""
    plain = arrays_at(table)  # type: ignore[call-arg,var-annotated]
    return Arrays(
        layout.Records(*plain[0]),
        layout.Tokens(*plain[1]),
        layout.Emitting(*plain[2]),
        layout.Epsilons(*plain[3]),
        layout.Scratch(*plain[4]),
        layout.Lattice(*plain[5]),
        layout.Places(*plain[6]),
        layout.Labels(*plain[7]),
        layout.Books(*plain[8]),
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
    status = epsilon.close(arrays, numbers, layout.INFINITY)
    if lattice is not None:  # noqa: SIM102 - numba leaves out what a look at None alone decides
        if status == layout.DONE:
            status = record_frame(arrays, numbers, layout.INFINITY)
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
    """Frames begin … end of `scores`, within `patience_ns` or until the history is full or no token survives.

    `frames`: begin, end, the run-global number of frame 0 of `scores`, and how many frames of the audio all of them and
    one of them stand for. Records a span each of epsilon, prune and, where there is anything of them, rank and lattice,
    one after another from when the call was made; that of emit, with the call itself, is left open until it has
    returned. `lattice`: None where none is recorded; numba leaves its kernels out then, which take seconds to compile.
    MISFIT, and nothing is touched, where `scores` have no such frames or senones: in Python a look at that takes
    microseconds.
    """
    arrays: Arrays = named(table)
    numbers = numbers_of(arrays)
    _, decoder_state, floats, work, before, _ = arrays.books
    row = arrays.labels.row
    first, end, first_frame, audio_frames, each = frames
    if scores.shape[1] != len(row) - 1 or not 0 <= first <= end <= scores.shape[0]:
        return first, layout.MISFIT
    minus = np.float32(-scale)
    started = now_ns()
    epsilon_ns = prune_ns = lattice_ns = 0
    work[:] = 0
    status = layout.DONE
    t = first
    while t < end:
        blank = scores[t, numbers.blank] > numbers.skip_above
        if blank and decoder_state[layout.BLANK] != 0:
            # In the search nothing would change but costs, of all tokens alike, nearly: the time goes on without it.
            decoder_state[layout.FRAME] += 1
            decoder_state[layout.SKIPPED] += 1
            t += 1
            continue
        if decoder_state[layout.PENDING] != 0:
            t0 = now_ns()
            status = pruning.prune(arrays, numbers)
            prune_ns += now_ns() - t0
            if status != layout.DONE:
                break
        token_passing.price_labels(row, scores, t, minus)
        for n in range(layout.N_WORK):
            before[n] = work[n]
        limit = token_passing.emit(arrays)
        t2 = now_ns()
        status = epsilon.close(arrays, numbers, limit)
        t3 = now_ns()
        epsilon_ns += t3 - t2
        if lattice is not None:  # noqa: SIM102 - as in `begin`
            if status == layout.DONE:
                status = record_frame(arrays, numbers, limit)
                t4 = now_ns()
                lattice_ns += t4 - t3
                t3 = t4
        if status != layout.DONE:
            for n in range(layout.N_WORK):
                work[n] = before[n]
            break
        decoder_state[layout.PENDING] = 1
        floats[layout.LIMIT] = limit
        decoder_state[layout.FRAME] += 1
        decoder_state[layout.SKIPPED] = 0
        decoder_state[layout.BLANK] = blank
        t += 1
        if t3 - started > patience_ns:
            break
    took = epsilon_ns, prune_ns, lattice_ns
    begun = first * each
    _record(recording, first_frame + begun, min(t * each, audio_frames) - begun, work, took, numbers.n_ranks > 0)
    return t, status


@njit_inner
def _record(
    recording: Recording, begun: int, done: int, work: I64, took: tuple[int, int, int], ranked: bool
) -> None:  # pragma: no cover - compiled
    """Put the spans of `done` frames from the run's `begun` on, one after another; emit's is left open.

    `took`: ns of epsilon, of prune with rank, of lattice.
    """
    spans, stages, at = recording
    epsilon_ns, prune_ns, lattice_ns = took
    # The active senones are counted by emit; its own three counts are those that its time follows.
    counts = work[layout.EPSILON_ARCS], work[layout.FOLLOWED], work[layout.SENONES]
    put(spans, stages[1], at, at + epsilon_ns, begun, done, counts)
    at += epsilon_ns
    ranking_ns: int = work[layout.RANKING_NS]
    prune_ns -= ranking_ns
    if work[layout.EXAMINED] > 0:
        # Else it was pruned before the call, to know which senones are active.
        counts = work[layout.EXAMINED], work[layout.ENTERED], work[layout.CLOSED_UP]
        put(spans, stages[2], at, at + prune_ns, begun, done, counts)
        at += prune_ns
    # As the counts beside it: numba takes a literal for a type, and compiles `put` for each.
    none = 0 * work[layout.RANKED]
    if work[layout.RANKED] > 0:
        put(spans, stages[4], at, at + ranking_ns, begun, done, (work[layout.RANKED], none, none))
        at += ranking_ns
    if ranked:
        put(spans, stages[3], at, at + lattice_ns, begun, done, (work[layout.CONTENDERS], none, none))
        at += lattice_ns
    counts = work[layout.TOKENS], work[layout.EMIT_ARCS], work[layout.PASSED]
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
    frame = np.int32(decoder_state[layout.FRAME] - 1 - decoder_state[layout.SKIPPED])
    entry, decoder_state[layout.HISTORY] = epsilon.entry_of(
        np.uint32(place), arrays.tokens, arrays.emitting, history, decoder_state[layout.HISTORY], frame
    )
    return entry
