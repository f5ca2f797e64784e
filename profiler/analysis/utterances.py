"""What the utterances of a session add up to: the one place that says what a real-time factor is taken of."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from profiler.analysis.recorded import Recorded, Utterance
from profiler.arrays import F64, I64
from profiler.clock import FRAME_S
from profiler.session.model import Utterances


def counts_steps(session: Recorded) -> bool:
    return "lab" in session.meta and not session.utterances


def audio_seconds(utterances: Iterable[Utterance], first: int, last: int) -> float:
    """Return the audio time of the decoded frames first … last − 1, in seconds.

    A part of an utterance's frames counts that part of its length: its last 10 to 25 ms, no frame, are shared out.
    """
    begin, end, audio_s = _places(utterances)
    inside = np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
    share = inside / np.maximum(end - begin, 1)
    # Added up one after the other: the sum of whole utterances has the bits of their plain sum.
    seconds = float(np.cumsum(audio_s * share)[-1]) if len(begin) else 0.0
    # A frame of no utterance stands for the hop.
    return seconds + max(last - first - int(inside.sum()), 0) * FRAME_S


def _places(utterances: Iterable[Utterance]) -> tuple[I64, I64, F64]:
    """First frames, the frames after the last, and seconds [n]."""
    if isinstance(utterances, Utterances):
        return utterances.first, utterances.end, utterances.audio_s
    rows = [(one.first_frame, one.n_frames, one.audio_s) for one in utterances]
    first, frames, seconds = np.array(rows, np.float64).reshape(-1, 3).T
    return first.astype(np.int64), (first + frames).astype(np.int64), seconds


def real_time_factor(wall_ns: float, audio_s: float) -> float | None:
    """Return processing time / audio time, None without audio."""
    return wall_ns / 1e9 / audio_s if audio_s > 0 else None
