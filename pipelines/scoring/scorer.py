"""The scorer that the decode loop holds: features in, scores of all senones out.

Puts a frame rule before a Gaussian selection strategy, both exchangeable at a block boundary.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import frames, gmm, selection
from pipelines.scoring.kernels import DIM, STREAMS
from pipelines.scoring.meter import Meter
from pipelines.scoring.packing import pack
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

Array = np.ndarray[Any, Any]
EXACT = "none"
COPY_STAGE = "score.copy"


class Scorer(Protocol):
    """Natural log-likelihoods of all senones, up to a constant per frame."""

    n_senones: int

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that any of its configurations records."""

    def warm_up(self) -> None:
        """Compile and touch everything that a live change may switch on."""

    def reset(self) -> None:
        """An utterance begins."""

    def configure(self, config: Any) -> None:
        """Take over live settings (pipelines.config.Config) from the next block on."""

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array:
        """Scores f32 [frames, senones] of `block` f32 [frames, 39]; valid until the next call.

        `first_frame` is run-global; spans go to `lane`.
        """

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Any:
        """What can be done for a block before the search says what it wants."""

    def frame(self, state: Any, t: int, wanted: Array | None) -> Array:
        """Scores f32 [senones] of frame t of the block; only the `wanted` ones need be right."""

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages under the present configuration."""


class GmmScorer:
    """A dense scorer: all senones of every scored frame."""

    def __init__(self, config: Any, model: AcousticModel) -> None:
        self.n_senones = model.n_senones
        self._gmm = gmm.Gmm(pack(model), config.threads)
        self._meter = Meter()
        self._strategies = {name: selection.create(name, self._gmm) for name in selection.methods()}
        self._rules = {name: frames.create(name) for name in frames.rules()}
        self._scores = np.empty((gmm.MAX_FRAMES, self.n_senones), np.float32)
        self._computed = np.empty((gmm.MAX_FRAMES, self.n_senones), np.float32)
        self._last = np.empty(self.n_senones, np.float32)
        self.configure(config)
        self.reset()

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that any strategy records."""
        stages = dict(gmm.STAGES)
        for strategy in self._strategies.values():
            stages |= strategy.stages
        stages[COPY_STAGE] = ("copied",)
        self._meter.register(recorder, stages)

    def warm_up(self) -> None:
        """Run every strategy on a few frames, so that all kernels are compiled and paged in."""
        features = np.zeros((3, STREAMS * DIM), np.float32)
        for strategy in self._strategies.values():
            strategy.score(features, self._scores[:3], Meter())

    def reset(self) -> None:
        """An utterance begins: nothing to copy from yet."""
        self._frame = 0
        for rule in self._rules.values():
            rule.reset()

    def configure(self, config: Any) -> None:
        """Take over the settings from the next block on; no kernel is compiled here."""
        chosen = config.gmm.selection
        self._strategy = self._strategies[chosen.method if chosen.enabled else EXACT]
        self._strategy.configure(chosen)
        self._rule = self._rules[config.frames.rule]
        self._skip = config.frames.skip
        self._block = min(config.block, gmm.MAX_FRAMES)

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array:
        """Scores f32 [frames, senones] of `block` f32 [frames, 39]; valid until the next call."""
        if block.ndim != 2 or block.shape[1] != STREAMS * DIM:
            raise ValueError(f"features of shape {block.shape}, expected [frames, {STREAMS * DIM}]")
        block = np.ascontiguousarray(block, np.float32)
        if len(block) > len(self._scores):
            self._scores = np.empty((len(block), self.n_senones), np.float32)
        scores = self._scores[: len(block)]
        for at in range(0, len(block), gmm.MAX_FRAMES):
            part = slice(at, at + gmm.MAX_FRAMES)
            self._part(block[part], scores[part], first_frame + at, lane)
        return scores

    def _part(self, block: Array, scores: Array, first_frame: int, lane: Lane | NullLane) -> None:
        """Score at most MAX_FRAMES frames: the chosen ones, and copies for the others."""
        n = len(block)
        self._meter.begin(first_frame, n, lane)
        if self._skip == 1:
            self._strategy.score(block, scores, self._meter)
        else:
            chosen = self._rule.choose(block, self._frame, self._skip)
            if self._frame == 0:
                chosen[0] = True
            where = np.flatnonzero(chosen)
            computed = self._computed[: len(where)]
            if len(where):
                self._strategy.score(block[where], computed, self._meter)
            source = np.cumsum(chosen) - 1
            for t in range(n):
                scores[t] = computed[source[t]] if source[t] >= 0 else self._last
            self._meter.done(COPY_STAGE, n - len(where))
        # Skipping may be switched on before the next block, which then begins with a copy.
        self._last[:] = scores[n - 1]
        self._frame += n

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array:
        """A dense scorer does everything here: scores f32 [frames, senones]."""
        return self.score(block, first_frame, lane)

    def frame(self, state: Array, t: int, wanted: Array | None) -> Array:
        """Scores f32 [senones] of frame t of the prepared block."""
        row: Array = state[t]
        return row

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages under the present configuration."""
        scored = max(1, self._block // self._skip)
        threads = self._gmm.team.threads
        costs = {
            name: dataclasses.replace(cost, threads=threads)
            for name, cost in self._strategy.costs(scored).items()
        }
        if self._skip > 1:
            costs[COPY_STAGE] = self._copy_cost()
        return costs

    def _copy_cost(self) -> Cost:
        """Scores written for the copied frames; in fact every covered frame is read and written."""
        row = float(4 * self.n_senones)
        return Cost(
            bytes_min=Linear(per_work=(row, 0.0, 0.0)),
            bytes_max=Linear(per_frame=2 * row),
            working_set_bytes=2 * row * self._block,
        )


def build_scorer(config: Any, model: AcousticModel) -> Scorer:
    """The scorer for `config` (pipelines.config.Config) on `model`."""
    return GmmScorer(config, model)
