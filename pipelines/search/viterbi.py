"""The decoder: token passing over a compiled graph, block by block, with partial results.

The class keeps the books; the arrays are in `workspace`, the rules in `kernels`. Costs are negative log likelihoods
(nat), acoustics scaled; the best token's cost is taken off every frame, so that float32 stays accurate over hours.
"""

import numpy as np

from pipelines.config import Search
from pipelines.search import alternatives, costs
from pipelines.search import words as histories
from pipelines.search.adaptive_beam import AdaptiveBeam
from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import layout
from pipelines.search.words import Word, WordTracer
from pipelines.search.workspace import Workspace
from profiler.arrays import F32, I32, I64, U32, Bool
from profiler.clock import now_ns
from profiler.recording.kernel_spans import HAS_CLOCK
from profiler.spans import Cost, Lane, NullLane, Recorder

QUIET = -float(np.log(2.0))
"""Of a CTC net's output a frame whose blank is more probable than all else is taken for silence."""
BEAM_DELTA = 0.5  # Kaldi's default: slack over the histogram's cutoff when it sets the next frame's beam
PATIENCE_NS = 20_000_000  # A kernel call returns after the frame in which this is exceeded, so that others get the GIL
FRAMES_WITHOUT_CLOCK = 32

_STAGES = {
    # Counts of one name are added up over the stages, so that senones may stand where there is room.
    "search.emit": ("tokens", "arcs", "passed"),
    "search.epsilon": ("arcs", "followed", "senones"),
    "search.prune": ("examined", "entered", "closed up"),
    "search.rank": ("ranked",),
    "search.active": ("looked at", "active"),
    "search.lattice": ("ways",),
    "search.backtrace": ("backpointers",),
}
_PRUNED = slice(layout.EXAMINED, layout.CLOSED_UP + 1)
_NO_LANE = NullLane()


