"""Where in a session a picture is: the stretch shown, the cursor, the selection. Frames instead of the wanted texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.model.report import Selected
from app.pictures.request import (
    PictureError,
    PictureRequest,
    Range,
    is_range,
    range_text,
    read_range,
    seconds_text,
)
from profiler.analysis.breakdown import BETWEEN
from profiler.analysis.categories import OVERHEAD
from profiler.clock import FRAME_S
from profiler.files.inputs import InputError
from profiler.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.model.playhead import Snapshot
    from profiler.session.reader import Session

MAX_NAMED = 12
"""Names listed in a sentence about an unknown one."""

BOOKMARK = "bookmark:"
"""Begins the note of a bookmark where it could be taken for something else."""


@dataclass(frozen=True)
class Extent:
    """Frames are run-global; a stretch is [first, last).

    Attributes:
        first_frame, last_frame: what is shown.
        cursor_frame: end of what is drawn and counted.
        end_frame: of the session.
        selected: frames selected, or None.
        selection: what was selected, in words; empty for nothing.
        stage: name of the stage or group that is chosen in all views, or None for the default of each.
    """

    first_frame: int
    last_frame: int
    cursor_frame: int
    end_frame: int
    selected: tuple[int, int] | None
    selection: str
    stage: str | None

    @property
    def first_s(self) -> float:
        """Start of what is shown, in seconds."""
        return self.first_frame * FRAME_S

    @property
    def last_s(self) -> float:
        """End of what is shown, in seconds."""
        return self.last_frame * FRAME_S

    @property
    def end_s(self) -> float:
        """Length of the session in seconds."""
        return self.end_frame * FRAME_S

    @property
    def figures_over(self) -> tuple[int, int] | None:
        """Frames that figures and breakdown count over: the selection, else the part of a session shown; None: all."""
        if self.selected is not None:
            return self.selected
        if (self.first_frame, self.last_frame) != (0, self.end_frame):
            return self.first_frame, min(self.last_frame, self.cursor_frame)
        return None


def extent_of(wanted: PictureRequest, snapshot: Snapshot) -> Extent:
    """Find the times and names of `wanted` in a session; PictureError for what is not there."""
    frames = int(snapshot.track.n_frames)
    first, last = 0, frames
    if wanted.range_s is not None:
        first, last = _stretch(wanted.range_s, frames, "--range")
    cursor = last
    if wanted.at_s is not None:
        cursor = round(wanted.at_s / FRAME_S)
        if cursor > frames:
            raise PictureError(
                f"--at {seconds_text(wanted.at_s)} is not within the session, "
                f"which is {seconds_text(frames * FRAME_S)} s long."
            )
        if wanted.range_s is not None and not first < cursor <= last:
            raise PictureError(f"--at {seconds_text(wanted.at_s)} is not within --range {range_text(wanted.range_s)}.")
    selected, stage, names = selected_of(wanted.select, snapshot.session, frames)
    if selected is not None and selected[0] >= cursor:
        raise PictureError(
            f"--select {names[-1]} begins after the cursor, which is at {seconds_text(cursor * FRAME_S)} s."
        )
    return Extent(first, last, cursor, frames, selected, ", ".join(names), stage)


def selected_of(select: Sequence[str], session: Session, frames: int) -> Selected:
    """Find what is selected in a session with this number of frames: of several stretches or stages the last one.

    PictureError for what is not there.
    """
    selected, stage = None, None
    for what in select:
        found = _selected(what, session, frames)
        if isinstance(found, str):
            stage = found
        else:
            selected = found
    return Selected(selected, stage, tuple(one_line(what) for what in select))


def _stretch(ends: Range, frames: int, option: str) -> tuple[int, int]:
    """A range as frames; PictureError outside the session."""
    first = 0 if ends[0] is None else round(ends[0] / FRAME_S)
    last = frames if ends[1] is None else round(ends[1] / FRAME_S)
    if not 0 <= first < last <= frames:
        raise PictureError(
            f"{option} {range_text(ends)} is not within the session, which is {seconds_text(frames * FRAME_S)} s long."
        )
    return first, last


def _selected(what: str, session: Session, frames: int) -> tuple[int, int] | str:
    """Frames of a stretch of time, of an utterance or of a bookmark, or the name of a stage or group."""
    if is_range(what):
        return _stretch(read_range(what, "--select"), frames, "--select")
    for utterance in session.utterances:
        if utterance.name == what:
            return utterance.first_frame, utterance.first_frame + utterance.n_frames
    stages = [stage.name for stage in session.stages.values()]
    groups = {OVERHEAD, BETWEEN, *(stage.group for stage in session.stages.values())}
    if what in groups or what in stages:
        return what
    from app.model import bookmarks  # it loads Qt, which a report needs for nothing else

    try:
        noted = {one.note: one.frames for one in bookmarks.read(session)}
    except InputError as error:
        raise PictureError(str(error)) from error
    if (frames_of := noted.get(what.removeprefix(BOOKMARK))) is not None:
        first, last = frames_of
        return _stretch((first * FRAME_S, last * FRAME_S), frames, "--select")
    names = [*noted, *(utterance.name for utterance in session.utterances), *stages]
    listed = ", ".join(one_line(name) for name in names[:MAX_NAMED])
    more = ", …" if len(names) > MAX_NAMED else ""
    raise PictureError(
        f"--select takes FROM..TO in seconds, an utterance, a stage or a bookmark, not {one_line(what)!r}; "
        f"there are {listed}{more}."
    )
