"""What the utterances of a session add up to: the one place that says what a real-time factor is taken of."""

from __future__ import annotations

from collections.abc import Iterable

from profiler.session.model import FRAME_S, Utterance


def audio_seconds(utterances: Iterable[Utterance], first: int, last: int) -> float:
    """Return the audio time of the frames first … last − 1, which are decoded, in seconds.

    A whole utterance counts its whole length, a part of its frames the same part of it: the last 10 to 25 ms,
    which make no frame of their own, are shared out over all of them.
    """
    seconds, named = 0.0, 0
    for utterance in utterances:
        begin, end = utterance.first_frame, utterance.first_frame + utterance.n_frames
        if first <= begin and end <= last:
            inside = end - begin
        else:
            inside = min(end, last) - max(begin, first)
        if inside > 0:
            seconds += utterance.audio_s * (inside / utterance.n_frames)
            named += inside
    # A frame of no utterance stands for the hop.
    return seconds + max(last - first - named, 0) * FRAME_S


def real_time_factor(wall_ns: float, audio_s: float) -> float | None:
    """Return processing time / audio time, None without audio."""
    return wall_ns / 1e9 / audio_s if audio_s > 0 else None
