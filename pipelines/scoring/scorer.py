"""The scorer that the decode loop holds: features in, senone scores out.

Three layers, one upon the other, each exchangeable at a block boundary: a frame rule says which frames are scored
(`frames`), a senone rule which senones of these (`senones`), a selection strategy which Gaussians (`selection`), on
the parameters of a model (`tied`, `continuous`). What all scorers share is in `layered`, the scorer of nets in `dnn`.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import DeviceWork
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import continuous, frames, selection, senones
from pipelines.scoring.blocks import Meter
from pipelines.scoring.continuous import ContinuousGmm
from pipelines.scoring.device.scorer import DeviceScorer
from pipelines.scoring.dnn.nnet3.scorer import Nnet3Scorer, own_net
from pipelines.scoring.dnn.scorer import DnnScorer
from pipelines.scoring.layered import LayeredScorer, Part
from pipelines.scoring.senones import Parents
from pipelines.scoring.strategy import Cancelling, FrameScorer, Need, Progress, Scorer, never, quietly, warm_up
from pipelines.scoring.tied import gmm
from pipelines.scoring.tied.packing import pack
from profiler.arrays import Array
from profiler.spans import Cost, Lane, NullLane, Recorder

COMPILED: set[tuple[str, str]] = set()
"""Kinds of mixtures, and choices of settings (`kernels_of`), whose kernels this process has compiled or loaded."""
QUICK: dict[str, settings.Value] = {"gmm.selection.codewords": 16}
"""What is prepared to compile kernels is the least that there is."""
SERIAL = {gmm.LAZY_STAGE}
"""Stages that are too short to share among threads: the mixtures of some senones of a few frames."""


class CtcScorer(Scorer):
    """Hands the scores of a CTC net to the search: they are there when an utterance begins (`models.ctc.front_end`).

    It takes for each output the first of the frames that it stands for; those microseconds are overhead of the decode
    loop.
    """

    def __init__(self, model: AcousticModel) -> None:
        self.n_senones, self.subsampling = model.n_senones, model.subsampling

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Array:
        """Natural log-probabilities f32 [outputs, units] of a block that begins with the first frame of an output."""
        return np.ascontiguousarray(block[:: self.subsampling])


class GmmScorer(LayeredScorer):
    """Scores by Gaussian mixtures, of tied or continuous density."""

    def __init__(
        self, config: Config, model: AcousticModel, progress: Progress = quietly, cancelled: Cancelling = never
    ) -> None:
        n, parents, threads = model.n_senones, senones.parents_of(model), config.threads
        family: gmm.Gmm | ContinuousGmm
        family = (
            ContinuousGmm(continuous.pack(model), threads) if model.is_continuous else gmm.Gmm(pack(model), threads)
        )
        self._family = family
        self._strategies = {name: make(family) for name, make in selection.METHODS[family.kind].items()}
        layers = {name: make(n, parents) for name, make in senones.RULES.items()}
        super().__init__(n, family.dim, layers, {name: make(model) for name, make in frames.RULES.items()})
        self.configure(config, self.make_ready(config, progress, cancelled))

    def stages(self, recorder: Recorder) -> None:
        stages = dict(self._family.stages)
        for strategy in self._strategies.values():
            stages |= strategy.stages
        self._register(recorder, stages)

    def warm_up(self) -> None:
        self._family.touch()
        self._strategy.score(np.zeros((3, self._family.dim), np.float32), self._scores[:3], Meter())

    def load(self, config: Config, *_: object) -> None:
        """Compile or load what scores under `config`, on a small model: this one is not set to something else."""
        if (self._family.kind, kernels_of(config)) in COMPILED:
            return
        small, chosen = self._family.small(), settings.assign(config, QUICK).gmm
        features, n = np.zeros((3, small.dim), np.float32), small.n_senones
        scores = np.zeros((3, n), np.float32)
        strategy = selection.METHODS[small.kind][_method(config)](small)
        warm_up(strategy, chosen, features, scores)
        if chosen.senones in self._layers:
            layer = senones.RULES[chosen.senones](n, Parents(np.arange(1), np.zeros(n, np.int32)))
            layer.configure(chosen, strategy)
            layer.score(features, scores, Meter())
            if layer.lazy:
                layer.begin(features, Meter(), ahead=True)
                layer.frame(0, np.arange(n), scores, Meter())
        COMPILED.add((small.kind, kernels_of(config)))

    def _parts(self, config: Config) -> list[Part]:
        strategy = self._strategies[_method(config)]
        parts = super()._parts(config)
        kernels = self._family.kind, kernels_of(config)
        if kernels not in COMPILED:
            parts.append(("kernels", self, Need(kernels, partial(self.load, config))))
        if (need := strategy.needs(config.gmm)) is not None:
            parts.append(("selection", strategy, need))
        return parts

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages under the present configuration; all threads share those of family and strategy."""
        shared = (self._family.stages.keys() | self._strategy.stages.keys()) - SERIAL
        return {
            name: replace(cost, threads=self._family.pool.threads) if name in shared else cost
            for name, cost in super().costs().items()
        }

    @property
    def replayable(self) -> bool:
        return super().replayable and not self._strategy.follow

    def _arranged(self, config: Config) -> FrameScorer:
        strategy = self._strategy = self._strategies[_method(config)]
        strategy.configure(config.gmm, self._part("selection", strategy))
        rule = self._layers.get(config.gmm.senones)
        if rule is None:
            return strategy
        rule.configure(config.gmm, strategy)
        return rule


def kernels_of(config: Config) -> str:
    """The choices among the settings that decide which kernels score, joined by dashes."""
    if config.model == "ctc":
        return "library"
    if config.model == "dnn":
        return "-".join((config.dnn.dtype, config.dnn.product, config.dnn.senones))
    # Of the frame rules only this one has kernels.
    rule = "conditional" if config.frames.skip > 1 and config.frames.rule == "conditional" else "any"
    return "-".join((_method(config), config.gmm.component, config.gmm.senones, rule))


def is_lazy(config: Config) -> bool:
    """Whether scoring asks the search before each frame which senones it needs."""
    if config.model == "ctc":
        return False
    return (config.dnn if config.model == "dnn" else config.gmm).senones.startswith("active")


def _method(config: Config) -> str:
    chosen = config.gmm.selection
    return chosen.method if chosen.enabled else selection.EXACT


def build_scorer(
    config: Config,
    model: AcousticModel,
    progress: Progress = quietly,
    cancelled: Cancelling = never,
    work: DeviceWork | None = None,
) -> Scorer:
    """The scorer for `config` on `model`. Raises Cancelled.

    `work`: the device of `config.device`, where that is not the processor.
    """
    if model.ctc is not None:
        return CtcScorer(model)
    if work is not None and not own_net(model):
        spare = partial(build_scorer, config, model, progress, cancelled)
        return DeviceScorer(config, model, work, spare, config.search.device == config.device)
    if own_net(model):
        return Nnet3Scorer(config, model, progress, cancelled)
    if config.model == "dnn":
        return DnnScorer(config, model, progress, cancelled)
    return GmmScorer(config, model, progress, cancelled)
