"""The scorer that the decode loop holds when a net scores: frame rule, wanted senones, layers of the net."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pipelines.models import nets
from pipelines.models.errors import ModelError
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import frames, senones
from pipelines.scoring.dnn.dense import DenseNet
from pipelines.scoring.dnn.quantised import QuantisedNet
from pipelines.scoring.gmm import MAX_FRAMES
from pipelines.scoring.layered import LayeredScorer, Part, Prepared
from pipelines.scoring.meter import Meter
from pipelines.scoring.senones import SenoneRule
from profiler.spans import Recorder

Array = np.ndarray[Any, Any]

FEATURES = 39
"""Of a frame, as the front end makes them."""
SENONE_RULES = ("all", "asked")
HEADS = "heads"
FRAME_RULES = ("copy", HEADS)
UNSEEN = 1 << 30
"""Frames since the last one that went through the hidden layers for the heads, where none did."""


class DnnScorer(LayeredScorer):
    """Scores by the net that `dnn.net` names; the acoustic model says which senones there are.

    A frame that is skipped repeats the scores of the last one scored (the frame-asynchronous net), or is
    scored by a head of its own (the multi-frame net).
    """

    def __init__(self, config: Any, model: AcousticModel) -> None:
        """Raises ModelError when the net cannot be used with `model`."""
        net = nets.load(nets.find(config.dnn.net), model.n_senones, FEATURES)
        arithmetic = QuantisedNet if config.dnn.dtype == "int8" else DenseNet
        self._net = arithmetic(net, config.threads, MAX_FRAMES)
        self.context = self._net.context
        n, parents = model.n_senones, senones.parents_of(model)
        super().__init__(
            n,
            FEATURES,
            {name: senones.create(name, n, parents) for name in SENONE_RULES},
            {name: frames.create(name, model) for name in FRAME_RULES},
        )
        self._heads = net.card.heads
        self._since = UNSEEN
        self.configure(config)

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that the net records."""
        self._register(recorder, self._net.stages)

    def warm_up(self) -> None:
        """Score a few frames both ways, so that libraries and kernels are ready."""
        spliced = self._net.splice(np.zeros((3 + sum(self.context), FEATURES), np.float32), Meter())
        for layer in self._layers.values():
            layer.configure(self._config.dnn, self._net)
            layer.score(spliced, self._scores[:3], Meter())
        self.configure(self._config)

    def _arranged(self, config: Any) -> SenoneRule:
        layer = self._layers[config.dnn.senones]
        layer.configure(config.dnn, self._net)
        return layer

    def _input(self, block: Array) -> Array:
        return self._net.splice(block, self._meter)

    def reset(self) -> None:
        """An utterance begins."""
        super().reset()
        self._since = UNSEEN

    def configure(self, config: Any, prepared: Prepared | None = None) -> None:
        """Take over the settings from the next block on. ModelError when the net has too few heads for them."""
        super().configure(config, prepared)
        self._since = UNSEEN
        self._net.heads_used = self._skip if self._rule is self._rules[HEADS] else 1

    def _parts(self, config: Any) -> list[Part]:
        found = super()._parts(config)
        if self._rule_of(config) is self._rules[HEADS] and config.frames.skip > self._heads:
            # Said where a live change is made ready, so that a run goes on as before.
            found.append((HEADS, (self, config.frames.skip), partial(self._refuse, config)))
        return found

    def _refuse(self, config: Any, *_: Any) -> None:
        raise ModelError(
            f"The net {config.dnn.net} answers for {self._heads} frame{'s' * (self._heads != 1)} at once; "
            f"frames.rule=heads with frames.skip={config.frames.skip} needs {config.frames.skip}."
        )

    def _part_of(self, block: Array, scores: Array) -> None:
        if self._rule is not self._rules[HEADS]:
            super()._part_of(block, scores)
            return
        assert self._rule is not None
        chosen = self._rule.choose(block, self._frame, self._skip, self._meter)
        since = np.empty(len(block), np.int64)
        for t in range(len(block)):
            self._since += 1
            if chosen[t] or self._since >= self._skip:
                chosen[t], self._since = True, 0
            since[t] = self._since
        if chosen.any():
            self._net.begin_some(block[chosen], self._meter)
        # Without one of its own the block goes on from the last one begun.
        kept = 0 if chosen.any() else self._net.begun
        self._net.score_by_heads(np.cumsum(chosen) - 1 + kept, since, scores, self._meter)
        self._last[:] = scores[-1]
        self._known[:] = True
        self._frame += len(block)
