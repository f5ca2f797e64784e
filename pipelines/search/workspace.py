"""What the decoder's kernels work on: the arrays of one graph's search, and the only way to those kernels.

Kernels check no bounds. Here each array is made as long as the graph can ever need and checked once against what
the kernels take it for; the graph is sound or does not exist (`wfst.Graph`); and what is given per call (scores,
settings, a token's place) is checked per call. `layout` says what the arrays and the decoder state are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from pipelines.search import alternatives, history
from pipelines.search.alternatives import Empty
from pipelines.search.graph.wfst import Graph, GraphError
from pipelines.search.kernels import calls, layout
from pipelines.search.kernels.layout import Arrays, Numbers
from pipelines.search.kernels.table import table
from profiler.arrays import F32, I64, Array, ArrayError, check

P = ParamSpec("P")
R = TypeVar("R")

FIRST_HISTORY = 1 << 18
"""Entries (12 bytes) that the history starts with; it grows and is collected as needed."""
MAX_HISTORY = (1 << 31) - 1
"""Entries are numbered in 32 bits."""

_F32 = np.dtype(np.float32)


class Workspace:
    """One utterance's tokens over `graph`, their history and, with `lattice`, its alternatives.

    GraphError when the graph lets paths grow cheaper for ever, ArrayError when arrays do not fit.
    """

    def __init__(self, graph: Graph, empty: Empty = np.empty) -> None:
        """`empty` makes the arrays; only the pages of tokens and arcs that ever live are touched."""
        self.graph = graph
        self._empty = empty
        places, arcs, labels = graph.n_states + 1, len(graph.arcs) + 1, graph.n_senones + 1
        bins = empty(layout.BINS + 1, np.int32)
        scratch: tuple[Array, ...] = (*self._columns(places, "scratch")[:-1], bins)
        made = Arrays(
            layout.Records(graph.states, graph.arcs),
            layout.Tokens(*self._columns(places, "tokens")),
            layout.Emitting(*self._columns(arcs, "emitting")),
            layout.Epsilons(*self._columns(arcs, "epsilons")),
            layout.Scratch(*scratch),
            alternatives.no_lattice(),
            layout.Places(*self._columns(places, "places")),
            layout.Labels(*self._columns(labels, "labels")),
            layout.Books(
                empty((FIRST_HISTORY, 3), np.int32),
                self._zeros(layout.N_DECODER_STATE, np.int64),
                self._zeros(layout.N_FLOATS, np.float64),
                self._zeros(layout.N_WORK, np.int64),
                self._zeros(layout.N_WORK, np.int64),
                empty(1, layout.NUMBERS),
            ),
        )
        made.places.queued.fill(0)
        for column in made.labels:
            column.fill(0)
        made.labels.entering[1:] = graph.senone_state == 0
        self.collected = 0
        """How often the history was collected, and its entries so renumbered."""
        self._numbers = Numbers(graph.n_epsilon_states, 0, -1.0, 0.0, np.inf, 0.0, 0, 0)
        self.hold(made)

    def hold(self, arrays: Arrays) -> None:
        """Work on these; ArrayError unless every one is what the kernels take it for."""
        self.check(arrays)
        self.arrays, self._table = arrays, table(arrays)
        self.numbers = self._numbers

    def check(self, arrays: Arrays) -> None:
        """ArrayError unless every array is what the kernels take it for."""
        graph = self.graph
        places, arcs, labels = graph.n_states + 1, len(graph.arcs) + 1, graph.n_senones + 1
        if arrays.graph.states is not graph.states or arrays.graph.arcs is not graph.arcs:
            raise ArrayError("the arrays are not those of the graph that was checked")
        for group, lengths in (
            ("tokens", [places] * 8),
            ("emitting", [arcs] * 7),
            ("epsilons", [arcs] * 6),
            ("scratch", [*[places] * 4, layout.BINS + 1]),
            ("places", [places] * 3),
            ("labels", [labels] * 4),
        ):
            held, kinds = getattr(arrays, group), layout.KINDS[group]
            for name, kind, length in zip(held._fields, kinds, lengths, strict=True):
                check(f"{group}.{name}", getattr(held, name), kind, (length,), writable=True)
        books = arrays.books
        check(
            "decoder_state", books.decoder_state, np.int64, (layout.N_DECODER_STATE,), writable=True
        )
        check("floats", books.floats, np.float64, (layout.N_FLOATS,), writable=True)
        check("work", books.work, np.int64, (layout.N_WORK,), writable=True)
        check("work before", books.before, np.int64, (layout.N_WORK,), writable=True)
        check("numbers", books.numbers, layout.NUMBERS, (1,), writable=True)
        check("history", books.history, np.int32, (None, 3), writable=True)
        alternatives.check_lattice(graph, arrays.lattice, self.numbers.n_ranks)

    @property
    def numbers(self) -> Numbers:
        """What stays as it is while a kernel runs."""
        return self._numbers

    @numbers.setter
    def numbers(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self.books.numbers[0] = numbers[:]

    @property
    def books(self) -> layout.Books:
        """History, decoder state and counts."""
        return self.arrays.books

    def prune_by(self, beam: float, beam_delta: float, most: int, least: int) -> None:
        """Set the limits of the frames to come: Kaldi's beam, beam_delta, max_active and min_active."""
        if not (beam > 0.0 and beam_delta >= 0.0 and most >= 0):
            raise ArrayError(f"no search is pruned by a beam of {beam} and {most} tokens")
        self.numbers = self.numbers._replace(
            beam=float(beam),
            beam_delta=float(beam_delta),
            max_active=int(most),
            min_active=int(least),
        )

    def charge(self, penalty: float) -> None:
        """Let each word cost `penalty` (nat) from the next frame on, listed arcs included."""
        if not abs(penalty) <= layout.LARGEST:
            raise ArrayError(f"{penalty} is no insertion penalty")
        self.numbers = self.numbers._replace(penalty=float(penalty))
        calls.reprice(self._table, self.numbers.penalty)

    def start(self, lattice: bool, beam: float) -> None:
        """One token in the start state, and those that epsilon arcs lead to."""
        self._keep_alternatives(lattice, beam)
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
            if _not_endless(calls.begin(self._table)) == layout.DONE:
                break
            self.grow()
        decoder_state[layout.FRAME] = 0
        decoder_state[layout.PENDING] = 1

    def advance(
        self,
        scores: F32,
        frames: tuple[int, int, int],
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
        made: calls.Advanced = calls.advance(
            self._table, scores, frames, scale, patience_ns, recording
        )
        if made[1] == layout.MISFIT:
            self._as_read(scores)
            begin, end, _ = frames
            raise ArrayError(f"there are no frames {begin} to {end} in {len(scores)}")
        if made[1] == layout.ENDLESS:
            _not_endless(made[1])
        return made

    def prune(self) -> bool:
        """End the pending frame; whether a token survived."""
        while True:
            status = calls.prune(self._table)
            if status != layout.NEED_HISTORY:
                return bool(status == layout.DONE)
            self.make_room()

    def prune_alone(self) -> bool:
        """The same in a call of its own, whose work is counted from nothing."""
        self.books.work[:] = 0
        return self.prune()

    def active_senones(self) -> tuple[I64, int]:
        """Senones that the next frame will look up, ascending; and how many arcs were gone over."""
        count, arcs = calls.active_senones(self._table)
        return self.arrays.labels.found[:count].copy(), int(arcs)

    def entry_of(self, place: int) -> int:
        """History entry of the token at `place` after the last frame."""
        r = self.books.decoder_state
        if not 0 <= place < r[layout.M]:
            raise ArrayError(f"there is no token {place} among {r[layout.M]}")
        if r[layout.HISTORY] == len(self.books.history):
            self.make_room()
        return int(calls.entry_of(place, self._table))

    def call(
        self, kernel: Callable[Concatenate[I64, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What `kernel` answers, given the table of the arrays before all else; they live as long as it runs."""
        return kernel(self._table, *args, **kwargs)

    def make_room(self) -> None:
        """Collect history that no token leads to; double it when more than half stays in use."""
        tokens, books, lattice = self.arrays.tokens, self.books, self.arrays.lattice
        r = books.decoder_state
        n, m = int(r[layout.N]), int(r[layout.M])
        others = 0
        if r[layout.PENDING]:
            others = m
            tokens.new_hist[:m][tokens.come[:m] != layout.BY_ENTRY] = -1
        kept = int(r[layout.ALTERNATIVES])
        r[layout.HISTORY], r[layout.ALTERNATIVES] = history.collect(
            books.history[: r[layout.HISTORY]],
            tokens.hist[:n],
            tokens.new_hist[:others],
            lattice.alternative[:kept],
            lattice.delta[:kept],
            self.numbers.lattice_beam,
        )
        self.collected += 1
        # A prune step needs an entry for each new token at once.
        need = int(r[layout.HISTORY]) + max(n, m)
        kept = int(r[layout.ALTERNATIVES])
        if 2 * need > len(books.history) or 2 * kept > len(lattice.alternative):
            self.grow(2 * need)

    def grow(self, least: int = 0) -> None:
        """Double the history, and what hangs on it."""
        before = self.books.history
        backpointers = max(2 * len(before), least)
        if backpointers > MAX_HISTORY:
            raise GraphError(
                f"The search would keep more than {MAX_HISTORY:,} entries of history; lower search.beam, "
                "search.max_active or search.lattice_beam."
            )
        larger = self._empty((backpointers, 3), np.int32)
        larger[: len(before)] = before
        lattice = self.arrays.lattice
        if self.numbers.n_ranks:
            lattice = alternatives.grown(lattice, self._empty)
        books = self.books._replace(history=larger)
        self.hold(self.arrays._replace(lattice=lattice, books=books))

    def _keep_alternatives(self, on: bool, beam: float) -> None:
        """Keep ways within `beam`, or none; arrays that are there serve again."""
        lattice, ranks = self.arrays.lattice, self.numbers.n_ranks
        if on and not ranks:
            lattice = alternatives.lattice_arrays(self.graph, self._empty)
            ranks = int(lattice.rank.max(initial=0)) + 1
        elif not on:
            lattice, ranks = alternatives.no_lattice(), 0
        changed = ranks != self.numbers.n_ranks
        self.numbers = self.numbers._replace(
            n_ranks=ranks, lattice_beam=float(beam) if on else -1.0
        )
        if changed:
            self.hold(self.arrays._replace(lattice=lattice))

    def _as_read(self, scores: Array) -> F32:
        """The same as kernels read them; ArrayError where they are no rows of the graph's senones."""
        if scores.ndim != 2 or scores.shape[1] != self.graph.n_senones:
            raise ArrayError(
                f"the search wants scores of {self.graph.n_senones} senones per frame, not an "
                f"array of shape {scores.shape}"
            )
        return np.ascontiguousarray(scores, dtype=_F32)

    def _columns(self, length: int, group: str) -> tuple[Array, ...]:
        return tuple(self._empty(length, kind) for kind in layout.KINDS[group])

    def _zeros(self, length: int, kind: DTypeLike) -> Array:
        made = self._empty(length, kind)
        made.fill(0)
        return made


def _not_endless(status: int) -> int:
    if status == layout.ENDLESS:
        raise GraphError(
            "The graph has a cycle of epsilon arcs that makes paths cheaper each time they pass it, "
            "so that no path is the best."
        )
    return int(status)
