"""Bookmarks of a session: ranges of frames with a note, in a JSON file next to it, never in the session.

`NAME.asrs.bookmarks.json` names the session that it belongs to. A file that is damaged, of another session or of
another program is reported and left as it is: nothing is added to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from PySide6.QtCore import QObject, Signal

from app.model.playhead import Playhead
from app.model.time_axis import NamedRange
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.files.inputs import InputError, read_json
from profiler.files.outputs import writing
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.session.reader import Session

LONGEST_NOTE: Final = 80
MOST: Final = 200  # Bookmarks of a session

_Frame = Annotated[int, msgspec.Meta(ge=0)]


class Bookmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frames [first_frame, last_frame) of a session, and what somebody noted about them."""

    first_frame: _Frame
    last_frame: _Frame
    note: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NOTE)]

    def __post_init__(self) -> None:
        if self.first_frame >= self.last_frame:
            raise ValueError("last_frame must be above first_frame")

    @property
    def frames(self) -> tuple[int, int]:
        return self.first_frame, self.last_frame


class _Sidecar(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["asrscope bookmarks 1"]
    session: str
    bookmarks: Annotated[list[Bookmark], msgspec.Meta(max_length=MOST)]


def sidecar(session: str | os.PathLike[str]) -> Path:
    return Path(f"{os.fspath(session)}.bookmarks.json")


def read(session: Session) -> list[Bookmark]:
    """Bookmarks of a session in order of time, none without a file; InputError if it is not one of this session."""
    path = sidecar(session.path)
    if not os.path.lexists(path):
        return []
    tree = read_json(path, "a list of bookmarks")
    shown = one_line(str(path))
    try:
        found = msgspec.convert(tree, _Sidecar)
    except msgspec.ValidationError as error:
        raise InputError(f"{shown}: these are not bookmarks of asrscope: {one_line(str(error))}.") from error
    if found.session != _id(session):
        raise InputError(f"{shown}: these are the bookmarks of another session; move the file away to make new ones.")
    return sorted(found.bookmarks, key=lambda one: (one.frames, one.note))


def write(session: Session, bookmarks: Sequence[Bookmark]) -> None:
    """Replace the bookmarks of a session; OutputError if the file cannot be written."""
    from profiler.session.files import own_files  # not before the window has been painted

    tree = _Sidecar("asrscope bookmarks 1", _id(session), list(bookmarks))
    with writing(sidecar(session.path), "the list of bookmarks", own_files(session.path)) as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(tree)) + b"\n")


def _id(session: Session) -> str:
    return str(session.meta.get("session_id", ""))


class Bookmarks(QObject):
    """The bookmarks of the session shown, marked on the time axis."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: tuple[Bookmark, ...] = ()
        self._playhead, self._axis = playhead, playhead.axis
        playhead.opened.connect(self._read)
        playhead.closed.connect(lambda: self._show(()))

    def delete_unavailable_reason(self) -> str | None:
        return None if self.selected is not None else self.tr("No bookmark is selected; go to one first.")

    @property
    def selected(self) -> Bookmark | None:
        """The bookmark of exactly what is selected, or None."""
        return next((one for one in self.all if one.frames == self._axis.selected_frames), None)

    def go_to(self, bookmark: Bookmark) -> None:
        first, last = (frame * FRAME_S for frame in bookmark.frames)
        self._axis.go_to_range(first, last, around=1.0)

    def add(self, frames: tuple[int, int], note: str) -> None:
        """Give a range a note, in place of the note that it had."""
        note = one_line(note.strip(), LONGEST_NOTE)
        if not note:
            return

        def added(known: list[Bookmark]) -> list[Bookmark]:
            rest = [one for one in known if one.frames != frames]
            if any(one.note == note for one in rest):
                raise BadInput(self.tr("There is a bookmark “{0}” already; choose another note.").format(note))
            if len(rest) >= MOST:
                raise BadInput(self.tr("A session has at most {0} bookmarks; delete one first.").format(MOST))
            return [*rest, Bookmark(*frames, note)]

        self._change(added)

    def delete(self) -> None:
        gone = self.selected
        self._change(lambda known: [one for one in known if one != gone])

    def _change(self, change: Callable[[list[Bookmark]], list[Bookmark]]) -> None:
        """Change what the file has now: another window may have added to it."""
        session = self._playhead.session
        if session is None:
            return
        try:
            write(session, change(read(session)))
        except BadInput as error:
            self.failed.emit(str(error))
            return
        self._read(session)

    def _read(self, session: Session) -> None:
        try:
            self._show(tuple(read(session)))
        except InputError as error:
            self._show(())
            self.failed.emit(str(error))

    def _show(self, bookmarks: tuple[Bookmark, ...]) -> None:
        if bookmarks != self.all:
            self.all = bookmarks
            self._axis.set_named(
                NamedRange(one.first_frame * FRAME_S, one.last_frame * FRAME_S, one_line(one.note)) for one in bookmarks
            )
            self.changed.emit()
