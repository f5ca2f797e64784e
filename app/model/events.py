"""Markers and utterance boundaries as the views draw them, and where selections snap to. No Qt in here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from profiler.clock import FRAME_S
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.arrays import I64
    from profiler.session.model import Marker
    from profiler.session.reader import Session


MAX_MARKS = 1000
"""Maximum number shown, the latest ones: as many as a setting changed every second for a quarter of an hour makes."""


def marks(session: Session, cursor_frame: int, frames: int) -> tuple[Marker, ...]:
    """Markers as they were known when the playhead first reached `cursor_frame` of `frames`, in order of time.

    A marker set at the frame of the playhead comes with the next frame; at the end of a finished session all are shown.
    Of several changes of a setting at one frame only the last is shown: it is what holds from there on.
    """
    all_over = cursor_frame >= frames and session.state != "recording"
    found = []
    for marker in session.markers[-MAX_MARKS:]:
        if marker.asked_frame >= cursor_frame and not all_over:
            continue
        applied = marker.applied_frame
        if applied is not None and applied >= cursor_frame and not all_over:
            marker = replace(marker, applied_frame=None, epoch=None)
        text = one_line(marker.text)
        found.append(marker if text == marker.text else replace(marker, text=text))
    last = {(marker.frame, marker.key or marker.id): marker for marker in found}
    return tuple(sorted(last.values(), key=lambda marker: (marker.frame, marker.asked_frame)))


def boundaries(session: Session, cursor_frame: int) -> I64:
    """First frames of the utterances begun before the playhead, ascending, int64 [n]."""
    first = session.utterances.in_time.first
    return first[: int(first.searchsorted(max(1, cursor_frame)))]


def snap_points(session: Session, first_s: float, last_s: float) -> list[float]:
    """Seconds of audio from `first_s` to `last_s` with a marker or an end of an utterance or word, in no order."""
    first, last = first_s / FRAME_S, last_s / FRAME_S
    frames = [marker.frame for marker in session.markers]
    utterances = session.utterances.in_time
    for number in ((utterances.first <= last) & (utterances.end >= first)).nonzero()[0]:
        one = utterances[number]
        frames += one.first_frame, one.end_frame
        for _, begin, length in one.words:
            frames += begin, begin + length
    return [frame * FRAME_S for frame in frames if first <= frame <= last]
