"""The decoder: token passing over a compiled graph, block by block, with partial results.

The class holds arrays and bookkeeping; the rules are in `_kernels`. Costs are negative log
likelihoods (nat), acoustics scaled; the best token's cost is taken off every frame, so that float32
stays accurate over hours.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.search import _history, _kernels
from pipelines.search import _layout as layout
from pipelines.search.wfst import ARC, Graph
from pipelines.search.words import Word, WordTracer
from profiler.clock import now_ns
from profiler.kernel_spans import HAS_CLOCK
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

MIN_ACTIVE = 20
"""Kaldi's FasterDecoder default: below this many tokens the beam widens."""
BEAM_DELTA = 0.5
"""Kaldi's default: slack over the histogram's cutoff when it sets the next frame's beam."""
FIRST_HISTORY = 1 << 18
"""Entries (12 bytes) that the history starts with; it grows and is collected as needed."""
PATIENCE_NS = 20_000_000
"""A kernel call returns after the frame in which this is exceeded, so that others get the GIL."""
FRAMES_WITHOUT_CLOCK = 32
TOKEN_BYTES = 40.0
"""Of a token: ten fields of 4 bytes, see `_kernels`."""
ENTRY_BYTES = 12.0
"""Of an entry of the history: previous entry, arc, frame."""
LINE_BYTES = 64.0
"""A cache line: what an access to a scattered record moves."""
BACKTRACE_OPERATIONS = 6.0
"""Per entry of the path: 3 comparisons to follow it back, 3 to find where phones and words begin."""

_STAGES = {
    "search.emit": ("tokens", "arcs", "senones"),
    "search.epsilon": ("arcs",),
    "search.prune": ("tokens",),
    "search.backtrace": ("entries",),
}
_NO_LANE = NullLane()


class SearchSettings(Protocol):
    """What the decoder reads of its settings; `pipelines.config.Search` is one."""

    @property
    def beam(self) -> float: ...  # noqa: D102
    @property
    def max_active(self) -> int: ...  # noqa: D102
    @property
    def acoustic_scale(self) -> float: ...  # noqa: D102
    @property
    def insertion_penalty(self) -> float: ...  # noqa: D102


