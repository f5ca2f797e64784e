"""One utterance at a time on a device, with the interface of `viterbi.Viterbi`, so that the settings choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.config import Search
from pipelines.device import DeviceWork
from pipelines.search.adaptive_beam import AdaptiveBeam
from pipelines.search.alternatives import Hypothesis
from pipelines.search.device.choice import search_on
from pipelines.search.device.history import UtteranceHistory
from pipelines.search.device.search import STAGES
from pipelines.search.graph.wfst import Graph
from pipelines.search.words import Word
from profiler.arrays import I64, Array
from profiler.spans import Cost, Lane, NullLane, Recorder

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.search.device.cuda.search import CudaUtterance


_NO_LANE = NullLane()


class DeviceViterbi:
    """Best path over `graph` for the scores given to `advance`, on the device of `work`; the interface of `Viterbi`.

    There is no lattice: `nbest` and `confidences` stay empty.
    """

    nbest: Sequence[Hypothesis] = ()
    confidences: Sequence[float] = ()
    narrowed: str | None = None

    def __init__(self, graph: Graph, config: Search, work: DeviceWork) -> None:
        self.graph, self._config, self._work = graph, config, work
        self._search = search_on(graph, config, work)
        self._adaptive = AdaptiveBeam() if config.adaptive_beam else None
        self.stages(Recorder())
        self.start(0)

    def stages(self, recorder: Recorder) -> None:
        self._search.stages(recorder)
        own = ("search.active", "search.backtrace")
        self._ids = {name: recorder.stage(name, "search", STAGES[name]) for name in own}

    def configure(self, config: Search) -> None:
        self._config = config
        self._adaptive = (self._adaptive or AdaptiveBeam()) if config.adaptive_beam else None
        self._search.configure(config)
        if self._adaptive is not None:
            self._search.use_beam(min(float(config.beam), self._adaptive.beam))

    def spent(self, frames: int, ns: int) -> None:
        if self._adaptive is not None:
            beam = self._adaptive.after(frames, ns, self._config.target_rtf, float(self._config.beam))
            self._search.use_beam(beam)

    @property
    def beam(self) -> float:
        return self._search.beam

    @property
    def cutoff(self) -> float:
        return self._utterance.cutoff

    def warm_up(self, lazy: bool = True) -> None:
        """Load and compile what the first utterance would otherwise pay for; see `Viterbi.warm_up`."""
        with self._work.warming(self._search.launches):
            self.start(0)
            self.advance(np.zeros((2, self.graph.n_senones), np.float32), 0)
            if lazy:
                self.active_senones()
            self.finish()
            self.start(0)

    def start(self, first_frame: int) -> None:
        """Begin an utterance whose first frame has the run-global number `first_frame`."""
        self._first_frame, self._latest = first_frame, (first_frame, 0)
        self.complete, self.best_cost = False, np.inf
        self._search.begin()
        self._utterance: UtteranceHistory | CudaUtterance = self._search.utterances[0]

    def advance(
        self,
        scores: Array | Tensor,
        first_frame: int,
        lane: Lane | NullLane = _NO_LANE,
        audio_frames: int | None = None,
    ) -> None:
        """Pass tokens over `scores` f32 [frames, senones], or a tensor of torch on this device, for as many frames."""
        if scores.ndim != 2 or scores.shape[1] != self.graph.n_senones:
            raise ValueError(
                f"the search wants scores of {self.graph.n_senones} senones per frame, not an "
                f"array of shape {tuple(scores.shape)}"
            )
        self._latest = (first_frame, len(scores))
        self._search.advance(scores[:, None], [len(scores)], first_frame, lane)

    def active_senones(self, lane: Lane | NullLane = _NO_LANE, audio_frames: int = 1) -> I64:
        """Senones that the next frame will look up, ascending."""
        begin = self._work.now()
        senones, arcs = self._utterance.active_senones()
        lane.put(self._ids["search.active"], begin, self._work.now(), sum(self._latest), 1, arcs, len(senones))
        return senones

    def partial(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        return self._backtrace(False, lane)

    def finish(self, lane: Lane | NullLane = _NO_LANE) -> list[Word]:
        """Words of the best path; sets `complete` and `best_cost` (nat), as `Viterbi.finish`."""
        words = self._backtrace(True, lane)
        self.complete, self.best_cost = self._utterance.complete, self._utterance.best_cost
        return words

    @property
    def lost(self) -> bool:
        return self._utterance.lost

    def costs(self, turns: bool = False) -> dict[str, Cost]:
        return self._search.costs()

    def _backtrace(self, final: bool, lane: Lane | NullLane) -> list[Word]:
        begin = self._work.now()
        words, backpointers = self._utterance.words(final)
        # Charged where it happens: frames already shown keep their cost.
        lane.put(self._ids["search.backtrace"], begin, self._work.now(), *self._latest, backpointers)
        return [(word, self._first_frame + start, frames) for word, start, frames in words]
