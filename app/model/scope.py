"""The scope: the frames, and with them the settings, that every figure of the desk is of, and how it is called.

Also what a chart of these frames marks: markers and beginnings of utterances, to which selections snap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication

from app.model.configurations import arm_of, is_ab, since, within
from app.model.time_axis import CHANGE, LIVE, RANGE, WHOLE, Kind
from profiler.clock import FRAME_S
from profiler.plain import clock, counted, one_line

if TYPE_CHECKING:
    from profiler.arrays import I64
    from profiler.session.model import Marker
    from profiler.session.reader import Session

tr = partial(QCoreApplication.translate, "Scope")

LIVE_S: Final = 3.0  # Seconds of audio before the cursor that the scope LIVE is of


@dataclass(frozen=True)
class Scope:
    """Frames [first, last), at most up to `end`, the cursor, and why these."""

    kind: Kind
    first: int
    last: int
    end: int
    change: str = ""  # Text of the change that the kind CHANGE begins with; empty for one without a name
    configurations: int = 1  # How many settings were in force

    @property
    def frames(self) -> int:
        return max(0, self.last - self.first)

    @property
    def text(self) -> str:
        """What it is of, in a few words: what stands on the chip, and nowhere else."""
        first, last = self.first * FRAME_S, self.last * FRAME_S
        digits = 2 if last - first < 10 else 1
        found = {
            LIVE: tr("last {0} s").format(f"{LIVE_S:.0f}"),
            CHANGE: tr("since {0}").format(self.change or clock(first, 1)),
            RANGE: tr("{0} – {1}").format(clock(first, digits), clock(last, digits)),
            WHOLE: tr("whole run"),
        }[self.kind]
        return " · ".join(filter(None, (found, self.several)))

    @property
    def several(self) -> str:
        return counted(self.configurations, "", tr("settings")).strip() if self.configurations > 1 else ""

    @property
    def extent(self) -> str:
        return tr("From {0} to {1},").format(*(clock(frame * FRAME_S, 2) for frame in (self.first, self.last)))


def scope_of(session: Session, end: int, chosen: Kind | None, selected: tuple[int, int] | None) -> Scope:
    """The scope before frame `end`: the frames `selected`, or else of the kind `chosen`.

    None chosen: since the last change of the settings, and without one the whole run.
    """
    change = ""
    kind: Kind = RANGE if selected is not None else chosen or (WHOLE if is_ab(session) else CHANGE)
    first, last = 0, end
    if selected is not None:
        first, last = (min(max(frame, 0), end) for frame in selected)
    elif kind == LIVE:
        first = max(0, end - round(LIVE_S / FRAME_S))
    elif kind == CHANGE:
        first = since(session, end)
        kind = CHANGE if first > 0 else WHOLE
        if kind == CHANGE:
            arm = arm_of(session, first + 1)
            texts = (m.text for m in reversed(session.markers) if m.applied_frame == first)
            change = tr("A/B, arm {0}").format(arm) if arm else one_line(next(texts, ""))
    return Scope(kind, first, last, end, change, within(session, first, last))


MAX_MARKS = 1000  # The latest are shown: a setting changed every second for a quarter of an hour makes as many


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
