"""Cost laws of the search's stages: operations and bytes per token, arc and entry, from the kernels' source.

Which record comes next is known only from the one before, so that all of them are scattered.
"""

from __future__ import annotations

from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels.layout import ARC, STATE
from profiler.costs import KERNEL_CALL, Accesses, Cost, Linear

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


def _emit(graph: Graph, touched: float, turns: bool) -> Cost:
    """A token's self-loop takes 2 additions and a comparison, a listed arc 2 additions and 2 comparisons.

    Least bytes are the fields read (a token's cost, loop and fate 20, an arc's source, label, weight and total 16);
    most are all fields read and written, with a cache line for the slot of an arc's target and one for the token there.
    """
    senones, slots = graph.n_senones, SLOT_BYTES * graph.n_states
    return Cost(
        {"scalar": Linear(per_work=(3.0, 4.0, 0.0)), "fma": Linear(per_frame=1.0 * senones)},
        Linear(per_frame=4.0 * senones, per_work=(20.0, 16.0, 0.0)),
        Linear(per_frame=12.0 * senones, per_work=(2 * TOKEN_BYTES, LISTED_BYTES + 2 * LINE_BYTES, 0.0)),
        touched,
        scattered=True,
        calls=_called(turns),
        accesses=(Accesses(Linear(per_work=(0.0, 0.0, 1.0)), slots),),
    )


def _called(turns: bool) -> dict[str, Linear]:
    return {KERNEL_CALL: Linear(per_frame=1.0) if turns else Linear(fixed=1.0)}


def _epsilon(graph: Graph, touched: float) -> Cost:
    """An addition and a comparison per arc; of one that is followed a line for its slot, and one of its state."""
    followed = Linear(per_work=(0.0, 1.0, 0.0))
    # States with epsilon arcs come first, and with them their arcs.
    first = float(graph.states["first"][graph.n_epsilon_states])
    silent = 1.0 * STATE.itemsize * graph.n_epsilon_states + ARC.itemsize * first
    return Cost(
        {"scalar": Linear(per_work=(2.0, 0.0, 0.0))},
        Linear(per_work=(12.0, 0.0, 0.0)),
        Linear(per_work=(LISTED_EPSILON_BYTES + 3 * LINE_BYTES, 0.0, 0.0)),
        touched,
        scattered=True,
        accesses=(Accesses(followed, SLOT_BYTES * graph.n_states), Accesses(followed, silent)),
    )


def _prune(graph: Graph, touched: float, turns: bool) -> Cost:
    """4 comparisons and a subtraction per token.

    Most bytes with the lists closed up, and a token's state and arcs fetched.
    """
    degree = len(graph.arcs) / max(graph.n_states, 1)
    whole = 1.0 * graph.states.nbytes + graph.arcs.nbytes
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
        calls=_called(turns) if turns else {},
        accesses=(
            # The lines of the graph that a new token stands on: its state's, and that of its first arcs.
            Accesses(Linear(per_work=(0.0, 2.0, 0.0)), whole),
            # The arc that it came over (source and record), and the history of the token that it came from.
            Accesses(Linear(per_work=(0.0, 3.0, 0.0)), touched),
            # Its slot, and the slots of the tokens among what is closed up, as many as there are of a token's arcs.
            Accesses(Linear(per_work=(0.0, 1.0, 1.0 / (1.0 + degree))), SLOT_BYTES * graph.n_states),
        ),
    )


def _rank(states: float) -> Cost:
    """A histogram over the costs, and a selection in one of its bins."""
    return Cost(
        {"scalar": Linear(per_work=(RANKING_OPERATIONS, 0.0, 0.0))},
        Linear(per_work=(4.0, 0.0, 0.0)),
        Linear(per_work=(RANKING_BYTES, 0.0, 0.0)),
        2 * 4.0 * states,
        scattered=True,
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
        calls={KERNEL_CALL: Linear(per_frame=1.0)},
    )


def _lattice(graph: Graph, touched: float, history_bytes: float) -> Cost:
    """An addition and 2 comparisons for each way into a token."""
    slots = SLOT_BYTES * graph.n_states
    return Cost(
        {"scalar": Linear(per_work=(3.0, 0.0, 0.0))},
        Linear(per_work=(CONTENDER_BYTES + 16.0, 0.0, 0.0)),
        Linear(per_work=(2 * CONTENDER_BYTES + ENTRY_BYTES + 3 * LINE_BYTES, 0.0, 0.0)),
        touched + history_bytes,
        scattered=True,
        accesses=(Accesses(Linear(per_work=(1.0, 0.0, 0.0)), slots),),
    )


def laws(graph: Graph, max_active: int, history_bytes: float, turns: bool = False) -> dict[str, Cost]:
    """Laws by stage, for at most `max_active` tokens over `graph`; `turns`: whether scoring and search take turns, so
    that each frame is a call.

    Which token, arc or place comes next is listed or queued, so that accesses to slots and to the graph overlap.
    """
    states = min(2.0 * max_active, float(graph.n_states))
    arcs = states * len(graph.arcs) / max(graph.n_states, 1)
    # Of the graph a frame touches what its new tokens stand on; else the lists of the living.
    touched = states * (TOKEN_BYTES + LINE_BYTES) + arcs * LISTED_BYTES
    return {
        "search.emit": _emit(graph, touched, turns),
        "search.epsilon": _epsilon(graph, touched),
        "search.prune": _prune(graph, touched, turns),
        "search.rank": _rank(states),
        "search.active": _active(graph, touched),
        "search.lattice": _lattice(graph, touched, history_bytes),
        "search.backtrace": Cost(unmodelled=BACKTRACE),
    }
