"""What the utterances of a session add up to: the audio that was decoded, and the word errors.

The one place that says what a real-time factor is taken of, and which utterances a word error rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from profiler.session.model import FRAME_S, Utterance


def audio_seconds(utterances: Iterable[Utterance], first: int, last: int) -> float:
    """Return the audio time of the frames first … last − 1, which are decoded, in seconds.

    A whole utterance counts its whole length, a part of its frames the same part of it: the last 10 to 25 ms,
    which make no frame of their own, are shared out over all of them.
    """
    seconds, named = 0.0, 0
    for utterance in utterances:
        begin, end = utterance.first_frame, utterance.first_frame + utterance.n_frames
        inside = min(end, last) - max(begin, first)
        if inside > 0:
            seconds += utterance.audio_s * (inside / utterance.n_frames)
            named += inside
    # A frame of no utterance stands for the hop.
    return seconds + max(last - first - named, 0) * FRAME_S


def real_time_factor(wall_ns: float, audio_s: float) -> float | None:
    """Return processing time / audio time, None without audio."""
    return wall_ns / 1e9 / audio_s if audio_s > 0 else None


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Word errors of some utterances; `rate` is None where nothing is known of what was said."""

    errors: int = 0
    words: int = 0

    @property
    def rate(self) -> float | None:
        """Errors per word of the reference."""
        return self.errors / self.words if self.words else None


class Decoded(Protocol):
    """An utterance with its word errors, None where nothing is known, and the configurations it ran under."""

    @property
    def errors(self) -> int | None: ...  # noqa: D102
    @property
    def reference_words(self) -> int | None: ...  # noqa: D102
    @property
    def epochs(self) -> Sequence[int]: ...  # noqa: D102


def errors_of(utterance: Decoded) -> ErrorCount | None:
    """Return the word errors of an utterance, or None where it counts for no word error rate.

    One without a word of reference does not, nor one that was stopped, nor one that was decoded under more than
    one configuration and so says nothing of either.
    """
    if utterance.errors is None or not utterance.reference_words or len(set(utterance.epochs)) > 1:
        return None
    return ErrorCount(utterance.errors, utterance.reference_words)


def word_errors(utterances: Iterable[Decoded]) -> ErrorCount:
    """Return the word errors of all utterances that count."""
    known = [count for u in utterances if (count := errors_of(u)) is not None]
    return ErrorCount(sum(c.errors for c in known), sum(c.words for c in known))
