"""Base of all scorers: which frames are scored, and how a lazy scorer takes turns with the search.

A dense configuration scores a whole block at once; a lazy one prepares what it can for the block and then goes frame
by frame, each time for the senones that the search wants. On a skipped frame it still computes the wanted senones that
were not wanted in the frame that is repeated (as Sphinx-3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pipelines.config import Config
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.frames import FrameRule
from pipelines.scoring.senones import SenoneRule
from pipelines.scoring.strategy import Cancelling, FrameScorer, Made, Need, Progress, Scorer, never, quietly
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.spans import Lane, NullLane, Recorder

COPY_STAGE = "score.copy"

Part = tuple[str, object, Need]  # Something a configuration needs: its layer, who needs it, what it is
Prepared = dict[str, tuple[tuple[object, Hashable], Made]]
"""The parts made for a configuration: by layer, who needs it with its key, and what was made."""


class LazyBlock(NamedTuple):
    """A block between `prepare` and its last `frame`."""

    first_frame: int
    frames: int
    scored: Array
    lane: Lane | NullLane


class LastFrame:
    """The scores that a copied frame repeats, and the senones that they are of.

    Kept after every block, when the data of scoring have emptied the caches: views are made and arrays filled only
    when they are read.
    """

    def __init__(self, n_senones: int) -> None:
        self._rows, self._t = np.zeros((1, n_senones), np.float32), 0
        self._known = np.zeros(n_senones, np.bool_)
        self._all = False

    def keep(self, rows: Array, t: int, complete: bool = False) -> None:
        """Take rows[t] of f32 [frames, senones]: `complete`, or of the senones that are `known`."""
        self._rows, self._t, self._all = rows, t, self._all or complete

    def forget(self) -> None:
        self._all = False
        self._known[:] = False

    @property
    def scores(self) -> Array:
        return self._rows[self._t]  # type: ignore[no-any-return]

    @property
    def known(self) -> Array:
        """Whether the score of each senone is known, bool [senones], to be written to."""
        if self._all:
            self._known[:] = True
            self._all = False
        return self._known


@dataclass(eq=False)
class _Latest:
    """The block scored last, for `again`: with its context, and which of its frames were scored (None: all).

    `wanted`: the frames and their senones, int32, that the search wanted; None where that was not noted.
    """

    block: Array
    where: Array | None = None
    wanted: list[tuple[int, Array]] | None = None


class LayeredScorer(Scorer, ABC):
    """A frame rule over a `FrameScorer`, which a senone rule may be (`_arranged`)."""

    def __init__(
        self, n_senones: int, dim: int, layers: Mapping[str, SenoneRule], rules: Mapping[str, FrameRule]
    ) -> None:
        """`dim`: floats of a frame of features. A subclass calls `configure` when it is ready for it."""
        self.n_senones = n_senones
        self.most_frames = MAX_FRAMES // self.subsampling * self.subsampling  # That are scored at once
        self._dim, self._layers, self._rules = dim, layers, rules
        self._meter = Meter()
        self._held: Prepared = {}
        self._scores, self._computed = (np.zeros((MAX_FRAMES, n_senones), np.float32) for _ in range(2))
        self._spare, self._copies = (np.zeros((MAX_FRAMES, n_senones), np.float32) for _ in range(2))
        # A block may write over them once its leading frames, which are copied before any is scored, have copied them.
        self._last = LastFrame(n_senones)
        self._all = np.arange(n_senones)
        self._frame = 0
        self._latest: _Latest | None = None
        self._noting = False

    @abstractmethod
    def _arranged(self, config: Config) -> FrameScorer:
        """What computes senones under `config`: a senone rule over what is below it, or that alone."""

    def _register(self, recorder: Recorder, stages: Mapping[str, tuple[str, ...]]) -> None:
        """Register `stages`, and those of the rules."""
        work_counts = dict(stages)
        for layer in self._layers.values():
            work_counts |= layer.stages
        for rule in self._rules.values():
            work_counts |= rule.stages
        self._meter.register(recorder, work_counts | {COPY_STAGE: ("copied",)})

    def reset(self) -> None:
        self._frame = 0
        self._last.forget()
        for rule in self._rules.values():
            rule.reset()

    def needs(self, config: Config) -> Hashable:
        parts = self._parts(config)
        return tuple((name, who, need.key) for name, who, need in parts if not self._has(name, who, need)) or None

    def make_ready(self, config: Config, progress: Progress, cancelled: Cancelling) -> Prepared:
        return {
            name: self._held[name] if self._has(name, who, need) else ((who, need.key), need.make(progress, cancelled))
            for name, who, need in self._parts(config)
        }

    def _has(self, name: str, who: object, need: Need) -> bool:
        return name in self._held and self._held[name][0] == (who, need.key)

    def _parts(self, config: Config) -> list[Part]:
        """Return the parts that `config` needs."""
        rule = self._rule_of(config)
        need = None if rule is None else rule.needs(config)
        return [] if need is None else [("frames", rule, need)]

    def _rule_of(self, config: Config) -> FrameRule | None:
        return self._rules[config.frames.rule] if config.frames.skip > 1 else None

    def configure(self, config: Config, prepared: Prepared | None = None) -> None:
        if prepared is None:
            prepared = self.make_ready(config, quietly, never)
        # The last thing prepared for a layer is kept while another of its choices acts: a toggle goes to and fro.
        self._held = self._held | prepared
        self._config = config
        self._below = below = self._arranged(config)
        self._on_demand = below if isinstance(below, SenoneRule) and below.lazy else None
        self.lazy = self._on_demand is not None
        self._rule, self._skip = self._rule_of(config), config.frames.skip
        if self._rule is not None:
            self._rule.configure(config, self._part("frames", self._rule))
        self._block = min(config.block, MAX_FRAMES)

    def _part(self, name: str, part: object) -> Made:
        (owner, _), made = self._held.get(name, ((None, None), None))
        return made if owner is part else None

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array:
        beyond, most = sum(self.context), self.most_frames
        n = max(0, len(block) - beyond)
        # Before the checks: what calling a stage costs is charged to it.
        self._meter.begin(first_frame, min(n, most), lane)
        self._noting, block = False, self._checked(block)
        if self.rows(n) > len(self._scores):
            self._scores = np.zeros((self.rows(n), self.n_senones), np.float32)
        scores = self._scores[: self.rows(n)]
        for at in range(0, n, most):
            count = min(most, n - at)
            if at:
                self._meter.begin(first_frame + at, count, lane)
            self._latest = _Latest(block[at : at + count + beyond])
            self._part_of(self._input(self._latest.block), scores[self.rows(at) : self.rows(at + count)])
        if n > most:
            self._latest = None
        return scores

    def rows(self, frames: int) -> int:
        """Rows of scores of a block of `frames` frames."""
        return -(-frames // self.subsampling)

    @property
    def replayable(self) -> bool:
        """Whether `again` can score a block as the last once more and leave no trace; a lazy one after `note`."""
        return self._latest is not None

    def note(self) -> None:
        """Note the senones that the search wants of the next block, so that it can be scored `again`."""
        self._noting = True

    def follow(self, other: LayeredScorer, frames: int) -> None:
        """Score `again` here what `other` scored last, its first `frames` frames; both have the same parameters."""
        latest = other._latest
        assert latest is not None, "only where `replayable` says so"
        wanted = latest.wanted and [(t, senones) for t, senones in latest.wanted if t < self.rows(frames)]
        self._latest = replace(latest, block=latest.block[: frames + sum(self.context)], wanted=wanted)

    def again(self, first_frame: int, lane: Lane | NullLane) -> bool:
        """Score the last block once more, with all that belongs to it, into spare arrays.

        Frames that were copied are copied again. False where the wanted senones were not noted.
        """
        latest, meter = self._latest, self._meter
        assert latest is not None, "only where `replayable` says so"
        rule = self._on_demand
        if rule is not None and latest.wanted is None:
            return False
        meter.begin(first_frame, len(latest.block) - sum(self.context), lane)
        block = self._input(latest.block)
        if rule is not None and latest.wanted is not None:
            rule.begin(block, meter, ahead=self._rule is None)
            for t, senones in latest.wanted:
                # A copy, as hot as the search has just left it.
                active = senones.astype(np.int64)
                meter.begin(first_frame + t * self.subsampling, self.subsampling, lane)
                rule.frame(t, active, self._spare, meter)
            return True
        if latest.where is not None:
            # Costs what the rule `copy` costs. The rule in use may keep a state and cannot be asked twice.
            _ = np.flatnonzero(np.arange(len(block)) % self._skip == 0)
            self._score_some(block, latest.where, self._spare, self._copies[: len(block)])
        elif len(block):
            self._below.score(block, self._spare[: len(block)], meter)
        return True

    def _checked(self, block: Array) -> Array:
        if block.ndim != 2 or block.shape[1] != self._dim:
            raise ValueError(f"features of shape {block.shape}, expected [frames, {self._dim}]")
        return np.ascontiguousarray(block, np.float32)

    def _input(self, block: Array) -> Array:
        return block

    def _part_of(self, block: Array, scores: Array) -> None:
        """Score at most MAX_FRAMES frames: the chosen ones, and copies for the others."""
        n, meter = len(block), self._meter
        if self._rule is None:
            self._below.score(block, scores, meter)
        else:
            where = np.flatnonzero(self._choose(block))
            if self._latest is not None:
                self._latest.where = where
            self._score_some(block, where, self._computed, scores)
        # Skipping may be switched on before the next block, which then begins with a copy.
        if n:
            self._last.keep(scores, n - 1, complete=True)
        self._frame += n

    def _score_some(self, block: Array, where: Array, computed: Array, scores: Array) -> None:
        """Score the frames at `where` into `computed`, and put them and copies for the others into `scores`."""
        n, chosen = len(block), len(where)
        if chosen:
            self._below.score(block[where], computed[:chosen], self._meter)
        source = np.searchsorted(where, np.arange(n), side="right") - 1
        for t in range(n):
            scores[t] = computed[source[t]] if source[t] >= 0 else self._last.scores
        self._meter.close(COPY_STAGE, n - chosen)

    def _choose(self, block: Array) -> Array:
        """Bool [n]: which frames are scored. The first one is where the last frame's scores are not all known."""
        assert self._rule is not None
        chosen = self._rule.choose(block, self._frame, self._skip, self._meter)
        known = self._last.known
        if not (known.any() if self.lazy else known.all()):
            chosen[:1] = True
        return chosen

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array | LazyBlock:
        if self._on_demand is None:
            return self.score(block, first_frame, lane)
        n = len(block) - sum(self.context)
        self._meter.begin(first_frame, n, lane)
        block = self._checked(block)
        self._latest, self._noting = _Latest(block, wanted=[] if self._noting else None), False
        block = self._input(block)
        scored = np.ones(len(block), np.bool_) if self._rule is None else self._choose(block)
        self._on_demand.begin(block, self._meter, ahead=self._rule is None)
        return LazyBlock(first_frame, n, scored, lane)

    def frame(self, state: Array | LazyBlock, t: int, active: Array | None) -> Array:
        if not isinstance(state, LazyBlock):
            return state[t]  # type: ignore[no-any-return]
        meter, scores, known = self._meter, self._scores, self._last.known
        at = t * self.subsampling
        meter.begin(state.first_frame + at, min(self.subsampling, state.frames - at), state.lane)
        active = self._all if active is None else active
        row: Array = scores[t]
        if self._rule is not None:
            row[:] = scores[t - 1] if t else self._last.scores
        last = t == len(state.scored) - 1
        # Of a block without copies only its last frame may be repeated, if skipping is switched on after it.
        noted = last or self._rule is not None
        if not state.scored[t]:
            active = active[~known[active]]
            meter.close(COPY_STAGE, 1)
        elif noted:
            known[:] = False
        if len(active):
            if noted:
                known[active] = True
            assert self._on_demand is not None, "prepare made a lazy block"
            self._on_demand.frame(t, active, scores, meter)
            if self._latest is not None and self._latest.wanted is not None:
                self._latest.wanted.append((t, active.astype(np.int32)))
        if last:
            self._last.keep(scores, t)
        self._frame += 1
        return row

    def costs(self) -> dict[str, Cost]:
        costs = self._below.costs(max(1, self.rows(self._block) // self._skip))
        if self._rule is not None:
            costs |= self._rule.costs(self._block)
            costs[COPY_STAGE] = laws.copied_frames(self.n_senones, self._block)
        return costs


def with_context(features: Array, context: tuple[int, int]) -> Array:
    """`features` [frames, dim] with the outermost frames repeated as often as `context` wants them."""
    return features if context == (0, 0) else np.pad(features, (context, (0, 0)), mode="edge")
