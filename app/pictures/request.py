"""What picture of a session is wanted: views, size, theme, stretch of time. Read from texts and written as a command.

The command line and the window fill in the same thing, and every picture names the command that makes it again. No Qt.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from app.views import PICTURES
from profiler.clock import FRAME_S
from profiler.errors import BadInput
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.model.report import Selected
    from profiler.session.reader import Session


SIZE: Final = (1600, 1000)
SCALE: Final = 2.0  # Pixels per point of a PNG: sharp on paper and on dense screens
DESK: Final = ("cost", "words", "work", "breakdown")  # The views of the picture of the whole desk
WORDS: Final = "words"  # The view that can have a spectrogram
THEMES: Final = ("light", "dark")
KINDS: Final = ("png", "svg", "pdf")
OUT: Final = "OUT"  # Stands for the file in the command of a picture, which is the same wherever it is written

_TIME: Final = re.compile(
    r"(?:(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,6}):)?(?P<seconds>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})"
)

Range = tuple[float | None, float | None]  # First and last second; None: from the start, to the end


class PictureError(BadInput):
    """A picture that cannot be made, in one sentence."""


@dataclass(frozen=True)
class PictureRequest:
    """One picture."""

    views: tuple[str, ...] = ()  # Names of views and of their pages, in any order; none for those of `DESK`
    size: tuple[int, int] = SIZE  # Of the whole picture, in points
    scale: float = SCALE  # Pixels per point of a PNG
    theme: str = "dark"
    range_s: Range | None = None  # The stretch of the session that is shown
    at_s: float | None = None  # The cursor: only what was recorded by then is shown and counted
    select: tuple[str, ...] = ()  # Stretches of time, utterances, stages or groups of stages
    spectrogram: bool = False  # Whether one stands under the waveform of *Speech and words*

    def checked(self) -> PictureRequest:
        """Return itself if its names are known, and what is wanted of a view has that view; PictureError otherwise."""
        for name in self.views:
            if name not in PICTURES:
                known = ", ".join(PICTURES)
                raise PictureError(f"no view is called {one_line(name)!r}; the views are {known}.")
        if self.theme not in THEMES:
            raise PictureError(f"the theme of a picture is {' or '.join(THEMES)}, not {one_line(self.theme)!r}.")
        if self.spectrogram and WORDS not in self.ordered_views:
            raise PictureError(f"--spectrogram is of the view {WORDS}, which is not in the picture.")
        return self

    @property
    def ordered_views(self) -> tuple[str, ...]:
        return tuple(name for name in PICTURES if name in (self.views or DESK))

    @property
    def name(self) -> str:
        return "desk" if self.ordered_views == DESK else "-".join(self.ordered_views)

    def words(self, session: str, kind: str, out: str = OUT) -> list[str]:
        """The arguments of `asrscope` that make it: `session` as a file `out` of a kind."""
        views = () if self.name == "desk" else self.ordered_views
        options = [
            *(("--view", name) for name in views),
            ("--size", f"{self.size[0]}x{self.size[1]}"),
            *([("--scale", f"{self.scale:g}")] if kind == "png" else []),
            ("--theme", self.theme),
            *([] if self.range_s is None else [("--range", range_text(self.range_s))]),
            *([] if self.at_s is None else [("--at", seconds_text(self.at_s))]),
            *(("--select", what) for what in self.select),
        ]
        return ["export", session, f"--{kind}", out, *chain(*options), *["--spectrogram"] * self.spectrogram]

    def command(self, session: str, kind: str) -> str:
        return shlex.join(["asrscope", *self.words(session, kind)])


def _refused(option: str, what: str, text: str) -> PictureError:
    return PictureError(f"{option} must {what}, not {one_line(text)!r}.")


def read_size(text: str) -> tuple[int, int]:
    """Read ``1600x1000``; PictureError otherwise."""
    sides = re.fullmatch(r"([0-9]{1,9})[xX×]([0-9]{1,9})", text.strip())
    if sides is None:
        raise _refused("--size", f"be WIDTHxHEIGHT, for example {SIZE[0]}x{SIZE[1]}", text)
    return int(sides[1]), int(sides[2])


def read_scale(text: str) -> float:
    """Read a number of pixels per point; PictureError otherwise."""
    try:
        return float(text)
    except ValueError as error:
        raise _refused("--scale", "be a number of pixels per point, for example 2", text) from error


def read_seconds(text: str, option: str) -> float:
    """Read ``12.5`` or ``1:02.5``; PictureError otherwise."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise _refused(option, "be a time of the session, for example 12.5 or 1:02.5", text)
    hours, minutes = int(found["hours"] or 0), int(found["minutes"] or 0)
    return 3600.0 * hours + 60.0 * minutes + float(found["seconds"])


