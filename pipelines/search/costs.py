"""Cost laws of the search's stages: operations and bytes per token, arc and entry, from the kernels' source.

Which record comes next is known only from the one before, so that all of them are scattered.
"""

from __future__ import annotations

from pipelines.scoring import kernel_work
from pipelines.scoring.kernel_work import COLD, FRAME_PASSED, named, power_of_two
from pipelines.search import roofs
from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels.layout import ARC, STATE
from profiler.costs import ACCESS, CALL, KERNEL, STREAM, Cost, Linear, Term

TOKEN_BYTES = 32.0
"""Of a token: eight fields of 4 bytes, see `layout.Tokens`."""
LISTED_BYTES = 28.0
"""Of a listed emitting arc: seven fields of 4 bytes."""
LISTED_EPSILON_BYTES = 24.0
"""Of a listed epsilon arc: six fields of 4 bytes."""
ENTRY_BYTES = 12.0
"""Of an entry of the history: previous entry, arc, frame."""
CONTENDER_BYTES = 12.0
"""Of a way into a token, while the lattice is recorded: cost, entry, next."""
LINE_BYTES = 64.0
"""A cache line: what an access to a scattered record moves."""
RANKING_OPERATIONS = 5.0
"""Per token ranked: its bin (subtraction, product, comparison), a count, and whether it is in the bin chosen."""
RANKING_BYTES = 20.0
"""Per token ranked: its cost twice, its bin written and read twice."""
BACKTRACE = "Python that follows the best path back and makes words of it, which no cost law counts"
SLOT_BYTES = 4.0
"""Of a state's slot: the place of its token."""
LEARNED = 0.1
"""Of what a loop takes over the lists that its roof draws at random, so much may be missing over those of speech, whose
order a processor's predictor of branches learns in part."""
BY_HEART, ARCS_BY_HEART = 0.35, 0.15
"""The same of a frame that is searched again at once, as in a hot replay: a processor has just seen its branches. That
much of `search.epsilon` and `search.prune` may be missing, and of the arcs of `search.emit`
(`python -m tests.bench.constants --only replays`)."""
HALF_FORGOTTEN = 16
"""Frames searched again at once of whose branches a processor knows half as much: they are more than it remembers."""
CALLS_OWN = 1 << 10
"""Bytes: the least there is. What a call of the search needs of its own is not gone through in a loop."""
_NONE = Linear()


def _loop(roof: str, units: Linear, frames: int, by_heart: float = BY_HEART) -> Term:
    """So many units of a kernel's own loop in calls of so many `frames`, the least of them where LEARNED is missing."""
    known = by_heart / (1.0 + frames / HALF_FORGOTTEN)
    return Term(KERNEL, roof, units.times(1.0 - LEARNED), most=units, by_heart=known)


def _emit(graph: Graph, touched: float, frames: int, between: float, turns: bool) -> Cost:
    """A token's self-loop takes 2 additions and a comparison, a listed arc 2 additions and 2 comparisons.

    Least bytes are the fields read (a token's cost, loop and fate 20, an arc's source, label, weight and total 16);
    most are all fields read and written, with a cache line for the slot of an arc's target and one for the token there.
    """
    senones, slots = graph.n_senones, SLOT_BYTES * graph.n_states
    return Cost(
        {
            "scalar": Linear(per_work=(3.0, 4.0, 0.0)),
            "fma": Linear(per_frame=1.0 * senones),
        },
        Linear(per_frame=4.0 * senones, per_work=(20.0, 16.0, 0.0)),
        Linear(
            per_frame=12.0 * senones,
            per_work=(2 * TOKEN_BYTES, LISTED_BYTES + 2 * LINE_BYTES, 0.0),
        ),
        touched,
        scattered=True,
        terms=(
            Term(KERNEL, f"{roofs.LABELS}/{senones}", Linear(per_frame=1.0 * senones)),
            _loop(
                roofs.ARCS,
                Linear(per_work=(0.0, 1.0, -roofs.ARCS_PER_PASSED)),
                frames,
                ARCS_BY_HEART,
            ),
            _loop(roofs.PASSED, Linear(per_work=(0.0, 0.0, 1.0)), frames, ARCS_BY_HEART),
            Term(STREAM, "read", _NONE, touched, Linear(per_work=(0.0, LISTED_BYTES, 0.0))),
            Term(ACCESS, "gather", _NONE, slots, Linear(per_work=(0.0, 0.0, 1.0))),
            # Emit has the states of the tokens that it makes fetched for the next step.
            Term(
                ACCESS,
                "gather",
                Linear(per_work=(0.0, 0.0, roofs.FRESH)),
                1.0 * graph.states.nbytes,
            ),
            *_advance(frames, between, turns),
        ),
    )