class Viterbi:
    """Best path over `graph` for the scores given to `advance`.

    Per utterance: `start`, any number of `advance`, `finish`; `partial` in between. How the scores
    are cut into blocks does not change the result.
    """

    def __init__(self, graph: Graph, config: SearchSettings) -> None:
        self.graph = graph
        n = graph.n_states
        # Only the pages of tokens that ever live are touched; n_states is the upper bound.
        integers = ("state", "hist", "new_hist", "new_arc", "first", "epsilon", "loop_label")
        floats = ("cost", "new_cost", "loop_weight", "scratch")
        tokens = {name: np.empty(n, dtype=np.int32) for name in integers}
        tokens |= {name: np.empty(n, dtype=np.float32) for name in floats}
        order = "state cost hist new_cost new_hist new_arc first epsilon loop_label loop_weight"
        self._tokens = tuple(tokens[name] for name in [*order.split(), "scratch"])
        self._state, self._cost, self._hist, self._new_cost, self._new_hist, self._new_arc = (
            self._tokens[:6]
        )
        self._slot = np.zeros(n, dtype=np.int32)
        self._queue = np.empty(max(n, 1), dtype=np.int32)
        self._queued = np.zeros(n, dtype=np.uint8)
        self._history = np.empty((FIRST_HISTORY, 3), dtype=np.int32)
        self._row = np.zeros(graph.n_senones + 1, dtype=np.float32)
        self._asked = np.zeros(graph.n_senones + 1, dtype=np.uint8)
        self._registers = np.zeros(layout.N_REGISTERS, dtype=np.int64)
        self._floats = np.zeros(layout.N_FLOATS, dtype=np.float64)
        self._work = np.zeros(layout.N_WORK, dtype=np.int64)
        self._tracer = WordTracer(graph)
        self._stage = dict.fromkeys(_STAGES, 0)
        self._steps = 0, 0, 0
        self._first_frame = 0
        self._lost = False
        self.complete = False
        self.best_cost = np.inf
        self.configure(config)
        self.start(0)

    def stages(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`."""
        for name, work in _STAGES.items():
            self._stage[name] = recorder.stage(name, "search", work)
        emit, epsilon, prune = (self._stage[f"search.{s}"] for s in ("emit", "epsilon", "prune"))
        self._steps = emit, epsilon, prune

    def configure(self, config: SearchSettings) -> None:
        """Take over settings, from the next frame on."""
        self._scale = float(config.acoustic_scale)
        self._penalty = float(config.insertion_penalty)
        self._limits = (float(config.beam), BEAM_DELTA, int(config.max_active), MIN_ACTIVE)

    def warm_up(self) -> None:
        """Compile (or load) every kernel, so that the first utterance does not pay for it."""
        silence = np.zeros((2, self.graph.n_senones), dtype=np.float32)
        self.start(0)
        self.advance(silence, 0, _NO_LANE)
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
        self._tracer.reset()
        self._floats[:] = (0.0, np.inf, np.inf)
        self._registers[:] = 0
        self._registers[layout.M] = 1
        self._registers[layout.FRAME] = -1
        self._state[0] = self.graph.start
        self._slot[self.graph.start] = 0
        self._new_cost[0] = 0.0
        self._new_hist[0] = self._new_arc[0] = -1
        while self._close(np.inf) != layout.DONE:
            self._make_room()
        self._registers[layout.FRAME] = 0
        self._registers[layout.PENDING] = 1
        self._latest = (first_frame, 0)

    def advance(
        self, scores: NDArray[np.float32], first_frame: int, lane: Lane | NullLane = _NO_LANE
    ) -> None:
        """Pass tokens over the frames of `scores` f32 [frames, n_senones] (natural logs, unscaled).

        The kernel records one span each of search.emit, search.epsilon and search.prune per call
        of it, laid one after another; `tokens` counts those expanded per frame, `arcs` those that
        were followed, `senones` the different ones looked up per frame. ValueError when the shape
        is wrong.
        """
        if scores.ndim != 2 or scores.shape[1] != self.graph.n_senones:
            raise ValueError(
                f"the search wants scores of {self.graph.n_senones} senones per frame, not an "
                f"array of shape {scores.shape}"
            )
        scores = np.ascontiguousarray(scores, dtype=np.float32)
        self._latest = (first_frame, len(scores))
        done, end = 0, len(scores)
        called_ns = now_ns()
        while done < end and not self._lost:
            begin = done
            stop = end if HAS_CLOCK else min(end, done + FRAMES_WITHOUT_CLOCK)
            done, status = _kernels.advance(
                self.graph.states,
                self.graph.arcs,
                self.graph.n_epsilon_states,
                scores,
                done,
                stop,
                self._scale,
                self._penalty,
                self._limits,
                self._tokens,
                self._slot,
                self._history,
                self._registers,
                self._floats,
                self._row,
                self._asked,
                self._queue,
                self._queued,
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
                self._make_room()
            elif status == layout.NO_TOKENS:
                # Every path has cost infinity: only scores that are not numbers do that.
                self._lost = True

    def wanted(self) -> NDArray[np.int64]:
        """Senones that the next frame will look up, ascending."""
        if self._registers[layout.PENDING] and not self._lost:
            self._prune()
        _kernels.senones_asked(
            self.graph.arcs, self._tokens, int(self._registers[layout.N]), self._asked
        )
        result = np.nonzero(self._asked)[0] - 1
        self._asked[:] = 0
        return result

    def partial(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best token so far: (word, first frame of the run, frames)."""
        return self._backtrace(False, lane)

    def finish(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best path to a final state, or of the best token if none is reached.

        Sets `complete` (a final state was reached) and `best_cost` (of that path, nat).
        """
        return self._backtrace(True, lane)

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

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages, counted in the kernels' source; bytes as an interval.

        Scalar operations: a token's self-loop 2 additions and a comparison, an emitting arc 2
        additions and 2 comparisons, an epsilon arc an addition and 2 comparisons, a token that is
        pruned or kept 4 comparisons and a subtraction. Least bytes: each token's and arc's record
        once (40 and 16). Most: a cache line of 64 for an arc, one for its target's slot, one for
        the token there, and a token's fields read and written once per pass over them. Which record
        comes next is known only from the one before, so that all are scattered. Backtrace counts
        the entries of the path that were followed; making words of them is Python and in no count.
        """
        senones = self.graph.n_senones
        tokens = TOKEN_BYTES * float(self._limits[2])
        # Of the graph a frame touches what its tokens stand on, and where their arcs lead.
        states = min(2.0 * self._limits[2], float(self.graph.n_states))
        touched = tokens + states * self.graph.n_bytes / self.graph.n_states
        emit = Cost(
            {"scalar": Linear(per_work=(3.0, 4.0, 0.0)), "fma": Linear(per_frame=1.0 * senones)},
            Linear(per_frame=4.0 * senones, per_work=(TOKEN_BYTES, ARC.itemsize, 0.0)),
            Linear(per_frame=12.0 * senones, per_work=(2 * TOKEN_BYTES, 3 * LINE_BYTES, 0.0)),
            touched,
            scattered=True,
        )
        epsilon = Cost(
            {"scalar": Linear(per_work=(3.0, 0.0, 0.0))},
            Linear(per_work=(ARC.itemsize, 0.0, 0.0)),
            Linear(per_work=(3 * LINE_BYTES, 0.0, 0.0)),
            touched,
            scattered=True,
        )
        prune = Cost(
            {"scalar": Linear(per_work=(5.0, 0.0, 0.0))},
            Linear(per_work=(TOKEN_BYTES, 0.0, 0.0)),
            Linear(per_work=(2 * TOKEN_BYTES + 2 * LINE_BYTES, 0.0, 0.0)),
            touched,
            scattered=True,
        )
        backtrace = Cost(
            {"scalar": Linear(per_work=(BACKTRACE_OPERATIONS, 0.0, 0.0))},
            Linear(per_work=(ENTRY_BYTES + ARC.itemsize, 0.0, 0.0)),
            Linear(per_work=(2 * LINE_BYTES, 0.0, 0.0)),
            float(self._history.nbytes) + self.graph.n_bytes,
            scattered=True,
        )
        return {
            "search.emit": emit,
            "search.epsilon": epsilon,
            "search.prune": prune,
            "search.backtrace": backtrace,
        }

    def _record(self, lane: Lane | NullLane, begin: int, first: int, frames: int) -> None:
        """Where kernels have no clock: all time to the largest step, to each its counts."""
        emit, epsilon, prune = self._steps
        counts = self._work.tolist()
        at = now_ns()
        asked = counts[layout.TOKENS], counts[layout.EMIT_ARCS], counts[layout.SENONES]
        lane.put(emit, begin, at, first, frames, *asked)
        lane.put(epsilon, at, at, first, frames, counts[layout.EPSILON_ARCS])
        lane.put(prune, at, at, first, frames, counts[layout.EXAMINED])

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
        if final:
            self.best_cost = float(self._floats[layout.OFFSET] + float(total[best]))
        entry, extra = self._path_end(best, pending)
        end = int(self._registers[layout.FRAME])
        words = self._tracer.words(self._history, entry, end)
        if extra:
            self._registers[layout.HISTORY] -= 1
        first = self._first_frame
        return [(word, first + start, frames) for word, start, frames in words]

    def _path_end(self, best: int, pending: bool) -> tuple[int, bool]:
        """History entry of a token; one that came over an arc just now gets a passing one."""
        if not pending:
            return int(self._hist[best]), False
        entry, arc = int(self._new_hist[best]), int(self._new_arc[best])
        if arc < 0:
            return entry, False
        used = int(self._registers[layout.HISTORY])
        if used == len(self._history):
            self._make_room()
            entry, used = int(self._new_hist[best]), int(self._registers[layout.HISTORY])
        self._history[used] = (entry, arc, int(self._registers[layout.FRAME]) - 1)
        self._registers[layout.HISTORY] += 1
        return used, True

    def _prune(self) -> None:
        while True:
            status = _kernels.prune(
                self.graph.states,
                self._tokens,
                self._slot,
                self._history,
                self._registers,
                self._floats,
                self._limits,
                self._work,
            )
            if status != layout.NEED_HISTORY:
                self._lost = self._lost or status == layout.NO_TOKENS
                return
            self._make_room()

    def _close(self, limit: float) -> int:
        return int(
            _kernels.close(
                self.graph.arcs,
                self.graph.states,
                self._tokens,
                self._slot,
                self._history,
                self._registers,
                self.graph.n_epsilon_states,
                np.float32(limit),
                self._penalty,
                self._queue,
                self._queued,
                self._work,
            )
        )

    def _make_room(self) -> None:
        """Collect history that no token leads to; double it when more than half stays in use."""
        r = self._registers
        pending = bool(r[layout.PENDING])
        roots = self._new_hist if pending else self._hist
        n = int(r[layout.M if pending else layout.N])
        r[layout.HISTORY] = _history.collect(self._history, roots, n, int(r[layout.HISTORY]))
        self._tracer.reset()
        # A prune step needs an entry for each new token at once.
        need = int(r[layout.HISTORY]) + max(n, int(r[layout.M]))
        if 2 * need > len(self._history):
            larger = np.empty((max(2 * len(self._history), 2 * need), 3), dtype=np.int32)
            larger[: len(self._history)] = self._history
            self._history = larger
