"""The decoder: token passing over a compiled graph, block by block, with partial results.

The class holds arrays and bookkeeping; the rules are in `_kernels`. Costs are negative log
likelihoods (nat), acoustics scaled; the best token's cost is taken off every frame, so that float32
stays accurate over hours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.search import _epsilon, _history, _kernels, _pruning, alternatives, costs
from pipelines.search import _layout as layout
from pipelines.search.governor import Governor
from pipelines.search.settings import SearchSettings
from pipelines.search.wfst import Graph
from pipelines.search.words import Word, WordTracer
from profiler.clock import now_ns
from profiler.kernel_spans import HAS_CLOCK
from profiler.spans import Cost, Lane, NullLane, Recorder

BEAM_DELTA = 0.5
"""Kaldi's default: slack over the histogram's cutoff when it sets the next frame's beam."""
FIRST_HISTORY = 1 << 18
"""Entries (12 bytes) that the history starts with; it grows and is collected as needed."""
PATIENCE_NS = 20_000_000
"""A kernel call returns after the frame in which this is exceeded, so that others get the GIL."""
FRAMES_WITHOUT_CLOCK = 32

_STAGES = {
    "search.emit": ("tokens", "arcs", "senones"),
    "search.epsilon": ("arcs",),
    # Names of their own: counts of one name are added up over the stages.
    "search.prune": ("examined",),
    "search.ask": ("looked at", "asked"),
    "search.lattice": ("ways",),
    "search.backtrace": ("entries",),
}
_NO_LANE = NullLane()


