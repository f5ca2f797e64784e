"""The kernels of the search as roofs, on lists and tokens drawn at random that lie in the nearest two caches.

Each calls the very kernel on a graph without sense: tokens whose arcs lead to others or to states that have none,
in the shares that a search meets (librivox-0870 and cards-001, 5 000 words, beam 13), each of which
`python -m tests.bench.constants --only speech` measures by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from pipelines.scoring.roofs_tasks import after_reading
from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import layout
from pipelines.search.kernels import repeats as repeats_of
from pipelines.search.kernels.layout import ARC, STATE
from pipelines.search.workspace import Workspace
from profiler.arrays import F32, I32, U32
from profiler.clock import now_ns
from profiler.lanes import Lane
from profiler.machine.roofs.timing import Work, repeated

ARCS, PASSED, LABELS = "search arcs", "search passed arcs", "search labels"
LISTED, FOLLOWED = "search listed epsilons", "search followed epsilons"
EXAMINED, ENTERED, CLOSED_UP = "search examined", "search entered", "search closed up"
ACTIVE, FOUND, WAYS = "search active arcs", "search found", "search ways"
RANKED: Final = "search ranked"
ADVANCE: Final = "search call"
ACTIVE_CALL, PRUNE_CALL = "search active call", "search prune call"
COPIED: Final = "search senones copied"

Numbers = tuple[int, ...]
Family = Callable[[int, Numbers], Work]
"""Bytes of data and the numbers of a name, neither of which these families need → the work."""

PLACES = 4096
"""Tokens: with their arcs some 440 KB, in the second cache as those of a search are."""
ARCS_EACH = 5.77
"""Listed emitting arcs of two tokens."""
SENONES = 5126
"""Labels that are looked up: 20 KB, which share the first cache with the lists."""
FOUND_EACH = 0.324
"""Senones that are looked through for each token or listed arc in the work of ACTIVE."""
ARCS_PER_PASSED = 3.94
"""Tokens and listed arcs for each that passes in the work of PASSED, as ARCS_EACH and PASSING make them."""
PASSING = 1 / 3
"""Of the listed arcs, how many lead to a token."""
FRESH = 1 / 6
"""Of those, how many lead where no token was."""
LISTED_PASSING = 0.43
"""Of listed epsilon arcs, how many are within the limit."""
FRESH_BY_EPSILON = 1 / 9
"""Of the epsilon arcs within the limit, how many lead where no token was."""
FOLLOWED_EACH = 1.12
"""Epsilon arcs of a state that has any."""
FOLLOWED_PASSING = 0.4
"""Of followed epsilon arcs, how many are within the limit: new tokens' are less often, those of bettered ones more."""
FRESH_BY_FOLLOWING = 0.13
"""Of those, how many lead where no token was."""
RECENT_FRAMES, RECENT_BYTES = 16, 9e5
OLDER_FRAMES, OLDER_BYTES = 200, 4.5e6
"""So much do so many frames touch, graph and lists."""
OLDER, OLDEST = 0.47, 0.21
"""Of the lines of the graph that a new token needs, those that nothing has used in so many frames."""
DEAD = 0.31
"""Of the tokens, when the lists are closed up."""
NEW_TOKENS = 0.8
"""New tokens that are looked at, per listed epsilon arc."""
LATTICE_BEAM = 0.5
"""Ways within half of what costs range over are recorded."""
KEPT_BY_RANK = 0.83
"""Of the tokens within the beam, where they are too many."""
ACTIVE_SENONES = 0.37
"""Of all senones, those that are active."""
SPANS = 256
"""Room in the ring that a call is lent, emptied when half full."""
BY_ARC = 0.52
"""Of the tokens after a frame, how many came over a listed arc."""
BY_ENTRY = 0.14
"""Of the tokens after a frame, how many came over an epsilon arc."""
RECORDED = 0.39
"""Of the arcs that tokens came over, how many the history wants."""


