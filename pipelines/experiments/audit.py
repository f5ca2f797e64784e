"""What a configuration costs in accuracy: its scores and words compared with those of exact scoring, on the same audio.

Nothing is timed. Every utterance is decoded twice with the same graph and search settings: by the configuration, and
with every senone of every frame computed exactly (all Gaussians, or the whole net in float32). Scores are compared
where they matter: near the best senone, and where the search looks.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.audio.word_errors import Count
from pipelines.config import Config, Value
from pipelines.models.opening import open_model
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.scoring import MAX_FRAMES, Scorer, build_scorer, with_context
from profiler.analysis.comparison.statistics import bootstrap_interval
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.spans import SPAN, WORK_COUNTS, Lane, NullLane, Recorder

NEAR_NAT: Final = 20.0
"""Senones this far below a frame's best decide little: at the usual acoustic scale 2 of the 13 nat of the beam."""

MAX_KEPT: Final = 6000  # Frames of an utterance whose exact scores are kept for all that is compared with them: 120 MB

EXACT: Final[dict[str, Value]] = {
    "frames.skip": 1,
    "gmm.senones": "all",
    "gmm.selection.enabled": False,
    "gmm.component": "full",
    "dnn.senones": "all",
    "dnn.shrink": "none",
    "dnn.dtype": "fp32",
    "device": "cpu",
}
"""The settings that make scoring exact."""

METHOD: Final = "gmm.selection.method"

SHARES: Final = ("gaussians", "senones", "components", "exponentials")
"""Work counts of which an audit says how many of the exact ones were done."""


@dataclass
class Difference:
    """Differences of scores from the exact ones: sum of |Δ| (nat), their number, and the largest."""

    total: float = 0.0
    scores: int = 0
    largest: float = 0.0

    def add(self, delta: Array) -> None:
        if len(delta):
            absolute = np.abs(delta)
            self.total += float(absolute.sum(dtype=np.float64))
            self.scores += len(delta)
            self.largest = max(self.largest, float(absolute.max()))

    @property
    def mean(self) -> float | None:
        return self.total / self.scores if self.scores else None


@dataclass(frozen=True)
class AuditedUtterance:
    """One utterance by both; counts are None without a reference text. `same_best`: frames with the exact one's."""

    name: str
    frames: int
    hypothesis: str
    exact: str
    reference: str | None
    count: Count | None
    exact_count: Count | None
    same_best: int = 0


@dataclass
class Audit:
    """What a configuration changes.

    `near`: senones within NEAR_NAT of the frame's best exact score; in a lazy configuration those of them
    that were requested, for it computes no others. `asked`: senones that the search looked up.
    `same_best`: frames whose best senone is the exact one's (of those compared). `work`, `exact_work`:
    counts by name. `refused`: a sentence for each file that could not be read.
    """

    config: Config
    utterances: list[AuditedUtterance] = field(default_factory=list)
    frames: int = 0
    near: Difference = field(default_factory=Difference)
    active: Difference = field(default_factory=Difference)
    same_best: int = 0
    work: Counter[str] = field(default_factory=Counter)
    exact_work: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    @property
    def agreement(self) -> float | None:
        return self.same_best / self.frames if self.frames else None

    @property
    def shares(self) -> dict[str, float]:
        return {name: self.work[name] / self.exact_work[name] for name in SHARES if self.exact_work[name]}

    @property
    def copied(self) -> float | None:
        """Share of the frames that got the scores of another."""
        return self.work["copied"] / self.frames if self.frames else None

    @property
    def count(self) -> Count:
        return sum((u.count for u in self.utterances if u.count), Count())

    @property
    def exact_count(self) -> Count:
        return sum((u.exact_count for u in self.utterances if u.exact_count), Count())

    @property
    def wer_change(self) -> float | None:
        words = self.exact_count.reference_words
        return (self.count.errors - self.exact_count.errors) / words if words else None

    def wer_change_interval(self) -> tuple[float, float] | None:
        """95 % interval of `wer_change`, by a bootstrap over utterances, not speakers; None with fewer than two."""
        rows = [
            (u.count.errors - u.exact_count.errors, u.exact_count.reference_words)
            for u in self.utterances
            if u.count and u.exact_count and u.exact_count.reference_words
        ]
        if len(rows) < 2:
            return None
        low, high = bootstrap_interval(np.array(rows, float), lambda some: float(some[:, 0].sum() / some[:, 1].sum()))
        return None if math.isnan(low) else (low, high)


