"""Jumps to places that one looks for: stretches decoded slower than real time, and words that were recognised wrongly.

A jump selects the place, puts the cursor at its end and says what it is. After the last place it goes to the first one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from app.model.playhead import Playhead
from profiler.clock import FRAME_S
from profiler.plain import clock, counted, one_line, rtf_text

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.model import Utterance
    from profiler.session.reader import Session

LEAST_SHARE = 0.004  # Of the range in view: a narrower place, some pixels wide, is zoomed in to
AROUND_S = 1.0  # Seconds shown around a place that was not in view, or AROUND times its length
AROUND = 4.0


OUTSIDE = {1: (-1, 0), -1: (1 << 62, 0)}  # Places before and after all others, by the direction of a jump


class Stop(NamedTuple):
    """Frames [first, last) of a place, and what it is."""

    first: int
    last: int
    text: str


def violations(track: CostTrack) -> list[tuple[int, int, float]]:
    """Stretches that took longer than their audio: first frame, exclusive end, RTF; blocks' time is spread evenly."""
    import numpy as np  # not before the window has been painted

    wall = track.wall_row[:]
    slow = np.diff(wall > 1e9 * FRAME_S, prepend=False, append=False)
    ends = np.flatnonzero(slow).reshape(-1, 2).tolist()
    return [(first, last, float(wall[first:last].mean()) * 1e-9 / FRAME_S) for first, last in ends]


class Jumps(QObject):
    """Goes to the next or the previous place of a kind, from the cursor."""

    arrived = Signal(str)  # What was found, or that there is none, in a sentence

    def __init__(self, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._playhead, self._axis = playhead, playhead.axis

    def to_violation(self, direction: int) -> None:
        """Go to the next (+1) or previous (−1) stretch with an RTF above 1."""
        session, track = self._playhead.session, self._playhead.track
        if session is None or track is None:
            return
        from profiler.analysis.recorded import counts_steps

        if counts_steps(session):
            self.arrived.emit(self.tr("The steps of a lab stand for no audio, so none can violate real time."))
            return
        found = violations(track)
        texts = self.tr("real-time violation {0} of {1}: {2} at RTF {3}"), self.tr("frame"), self.tr("frames")
        stops = [
            Stop(first, last, texts[0].format(number, len(found), counted(last - first, *texts[1:]), rtf_text(rtf)))
            for number, (first, last, rtf) in enumerate(found, start=1)
        ]
        stop = _next(stops, self._here(), direction) or _next(stops, OUTSIDE[direction], direction)
        self._go(stop, self.tr("No real-time violation: every block so far took less time than its audio."))

    def to_word_error(self, direction: int) -> None:
        """Go to the next (+1) or previous (−1) place where reference and hypothesis differ."""
        session = self._playhead.session
        if session is None:
            return
        utterances, here = session.utterances.in_time, self._here()
        count = int(utterances.first.searchsorted(self._playhead.n_frames))
        at = max(int(utterances.first[:count].searchsorted(here[0], "right")) - 1, 0)
        # One after the other until one has an error: to align those of an hour takes a while.
        onwards = range(at, count) if direction > 0 else range(min(at, count - 1), -1, -1)
        whole = range(count) if direction > 0 else range(count - 1, -1, -1)
        found = (_next(self._errors_of(session, utterances[n]), here, direction) for n in onwards)
        again = (_next(self._errors_of(session, utterances[n]), OUTSIDE[direction], direction) for n in whole)
        none = self.tr("No word error: every word so far was recognised as in the reference.")
        if all(one.reference is None for one in utterances[:count]):
            none = self.tr("No utterance so far has a reference, so its errors are not known.")
        self._go(next(filter(None, chain(found, again)), None), none)

    def _errors_of(self, session: Session, utterance: Utterance) -> list[Stop]:
        """The places of an utterance that differ; what is under way is compared as far as it has come."""
        from app.views.words_model import spoken_in, wrong_words

        if utterance.reference is None or (utterance.done and utterance.errors == 0):
            return []
        first, end = utterance.first_frame, self._playhead.n_frames
        spoken, _ = spoken_in(session, end, (first, first + 1), None, end)
        return [Stop(*frames, self._text_of(errors)) for one in spoken for frames, errors in wrong_words(one).items()]

    def _text_of(self, errors: Sequence[tuple[str, str]]) -> str:
        texts = []
        for reference, hypothesis in errors:
            text = self.tr("“{1}” in place of “{0}”") if hypothesis else self.tr("“{0}” deleted")
            text = text if reference else self.tr("“{1}” inserted")
            texts.append(text.format(one_line(reference), one_line(hypothesis)))
        return self.tr("word error: {0}").format(", ".join(texts))

    def _here(self) -> tuple[int, int]:
        cursor, selected = self._playhead.cursor_frame, self._axis.selected_frames
        return selected if selected is not None and selected[1] == cursor else (cursor, 0)

    def _go(self, stop: Stop | None, none: str) -> None:
        if stop is None:
            self.arrived.emit(none)
            return
        first, last = stop.first * FRAME_S, stop.last * FRAME_S
        self._playhead.playing = False
        self._playhead.seek(stop.last)
        begin, end = self._axis.visible
        if not begin <= first < last <= end or last - first < LEAST_SHARE * (end - begin):
            around = max(AROUND * (last - first), AROUND_S)
            self._axis.set_visible(first - around, last + around)
        self._axis.select(first, last)
        self.arrived.emit(f"{stop.text} · {clock(first, 2)}")


def _next(stops: Sequence[Stop], here: tuple[int, int], direction: int) -> Stop | None:
    """The first stop after a place, or the last one before it; None where there is none."""
    frames = [stop[:2] for stop in stops]
    at = bisect_right(frames, here) if direction > 0 else bisect_left(frames, here) - 1
    return stops[at] if 0 <= at < len(stops) else None
