"""Scoring as labs measure it: one acoustic model, real speech, and several settings of the same scorer in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.desk import Desk
from pipelines.labs.sweep import Sweep, Work, one_size
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.experiments.scoring_replay import Replay
    from pipelines.models.sphinx import AcousticModel


def features_of(model: AcousticModel, desk: Desk, seconds: float) -> list[Array]:
    """Return features f32 [frames, 39] of the first utterances, up to about `seconds` of speech."""
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.frontend.mfcc import Mfcc
    from profiler.spans import NullLane, Recorder

    frontend = Mfcc(model.feat_params, transform=model.transform)
    frontend.stages(Recorder())
    found = spoken(desk.speech(), seconds)
    return [frontend.features(sound.samples, 0, NullLane()) for _, sound in found]


def middle(features: Sequence[Array], frames: int) -> Array:
    """Frames from the middle of the first utterance, f32 [frames, 39]; repeated where it has fewer."""
    first = features[0]
    begin = max(0, (len(first) - frames) // 2)
    some = np.resize(first[begin : begin + frames], (frames, first.shape[1]))
    return np.ascontiguousarray(some)


class Scoring:
    """A scorer, the speech that it scores, and its settings as variants; no search, so all senones are wanted.

    Variants share the scorer, and so the places of its parameters in memory.
    """

    def __init__(self, config: Config, desk: Desk, seconds: float = 0.0, frames: int = 0) -> None:
        """`config`: that of all variants, but for live settings. Speech: `seconds`, or the first `frames` of the first
        utterance.

        Raises ModelError or Cancelled.
        """
        from pipelines.models.opening import open_model
        from pipelines.scoring import build_scorer

        self._desk, self.config = desk, config
        self.model = open_model(config, desk.progress, desk.stopping)
        self.features = features_of(self.model, desk, seconds)
        if frames:
            self.features = [middle(self.features, frames)]
        self.frames = sum(map(len, self.features))
        self.scorer = build_scorer(config, self.model, desk.progress, desk.stopping)
        self.scorer.warm_up()

    def work(self, settings: Mapping[str, Value], frames: int = 0) -> Work:
        """Score all the speech with settings changed.

        `frames`: only the first ones of the first utterance, so that a turn is short.
        """
        from pipelines.experiments.scoring_replay import Replay, scoring_s

        config, replays = self._ready(settings)
        if frames:
            beyond = sum(self.scorer.context)
            cut = replays[0].features[: frames + beyond]
            replays = [Replay(cut, [None] * (len(cut) - beyond))]
        prepared = self.scorer.make_ready(config, self._desk.progress, self._desk.stopping)

        def score() -> None:
            self.scorer.configure(config, prepared)
            for one in replays:
                scoring_s(self.scorer, config.block, one)

        return score

    def sweep(
        self,
        settings: Mapping[str, Mapping[str, Value]],
        what: str,
        frames: int = 0,
        share: float = 1.0,
    ) -> Sweep:
        variants = {name: self.work(some, frames) for name, some in settings.items()}
        return one_size(variants, frames or self.frames, what, calls=1, share=share)

    def scores(self, settings: Mapping[str, Value]) -> Array:
        """Score the speech with these settings, f32 [frames, senones]."""
        from pipelines.experiments.scoring_replay import scoring_s

        config, replays = self._ready(settings)
        self.scorer.configure(config)
        found = np.empty((self.frames, self.scorer.n_senones), np.float32)
        at = 0
        for one, features in zip(replays, self.features, strict=True):
            scoring_s(self.scorer, config.block, one, found[at : at + len(features)])
            at += len(features)
        return found

    def _ready(self, settings: Mapping[str, Value]) -> tuple[Config, list[Replay]]:
        from pipelines.experiments.scoring_replay import Replay
        from pipelines.scoring import with_context

        config = assign(self.config, settings)
        self.scorer.configure(config)
        context = self.scorer.context
        padded = map(partial(with_context, context=context), self.features)
        return config, [Replay(one, [None] * (len(one) - sum(context))) for one in padded]


def difference(scores: Array, exact: Array, near: float) -> tuple[float, float]:
    """(mean |Δ| in nat over the senones within `near` nat of a frame's best, share of frames with the same best)."""
    close = exact >= exact.max(axis=1, keepdims=True) - near
    error = float(np.abs(scores - exact)[close].mean(dtype=np.float64))
    return error, float((scores.argmax(axis=1) == exact.argmax(axis=1)).mean())