def read_range(text: str, option: str = "--range") -> Range:
    """Read ``10..20``, ``..20`` or ``10..``; PictureError otherwise."""
    first, dots, last = text.strip().partition("..")
    if not dots or not (first or last):
        raise _refused(option, "be FROM..TO in seconds, for example 10..20", text)
    ends = tuple(read_seconds(end, option) if end else None for end in (first, last))
    if ends[0] is not None and ends[1] is not None and not ends[0] < ends[1]:
        raise PictureError(f"{option} must end after it begins, unlike {one_line(text)!r}.")
    return ends[0], ends[1]


def is_range(text: str) -> bool:
    first, dots, last = text.strip().partition("..")
    return bool(dots) and all(not end or _TIME.fullmatch(end) for end in (first, last))


def range_text(ends: Sequence[float | None]) -> str:
    return "..".join("" if end is None else seconds_text(end) for end in ends)


def seconds_text(second: float) -> str:
    """Seconds with as many of two decimals as there are: a frame is 0.01 s."""
    if not math.isfinite(second):
        raise ValueError(f"no time of a session is {second!r}")
    return f"{second:.2f}".rstrip("0").rstrip(".")


MAX_NAMED = 12  # Names listed in a sentence about an unknown one
BOOKMARK = "bookmark:"  # Begins the note of a bookmark where it could be taken for something else


@dataclass(frozen=True)
class Extent:
    """Frames are run-global; a stretch is [first, last)."""

    first_frame: int
    last_frame: int  # Of what is shown
    cursor_frame: int  # End of what is drawn and counted
    end_frame: int  # Of the session
    selected: tuple[int, int] | None
    selection: str  # What was selected, in words
    stage: str | None  # The stage or group that is chosen in all views; None: the default of each

    @property
    def first_s(self) -> float:
        return self.first_frame * FRAME_S

    @property
    def last_s(self) -> float:
        return self.last_frame * FRAME_S

    @property
    def is_whole(self) -> bool:
        return (self.first_frame, self.last_frame) == (0, self.end_frame)


def extent_of(wanted: PictureRequest, snapshot: Snapshot) -> Extent:
    """Find the times and names of `wanted` in a session; PictureError for what is not there."""
    frames = int(snapshot.track.n_frames)
    first, last = _stretch(wanted.range_s or (None, None), frames, "--range")
    cursor = last
    if wanted.at_s is not None:
        cursor = round(wanted.at_s / FRAME_S)
        if cursor > frames:
            raise _outside(f"--at {seconds_text(wanted.at_s)}", frames)
        if wanted.range_s is not None and not first < cursor <= last:
            raise PictureError(f"--at {seconds_text(wanted.at_s)} is not within --range {range_text(wanted.range_s)}.")
    selected, stage, names = selected_of(wanted.select, snapshot.session, frames)
    if selected is not None and selected[0] >= cursor:
        raise PictureError(
            f"--select {names[-1]} begins after the cursor, which is at {seconds_text(cursor * FRAME_S)} s."
        )
    return Extent(first, last, cursor, frames, selected, ", ".join(names), stage)


def selected_of(select: Sequence[str], session: Session, frames: int) -> Selected:
    """What is selected in a session of `frames` frames, the last stretch and stage; PictureError if it is not there."""
    from app.model.report import Selected  # the window reads what pictures there are before it has been painted

    selected, stage = None, None
    for what in select:
        found = _selected(what, session, frames)
        if isinstance(found, str):
            stage = found
        else:
            selected = found
    return Selected(selected, stage, tuple(one_line(what) for what in select))


def _stretch(ends: Range, frames: int, option: str) -> tuple[int, int]:
    first = 0 if ends[0] is None else round(ends[0] / FRAME_S)
    last = frames if ends[1] is None else round(ends[1] / FRAME_S)
    if ends != (None, None) and not 0 <= first < last <= frames:
        raise _outside(f"{option} {range_text(ends)}", frames)
    return first, last


def _outside(what: str, frames: int) -> PictureError:
    return PictureError(f"{what} is not within the session, which is {seconds_text(frames * FRAME_S)} s long.")


def _selected(what: str, session: Session, frames: int) -> tuple[int, int] | str:
    """Frames of a stretch of time, of an utterance or of a bookmark, or the name of a stage or group."""
    if is_range(what):
        return _stretch(read_range(what, "--select"), frames, "--select")
    for utterance in session.utterances:
        if utterance.name == what:
            return utterance.first_frame, utterance.first_frame + utterance.n_frames
    from profiler.analysis.breakdown import BETWEEN
    from profiler.analysis.categories import OVERHEAD

    stages = [stage.name for stage in session.stages.values()]
    groups = {OVERHEAD, BETWEEN, *(stage.group for stage in session.stages.values())}
    if what in groups or what in stages:
        return what
    from app.model import bookmarks  # it loads Qt, which a report needs for nothing else
    from profiler.files.inputs import InputError

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
