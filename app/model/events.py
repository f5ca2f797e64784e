"""Markers and utterance boundaries as the views draw them, up to the playhead. No Qt in here."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.session.reader import Session


MAX_MARKS = 1000
"""Maximum number shown, the latest ones: as many as a setting changed every second for a quarter of an hour makes."""


@dataclass(frozen=True)
class Mark:
    """A marker: what was requested when, and from which frame it takes effect.

    `applied_frame` is None while it has not been applied, or when it needs no applying
    (`waits` False: a note or a user's mark).
    """

    kind: str
    text: str
    asked_frame: int
    applied_frame: int | None
    waits: bool

    @property
    def frame(self) -> int:
        """Frame at which the line is drawn: where it was applied, otherwise where it was requested."""
        return self.asked_frame if self.applied_frame is None else self.applied_frame


@dataclass(frozen=True)
class Boundary:
    """Start of an utterance."""

    first_frame: int
    name: str


def marks(session: Session, cursor_frame: int, frames: int) -> tuple[Mark, ...]:
    """Markers as they were known when the playhead was first reached, in order of time.

    What was asked for at the very frame of the playhead comes with the next one, live and replayed
    alike; at the end of a finished session nothing comes any more, so all markers are shown.

    Args:
        session: where the markers are.
        cursor_frame: frames before this one are shown.
        frames: frames that the session has.
    """
    all_over = cursor_frame >= frames and session.state != "recording"
    found = []
    for marker in session.markers[-MAX_MARKS:]:
        if marker.asked_frame >= cursor_frame and not all_over:
            continue
        applied = marker.applied_frame
        if applied is not None and applied >= cursor_frame and not all_over:
            applied = None
        found.append(
            Mark(
                kind=marker.kind,
                text=one_line(marker.text),
                asked_frame=int(marker.asked_frame),
                applied_frame=None if applied is None else int(applied),
                waits=marker.kind == "option",
            )
        )
    return tuple(sorted(found, key=lambda mark: (mark.frame, mark.asked_frame)))


class _Starts:
    """All boundaries of a session in order of time, kept up with it: there are thousands, and they only get more."""

    def __init__(self) -> None:
        self._of: int = 0
        self._all: tuple[Boundary, ...] = ()
        self._shown: tuple[Boundary, ...] = ()

    def before(self, session: Session, frame: int) -> tuple[Boundary, ...]:
        """Return those before a frame; the same object while they are the same."""
        utterances = session.utterances
        if len(utterances) != self._of:
            found = [Boundary(int(u.first_frame), one_line(u.name)) for u in utterances]
            self._of, self._all = len(utterances), tuple(sorted(found, key=_first_frame))
            self._shown = ()
        count = bisect_left(self._all, frame, key=_first_frame)
        if count != len(self._shown):
            self._shown = self._all[:count]
        return self._shown


def _first_frame(boundary: Boundary) -> int:
    return boundary.first_frame


_starts: WeakKeyDictionary[Session, _Starts] = WeakKeyDictionary()


def boundaries(session: Session, cursor_frame: int) -> tuple[Boundary, ...]:
    """Utterances begun before the playhead, in order of time."""
    return _starts.setdefault(session, _Starts()).before(session, max(1, cursor_frame))