def _advance(frames: int, between: float, turns: bool) -> tuple[Term, ...]:
    """The call of a block or, where they take turns with scoring, those of its frames."""
    if not turns:
        return _called(Linear(fixed=1.0), between)
    first = _called(Linear(per_frame=1.0 / frames), between)
    if frames == 1:
        return first
    return *first, *_called(Linear(per_frame=1.0 - 1.0 / frames), FRAME_PASSED)


def _called(count: Linear, between: float) -> tuple[Term, ...]:
    """So many calls, and what they wait for their own code and books, where `between` bytes have gone through the
    caches since the last.

    So much is no call's own work: one that is repeated at once finds all of it near.
    """
    call = Term(CALL, roofs.ADVANCE, count)
    if not between:
        return (call,)
    size = power_of_two(min(between, COLD))
    return call, Term(ACCESS, named(roofs.ADVANCE, own=CALLS_OWN, frames=1), count, size)


def _epsilon(graph: Graph, touched: float, frames: int) -> Cost:
    """An addition and a comparison per arc, a line for its slot."""
    slots = SLOT_BYTES * graph.n_states
    # Only epsilon arcs within the limit look for their target.
    listed, followed = roofs.LISTED_PASSING, roofs.FOLLOWED_PASSING
    within = Linear(per_work=(listed, followed - listed, 0.0))
    # The lines of state and arcs, of those states whose arcs are followed.
    lines = 2.0 / roofs.FOLLOWED_EACH
    # States with epsilon arcs come first, and with them their arcs.
    first = float(graph.states["first"][graph.n_epsilon_states])
    silent = 1.0 * STATE.itemsize * graph.n_epsilon_states + ARC.itemsize * first
    return Cost(
        {"scalar": Linear(per_work=(2.0, 0.0, 0.0))},
        Linear(per_work=(12.0, 0.0, 0.0)),
        Linear(per_work=(LISTED_EPSILON_BYTES + 3 * LINE_BYTES, 0.0, 0.0)),
        touched,
        scattered=True,
        terms=(
            _loop(roofs.LISTED, Linear(per_work=(1.0, -1.0, 0.0)), frames),
            _loop(roofs.FOLLOWED, Linear(per_work=(0.0, 1.0, 0.0)), frames),
            Term(
                STREAM,
                "read",
                _NONE,
                touched,
                Linear(per_work=(LISTED_EPSILON_BYTES, 0.0, 0.0)),
            ),
            Term(ACCESS, "gather", _NONE, slots, within),
            Term(
                ACCESS,
                "gather",
                Linear(per_work=(0.0, lines * roofs.OLDER, 0.0)),
                silent,
                Linear(per_work=(0.0, lines, 0.0)),
            ),
        ),
    )


def _prune(graph: Graph, touched: float, frames: int, between: float, turns: bool) -> Cost:
    """4 comparisons and a subtraction per token.

    Most bytes with the lists closed up, and a token's state and arcs fetched.
    """
    degree = len(graph.arcs) / max(graph.n_states, 1)
    whole = 1.0 * graph.states.nbytes + graph.arcs.nbytes
    living = 1.0 / (1.0 + roofs.ARCS_EACH / 2)
    return Cost(
        {"scalar": Linear(per_work=(5.0, 0.0, 0.0))},
        Linear(per_work=(TOKEN_BYTES, 0.0, 0.0)),
        Linear(
            per_work=(
                2 * TOKEN_BYTES
                + STATE.itemsize
                + ENTRY_BYTES
                + 2 * LINE_BYTES
                + 2 * degree * (LISTED_BYTES + ARC.itemsize),
                0.0,
                0.0,
            )
        ),
        touched,
        scattered=True,
        terms=(
            _loop(roofs.EXAMINED, Linear(per_work=(1.0, -1.0, 0.0)), frames),
            _loop(roofs.ENTERED, Linear(per_work=(0.0, 1.0, 0.0)), frames),
            _loop(roofs.CLOSED_UP, Linear(per_work=(0.0, 0.0, 1.0)), frames),
            Term(
                STREAM,
                "read",
                _NONE,
                touched,
                Linear(per_work=(TOKEN_BYTES, 0.0, LISTED_BYTES)),
            ),
            # A line of the graph comes from as far as what was touched since it was last used: those not used for long
            # from beyond what was touched recently, the others from within.
            Term(
                ACCESS,
                roofs.ENTERED,
                Linear(per_work=(0.0, roofs.OLDER, 0.0)),
                min(roofs.RECENT_BYTES, whole),
                Linear(per_work=(0.0, 1.0, 0.0)),
            ),
            Term(
                ACCESS,
                roofs.ENTERED,
                _NONE,
                min(roofs.OLDER_BYTES, whole),
                Linear(per_work=(0.0, roofs.OLDER, 0.0)),
            ),
            Term(ACCESS, roofs.ENTERED, _NONE, whole, Linear(per_work=(0.0, roofs.OLDEST, 0.0))),
            # Closing up writes the slot of each token.
            Term(
                ACCESS,
                "gather",
                _NONE,
                SLOT_BYTES * graph.n_states,
                Linear(per_work=(0.0, 0.0, living)),
            ),
            *(kernel_work.turns(roofs.PRUNE_CALL, frames, between) if turns else ()),
        ),
    )


