"""Cost laws of the search's stages: operations and bytes per token, arc and entry, from the kernels' source.

Which record comes next is known only from the one before, so that all of them are scattered.
"""

from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels.layout import ARC, STATE
from profiler.costs import KERNEL_CALL, Accesses, Cost, Linear

# Bytes of records.
TOKEN = 32.0  # eight fields, see `layout.Tokens`
LISTED = 28.0  # a listed emitting arc: seven fields
LISTED_EPSILON = 24.0  # six fields
ENTRY = 12.0  # of the history: previous entry, arc, frame
CONTENDER = 12.0  # a way into a token, while the lattice is recorded: cost, entry, next
SLOT = 4.0  # of a state: the place of its token
LINE = 64.0  # a cache line: what an access to a scattered record moves

BACKTRACE = "Python that follows the best path back and makes words of it, which no cost law counts"


def laws(graph: Graph, max_active: int, history_bytes: float, turns: bool = False) -> dict[str, Cost]:
    """Laws by stage, for at most `max_active` tokens over `graph`; `turns`: each frame is a call.

    What comes next is listed or queued, so that accesses to slots and to the graph overlap.
    """
    states = min(2.0 * max_active, float(graph.n_states))
    degree = len(graph.arcs) / max(graph.n_states, 1)
    # Of the graph a frame touches what its new tokens stand on; else the lists of the living.
    touched = states * (TOKEN + LINE) + states * degree * LISTED
    senones, slots = 1.0 * graph.n_senones, SLOT * graph.n_states
    called = {KERNEL_CALL: Linear(per_frame=1.0) if turns else Linear(fixed=1.0)}
    # States with epsilon arcs come first, and with them their arcs.
    silent = 1.0 * STATE.itemsize * graph.n_epsilon_states
    silent += ARC.itemsize * float(graph.states["first"][graph.n_epsilon_states])
    whole = 1.0 * graph.states.nbytes + graph.arcs.nbytes
    return {
        # A token's self-loop takes 2 additions and a comparison, a listed arc 2 additions and 2 comparisons. Least
        # bytes are the fields read (a token's cost, loop and fate 20, an arc's source, label, weight and total 16);
        # most are all fields read and written, with a cache line for the slot of an arc's target and one for the token
        # there.
        "search.emit": Cost(
            {"scalar": _each(3.0, 4.0), "fma": _each(frame=senones)},
            _each(20.0, 16.0, frame=4.0 * senones),
            _each(2 * TOKEN, LISTED + 2 * LINE, frame=12.0 * senones),
            touched,
            scattered=True,
            calls=called,
            accesses=(Accesses(_each(0.0, 0.0, 1.0), slots),),
        ),
        # An addition and a comparison per arc; of one that is followed a line for its slot, and one of its state.
        "search.epsilon": Cost(
            {"scalar": _each(2.0)},
            _each(12.0),
            _each(LISTED_EPSILON + 3 * LINE),
            touched,
            scattered=True,
            accesses=(Accesses(_each(0.0, 1.0), slots), Accesses(_each(0.0, 1.0), silent)),
        ),
        # 4 comparisons and a subtraction per token. Most bytes with the lists closed up, and a token's state and arcs
        # fetched.
        "search.prune": Cost(
            {"scalar": _each(5.0)},
            _each(TOKEN),
            _each(2 * TOKEN + STATE.itemsize + ENTRY + 2 * LINE + 2 * degree * (LISTED + ARC.itemsize)),
            touched,
            scattered=True,
            calls=called if turns else {},
            accesses=(
                # The lines of the graph that a new token stands on: its state's, and that of its first arcs.
                Accesses(_each(0.0, 2.0), whole),
                # The arc that it came over (source and record), and the history of the token that it came from.
                Accesses(_each(0.0, 3.0), touched),
                # Its slot, and the slots of the tokens among what is closed up, as many as there are of a token's arcs.
                Accesses(_each(0.0, 1.0, 1.0 / (1.0 + degree)), slots),
            ),
        ),
        # Per token ranked: its bin (subtraction, product, comparison), a count, and whether it is in the bin chosen;
        # its cost twice, its bin written and read twice.
        "search.rank": Cost({"scalar": _each(5.0)}, _each(4.0), _each(20.0), 2 * 4.0 * states, scattered=True),
        # A store for an arc, a list entry for a senone, and a copy of the list. No branch depends on data, so a loop is
        # as fast over those of speech as over any. It comes right after pruning, which has just called and looked at
        # the same.
        "search.active": Cost(
            {"scalar": _each(1.0, 1.0, frame=senones)},
            _each(12.0, 8.0, frame=senones),
            _each(12.0 + LINE, 24.0, frame=3.0 * senones),
            touched,
            scattered=True,
            calls={KERNEL_CALL: Linear(per_frame=1.0)},
        ),
        # An addition and 2 comparisons for each way into a token.
        "search.lattice": Cost(
            {"scalar": _each(3.0)},
            _each(CONTENDER + 16.0),
            _each(2 * CONTENDER + ENTRY + 3 * LINE),
            touched + history_bytes,
            scattered=True,
            accesses=(Accesses(_each(1.0), slots),),
        ),
        "search.backtrace": Cost(unmodelled=BACKTRACE),
    }


def _each(first: float = 0.0, second: float = 0.0, third: float = 0.0, frame: float = 0.0) -> Linear:
    """For each of the stage's three work counts, and for each frame."""
    return Linear(per_frame=frame, per_work=(first, second, third))
