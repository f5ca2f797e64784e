"""What the decoder's kernels work on: the arrays of one graph's search, and the only way to those kernels.

Kernels check no bounds. Here each array is made as long as the graph can ever need and checked once against what
the kernels take it for; the graph is sound or does not exist (`wfst.Graph`); and what is given per call (scores,
settings, a token's place) is checked per call. `token_passing` says what the arrays are, `layout` what the registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.search import alternatives, history
from pipelines.search.graph.wfst import Graph, GraphError
from pipelines.search.kernels import epsilon, layout, pruning, token_passing
from profiler.arrays import F32, I64, Array, ArrayError, check
from profiler.span_layout import Lent

FIRST_HISTORY = 1 << 18
"""Entries (12 bytes) that the history starts with; it grows and is collected as needed."""
MOST_HISTORY = (1 << 31) - 1
"""Entries are numbered in 32 bits."""

Empty = Callable[[Any, Any], Array]
"""Makes an array of a shape and dtype, its content of no matter, as `np.empty`."""

_F32 = np.dtype(np.float32)
# One letter and size per column, in the order in which `token_passing` names them.
_TOKENS = "u4 f4 i4 f4 i4 i4 u4 f4"
_EMITTING = "u4 u4 f4 u4 i4 f4 u4"
_EPSILONS = "u4 f4 u4 i4 f4 u4"
_SCRATCH = "f4 u4 i4 i4"


class Workspace:
    """One utterance's tokens over `graph`, their history and, with `lattice`, its alternatives.

    GraphError when the graph lets paths grow cheaper for ever, ArrayError when arrays do not fit.
    """

    def __init__(self, graph: Graph, empty: Empty = np.empty) -> None:
        """`empty` makes the arrays; only the pages of tokens and arcs that ever live are touched."""
        self.graph = graph
        self._empty = empty
        places, arcs, labels = graph.n_states + 1, len(graph.arcs) + 1, graph.n_senones + 1
        self.tokens = self._columns(places, _TOKENS)
        self.state, self.cost, self.hist, self.new_cost, self.new_hist, self.come = self.tokens[:6]
        self.emitting = self._columns(arcs, _EMITTING)
        self.epsilons = self._columns(arcs, _EPSILONS)
        self.scratch = (*self._columns(places, _SCRATCH), empty(pruning.BINS + 1, np.int32))
        # A sparse set (Briggs & Torczon 1993): what it holds at first is of no matter.
        self.slot = empty(places, np.uint32)
        self.queue = empty(places, np.uint32)
        self.queued = self._zeros(places, np.uint8)
        self.history = empty((FIRST_HISTORY, 3), np.int32)
        self.row = self._zeros(labels, np.float32)
        self.asked = self._zeros(labels, np.uint8)
        self.found = self._zeros(labels, np.int64)
        self.registers = self._zeros(layout.N_REGISTERS, np.int64)
        self.floats = self._zeros(layout.N_FLOATS, np.float64)
        self.work = self._zeros(layout.N_WORK, np.int64)
        self.entering = self._zeros(labels, np.bool_)
        self.entering[1:] = graph.senone_state == 0
        self.lattice = alternatives.no_lattice()
        self.collected = 0
        """How often the history was collected, and its entries so renumbered."""
        self.penalty = 0.0
        self.limits = np.inf, 0.0, 0, 0
        self.check()

    def check(self) -> None:
        """ArrayError unless every array is what the kernels take it for; after any of them was replaced."""
        graph = self.graph
        places, arcs, labels = graph.n_states + 1, len(graph.arcs) + 1, graph.n_senones + 1
        for group, kinds, length in (
            ("tokens", _TOKENS, places),
            ("emitting", _EMITTING, arcs),
            ("epsilons", _EPSILONS, arcs),
            ("scratch", _SCRATCH, places),
        ):
            for n, kind in enumerate(kinds.split()):
                check(f"{group}[{n}]", getattr(self, group)[n], kind, (length,), writable=True)
        check("bins", self.scratch[4], np.int32, (pruning.BINS + 1,), writable=True)
        for name, dtype, length in (
            ("slot", np.uint32, places),
            ("queue", np.uint32, places),
            ("queued", np.uint8, places),
            ("row", np.float32, labels),
            ("asked", np.uint8, labels),
            ("found", np.int64, labels),
            ("registers", np.int64, layout.N_REGISTERS),
            ("floats", np.float64, layout.N_FLOATS),
            ("work", np.int64, layout.N_WORK),
            ("entering", np.bool_, labels),
        ):
            check(name, getattr(self, name), dtype, (length,), writable=True)
        check("history", self.history, np.int32, (None, 3), writable=True)
        alternatives.check_lattice(graph, self.lattice)

    def prune_by(self, beam: float, beam_delta: float, most: int, least: int) -> None:
        """Set the limits of the frames to come: Kaldi's beam, beam_delta, max_active and min_active."""
        if not (beam > 0.0 and beam_delta >= 0.0 and most >= 0):
            raise ArrayError(f"no search is pruned by a beam of {beam} and {most} tokens")
        self.limits = float(beam), float(beam_delta), int(most), int(least)

    def charge(self, penalty: float) -> None:
        """Let each word cost `penalty` (nat) from the next frame on, listed arcs included."""
        if not abs(penalty) <= layout.LARGEST:
            raise ArrayError(f"{penalty} is no insertion penalty")
        self.penalty = float(penalty)
        pruning.reprice(self._graph, self.emitting, self.epsilons, self.registers)

    def start(self, lattice: bool, beam: float) -> None:
        """One token in the start state, and those that epsilon arcs lead to."""
        before = self.lattice
        self.lattice = alternatives.lattice_arrays(self.graph, lattice, beam, before, self._empty)
        if len(self.lattice[1]) != len(before[1]):
            self.check()
        while True:
            self.floats[:] = (0.0, np.inf, np.inf, 0.0, np.inf)
            self.registers[:] = 0
            self.registers[layout.M] = 1
            self.registers[layout.FRAME] = -1
            self.state[0] = self.graph.start
            self.slot[self.graph.start] = 0
            self.new_cost[0] = 0.0
            self.new_hist[0] = -1
            self.come[0] = layout.BY_ENTRY
            if self._close_start() == layout.DONE:
                break
            self.grow()
        self.registers[layout.FRAME] = 0
        self.registers[layout.PENDING] = 1

    def advance(
        self,
        scores: F32,
        begin: int,
        end: int,
        *,
        scale: float,
        patience_ns: int,
        spans: Lent,
        stages: tuple[int, int, int, int],
        called_ns: int,
        first_frame: int,
    ) -> tuple[int, int]:
        """Frames begin … end of `scores`; (frames done so far, why it stopped), see `token_passing.advance`.

        A score that is no number, or better than any can be, counts as impossible.
        """
        # Once per call of a kernel, and so without the words of `check` where all is well.
        frames, senones = scores.shape
        if senones != self.graph.n_senones or scores.dtype != _F32 or not scores.flags.c_contiguous:
            check("scores", scores, _F32, (None, self.graph.n_senones))
        if not 0 <= begin <= end <= frames:
            raise ArrayError(f"there are no frames {begin} to {end} in {frames}")
        done, status = token_passing.advance(
            self._graph,
            scores,
            begin,
            end,
            scale,
            self.limits,
            self.tokens,
            self.emitting,
            self.epsilons,
            self.slot,
            self.history,
            self.lattice,
            self.registers,
            self.floats,
            self.row,
            self.asked,
            self.queue,
            self.queued,
            self.scratch,
            self.work,
            patience_ns,
            spans,
            stages,
            called_ns,
            first_frame,
        )
        return done, _not_endless(status)

    def prune(self) -> bool:
        """End the pending frame; whether a token survived."""
        while True:
            status = pruning.prune(
                self._graph,
                self.tokens,
                self.emitting,
                self.epsilons,
                self.slot,
                self.history,
                self.registers,
                self.floats,
                self.limits,
                self.scratch,
                self.work,
            )
            if status != layout.NEED_HISTORY:
                return bool(status == layout.DONE)
            self.make_room()

    def wanted(self) -> tuple[I64, int]:
        """Senones that the next frame will look up, ascending; and how many arcs were gone over."""
        count, arcs = token_passing.senones_asked(
            self.tokens, self.emitting, self.registers, self.asked, self.found
        )
        return self.found[:count].copy(), int(arcs)

    def entry_of(self, place: int) -> int:
        """History entry of the token at `place` after the last frame."""
        r = self.registers
        if not 0 <= place < r[layout.M]:
            raise ArrayError(f"there is no token {place} among {r[layout.M]}")
        if r[layout.HISTORY] == len(self.history):
            self.make_room()
        entry, used = epsilon.entry_of(
            place,
            self.tokens,
            self.emitting,
            self.history,
            int(r[layout.HISTORY]),
            int(r[layout.FRAME]) - 1,
        )
        r[layout.HISTORY] = used
        return int(entry)

    def make_room(self) -> None:
        """Collect history that no token leads to; double it when more than half stays in use."""
        r = self.registers
        n, m = int(r[layout.N]), int(r[layout.M])
        others = 0
        if r[layout.PENDING]:
            others = m
            self.new_hist[:m][self.come[:m] != layout.BY_ENTRY] = -1
        beam, alternative, delta = self.lattice[:3]
        r[layout.HISTORY], r[layout.ALTERNATIVES] = history.collect(
            self.history[: r[layout.HISTORY]],
            self.hist[:n],
            self.new_hist[:others],
            alternative[: int(r[layout.ALTERNATIVES])],
            delta[: int(r[layout.ALTERNATIVES])],
            beam,
        )
        self.collected += 1
        # A prune step needs an entry for each new token at once.
        need = int(r[layout.HISTORY]) + max(n, m)
        if 2 * need > len(self.history) or 2 * int(r[layout.ALTERNATIVES]) > len(alternative):
            self.grow(2 * need)

    def grow(self, least: int = 0) -> None:
        """Double the history, and what hangs on it."""
        entries = max(2 * len(self.history), least)
        if entries > MOST_HISTORY:
            raise GraphError(
                f"The search would keep more than {MOST_HISTORY:,} entries of history; lower search.beam, "
                "search.max_active or search.lattice_beam."
            )
        larger = self._empty((entries, 3), np.int32)
        larger[: len(self.history)] = self.history
        self.history = larger
        self.lattice = alternatives.grown(self.lattice, self._empty)
        self.check()

    @property
    def _graph(self) -> tuple[Any, ...]:
        """What kernels see of the graph."""
        graph = self.graph
        return graph.states, graph.arcs, self.entering, graph.n_epsilon_states, self.penalty

    def _close_start(self) -> int:
        """Epsilon closure of the start state."""
        return _not_endless(
            epsilon.begin(
                self._graph,
                self.tokens,
                self.emitting,
                self.epsilons,
                self.slot,
                self.history,
                self.lattice,
                self.registers,
                self.floats,
                self.row,
                self.queue,
                self.queued,
                self.work,
            )
        )

    def _columns(self, length: int, kinds: str) -> tuple[Array, ...]:
        return tuple(self._empty(length, np.dtype(kind)) for kind in kinds.split())

    def _zeros(self, length: int, kind: Any) -> Array:
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