def exact_of(config: Config) -> Config:
    return settings.assign(config, EXACT)


def approximations(config: Config) -> dict[str, Value]:
    """The settings of `config` that make its scoring inexact: key → value; those that cannot act are left out."""
    acting = [key for key in EXACT if settings.unavailable_reason(config, key) is None]
    inexact = {key: value for key in acting if (value := settings.get(config, key)) != EXACT[key]}
    return inexact | ({METHOD: settings.get(config, METHOD)} if "gmm.selection.enabled" in inexact else {})


def audit(config: Config, items: Sequence[Item], progress: Progress, cancelled: Callable[[], bool]) -> Audit:
    """Decode `items` by `config` and by exact scoring, and compare; files that cannot be read are in `refused`."""
    return audits([config], items, progress, cancelled)[0]


def audits(
    configs: Sequence[Config], items: Sequence[Item], progress: Progress, cancelled: Callable[[], bool]
) -> list[Audit]:
    """`audit` of several configurations that differ in live settings only: exact scoring is done once for all."""
    for config in configs:
        settings.check(config)
    first = configs[0]
    recorder = Recorder()
    recogniser = build(first, recorder, NullLane(), progress, cancelled)
    recogniser.needs_every_frame("An audit")
    recogniser.register(recorder)
    ready = [recogniser.scorer.make_ready(config, progress, cancelled) for config in configs]
    exact = build_scorer(exact_of(first), open_model(first, progress, cancelled), progress, cancelled)
    exact.warm_up()
    results = [Audit(config) for config in configs]
    ours = _Counted(recogniser.scorer)
    for place, item in enumerate(items):
        progress("decoding by both", place / max(1, len(items)))
        try:
            samples = audio.load(item.path, item.part, recogniser.frontend.parameters.target).samples
        except audio.AudioError as error:
            for result in results:
                result.refused.append(str(error))
            continue
        right = _Exact(exact, recogniser.frontend.features(samples, 0, NullLane()))
        exact_words = _decode(recogniser, right, cancelled)
        for result, prepared in zip(results, ready, strict=True):
            recogniser.configure(result.config, prepared)
            before = result.same_best
            words = _compare(recogniser, ours, right, result, cancelled)
            result.work += ours.take()
            result.exact_work += right.work
            same, said = result.same_best - before, item.reference
            counts = wer.scored(said, words), wer.scored(said, exact_words)
            result.utterances.append(AuditedUtterance(item.name, right.n, words, exact_words, said, *counts, same))
    return results