class Viterbi:
    """Best path over `graph` for the scores given to `advance`.

    Per utterance: `start`, any number of `advance`, `finish`; `partial` in between. How the scores are cut into blocks
    does not change the result. With `lattice` set, `finish` also leaves `nbest`, and the words' `confidences`.
    """

    def __init__(self, graph: Graph, config: Search, subsampling: int = 1) -> None:
        """`subsampling`: frames of the audio for each frame of scores."""
        self.graph, self.subsampling = graph, subsampling
        self._space = Workspace(graph)
        self._tracer = WordTracer(graph)
        self._stage = dict.fromkeys(_STAGES, 0)
        self._steps: layout.Steps = 0, 0, 0, 0, 0
        self._collected = 0
        self._adaptive: AdaptiveBeam | None = None
        self.configure(config)
        self.start(0)

    @property
    def beam(self) -> float:
        return self._space.numbers.beam

    @property
    def cutoff(self) -> float:
        return float(self._space.books.floats[layout.CUTOFF])

    @property
    def lattice(self) -> tuple[object, ...]:
        return *self._space.lattice, self.nbest, self.confidences

    @property
    def narrowed(self) -> str | None:
        """How a lattice was reduced for lack of room, as a phrase; None if it was not."""
        beam, wanted = self._space.numbers.lattice_beam, self._config.lattice_beam
        if not self._space.numbers.n_ranks or beam >= wanted:
            return None
        return (
            f"the lattice holds what lies within {beam:.2g} nat of the best path, not {wanted:g}: there was no room "
            "for more"
        )

    def stages(self, recorder: Recorder) -> None:
        for name, work in _STAGES.items():
            self._stage[name] = recorder.stage(name, "search", work)
        of = self._stage
        self._steps = (
            of["search.emit"], of["search.epsilon"], of["search.prune"], of["search.lattice"], of["search.rank"]
        )  # fmt: skip

    def configure(self, config: Search) -> None:
        """Take over settings, from the next frame on; `lattice` and its beam from the next utterance."""
        self._config = config
        self._scale = float(config.acoustic_scale)
        self._adaptive = (self._adaptive or AdaptiveBeam()) if config.adaptive_beam else None
        adapted = self._adaptive.beam if self._adaptive else np.inf
        self._use_beam(min(float(config.beam), adapted))
        self._space.skip(config.blank_skipping)
        if self._space.numbers.penalty != config.insertion_penalty:
            self._space.charge(config.insertion_penalty)

    def spent(self, frames: int, ns: int) -> None:
        if self._adaptive is not None:
            config = self._config
            self._use_beam(self._adaptive.after(frames, ns, config.target_rtf, config.beam))

    def warm_up(self, lazy: bool = True) -> None:
        """Compile (or load) what the first utterance would pay for; `lazy`: also what says which senones are active."""
        silence = np.zeros((2, self.graph.n_senones), dtype=np.float32)
        self.start(0)
        self.advance(silence, 0, _NO_LANE)
        self.partial(_NO_LANE)
        if lazy:
            self.active_senones()
        self._space.make_room()
        self.finish(_NO_LANE)
        self.start(0)

    def start(self, first_frame: int) -> None:
        """Begin an utterance whose first frame has the run-global number `first_frame`."""
        self._first_frame, self._latest = first_frame, (first_frame, 0)
        self.lost = self.complete = False
        self._blanks, self.best_cost = 0, np.inf
        self.nbest: list[alternatives.Hypothesis] = []
        self.confidences: list[float] = []
        self._tracer.reset()
        self._space.start(self._config.lattice, self._config.lattice_beam)

    def advance(
        self, scores: F32, first_frame: int, lane: Lane | NullLane = _NO_LANE, audio_frames: int | None = None
    ) -> None:
        """Pass tokens over the frames of `scores` f32 [frames, n_senones] (natural logs, unscaled); ValueError for
        others.

        `first_frame`, `audio_frames`: where these begin in the run, and how many frames of the audio they stand for, if
        the last one stands for fewer than the others.

        Each call of the kernel has one span of search.epsilon, search.prune and search.emit, laid one after another;
        what the call takes around them belongs to emit. `tokens` counts those expanded per frame, `arcs` those whose
        cost was computed, `passed` those that led to a token, `senones` the different ones looked up per frame;
        `followed` are epsilon arcs of tokens that this frame made or bettered, `entered` the new tokens that lived on,
        `closed up` the entries of lists rid of dead ones. Where max_active or min_active decides, a span of search.rank
        follows, with those that were `ranked`.
        """
        called_ns = now_ns()
        each = self.subsampling
        if audio_frames is None:
            audio_frames = len(scores) * each
        self._latest = (first_frame, audio_frames)
        done, end = 0, len(scores)
        stuck = False  # the room made for a frame did not suffice
        while done < end and not self.lost:
            begin = done
            stop = end if HAS_CLOCK else min(end, done + FRAMES_WITHOUT_CLOCK)
            done, status = self._space.advance(
                scores,
                (done, stop, first_frame, audio_frames, each),
                self._scale,
                PATIENCE_NS,
                (lane.lend(), self._steps, called_ns),
            )
            # Should there be another call, making room for it belongs to that call.
            called_ns = now_ns()
            lane.settle(called_ns)
            if status == layout.NEED_HISTORY:
                if stuck and done == begin:
                    self._space.widen()
                self._space.make_room()
            elif status == layout.NO_TOKENS:
                # Every path has cost infinity: by its scores, or for lack of an arc that leads on.
                self.lost = True
            stuck = status == layout.NEED_HISTORY and done == begin
        if self.graph.blank >= 0:
            loud = np.flatnonzero(scores[:, self.graph.blank] <= QUIET)
            self._blanks = len(scores) - 1 - int(loud[-1]) if len(loud) else self._blanks + len(scores)

    def active_senones(self, lane: Lane | NullLane = _NO_LANE, audio_frames: int = 1) -> I64:
        """Senones that the next frame will look up, ascending; stages search.prune, search.rank and search.active.

        `audio_frames`: frames of the audio that it stands for.
        """
        called_ns = now_ns()
        space, pruned_ns = self._space, called_ns
        pending = space.books.decoder_state[layout.PENDING] and not self.lost
        if pending:
            self.lost = not space.prune()
            pruned_ns = now_ns()
        result, arcs = space.active_senones()
        end_ns = now_ns()
        # To record is part of neither.
        frame = self._latest[0] + self._latest[1]
        if pending:
            work = space.books.work.tolist()
            ranking = pruned_ns - work[layout.RANKING_NS]
            lane.put(self._stage["search.prune"], called_ns, ranking, frame, audio_frames, *work[_PRUNED])
            if ranked := work[layout.RANKED]:
                lane.put(self._stage["search.rank"], ranking, pruned_ns, frame, audio_frames, ranked)
        lane.put(self._stage["search.active"], pruned_ns, end_ns, frame, audio_frames, arcs, len(result))
        return result

    def partial(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        return self._backtrace(False, lane)

    def finish(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best path to a final state, or of the best token if none is reached.

        Sets `complete` (a final state was reached), `best_cost` (nat), and with a lattice `nbest` and `confidences`.
        """
        return self._backtrace(True, lane)

    def silent(self, rows: int) -> Bool:
        """Of the last `rows` rows of scores of the utterance, or all, bool [k]: is the best token's path in silence?"""
        graph, cost = self.graph, self._living()[1]
        last = int(self._space.books.decoder_state[layout.FRAME])
        first = max(last - rows, 0)
        found = np.zeros(last - first, bool)
        entry = self._entry(int(np.argmin(cost))) if len(cost) else -1
        history, end = self._space.books.history, last
        labels, targets, loops = graph.arcs["ilabel"], graph.arcs["target"], graph.states["loop_label"]
        while entry >= 0 and end > first:
            entry, arc, frame = history[entry].tolist()
            if arc < 0:
                continue
            label = labels[arc]
            # After an arc its state's self-loop is taken, which is another phone's where HMMs begin with the loop.
            for senone, begin in ((loops[targets[arc]] or label, frame + 1), (label, frame)):
                if senone and begin < end:
                    found[max(begin - first, 0) : end - first] = graph.filler[graph.senone_phone[senone - 1]]
                    end = max(begin, first)
        return found

    @property
    def silence(self) -> int:
        """Frames of silence at the end of the path that `partial` returned last; for a CTC net of blanks, for not every
        topology has an arc that leads to the blank."""
        return (self._tracer.silence if self.graph.blank < 0 else self._blanks) * self.subsampling

    @property
    def relative_cost(self) -> float:
        states, cost = self._living()
        total = cost + self.graph.final[states]
        return float(total.min() - cost.min()) if np.isfinite(total).any() else np.inf

    def costs(self, turns: bool = False) -> dict[str, Cost]:
        """Cost laws of the stages; `turns`: whether it takes turns with scoring frame by frame."""
        return costs.laws(self.graph, self._space.numbers.max_active, float(self._space.books.history.nbytes), turns)

    def _use_beam(self, beam: float) -> None:
        most, least = int(self._config.max_active), int(self._config.min_active)
        numbers = self._space.numbers
        self._space.numbers = numbers._replace(
            beam=float(beam), beam_delta=BEAM_DELTA, max_active=most, min_active=least
        )

    def _backtrace(self, final: bool, lane: Lane | NullLane) -> list[Word]:
        begin = now_ns()
        words = self._words(final)
        # Charged where it happens: frames already shown keep their cost.
        lane.put(self._stage["search.backtrace"], begin, now_ns(), *self._latest, self._tracer.backpointers)
        return words

    def _living(self) -> tuple[U32, F32]:
        """State and cost of each token, uint32 [n], f32 [n]; +inf: it is to be pruned."""
        tokens, decoder_state = self._space.arrays.tokens, self._space.books.decoder_state
        pending = bool(decoder_state[layout.PENDING])
        n = int(decoder_state[layout.M if pending else layout.N])
        cost = (tokens.new_cost if pending else tokens.cost)[:n]
        if pending:
            limit = self._space.books.floats[layout.LIMIT]
            cost = np.where(cost <= limit, cost, np.float32(np.inf))
        return tokens.state[:n], cost

    def _entry(self, place: int) -> int:
        space = self._space
        pending = space.books.decoder_state[layout.PENDING]
        return space.entry_of(place) if pending else int(space.arrays.tokens.hist[place])

    def _words(self, final: bool) -> list[Word]:
        space = self._space
        tokens, decoder_state = space.arrays.tokens, space.books.decoder_state
        if decoder_state[layout.PENDING] and not self.lost and np.isinf(space.books.floats[layout.BEST]):
            self.lost = not space.prune()
        pending = bool(decoder_state[layout.PENDING])
        states, cost = self._living()
        n = len(cost)
        total = cost + self.graph.final[states] if final else cost
        if final:
            self.complete = bool(n) and bool(np.isfinite(total).any()) and not self.lost
            if not self.complete:
                total = cost
        if not n:
            return []
        best = int(np.argmin(total))
        if final:
            self.best_cost = float(space.books.floats[layout.OFFSET]) + float(total[best])
        entry = self._entry(best)
        if space.collected != self._collected:
            self._tracer.reset(space.renumbered_from)
            self._collected = space.collected
            space.renumbered_from = int(decoder_state[layout.HISTORY])
        history = space.books.history[: decoder_state[layout.HISTORY]]
        words = self._tracer.words(history, entry, int(decoder_state[layout.FRAME]))
        if final and space.numbers.n_ranks and np.isfinite(total[best]):
            ends = (tokens.new_hist if pending else tokens.hist)[:n]
            self._alternatives(history, entry, ends, total - total[best])
        first, each = self._first_frame, self.subsampling
        end = sum(self._latest)
        times = [(word, first + start * each, frames * each) for word, start, frames in words]
        return [(word, start, max(min(frames, end - start), 1)) for word, start, frames in times]

    def _alternatives(self, history: I32, entry: int, ends: I32, above: F32) -> None:
        """Fill `nbest` and `confidences` from the lattice, whose paths end as said."""
        beam, kept = self._space.numbers.lattice_beam, self._space.arrays.lattice
        near = above <= beam
        used = int(self._space.books.decoder_state[layout.ALTERNATIVES])
        near_ends, costs = ends[near].astype(np.int64), above[near].astype(np.float64)
        lattice = alternatives.Lattice(
            history, kept.alternative[:used], kept.delta[:used], near_ends, costs, self.best_cost
        )
        path = np.empty(len(history), dtype=np.int32)
        n, _ = histories.trace(history, entry, -1, path)
        self.confidences = alternatives.confidences(self.graph, lattice, path[:n][::-1], beam)
        self.nbest = alternatives.best_sequences(self.graph, lattice, self._config.nbest, beam)
