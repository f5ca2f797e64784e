"""The arrays that the decoder's kernels work on, and the only way to those kernels, which check no bounds.

Each array is as long as the graph can ever need and checked once; the graph itself is checked when it is made; what is
given per call (scores, settings, a token's place) is checked per call.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import get_type_hints

import numpy as np
from numpy.typing import DTypeLike

from pipelines.search import alternatives, words
from pipelines.search.graph.wfst import Graph, GraphError
from pipelines.search.kernels import calls, layout
from pipelines.search.kernels.intrinsics import table
from pipelines.search.kernels.layout import Arrays, Numbers
from profiler.arrays import F32, I64, Array, ArrayError, check, check_indices

FIRST_HISTORY = 1 << 18  # Entries (12 bytes) that the history starts with; it grows and is collected as needed
MAX_HISTORY = 1 << 25
"""Entries, 400 MB; as many alternatives take as much again. A lattice that needs more than half of them is pruned by a
narrower beam, as Kaldi does beyond determinize-max-mem. An hour of speech at a beam of 6 needs about this number."""
NARROWER = 0.8  # What the lattice beam is then multiplied by until half of the room is free
NARROWEST = 0.01  # Nat; a narrower lattice has no alternatives
SETTLED_FRAMES = 300
"""Tokens agree on what lies so far back, nearly always: it is gone over again only before the history grows."""
FEW_ENTRIES = 1 << 16
"""Least number that is added before those that no token leads to are dropped, which takes some 2 ms."""

FIRST_ALTERNATIVES = 1 << 18  # Alternatives (12 bytes) that there is room for at first; it grows with the history

Empty = Callable[[int | tuple[int, ...], DTypeLike], Array]
"""Makes an array of a shape and dtype, its content of no matter, as `np.empty`."""

_F32 = np.dtype(np.float32)
_GROUPS = get_type_hints(Arrays)


class Workspace:
    """One utterance's tokens over `graph`, their history and, with `lattice`, its alternatives.

    GraphError when the graph lets paths grow cheaper for ever.
    """

    def __init__(self, graph: Graph, empty: Empty = np.empty) -> None:
        """`empty` makes the arrays; only the pages of tokens and arcs that ever live are touched."""
        self.graph = graph
        self._empty = empty
        groups = {group: _GROUPS[group](*self._made(group)) for group in _lengths(graph, FIRST_HISTORY, 1, False)}
        made = Arrays(layout.Records(graph.states, graph.arcs), **groups)
        for column in (made.places.queued, *made.labels, *made.books[1:5]):
            column.fill(0)
        made.labels.entering[1:] = graph.senone_state == 0
        made.lattice.rank[:] = 0
        self.collected = 0
        """How often the history was collected."""
        self.renumbered_from = 0
        """The first entry that has another number since this was last set."""
        self._history, self._alternatives = made.books.history, made.lattice[:2]
        self._settled = 0
        self._few = FEW_ENTRIES
        self._numbers = Numbers(graph.n_epsilon_states, 0, -1.0, 0.0, np.inf, 0.0, 0, 0, max(graph.blank, 0), np.inf)
        self.hold(made)

    def hold(self, arrays: Arrays) -> None:
        self.check(arrays)
        self.arrays, self._table = arrays, table(arrays)
        self.numbers = self._numbers

    def check(self, arrays: Arrays) -> None:
        """Raise ArrayError unless every array has the shape and type that the kernels assume."""
        graph, ranks = self.graph, self.numbers.n_ranks
        if arrays.graph.states is not graph.states or arrays.graph.arcs is not graph.arcs:
            raise ArrayError("the arrays are not those of the graph that was checked")
        for group, lengths in _lengths(graph, len(arrays.books.history), len(arrays.lattice.delta), ranks > 0).items():
            held, kinds = getattr(arrays, group), [np.dtype(kind) for kind in layout.KINDS[group]]
            for name, kind, length in zip(held._fields, kinds, lengths, strict=True):
                check(f"{group}.{name}", getattr(held, name), kind.base, (length, *kind.shape), writable=True)
        check_indices("rank", arrays.lattice.rank, max(ranks, 1))

    @property
    def numbers(self) -> Numbers:
        return self._numbers

    @numbers.setter
    def numbers(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._recorded = True if numbers.n_ranks > 0 else None
        self.books.numbers[0] = numbers[:]

    @property
    def books(self) -> layout.Books:
        return self.arrays.books

    @property
    def lattice(self) -> tuple[Array, ...]:
        return *self.arrays.lattice, *self._alternatives

    def skip(self, share: float) -> None:
        """Of frames in a row whose blank is more probable than `share` search only the first; 1: search all."""
        over = float(np.log(share)) if share < 1.0 and self.graph.blank >= 0 else np.inf
        self.numbers = self.numbers._replace(skip_above=over)

    def charge(self, penalty: float) -> None:
        """Make each word cost `penalty` (nat) from the next frame on, listed arcs included."""
        self.numbers = self.numbers._replace(penalty=float(penalty))
        arcs, state, (emitting, epsilons) = self.graph.arcs, self.books.decoder_state, self.arrays[2:4]
        for listed, n in ((emitting, state[layout.EMITTING]), (epsilons, state[layout.EPSILONS])):
            of_words = np.flatnonzero(listed.record[:n] >= 0)
            of_words = of_words[arcs["olabel"][listed.record[of_words]] != 0]
            listed.weight[of_words] = arcs["weight"][listed.record[of_words]] + np.float32(penalty)

    def start(self, lattice: bool, beam: float) -> None:
        """One token in the start state, and those that epsilon arcs lead to.

        `lattice`: whether ways within `beam` of the best are kept; arrays that are there serve again.
        """
        self.numbers = self.numbers._replace(lattice_beam=float(beam) if lattice else -1.0)
        if lattice != (self.numbers.n_ranks > 0):
            made = layout.Lattice(*self._made("lattice", lattice))
            made.rank[:] = alternatives.epsilon_ranks(self.graph) if lattice else 0
            self.numbers = self.numbers._replace(n_ranks=int(made.rank.max(initial=0)) + 1 if lattice else 0)
            self._alternatives = made[:2]
            self.hold(self.arrays._replace(lattice=made))
        self._settled, self.renumbered_from, self._few = 0, 0, FEW_ENTRIES
        self._open(0, 0)
        tokens, books = self.arrays.tokens, self.books
        decoder_state = books.decoder_state
        while True:
            books.floats[:] = (0.0, np.inf, np.inf, 0.0, np.inf)
            decoder_state[:] = 0
            decoder_state[layout.M] = 1
            decoder_state[layout.FRAME] = -1
            tokens.state[0] = self.graph.start
            self.arrays.places.slot[self.graph.start] = 0
            tokens.new_cost[0] = 0.0
            tokens.new_hist[0] = -1
            tokens.come[0] = layout.BY_ENTRY
            if _not_endless(calls.begin(self._table, self._recorded)) == layout.DONE:
                break
            self.widen()
        decoder_state[layout.FRAME] = 0
        decoder_state[layout.PENDING] = 1

    def advance(
        self,
        scores: F32,
        frames: tuple[int, int, int, int, int],
        scale: float,
        patience_ns: int,
        recording: calls.Recording,
    ) -> calls.Advanced:
        """Frames of `scores`; see `calls.advance`.

        A score that is no number, or better than any can be, counts as impossible. By position, and looked at by the
        kernel: out of caches that scoring has emptied, names and checks in Python took a third of the call.
        """
        if scores.dtype is not _F32 or not scores.flags.c_contiguous or scores.ndim != 2:
            scores = self._as_read(scores)
        made: calls.Advanced = calls.advance(self._table, scores, frames, scale, patience_ns, recording, self._recorded)
        if made[1] == layout.MISFIT:
            self._as_read(scores)
            raise ArrayError(f"there are no frames {frames[0]} to {frames[1]} in {len(scores)}")
        _not_endless(made[1])
        return made

    def prune(self) -> bool:
        """End the pending frame, whose work is counted anew; whether a token survived."""
        self.books.work[:] = 0
        while (status := calls.prune(self._table)) == layout.NEED_HISTORY:
            self.make_room()
        return bool(status == layout.DONE)

    def active_senones(self) -> tuple[I64, int]:
        count, arcs = calls.active_senones(self._table)
        return self.arrays.labels.found[:count].copy(), int(arcs)

    def entry_of(self, place: int) -> int:
        """History entry of the token at `place` after the last frame."""
        r = self.books.decoder_state
        if r[layout.HISTORY] == len(self.books.history):
            self.make_room()
        return int(calls.entry_of(place, self._table))

    def make_room(self) -> None:
        """Collect new history that no token leads to; all of it, where there is no room left, which then may grow."""
        full = len(self.books.history) == len(self._history) or (
            self.numbers.n_ranks > 0 and len(self.arrays.lattice.delta) == len(self._alternatives[1])
        )
        used, kept = self._collect(0 if full else self._settled)
        r = self.books.decoder_state
        # A prune step needs an entry for each new token at once.
        new = int(max(r[layout.N], r[layout.M]))
        if full:
            while 2 * max(used + new, kept) > MAX_HISTORY and self.numbers.lattice_beam > NARROWEST:
                narrower = self.numbers.lattice_beam * NARROWER
                self.numbers = self.numbers._replace(lattice_beam=narrower)
                used, kept = self._collect(0)
            self._enlarge(2 * (used + new), 2 * kept)
        self._open(used + new, kept)

    def widen(self) -> None:
        """Make room for twice as much: a frame did not fit."""
        self._few *= 2
        r = self.books.decoder_state
        self._enlarge(len(self._history) + self._few, len(self._alternatives[1]) + self._few)
        self._open(int(r[layout.HISTORY]), int(r[layout.ALTERNATIVES]))

    def reserve(self, entries: int, alternatives: int) -> None:
        """Have room for this number of entries and alternatives."""
        self._enlarge(entries, alternatives)
        self._open(entries, alternatives)

    def _collect(self, first: int) -> tuple[int, int]:
        """Drop what no token leads to of the entries from `first` on; how many entries and alternatives are left."""
        tokens, books, lattice = self.arrays.tokens, self.books, self.arrays.lattice
        r = books.decoder_state
        n, others = int(r[layout.N]), 0
        if r[layout.PENDING]:
            others = int(r[layout.M])
            tokens.new_hist[:others][tokens.come[:others] != layout.BY_ENTRY] = -1
        kept = int(r[layout.ALTERNATIVES])
        begin = bisect_left(lattice.alternative[:kept, 0], first)
        history, inside = books.history[: r[layout.HISTORY]], slice(begin, kept)
        pairs, costs = lattice.alternative[inside], lattice.delta[inside]
        beam = self.numbers.lattice_beam
        used, left = words.collect(history, first, tokens.hist[:n], tokens.new_hist[:others], pairs, costs, beam)
        r[layout.HISTORY], r[layout.ALTERNATIVES] = used, begin + left
        self.collected += 1
        self.renumbered_from = min(self.renumbered_from, first)
        settled = int(r[layout.FRAME]) - SETTLED_FRAMES
        self._settled = bisect_left(books.history[:used, 2], settled, first)
        return used, begin + left

    def _open(self, used: int, kept: int) -> None:
        """Let kernels add to `used` entries and `kept` alternatives what is gone over next, if there is room."""
        more = max(self._few, used - self._settled)
        lattice = self.arrays.lattice
        if self.numbers.n_ranks:
            pairs, costs = self._alternatives
            lattice = lattice._replace(alternative=pairs[: kept + more], delta=costs[: kept + more])
        books = self.books._replace(history=self._history[: used + more])
        self.hold(self.arrays._replace(lattice=lattice, books=books))

    def _enlarge(self, entries: int, alternatives: int) -> None:
        """Have arrays of this number of entries and, where they are kept, of alternatives at least."""
        r = self.books.decoder_state
        if entries > len(self._history):
            if entries > 2 * MAX_HISTORY:
                raise GraphError(
                    f"The search would keep more than {2 * MAX_HISTORY:,} entries of history; lower search.beam or "
                    "search.max_active."
                )
            self._history = self._longer(self._history, entries, int(r[layout.HISTORY]))
        pairs, costs = self._alternatives
        if self.numbers.n_ranks and alternatives > len(costs):
            kept = int(r[layout.ALTERNATIVES])
            self._alternatives = self._longer(pairs, alternatives, kept), self._longer(costs, alternatives, kept)

    def _made(self, group: str, on: bool = False) -> list[Array]:
        """Columns of a group, with the least room that a lattice can have where it is not `on`."""
        lengths = _lengths(self.graph, FIRST_HISTORY, FIRST_ALTERNATIVES if on else 1, on)[group]
        kinds = [np.dtype(kind) for kind in layout.KINDS[group]]
        return [self._empty((n, *kind.shape), kind.base) for n, kind in zip(lengths, kinds, strict=True)]

    def _longer(self, column: Array, length: int, used: int) -> Array:
        longer = self._empty((length, *column.shape[1:]), column.dtype)
        longer[:used] = column[:used]
        return longer

    def _as_read(self, scores: Array) -> F32:
        """The same as kernels read them; ArrayError where they are no rows of the graph's senones."""
        if scores.ndim != 2 or scores.shape[1] != self.graph.n_senones:
            raise ArrayError(
                f"the search wants scores of {self.graph.n_senones} senones per frame, not an "
                f"array of shape {scores.shape}"
            )
        return np.ascontiguousarray(scores, dtype=_F32)


def _lengths(graph: Graph, history: int, kept: int, on: bool) -> dict[str, tuple[int, ...]]:
    """Of the columns of each group, for `history` entries and `kept` alternatives; `on`: is there a lattice?"""
    places, arcs, labels = graph.n_states + 1, len(graph.arcs) + 1, graph.n_senones + 1
    # A token is reached by its self-loop and by each arc once at most; untouched pages cost nothing.
    ways = (places, *[places + arcs - 1] * 3, max(graph.n_epsilon_states, 1)) if on else (1,) * 5
    return {
        "tokens": (places,) * 8,
        "emitting": (arcs,) * 7,
        "epsilons": (arcs,) * 6,
        "scratch": (*[places] * 4, layout.BINS + 1),
        "lattice": (kept, kept, *ways),
        "places": (places,) * 3,
        "labels": (labels,) * 4,
        "books": (history, layout.N_DECODER_STATE, layout.N_FLOATS, layout.N_WORK, layout.N_WORK, 1),
    }


def _not_endless(status: int) -> int:
    if status == layout.ENDLESS:
        raise GraphError(
            "The graph has a cycle of epsilon arcs that makes paths cheaper each time they pass it, "
            "so that no path is the best."
        )
    return int(status)
