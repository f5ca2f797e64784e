"""Scoring as labs measure it: one acoustic model, real speech, and several settings of the same scorer in turns.

Nets are compared by words and best senones, utterance by utterance, and by the time of scoring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pipelines.audio.word_errors import Count
from pipelines.config import Config, Value, assign
from pipelines.labs.desk import Desk
from pipelines.labs.figures import Ratio, quotient
from pipelines.labs.sweep import Sweep, SweepResult, Work, one_size
from profiler.arrays import Array

if TYPE_CHECKING:
    from pipelines.experiments.scoring_replay import Replay
    from pipelines.models.sphinx import AcousticModel


def features_of(model: AcousticModel, desk: Desk, seconds: float) -> list[Array]:
    """Return features f32 [frames, 39] of the first utterances, up to about `seconds` of speech."""
    from pipelines.experiments.scoring_replay import spoken
    from pipelines.frontend.mfcc import Mfcc

    frontend = Mfcc(model.feat_params, transform=model.transform)
    return [frontend.features(sound.samples) for _, sound in spoken(desk.speech(), seconds)]


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
        """`config`: that of all variants, but for live settings. Speech: `seconds`, or `frames` of an utterance."""
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
        """Score all the speech, or the first `frames` of the first utterance, with settings changed."""
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
        self, settings: Mapping[str, Mapping[str, Value]], what: str, frames: int = 0, share: float = 1.0
    ) -> Sweep:
        variants = {name: self.work(some, frames) for name, some in settings.items()}
        return one_size(variants, frames or self.frames, what, calls=1, share=share)

    def scores(self, settings: Mapping[str, Value]) -> Array:
        """Score the speech with these settings, f32 [frames, senones]."""
        from pipelines.experiments.scoring_replay import scoring_s

        config, replays = self._ready(settings)
        self.scorer.configure(config)
        scores = np.empty((self.frames, self.scorer.n_senones), np.float32)
        at = 0
        for one in replays:
            scoring_s(self.scorer, config.block, one, scores[at : at + len(one.active)])
            at += len(one.active)
        return scores

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


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of scoring, by utterance: its frames, those whose best senone is the reference's, its reference
    words and the errors in them (0 without a reference text)."""

    frames: list[int]
    same_best: list[int]
    words: list[int]
    errors: list[int]

    @property
    def wer(self) -> float | None:
        return sum(self.errors) / sum(self.words) if sum(self.words) else None

    @property
    def agreement(self) -> float:
        return sum(self.same_best) / max(1, sum(self.frames))


class NetResult(SweepResult, frozen=True, kw_only=True):
    """Results of a lab of nets: `decoded` has words and best senones by variant; a call's size is its frames."""

    decoded: dict[str, Decoded]


def decoded(
    base: Mapping[str, Value], variants: Mapping[str, Mapping[str, Value]], speech_s: float, desk: Desk
) -> dict[str, Decoded]:
    """Decode real speech by every variant of live settings of `base`; "" is the reference, exact scoring by `base`."""
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken

    first = assign(Config(), base)
    items = [item for item, _ in spoken(desk.speech(), speech_s)]
    configs = [first, *(assign(first, variant) for variant in variants.values())]
    by_variant = {}
    for name, audit in zip(("", *variants), audits(configs, items, desk.progress, desk.stopping), strict=True):
        counts = [u.count or Count() for u in audit.utterances]
        by_variant[name] = Decoded(
            frames=[u.frames for u in audit.utterances],
            same_best=[u.same_best for u in audit.utterances],
            words=[count.reference_words for count in counts],
            errors=[count.errors for count in counts],
        )
    return by_variant


def compared(
    whole: str,
    base: Mapping[str, Value],
    others: Mapping[str, Mapping[str, Value]],
    desk: Desk,
    *,
    speech_s: float,
    frames: int,
    seconds: float,
) -> NetResult:
    """Decode speech by `base`, called `whole`, and by others, whose best senones are compared; then time all."""
    with desk.part(0.0, 0.75):
        found = decoded(base, others, speech_s, desk)
    scoring = Scoring(assign(Config(), base), desk, frames=frames)
    with desk.part(0.75, 1.0):
        timings = scoring.sweep({whole: {}, **others}, "nets in turns").run(desk, seconds)
    return NetResult(timings=timings, decoded={whole: found.pop(""), **found})


def word_change(variant: Decoded, other: Decoded) -> Ratio | None:
    """Word error rate of `variant` less that of `other`, by a bootstrap over utterances; None without transcripts."""
    if not sum(other.words):
        return None
    return quotient(np.subtract(variant.errors, other.errors).tolist(), other.words)


def best_change(variant: Decoded, other: Decoded) -> Ratio:
    """Share of frames with the reference's best senone, of `variant` less of `other`; as `word_change`."""
    return quotient(np.subtract(variant.same_best, other.same_best).tolist(), other.frames)


def points(difference: Ratio | None) -> str:
    """Format a difference of shares: +1.2 points (−0.3 to +2.5)."""
    if difference is None:
        return "an unknown number of points"
    text = f"{100 * difference.ratio:+.1f} points"
    if difference.low is not None and difference.high is not None:
        text += f" ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
    return text.replace("-", "−")


def percent_wrong(variants: Iterable[Decoded]) -> tuple[float | None, ...]:
    return tuple(None if each.wer is None else 100 * each.wer for each in variants)
