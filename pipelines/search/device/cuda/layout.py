"""What the CUDA search's kernels and the host agree on: arrays, what their rows are, and why a kernel stopped."""

from typing import NamedTuple

import numpy as np

from profiler.arrays import I32, I64

FREE = (1 << 63) - 1  # Key of a state without a token; those of tokens are less
ARC_MASK = (1 << 32) - 1
START = ARC_MASK
"""In place of an arc: the token that an utterance begins with. Behind all arcs, a self-loop is n_arcs + state."""
SIGN = 0x7FFFFFFF
INFINITE_ORDER = 0x7F800000  # `order` of +inf
LARGEST = np.float32(1e30)  # As `kernels.layout.LARGEST`: a score that gains more is no score
INFINITY = np.float32(np.inf)

# Of an arc, in place of its word: it has one; the history holds it.
WORD, RECORDED = 1, 2
# Rows of the lists, int32 [utterances, N_LISTS, room + 1]. By token: state, bits of its cost, where its arcs begin, its
# history before and after pruning (SIDE says which is which). Then states touched in a frame, and states whose epsilon
# arcs wait.
STATE, COST, OFFSET, ENTRY, OTHER_ENTRY, TOUCHED, QUEUE, OTHER_QUEUE, N_LISTS = range(9)
# By state, int32 [utterances, 2, states]: the place of its token; the last round for which it was queued.
PLACE, QUEUED = range(2)
# Books of an utterance, int64: tokens, their arcs, touched states; whether pruning is due, and whether the utterance is
# to begin; history entries; frames; which ENTRY row holds; the last round; next frame of the block, and how many it
# has; why it stopped.
N, ARCS, M, PENDING, OPENING, USED, FRAME, SIDE, ROUND, NEXT, LENGTH, STATUS = range(12)
# Work since the host set it to zero: tokens expanded, arcs priced, epsilon arcs followed, states touched, entries
# written, tokens kept.
TOKENS, EMIT_ARCS, EPSILON_ARCS, TOUCHED_STATES, WRITTEN, KEPT, N_BOOKS = range(12, 19)
# Floats of an utterance, as in `kernels.layout`: taken off so far, the next frame's beam, the last frame's limit and
# least cost, and the last cutoff less the best.
OFF, ADAPTIVE, LIMIT, BEST, CUTOFF, N_FLOATS = range(6)
# Settings of a launch, float64.
BEAM, BEAM_DELTA, MAX_ACTIVE, MIN_ACTIVE, PENALTY, SCALE = range(6)
EPSILON_STATES, START_STATE, PRUNE_LAST, STAMPED, N_NUMBERS = range(6, 11)
DONE, NEED_ROOM, NEED_HISTORY, NO_TOKENS = range(4)
"""Why a thread block stopped; the host makes room, and it goes on where it was."""
PHASES = ("cutoff", "compact", "history", "emit", "epsilon")
"""Between the stamps of a frame, ns, int64 [utterances, frames, len(PHASES) + 1]."""


class GraphArrays(NamedTuple):
    """`states` int32 [n + 1, 4] and `arcs` int32 [m, 4] are the graph's records, weights as bits and in place of an
    arc's word WORD and RECORDED; `source` int32 [m] is the state that an arc leaves."""

    states: I32
    arcs: I32
    source: I32


class UtteranceArrays(NamedTuple):
    """What is known of an utterance: by state its `keys` and `by_state`, its `lists`, and `history`."""

    keys: I64
    by_state: I32
    lists: I32
    history: I32