class _Counted:
    """A scorer and its work counts, summed up by name."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._work: Counter[str] = Counter()
        self._recorder = Recorder()
        scorer.stages(self._recorder)
        self.lane: Lane = self._recorder.lane("audit")

    def settle(self) -> None:
        spans = np.frombuffer(self.lane.take(), SPAN)
        for stage in self._recorder.stages:
            mine = spans[spans["stage"] == stage.id]
            for i, name in enumerate(stage.work[:WORK_COUNTS]):
                self._work[name] += int(mine[f"work{i}"].sum(dtype=np.int64))

    def take(self) -> Counter[str]:
        self.settle()
        work, self._work = self._work, Counter()
        return work


class _Exact:
    """Exact scores of one utterance and their work: kept, unless it is a long one."""

    def __init__(self, scorer: Scorer, features: Array) -> None:
        self.n = n = len(features)
        self._features = with_context(features, scorer.context)
        self._beyond = sum(scorer.context)
        self._counted = _Counted(scorer)
        scorer.reset()
        self._kept = None
        if n <= MAX_KEPT:
            self._kept = np.empty((n, scorer.n_senones), np.float32)
            for at in range(0, n, MAX_FRAMES):
                self._kept[at : at + MAX_FRAMES] = self._score(at, at + MAX_FRAMES)
        self.work = self._counted.take()

    def block(self, first: int, last: int) -> Array:
        return self._features[first : last + self._beyond]

    def scores(self, first: int, last: int) -> Array:
        """Return the scores of the frames first … last − 1 (at most MAX_FRAMES), f32 [frames, senones]."""
        if self._kept is None:
            scores = self._score(first, last)
            if first == 0:
                self.work = Counter()
            self.work += self._counted.take()
            return scores
        return self._kept[first:last]

    def _score(self, first: int, last: int) -> Array:
        scores: Array = self._counted.scorer.score(self.block(first, last), first, self._counted.lane)
        self._counted.settle()
        return scores


def _compare(
    recogniser: Recogniser, ours: _Counted, exact: _Exact, result: Audit, cancelled: Callable[[], bool]
) -> str:
    """Decode with the configuration frame by frame and compare with the exact scores; returns the words."""
    search, scorer = recogniser.search, ours.scorer
    scorer.reset()
    search.start(0)
    size = min(recogniser.config.block, MAX_FRAMES)
    for at in range(0, exact.n, size):
        if cancelled():
            raise Cancelled
        last = min(at + size, exact.n)
        right = exact.scores(at, last)
        state = scorer.prepare(exact.block(at, last), at, ours.lane)
        for t in range(last - at):
            active = search.active_senones()
            row = scorer.frame(state, t, active)
            delta = row - right[t]
            result.active.add(delta[active])
            compared = active if scorer.lazy else slice(None)
            result.near.add(delta[compared][right[t][compared] >= right[t].max() - NEAR_NAT])
            result.same_best += int(np.argmax(row[compared]) == np.argmax(right[t][compared]))
            search.advance(row[None], at + t)
        result.frames += last - at
        ours.settle()
    return " ".join(word for word, _, _ in search.finish())


def _decode(recogniser: Recogniser, exact: _Exact, cancelled: Callable[[], bool]) -> str:
    search = recogniser.search
    search.start(0)
    for at in range(0, exact.n, MAX_FRAMES):
        if cancelled():
            raise Cancelled
        search.advance(exact.scores(at, min(at + MAX_FRAMES, exact.n)), at)
    return " ".join(word for word, _, _ in search.finish())


def report(audit: Audit) -> dict[str, Any]:
    """The audit as plain values: the JSON of `asrscope audit`, which documents it."""
    count, exact, heard = audit.count, audit.exact_count, audit.utterances
    interval = audit.wer_change_interval()
    of_characters = [u.count for u in heard if u.count and wer.unspaced(u.reference or "")]
    return {
        "schema": 1,
        "frames": audit.frames,
        "score_error_near": audit.near.mean,
        "score_error_asked": audit.active.mean,
        "largest_error_near": audit.near.largest,
        "near_nat": NEAR_NAT,
        "same_best_senone": audit.agreement,
        "wer": count.rate,
        "cer": sum(of_characters, wer.Count()).rate,
        "wer_exact": exact.rate,
        "wer_change": audit.wer_change,
        "wer_change_ci95": None if interval is None else list(interval),
        "wer_words": exact.reference_words,
        "transcribed": {"utterances": sum(u.reference is not None for u in heard), "of": len(heard)},
        "shares": audit.shares,
        "frames_copied": audit.copied,
        "work": dict(audit.work),
        "exact_work": dict(audit.exact_work),
        "utterances": [
            {
                "id": u.name,
                "frames": u.frames,
                "hypothesis": u.hypothesis,
                "exact": u.exact,
                "reference": u.reference,
                "errors": u.count.errors if u.count else None,
                "exact_errors": u.exact_count.errors if u.exact_count else None,
            }
            for u in heard
        ],
        "refused": audit.refused,
        "config": settings.to_dict(audit.config),
        "approximations": approximations(audit.config),
    }