class Viterbi:
    """Best path over `graph` for the scores given to `advance`.

    Per utterance: `start`, any number of `advance`, `finish`; `partial` in between. How the scores
    are cut into blocks does not change the result. With `lattice` set, `finish` also leaves the best
    word sequences in `nbest` and the words' posterior probabilities in `confidences`.
    """

    def __init__(self, graph: Graph, config: SearchSettings) -> None:
        self.graph = graph
        places, arcs = graph.n_states + 1, len(graph.arcs) + 1
        # Only the pages of tokens and arcs that ever live are touched; the graph's size is the upper bound.
        self._tokens = _columns(places, "u4 f4 i4 f4 i4 i4 u4 f4")
        self._state, self._cost, self._hist, self._new_cost, self._new_hist, self._come, _, _ = (
            self._tokens
        )
        self._emitting = _columns(arcs, "u4 u4 f4 u4 i4 f4 u4")
        self._epsilons = _columns(arcs, "u4 f4 u4 i4 f4 u4")
        self._scratch = (
            *_columns(places, "f4 u4 i4 i4"),
            np.empty(_pruning.BINS + 1, dtype=np.int32),
        )
        self._slot = np.zeros(places, dtype=np.uint32)
        self._queue = np.empty(places, dtype=np.uint32)
        self._queued = np.zeros(places, dtype=np.uint8)
        self._history = np.empty((FIRST_HISTORY, 3), dtype=np.int32)
        self._row = np.zeros(graph.n_senones + 1, dtype=np.float32)
        self._asked = np.zeros(graph.n_senones + 1, dtype=np.uint8)
        self._found = np.zeros(graph.n_senones + 1, dtype=np.int64)
        self._registers = np.zeros(layout.N_REGISTERS, dtype=np.int64)
        self._floats = np.zeros(layout.N_FLOATS, dtype=np.float64)
        self._work = np.zeros(layout.N_WORK, dtype=np.int64)
        self._entering = np.concatenate([[False], graph.senone_state == 0])
        # One type for mapped and for fresh arrays: kernels are compiled once.
        self._states, self._arcs = graph.states.view(), graph.arcs.view()
        self._states.flags.writeable = self._arcs.flags.writeable = False
        self._lattice: tuple[Any, ...] = alternatives.no_lattice()
        self._tracer = WordTracer(graph)
        self._stage = dict.fromkeys(_STAGES, 0)
        self._steps = 0, 0, 0, 0
        self._first_frame = 0
        self._lost = False
        self._penalty = 0.0
        self._governor: Governor | None = None
        self.complete = False
        self.best_cost = np.inf
        self.nbest: list[alternatives.Hypothesis] = []
        self.confidences: list[float] = []
        self.configure(config)
        self.start(0)

    @property
    def beam(self) -> float:
        """The beam in use: the settings', or what the governor has made of it."""
        return float(self._limits[0])

    @property
    def cutoff(self) -> float:
        """Cost above the best (nat) from which tokens were dropped last; +inf: none was."""
        return float(self._floats[layout.CUTOFF])

    @property
    def lost(self) -> bool:
        """Whether no token survived, so that the rest of the utterance went unheard."""
        return self._lost

    def stages(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`."""
        for name, work in _STAGES.items():
            self._stage[name] = recorder.stage(name, "search", work)
        emit, epsilon, prune, lattice = (
            self._stage[f"search.{step}"] for step in ("emit", "epsilon", "prune", "lattice")
        )
        self._steps = emit, epsilon, prune, lattice

    def configure(self, config: SearchSettings) -> None:
        """Take over settings, from the next frame on; `lattice` and its beam from the next utterance."""
        self._config = config
        self._scale = float(config.acoustic_scale)
        if not config.governor:
            self._governor = None
        elif self._governor is None:
            self._governor = Governor()
        governed = self._governor.beam if self._governor else np.inf
        self._use_beam(min(float(config.beam), governed))
        if self._penalty != config.insertion_penalty:
            self._penalty = float(config.insertion_penalty)
            _pruning.reprice(self._graph, self._emitting, self._epsilons, self._registers)

    def spent(self, frames: int, ns: int) -> None:
        """Say how long the last block took in all; the governor, if any, sets the beam by it."""
        if self._governor is not None:
            config = self._config
            self._use_beam(self._governor.after(frames, ns, config.wished_rtf, config.beam))

    def warm_up(self) -> None:
        """Compile (or load) every kernel, so that the first utterance does not pay for it."""
        silence = np.zeros((2, self.graph.n_senones), dtype=np.float32)
        self.start(0)
        self.advance(silence, 0, _NO_LANE)
        self.partial(_NO_LANE)
        self.wanted()
        self._make_room()
        self.finish(_NO_LANE)
        self.start(0)

    def start(self, first_frame: int) -> None:
        """Begin an utterance whose first frame has the run-global number `first_frame`."""
        self._first_frame = first_frame
        self._lost = False
        self.complete = False
        self.best_cost = np.inf
        self.nbest, self.confidences = [], []
        self._tracer.reset()
        on, beam = self._config.lattice, self._config.lattice_beam
        self._lattice = alternatives.lattice_arrays(self.graph, on, beam, self._lattice)
        while True:
            self._floats[:] = (0.0, np.inf, np.inf, 0.0, np.inf)
            self._registers[:] = 0
            self._registers[layout.M] = 1
            self._registers[layout.FRAME] = -1
            self._state[0] = self.graph.start
            self._slot[self.graph.start] = 0
            self._new_cost[0] = 0.0
            self._new_hist[0] = -1
            self._come[0] = layout.BY_ENTRY
            if self._close_start() == layout.DONE:
                break
            self._grow()
        self._registers[layout.FRAME] = 0
        self._registers[layout.PENDING] = 1
        self._latest = (first_frame, 0)

    def advance(
        self, scores: NDArray[np.float32], first_frame: int, lane: Lane | NullLane = _NO_LANE
    ) -> None:
        """Pass tokens over the frames of `scores` f32 [frames, n_senones] (natural logs, unscaled).

        The kernel records one span each of search.emit, search.epsilon and search.prune per call
        of it, laid one after another; `tokens` counts those expanded per frame, `arcs` those whose
        cost was computed (self-loops, and arcs of tokens that died lately, included), `senones` the
        different ones that living tokens looked up per frame. ValueError when the shape is wrong.
        """
        if scores.ndim != 2 or scores.shape[1] != self.graph.n_senones:
            raise ValueError(
                f"the search wants scores of {self.graph.n_senones} senones per frame, not an "
                f"array of shape {scores.shape}"
            )
        scores = np.ascontiguousarray(scores, dtype=np.float32)
        self._latest = (first_frame, len(scores))
        done, end = 0, len(scores)
        stuck = False
        called_ns = now_ns()
        while done < end and not self._lost:
            begin = done
            stop = end if HAS_CLOCK else min(end, done + FRAMES_WITHOUT_CLOCK)
            done, status = _kernels.advance(
                self._graph,
                scores,
                done,
                stop,
                self._scale,
                self._limits,
                self._tokens,
                self._emitting,
                self._epsilons,
                self._slot,
                self._history,
                self._lattice,
                self._registers,
                self._floats,
                self._row,
                self._asked,
                self._queue,
                self._queued,
                self._scratch,
                self._work,
                PATIENCE_NS,
                lane.lend(),
                self._steps,
                called_ns,
                first_frame,
            )
            lane.settle()
            if not HAS_CLOCK:
                self._record(lane, called_ns, first_frame + begin, done - begin)
            # Should there be another call, making room for it belongs to that call's first step.
            called_ns = now_ns()
            if status == layout.NEED_HISTORY:
                if stuck and done == begin:
                    self._grow()
                self._make_room()
            elif status == layout.NO_TOKENS:
                # Every path has cost infinity: by its scores, or for lack of an arc that leads on.
                self._lost = True
            stuck = status == layout.NEED_HISTORY and done == begin

    def wanted(self, lane: Lane | NullLane = _NO_LANE) -> NDArray[np.int64]:
        """Senones that the next frame will look up, ascending; stages search.prune and search.ask."""
        begin = now_ns()
        frame = self._latest[0] + self._latest[1]
        if self._registers[layout.PENDING] and not self._lost:
            self._work[layout.EXAMINED] = 0
            self._prune()
            examined, begin, start = int(self._work[layout.EXAMINED]), now_ns(), begin
            lane.put(self._stage["search.prune"], start, begin, frame, 1, examined)
        count, arcs = _kernels.senones_asked(
            self._tokens, self._emitting, self._registers, self._asked, self._found
        )
        result = self._found[:count].copy()
        lane.put(self._stage["search.ask"], begin, now_ns(), frame, 1, arcs, len(result))
        return result

    def partial(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best token so far: (word, first frame of the run, frames)."""
        return self._backtrace(False, lane)

    def finish(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best path to a final state, or of the best token if none is reached.

        Sets `complete` (a final state was reached) and `best_cost` (of that path, nat), and with a
        lattice `nbest` and `confidences` (of the words returned).
        """
        return self._backtrace(True, lane)

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages; see `pipelines.search.costs`."""
        return costs.laws(self.graph, int(self._limits[2]), float(self._history.nbytes))

    @property
    def _graph(self) -> tuple[Any, ...]:
        """What kernels see of the graph."""
        graph = self.graph
        return self._states, self._arcs, self._entering, graph.n_epsilon_states, self._penalty

    def _use_beam(self, beam: float) -> None:
        config = self._config
        self._limits = (beam, BEAM_DELTA, int(config.max_active), int(config.min_active))

    def _record(self, lane: Lane | NullLane, begin: int, first: int, frames: int) -> None:
        """Where kernels have no clock: all time to the largest step, to each its counts."""
        emit, epsilon, prune, lattice = self._steps
        counts = self._work.tolist()
        at = now_ns()
        asked = counts[layout.TOKENS], counts[layout.EMIT_ARCS], counts[layout.SENONES]
        lane.put(emit, begin, at, first, frames, *asked)
        lane.put(epsilon, at, at, first, frames, counts[layout.EPSILON_ARCS])
        lane.put(prune, at, at, first, frames, counts[layout.EXAMINED])
        if self._config.lattice:
            lane.put(lattice, at, at, first, frames, counts[layout.CONTENDERS])

    def _backtrace(self, final: bool, lane: Lane | NullLane) -> list[Word]:
        begin = now_ns()
        words = self._words(final)
        lane.put(
            self._stage["search.backtrace"],
            begin,
            now_ns(),
            *self._latest,  # charged where it happens: frames already shown keep their cost
            self._tracer.entries,
        )
        return words

    def _words(self, final: bool) -> list[Word]:
        pending = bool(self._registers[layout.PENDING])
        n = int(self._registers[layout.M if pending else layout.N])
        cost = (self._new_cost if pending else self._cost)[:n]
        if pending:
            cost = np.where(cost <= self._floats[layout.LIMIT], cost, np.float32(np.inf))
        total = cost + self.graph.final[self._state[:n]] if final else cost
        if final:
            self.complete = bool(n) and bool(np.isfinite(total).any()) and not self._lost
            if not self.complete:
                total = cost
        if not n:
            return []
        best = int(np.argmin(total))
        offset = float(self._floats[layout.OFFSET])
        if final:
            self.best_cost = offset + float(total[best])
        entry = self._entry(best) if pending else int(self._hist[best])
        end = int(self._registers[layout.FRAME])
        words = self._tracer.words(self._history, entry, end)
        if final and self._lattice[0] >= 0 and np.isfinite(total[best]):
            ends = (self._new_hist if pending else self._hist)[:n]
            self._alternatives(entry, ends, total - total[best])
        first = self._first_frame
        return [(word, first + start, frames) for word, start, frames in words]

    def _alternatives(
        self, entry: int, ends: NDArray[np.int32], above: NDArray[np.float32]
    ) -> None:
        """Fill `nbest` and `confidences` from the lattice, whose paths end as said."""
        beam, alternative, delta = self._lattice[:3]
        near = above <= beam
        used, kept = (int(self._registers[r]) for r in (layout.HISTORY, layout.ALTERNATIVES))
        lattice = alternatives.Lattice(
            self._history[:used],
            alternative[:kept],
            delta[:kept],
            ends[near].astype(np.int64),
            above[near].astype(np.float64),
            self.best_cost,
        )
        path = np.empty(used, dtype=np.int32)
        n, _ = _history.trace(self._history, entry, -1, path)
        self.confidences = alternatives.confidences(self.graph, lattice, path[:n][::-1], beam)
        self.nbest = alternatives.best_sequences(self.graph, lattice, self._config.nbest, beam)

    def _entry(self, place: int) -> int:
        """History entry of a token after the last frame."""
        if self._registers[layout.HISTORY] == len(self._history):
            self._make_room()
        entry, used = _epsilon.entry_of(
            place,
            self._tokens,
            self._emitting,
            self._history,
            int(self._registers[layout.HISTORY]),
            int(self._registers[layout.FRAME]) - 1,
        )
        self._registers[layout.HISTORY] = used
        return int(entry)

    def _prune(self) -> None:
        while True:
            status = _pruning.prune(
                self._graph,
                self._tokens,
                self._emitting,
                self._epsilons,
                self._slot,
                self._history,
                self._registers,
                self._floats,
                self._limits,
                self._scratch,
                self._work,
            )
            if status != layout.NEED_HISTORY:
                self._lost = self._lost or status == layout.NO_TOKENS
                return
            self._make_room()

    def _close_start(self) -> int:
        """Epsilon closure of the start state."""
        return int(
            _epsilon.begin(
                self._graph,
                self._tokens,
                self._emitting,
                self._epsilons,
                self._slot,
                self._history,
                self._lattice,
                self._registers,
                self._floats,
                self._row,
                self._queue,
                self._queued,
                self._work,
            )
        )

    def _make_room(self) -> None:
        """Collect history that no token leads to; double it when more than half stays in use."""
        r = self._registers
        n, m = int(r[layout.N]), int(r[layout.M])
        others = 0
        if r[layout.PENDING]:
            others = m
            self._new_hist[:m][self._come[:m] != layout.BY_ENTRY] = -1
        beam, alternative, delta = self._lattice[:3]
        r[layout.HISTORY], r[layout.ALTERNATIVES] = _history.collect(
            self._history,
            int(r[layout.HISTORY]),
            self._hist,
            n,
            self._new_hist,
            others,
            alternative,
            delta,
            int(r[layout.ALTERNATIVES]),
            beam,
        )
        self._tracer.reset()
        # A prune step needs an entry for each new token at once.
        need = int(r[layout.HISTORY]) + max(n, m)
        if 2 * need > len(self._history) or 2 * int(r[layout.ALTERNATIVES]) > len(alternative):
            self._grow(2 * need)

    def _grow(self, least: int = 0) -> None:
        """Double the history, and what hangs on it."""
        larger = np.empty((max(2 * len(self._history), least), 3), dtype=np.int32)
        larger[: len(self._history)] = self._history
        self._history = larger
        self._lattice = alternatives.grown(self._lattice)


def _columns(length: int, kinds: str) -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(length, dtype=kind) for kind in kinds.split())