def _rank(states: float, frames: int) -> Cost:
    """A histogram over the costs, and a selection in one of its bins."""
    return Cost(
        {"scalar": Linear(per_work=(RANKING_OPERATIONS, 0.0, 0.0))},
        Linear(per_work=(4.0, 0.0, 0.0)),
        Linear(per_work=(RANKING_BYTES, 0.0, 0.0)),
        2 * 4.0 * states,
        scattered=True,
        terms=(_loop(roofs.RANKED, Linear(per_work=(1.0, 0.0, 0.0)), frames),),
    )


def _active(graph: Graph, touched: float) -> Cost:
    """A store for an arc, a list entry for a senone, and a copy of the list.

    No branch depends on data, so a loop is as fast over those of speech as over any. It comes right after pruning,
    which has just called and looked at the same.
    """
    senones = graph.n_senones
    return Cost(
        {"scalar": Linear(per_frame=1.0 * senones, per_work=(1.0, 1.0, 0.0))},
        Linear(per_frame=1.0 * senones, per_work=(12.0, 8.0, 0.0)),
        Linear(per_frame=3.0 * senones, per_work=(12.0 + LINE_BYTES, 24.0, 0.0)),
        touched,
        scattered=True,
        terms=(
            Term(KERNEL, roofs.ACTIVE, Linear(per_work=(1.0, 0.0, 0.0))),
            # The look through all senones is in the roof of those looked at, too.
            Term(
                KERNEL,
                f"{roofs.FOUND}/{senones}",
                Linear(per_frame=1.0 * senones, per_work=(-roofs.FOUND_EACH, 0.0, 0.0)),
            ),
            Term(KERNEL, roofs.COPIED, Linear(per_work=(0.0, 1.0, 0.0))),
            Term(STREAM, "read", _NONE, touched, Linear(per_work=(8.0, 0.0, 0.0))),
            Term(CALL, roofs.ACTIVE_CALL, Linear(per_frame=1.0), FRAME_PASSED),
        ),
    )


def _lattice(graph: Graph, touched: float, frames: int, history_bytes: float) -> Cost:
    """An addition and 2 comparisons for each way into a token."""
    slots = SLOT_BYTES * graph.n_states
    return Cost(
        {"scalar": Linear(per_work=(3.0, 0.0, 0.0))},
        Linear(per_work=(CONTENDER_BYTES + 16.0, 0.0, 0.0)),
        Linear(per_work=(2 * CONTENDER_BYTES + ENTRY_BYTES + 3 * LINE_BYTES, 0.0, 0.0)),
        touched + history_bytes,
        scattered=True,
        terms=(
            _loop(roofs.WAYS, Linear(per_work=(1.0, 0.0, 0.0)), frames),
            Term(ACCESS, "gather", _NONE, slots, Linear(per_work=(1.0, 0.0, 0.0))),
        ),
    )


def laws(
    graph: Graph,
    max_active: int,
    history_bytes: float,
    frames: int = 1,
    between: float = 0.0,
    turns: bool = False,
) -> dict[str, Cost]:
    """Laws by stage, for at most `max_active` tokens over `graph`, in blocks of `frames`; `between` two of them scoring
    goes through so many bytes. `turns`: whether scoring and search take turns, so that each frame is a call.

    Terms: the kernels' own loops on lists in the second cache; lists that scoring may have put out of it, once a
    frame at most; lines of graph and slots, which a frame may or may not find there from the frame before. Which
    token, arc or place comes next is listed or queued, so that these accesses overlap.
    """
    states = min(2.0 * max_active, float(graph.n_states))
    arcs = states * len(graph.arcs) / max(graph.n_states, 1)
    # Of the graph a frame touches what its new tokens stand on; else the lists of the living.
    touched = states * (TOKEN_BYTES + LINE_BYTES) + arcs * LISTED_BYTES
    return {
        "search.emit": _emit(graph, touched, frames, between, turns),
        "search.epsilon": _epsilon(graph, touched, frames),
        "search.prune": _prune(graph, touched, frames, between, turns),
        "search.rank": _rank(states, frames),
        "search.active": _active(graph, touched),
        "search.lattice": _lattice(graph, touched, frames, history_bytes),
        "search.backtrace": Cost(unmodelled=BACKTRACE),
    }