def _graph(
    emitting: float,
    epsilons: float = 0.0,
    fresh: int = 0,
    senones: int = SENONES,
    with_arcs: int = PLACES,
) -> Graph:
    """States with as many arcs of each kind per two states and per state, and `fresh` states without.

    Arcs lead to any state; how many a state has is drawn (at least one is, of those that are emitting).
    """
    rng = np.random.default_rng(0)
    n = with_arcs + fresh
    has = np.zeros((n, 2), np.int64)
    if emitting:
        has[:with_arcs, 0] = rng.geometric(2 / emitting, with_arcs)
    if epsilons:
        # States with epsilon arcs come first, and theirs lead to others here: no way has two of them.
        has[: PLACES // 2, 1] = rng.geometric(1 / epsilons, PLACES // 2)
    first = np.concatenate([[0], np.cumsum(has.sum(1))])
    states = np.zeros(n + 1, STATE)
    states["first"] = first
    states["epsilon"][:-1] = first[:-1] + has[:, 0]
    states["epsilon"][-1] = first[-1]
    states["loop_label"][:-1] = rng.integers(1, senones + 1, n)
    arcs = np.zeros(first[-1], ARC)
    within = np.arange(len(arcs)) - np.repeat(first[:-1], has.sum(1))
    silent = within >= np.repeat(has[:, 0], has.sum(1))
    arcs["ilabel"] = np.where(silent, 0, rng.integers(1, senones + 1, len(arcs)))
    arcs["target"] = _goals(len(arcs), n, rng)
    arcs["target"][silent] = _goals(int(silent.sum()), n, rng, PLACES // 2)
    # With costs of 0 … 1 before them, that part of their sums is below 1.
    arcs["weight"][silent] = rng.random(int(silent.sum())) / (2 * FOLLOWED_PASSING)
    none = np.zeros(1, np.int32)
    return Graph(
        start=0,
        n_epsilon_states=PLACES // 2 if epsilons else 0,
        n_senones=senones,
        states=states,
        arcs=arcs,
        final=np.zeros(n, np.float32),
        words=(),
        pron_first=none,
        phone_first=none,
        pron_phones=np.zeros(0, np.uint8),
        senone_phone=np.zeros(senones, np.uint8),
        senone_state=np.arange(senones, dtype=np.uint8) % 2,
        filler=np.ones(1, bool),
    )


def _goals(count: int, n_states: int, rng: np.random.Generator, least: int = 0) -> U32:
    """States from `least` that arcs lead to: those beyond PLACES once each, between the others, u32 [count]."""
    fresh = min(n_states - PLACES, count, PLACES)
    goals = rng.integers(least, PLACES, count)
    goals[rng.permutation(count)[:fresh]] = PLACES + rng.permutation(fresh)
    return goals.astype(np.uint32)


def _living(graph: Graph, n: int) -> Workspace:
    """A token in each of the first `n` states, at costs of 0 … 1, come by its loop."""
    rng = np.random.default_rng(1)
    space = Workspace(graph)
    space.prune_by(8.0, 0.5, 1 << 20, 0)
    tokens, books = space.arrays.tokens, space.books
    tokens.state[:n] = np.arange(n)
    space.arrays.places.slot[:] = 0
    space.arrays.places.slot[:n] = np.arange(n)
    tokens.cost[:n] = tokens.new_cost[:n] = rng.random(n)
    tokens.hist[:n] = tokens.new_hist[:n] = -1
    tokens.come[:n] = layout.BY_LOOP
    tokens.loop_label[:n] = graph.states["loop_label"][:n]
    tokens.loop_weight[:n] = 0.0
    books.floats[:] = 0.0
    books.decoder_state[:] = 0
    books.decoder_state[[layout.N, layout.M]] = n
    return space


def _list_arcs(space: Workspace, fresh: int = 0) -> int:
    """List as many emitting arcs of the living tokens as they have in the graph; how many."""
    n = min(len(space.graph.arcs), int(PLACES * ARCS_EACH / 2))
    rng = np.random.default_rng(2)
    listed = space.arrays.emitting
    listed.source[:n] = np.sort(rng.integers(0, PLACES, n))
    listed.label[:n] = rng.integers(1, SENONES + 1, n)
    listed.weight[:n] = 0.0
    listed.target[:n] = _goals(n, PLACES + fresh, rng)
    listed.record[:n] = np.where(rng.random(n) < RECORDED, 0, -1)
    space.books.decoder_state[layout.EMITTING] = n
    return n


def _come(space: Workspace, count: int, by_loop: float, by_entry: float = 0.0) -> I32:
    """How `count` tokens came about: by their loops, over epsilon arcs, the others over any of the listed arcs."""
    rng = np.random.default_rng(4)
    drawn = rng.random(count)
    listed = int(space.books.decoder_state[layout.EMITTING])
    come = rng.integers(0, listed, count).astype(np.int32)
    come[drawn < by_loop + by_entry] = layout.BY_ENTRY
    come[drawn < by_loop] = layout.BY_LOOP
    return come


def _emitting(passing: float, lattice_beam: float = -1.0) -> tuple[Workspace, Callable[[int], int]]:
    """Emit where that share of the listed arcs passes: (its workspace, so many times emit → arcs that passed)."""
    fresh = int(PLACES * ARCS_EACH / 2 * FRESH)
    space = _living(_graph(ARCS_EACH, fresh=fresh), PLACES)
    _list_arcs(space, fresh)
    if lattice_beam >= 0.0:
        space._keep_alternatives(True, lattice_beam)
    bank = np.random.default_rng(3).random(2 * SENONES + 2, np.float32)
    space.arrays.labels.row[0] = np.inf
    # The sum of two numbers of 0 … 1: its distribution is known, and its least is near 0.
    limit = float(np.sqrt(2 * passing)) if passing else -1.0
    return space, lambda repeats: space.call(repeats_of.emit, bank, limit, repeats)


def arcs(size: int, numbers: Numbers) -> Work:
    """Tokens and listed arcs that are gone over and lead to no token: units are both."""
    space, emit = _emitting(0.0)
    units = PLACES + int(space.books.decoder_state[layout.EMITTING])
    return Work(float(units), lambda: emit)


def passed_arcs(size: int, numbers: Numbers) -> Work:
    """The same where PASSING of the listed arcs lead to a token: units are those."""
    _, emit = _emitting(PASSING)
    # A cycle of the costs: how many pass differs a little.
    return Work(emit(SENONES + 1) / (SENONES + 1), lambda: emit)


def labels(size: int, numbers: Numbers) -> Work:
    """What emit does for each senone whether or not it is active: units are senones."""
    (senones,) = numbers
    space = _living(_graph(0, senones=senones), 0)
    scores = np.random.default_rng(3).random((1, senones), np.float32)
    return Work(
        float(senones), lambda: lambda repeats: space.call(repeats_of.labels, scores, repeats)
    )


def _closing(space: Workspace, m: int, limit: float) -> Work:
    """The closure of `m` tokens, [0, N) of them listed: units are epsilon arcs gone over."""
    space.books.decoder_state[layout.M] = m
    bank = np.random.default_rng(3).random(2 * m, np.float32)
    come = _come(space, m, 1.0 - BY_ARC)

    def task(repeats: int) -> int:
        return int(space.call(repeats_of.close, bank, come, limit, repeats))

    return Work(task(m) / m, lambda: task)


def listed_epsilons(size: int, numbers: Numbers) -> Work:
    """Listed epsilon arcs, of which LISTED_PASSING may better a token, and the look at new tokens."""
    n = PLACES // 2
    fresh = int(n * FRESH_BY_EPSILON)
    space = _living(_graph(ARCS_EACH, fresh=fresh), PLACES)
    _list_arcs(space, fresh)
    space.books.decoder_state[layout.N] = PLACES - int(n * NEW_TOKENS)
    rng = np.random.default_rng(2)
    listed = space.arrays.epsilons
    listed.source[:n] = np.sort(rng.integers(0, PLACES, n))
    listed.weight[:n] = 0.0
    listed.target[:n] = _goals(n, PLACES + fresh, rng)
    listed.record[:n] = np.where(rng.random(n) < 0.5, 0, -1)
    space.books.decoder_state[layout.EPSILONS] = n
    return _closing(space, PLACES, LISTED_PASSING)


def followed_epsilons(size: int, numbers: Numbers) -> Work:
    """Epsilon arcs of tokens that the frame has made or bettered, from their states in the graph."""
    fresh = int(PLACES / 2 * FOLLOWED_EACH * FRESH_BY_FOLLOWING)
    space = _living(_graph(ARCS_EACH, epsilons=FOLLOWED_EACH, fresh=fresh), PLACES)
    _list_arcs(space)
    space.books.decoder_state[layout.N] = 0
    return _closing(space, PLACES, 1.0)


def _pruning(new_tokens: bool, size: int = 0) -> tuple[Workspace, Work]:
    """Pruning of PLACES tokens, all of them new or none, of which none dies: units are tokens.

    `size`: bytes of the graph over which the states of new ones are scattered; 0: they lie side by side.
    """
    each = STATE.itemsize + ARCS_EACH / 2 * ARC.itemsize
    graph = _graph(ARCS_EACH, with_arcs=max(PLACES, int(size / each)))
    space = _living(graph, PLACES)
    space.prune_by(8.0, 0.5, 1 << 20, 0)
    _list_arcs(space)
    come = _come(space, PLACES, 0.0 if new_tokens else 1.0 - BY_ARC - BY_ENTRY, BY_ENTRY)
    if new_tokens:
        # Over arcs that were listed before: those of the new tokens take their places.
        space.books.decoder_state[[layout.N, layout.EMITTING]] = 0
    state = space.books.decoder_state
    new = space.arrays.tokens.state[state[layout.N] : PLACES].copy()
    if size:
        new = np.random.default_rng(5).permutation(graph.n_states).astype(np.uint32)
    at = np.zeros(2, np.int64)

    def prune(repeats: int) -> None:
        space.call(repeats_of.prune, new, come, at, repeats)

    return space, Work(float(PLACES), lambda: prune)


def examined(size: int, numbers: Numbers) -> Work:
    """Tokens of which none is new and none dies: units are tokens."""
    return _pruning(new_tokens=False)[1]


def entered(size: int, numbers: Numbers) -> Work:
    """New tokens that live on, whose arcs are listed: units are tokens. With a size, their states lie all over it."""
    return _pruning(new_tokens=True, size=size)[1]


def closed_up(size: int, numbers: Numbers) -> Work:
    """Lists closed up: units are tokens and listed arcs."""
    space = _living(_graph(ARCS_EACH), PLACES)
    n = _list_arcs(space)
    cost, source = space.arrays.tokens.cost[:PLACES].copy(), space.arrays.emitting.source[:n].copy()
    cost[np.random.default_rng(5).random(PLACES) < DEAD] = np.inf

    def close_up(repeats: int) -> None:
        space.call(repeats_of.close_up, cost, source, repeats)

    return Work(float(PLACES + n), lambda: close_up)


def active_arcs(size: int, numbers: Numbers) -> Work:
    """Tokens and listed arcs whose senones are marked: units are both."""
    space = _living(_graph(ARCS_EACH), PLACES)
    n = _list_arcs(space)
    return Work(float(PLACES + n), lambda: lambda repeats: space.call(repeats_of.active, repeats))


def found(size: int, numbers: Numbers) -> Work:
    """The look through all senones for those marked: units are senones."""
    (senones,) = numbers
    space = _living(_graph(0, senones=senones), 0)
    return Work(float(senones), lambda: lambda repeats: space.call(repeats_of.active, repeats))


def ranked(size: int, numbers: Numbers) -> Work:
    """The cost found that the most tokens allowed keep to: units are tokens."""
    space = _living(_graph(0), PLACES)
    space.prune_by(1.0, 0.5, int(PLACES * KEPT_BY_RANK), 0)
    bank = np.random.default_rng(3).random(2 * PLACES, np.float32)

    def rank(repeats: int) -> float:
        return float(space.call(repeats_of.rank, bank, repeats))

    return Work(float(PLACES), lambda: rank)


def ways(size: int, numbers: Numbers) -> Work:
    """Ways into tokens that are recorded for the lattice: units are ways."""
    space, emit = _emitting(PASSING, lattice_beam=LATTICE_BEAM)
    emit(1)

    def record(repeats: int) -> int:
        return int(space.call(repeats_of.record, repeats))

    return Work(float(record(1)), lambda: record)


def _advance(space: Workspace, scores: F32, lane: Lane) -> None:
    """As `Viterbi.advance` calls the kernel."""
    called_ns = now_ns()
    space.advance(scores, (0, 0, 0), 0.1, 0, (lane.lend(), (0, 0, 0, 0, 0), called_ns))
    lane.settle(now_ns())


def advance(size: int, numbers: Numbers) -> Work:
    """A call of the search that does no frame, with its spans: units are calls."""
    space = _living(_graph(0), 0)
    scores, lane = np.zeros((1, SENONES), np.float32), Lane(0, "calls", "cpu", False, SPANS)

    def task(repeats: int) -> None:
        for _ in range(repeats):
            _advance(space, scores, lane)
            if lane.waiting > SPANS // 2:
                lane.take()

    return Work(1.0, lambda: task)


def copied(size: int, numbers: Numbers) -> Work:
    """The list of those found copied for who scores: units are senones."""
    senones = np.arange(int(ACTIVE_SENONES * SENONES))
    return Work(float(len(senones)), lambda: repeated(senones.copy))


def active_call(size: int, numbers: Numbers) -> Work:
    """A look for active senones where nothing lives, after `size` bytes were read: units are calls."""
    space = _living(_graph(0, senones=1), 0)
    return _call(size, space.active_senones)


def prune_call(size: int, numbers: Numbers) -> Work:
    """Pruning where nothing lives, in a call of its own after `size` bytes were read: units are calls."""
    space = _living(_graph(0), 0)
    return _call(size, space.prune_alone)


def _call(size: int, once: Callable[[], object]) -> Work:
    return Work(1.0, lambda: after_reading(size, once) if size else repeated(once))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        ARCS: arcs,
        PASSED: passed_arcs,
        LABELS: labels,
        LISTED: listed_epsilons,
        FOLLOWED: followed_epsilons,
        EXAMINED: examined,
        ENTERED: entered,
        CLOSED_UP: closed_up,
        ACTIVE: active_arcs,
        FOUND: found,
        RANKED: ranked,
        WAYS: ways,
        ADVANCE: advance,
        ACTIVE_CALL: active_call,
        PRUNE_CALL: prune_call,
        COPIED: copied,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
