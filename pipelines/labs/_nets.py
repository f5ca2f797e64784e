"""Nets as labs hold them against each other: words and best senones utterance by utterance, and time of scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pipelines.config import Config, Value, assign
from pipelines.labs.desk import Desk
from pipelines.labs.figures import quotient
from pipelines.labs.sweep import SweepResult, Timings
from profiler.analysis.comparison.statistics import Ratio

if TYPE_CHECKING:
    from pipelines.experiments.audit import Audit


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of scoring, by utterance: its frames, those whose best senone is the reference's, its reference
    words and the errors in them (0 without a reference text)."""

    frames: list[int]
    same_best: list[int]
    words: list[int]
    errors: list[int]


class NetResult(SweepResult, frozen=True, kw_only=True):
    """Results of a lab of nets: `decoded` has words and best senones by variant; a call's size is its frames."""

    decoded: dict[str, Decoded]

    @property
    def per_frame(self) -> Timings:
        return self.timings.per_unit


def decoded(
    base: Mapping[str, Value], variants: Mapping[str, Mapping[str, Value]], speech_s: float, desk: Desk
) -> dict[str, Decoded]:
    """Decode real speech by every variant; "" is the reference, exact scoring by `base`.

    Variants change live settings of `base` only. Raises ModelError, ConfigError or Cancelled.
    """
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken

    first = assign(Config(), base)
    items = [item for item, _ in spoken(desk.speech(), speech_s)]
    configs = [first, *(assign(first, variant) for variant in variants.values())]
    found = audits(configs, items, desk.progress, desk.stopping)
    return dict(zip(("", *variants), map(_counts, found), strict=True))


def _counts(audit: Audit) -> Decoded:
    said = [u.count for u in audit.utterances]
    return Decoded(
        frames=[u.frames for u in audit.utterances],
        same_best=[u.same_best for u in audit.utterances],
        words=[0 if count is None else count.reference_words for count in said],
        errors=[0 if count is None else count.errors for count in said],
    )


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
    """Decode speech by `base`, called `whole`, and by others, whose best senones are compared with it; then time all.

    Raises what `decoded` does.
    """
    from pipelines.labs._scoring import Scoring

    with desk.part(0.0, 0.75):
        found = decoded(base, others, speech_s, desk)
    scoring = Scoring(assign(Config(), base), desk, frames=frames)
    with desk.part(0.75, 1.0):
        sweep = scoring.sweep({whole: {}, **others}, "nets in turns")
        timings = sweep.run(desk, seconds)
    return NetResult(timings=timings, decoded={whole: found.pop(""), **found})


def word_change(variant: Decoded, other: Decoded) -> Ratio | None:
    """Word error rate of `variant` less that of `other`, with its interval by a bootstrap over utterances.

    Returns None without a reference text.
    """
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


def word_error_rate(variant: Decoded) -> float | None:
    """Errors per reference word; None without a reference text."""
    return sum(variant.errors) / sum(variant.words) if sum(variant.words) else None


def agreement(variant: Decoded) -> float:
    """Share of the frames whose best senone is the reference's."""
    return sum(variant.same_best) / max(1, sum(variant.frames))


def percent_wrong(variants: Iterable[Decoded]) -> tuple[float | None, ...]:
    """Word error rates in %."""
    rates = map(word_error_rate, variants)
    return tuple(None if rate is None else 100 * rate for rate in rates)
