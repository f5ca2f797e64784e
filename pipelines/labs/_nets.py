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
    """One way of scoring over some utterances: of each its frames, those whose best senone is the reference's, its
    words as they were said and the errors in them (none where nobody knows what was said)."""

    frames: list[int]
    same_best: list[int]
    words: list[int]
    errors: list[int]


class NetResult(SweepResult, frozen=True, kw_only=True):
    """What a lab of nets measured: `decoded` has words and best senones by variant; a call's size is its frames."""

    decoded: dict[str, Decoded]

    @property
    def per_frame(self) -> Timings:
        """Seconds per frame."""
        return self.timings.per_unit


def decoded(
    base: Mapping[str, Value], ways: Mapping[str, Mapping[str, Value]], speech_s: float, desk: Desk
) -> dict[str, Decoded]:
    """Decode real speech by every way; "" is the reference, exact scoring by `base`.

    Ways change live settings of `base` only. Raises ModelError, ConfigError or Cancelled.
    """
    from pipelines.experiments.audit import audits
    from pipelines.experiments.scoring_replay import spoken

    first = assign(Config(), base)
    items = [item for item, _ in spoken(desk.speech(), speech_s)]
    configs = [first, *(assign(first, way) for way in ways.values())]
    found = audits(configs, items, desk.progress, desk.stopping)
    return dict(zip(("", *ways), map(_counts, found), strict=True))


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
    """Decode speech by `base`, called `whole`, and by others, whose best senones are held against it; then time all.

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


def word_change(way: Decoded, other: Decoded) -> Ratio | None:
    """Word error rate of `way` less that of `other`, with its interval by a bootstrap over utterances.

    None where nobody knows what was said.
    """
    if not sum(other.words):
        return None
    return quotient(np.subtract(way.errors, other.errors).tolist(), other.words)


def best_change(way: Decoded, other: Decoded) -> Ratio:
    """Share of frames with the reference's best senone, of `way` less of `other`; as `word_change`."""
    return quotient(np.subtract(way.same_best, other.same_best).tolist(), other.frames)


def points(found: Ratio | None) -> str:
    """A difference of shares as sentences write it: +1.2 points (−0.3 to +2.5)."""
    if found is None:
        return "an unknown number of points"
    told = f"{100 * found.ratio:+.1f} points"
    if found.low is not None and found.high is not None:
        told += f" ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    return told.replace("-", "−")


def word_error_rate(way: Decoded) -> float | None:
    """Errors of the words that were said; None where nobody knows them."""
    return sum(way.errors) / sum(way.words) if sum(way.words) else None


def agreement(way: Decoded) -> float:
    """Share of the frames whose best senone is the reference's."""
    return sum(way.same_best) / max(1, sum(way.frames))


def percent_wrong(ways: Iterable[Decoded]) -> tuple[float | None, ...]:
    """Word error rates in %."""
    rates = map(word_error_rate, ways)
    return tuple(None if rate is None else 100 * rate for rate in rates)
