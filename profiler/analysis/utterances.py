"""What the utterances of a session add up to: the one place that says what a real-time factor is taken of."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from profiler.frames import FRAME_S
from profiler.session.model import Utterance, Utterances


def audio_seconds(utterances: Iterable[Utterance], first: int, last: int) -> float:
    """Return the audio time of the frames first … last − 1, which are decoded, in seconds.

    A whole utterance counts its whole length, a part of its frames the same part of it: the last 10 to 25 ms,
    which make no frame of their own, are shared out over all of them.
    """
    known = utterances if isinstance(utterances, Utterances) else Utterances(utterances)
    inside = np.maximum(np.minimum(known.end, last) - np.maximum(known.first, first), 0)
    share = inside / np.maximum(known.end - known.first, 1)
    # Added up one after the other: the sum of whole utterances has the bits of their plain sum.
    seconds = float(np.cumsum(known.audio_s * share)[-1]) if len(known) else 0.0
    # A frame of no utterance stands for the hop.
    return seconds + max(last - first - int(inside.sum()), 0) * FRAME_S


def real_time_factor(wall_ns: float, audio_s: float) -> float | None:
    """Return processing time / audio time, None without audio."""
    return wall_ns / 1e9 / audio_s if audio_s > 0 else None
