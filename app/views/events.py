"""Markers and utterance boundaries as the views draw them, up to the playhead. No Qt in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiler.session.reader import Session

FRAME_S = 0.01
"""Seconds of audio per frame (10 ms hop)."""


@dataclass(frozen=True)
class Mark:
    """A marker: what was asked when, and since which frame it acts.

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
        """Frame at which the line is drawn: applied, else asked."""
        return self.asked_frame if self.applied_frame is None else self.applied_frame


@dataclass(frozen=True)
class Boundary:
    """Start of an utterance."""

    first_frame: int
    name: str


def marks(session: Session, cursor_frame: int) -> tuple[Mark, ...]:
    """Markers asked for up to the playhead, as they were known there, in order of time."""
    found = []
    for marker in session.markers:
        if marker.asked_frame > cursor_frame:
            continue
        applied = marker.applied_frame
        if applied is not None and applied > cursor_frame:
            applied = None
        found.append(
            Mark(
                kind=marker.kind,
                text=marker.text,
                asked_frame=int(marker.asked_frame),
                applied_frame=None if applied is None else int(applied),
                waits=marker.kind == "option",
            )
        )
    return tuple(sorted(found, key=lambda mark: (mark.frame, mark.asked_frame)))


def boundaries(session: Session, cursor_frame: int) -> tuple[Boundary, ...]:
    """Utterances begun before the playhead, in order of time."""
    begun = [u for u in session.utterances if u.first_frame < max(1, cursor_frame)]
    begun.sort(key=lambda u: u.first_frame)
    return tuple(Boundary(int(u.first_frame), str(u.name)) for u in begun)


def baseline_range(session: Session, cursor_frame: int) -> tuple[int, int] | None:
    """Frames before the last applied option change, back to the change before it.

    This is what "before" means when a toggle is flipped; None when nothing was changed yet.
    """
    changes = sorted(
        {
            mark.applied_frame
            for mark in marks(session, cursor_frame)
            if mark.waits and mark.applied_frame is not None and mark.applied_frame > 0
        }
    )
    if not changes:
        return None
    return (changes[-2] if len(changes) > 1 else 0), changes[-1]
