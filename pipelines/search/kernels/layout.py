"""What the search's kernels and their callers agree on: arrays and what they are called, decoder state, return codes.

A token keeps its place as long as it lives. Places [0, N) have their arcs listed, [N, M) are new. All arrays are as
long as the graph can ever need. Indices are unsigned where they can be, which spares Python's rule for negative ones.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import DTypeLike

from profiler.arrays import F32, F64, I32, I64, U8, U32, Array, Bool

# Decoder state: int64 values that live from call to call. [0, N) are listed tokens, [0, M) all of them;
# EMITTING and EPSILONS count listed arcs, CHOSEN those of the last frame that led to a token. FRAME counts frames,
# SKIPPED those left out since the last that was searched; BLANK: whether the blank of the last one was over the limit.
N, M, PENDING, HISTORY, FRAME, EMITTING, EPSILONS, CHOSEN, ALTERNATIVES, SKIPPED, BLANK, N_DECODER_STATE = range(12)
# Decoder state, floats: what was taken off all costs, the beam that the last cutoff allows, the cost over
# which a token of the last frame does not count, the least cost in it, the last cutoff less the best.
OFFSET, ADAPTIVE, LIMIT, BEST, CUTOFF, N_FLOATS = range(6)
# Work of a call: counts, and how long ranking took (ns).
TOKENS, EMIT_ARCS, PASSED, SENONES, EPSILON_ARCS, FOLLOWED = range(6)
EXAMINED, ENTERED, CLOSED_UP, CONTENDERS, RANKED, RANKING_NS, N_WORK = range(6, 13)
# Why a kernel came back; ENDLESS: epsilon arcs make paths cheaper for ever, MISFIT: the scores are not those it needs.
DONE, NEED_HISTORY, NO_TOKENS, ENDLESS, MISFIT = range(5)

INFINITY = np.float32(np.inf)
LARGEST = np.float32(1e30)
"""Of a weight or a score's gain: a path over a hundred million of them still adds up to a number."""
MAX_EPSILONS = 1 << 25  # Epsilon arcs gone over in one frame, beyond which they are taken to have no end
BINS = 512  # Of the histogram that finds the cutoff for max_active before an exact selection
# How a token came about in the last frame, where it is not the number of a listed emitting arc.
BY_LOOP, BY_ENTRY = -1, -2


STATE = np.dtype([("first", "<i4"), ("epsilon", "<i4"), ("loop_label", "<i4"), ("loop_weight", "<f4")])
"""A state's emitting arcs are first … epsilon, its epsilon arcs epsilon … next state's first."""
ARC = np.dtype([("target", "<i4"), ("ilabel", "<i4"), ("olabel", "<i4"), ("weight", "<f4")])


class Records(NamedTuple):
    """The graph: `states` STATE [n_states + 1] and `arcs` ARC [m], see `wfst.Graph`."""

    states: Array
    arcs: Array


class Tokens(NamedTuple):
    """By place, [n_states + 1], the last of them scratch: what stands in `state`.

    `cost`, `hist` (history entry) before the frame (`cost` +inf: dead); `new_cost` after it and `come`, how the token
    came about: number of a listed emitting arc, BY_LOOP, or BY_ENTRY (its history is in `new_hist`); `loop_label`,
    `loop_weight` from the graph.
    """

    state: U32
    cost: F32
    hist: I32
    new_cost: F32
    new_hist: I32
    come: I32
    loop_label: U32
    loop_weight: F32


class Emitting(NamedTuple):
    """Emitting arcs that leave listed tokens, [arcs + 1]: `source` (place), `label`, `weight` (insertion penalty
    included), `target` (state), `record` (the arc's number where the history wants it, else -1); per frame `total`
    (cost) and `chosen` (which passed)."""

    source: U32
    label: U32
    weight: F32
    target: U32
    record: I32
    total: F32
    chosen: U32


class Epsilons(NamedTuple):
    """Epsilon arcs that leave listed tokens, as `Emitting`."""

    source: U32
    weight: F32
    target: U32
    record: I32
    total: F32
    chosen: U32


class Scratch(NamedTuple):
    """By place, [n_states + 1], and `bins` of the histogram's [BINS + 1]; of no matter between steps."""

    values: F32
    places: U32
    backpointers: I32
    moved: I32
    bins: I32


class Lattice(NamedTuple):
    """What ways that nearly won are kept in: see `lattice`.

    `alternative` int32 [capacity, 2] (entry, the losing way's entry) ascending by entry, `delta` [capacity] what it
    cost more; `head` [places] and a pool of contenders linked by token, [places + arcs]; `rank` [n_epsilon_states]
    orders states so that epsilon arcs lead upwards.
    """

    alternative: I32
    delta: F32
    head: I32
    way_cost: F32
    way_entry: I32
    way_next: I32
    rank: I32


class Places(NamedTuple):
    """`slot` [n_states + 1]: the place of a state's token, if that names the state (`sparse_set`); `queue` of places
    whose epsilon arcs wait, and whether a place is `queued`, [n_states + 1]."""

    slot: U32
    queue: U32
    queued: U8


class Labels(NamedTuple):
    """By label (senone + 1), [n_senones + 1]: whether it is the first state of a phone's (`entering`), its cost in
    this frame (`row`; row[0] is +inf, for states without a self-loop), whether it is `active` (all zero between
    steps), and room for those `found`."""

    entering: Bool
    row: F32
    active: U8
    found: I64


class Books(NamedTuple):
    """`history` int32 [capacity, 3], see `history`; `decoder_state`, `floats` and `work`, whose places are named above;
    `before`: the work before the frame at hand; `numbers` NUMBERS [1]."""

    history: I32
    decoder_state: I64
    floats: F64
    work: I64
    before: I64
    numbers: Array


class Arrays(NamedTuple):
    """All that the kernels of one search work on."""

    graph: Records
    tokens: Tokens
    emitting: Emitting
    epsilons: Epsilons
    scratch: Scratch
    lattice: Lattice
    places: Places
    labels: Labels
    books: Books


class Numbers(NamedTuple):
    """What stays as it is while a kernel runs.

    States below `n_epsilon_states` are those with epsilon arcs; `n_ranks` of them, 0 where no alternatives are kept,
    and those within `lattice_beam` otherwise; what a word costs (`penalty`); Kaldi's limits of a frame's tokens. Costs
    in nat. Of a run of frames whose score of senone `blank` is over `skip_above` (unscaled) only the first is searched.
    """

    n_epsilon_states: int
    n_ranks: int
    lattice_beam: float
    penalty: float
    beam: float
    beam_delta: float
    max_active: int
    min_active: int
    blank: int
    skip_above: float


NUMBERS = np.dtype([(name, "i8" if kind is int else "f8") for name, kind in get_type_hints(Numbers).items()])
"""`Numbers` as kernels find them."""

KINDS: Final[Mapping[str, tuple[DTypeLike, ...]]] = MappingProxyType(
    {
        "graph": (STATE, ARC),
        "tokens": ("u4", "f4", "i4", "f4", "i4", "i4", "u4", "f4"),
        "emitting": ("u4", "u4", "f4", "u4", "i4", "f4", "u4"),
        "epsilons": ("u4", "f4", "u4", "i4", "f4", "u4"),
        "scratch": ("f4", "u4", "i4", "i4", "i4"),
        "lattice": ("2i4", "f4", "i4", "f4", "i4", "i4", "i4"),
        "places": ("u4", "u4", "u1"),
        "labels": ("b1", "f4", "u1", "i8"),
        "books": ("3i4", "i8", "f8", "i8", "i8", NUMBERS),
    }
)
"""What the columns of each group of `Arrays` hold; of several numbers, an item is a row."""

Index = int | np.int32  # A place, an arc, a frame or an entry of the history, as a kernel has it at hand
Steps = tuple[int, int, int, int, int]  # The stages of emit, epsilon, prune, lattice and rank
