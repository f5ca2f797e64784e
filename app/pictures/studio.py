"""Pictures of one session, as many as wanted: the only way in which they are made, for window and command line.

Views and layout are made anew for each, so a picture depends on the session and on what is wanted, not on what was
drawn before or on any window.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QSize

from app.application import application, need_no_display
from app.model.playhead import Playhead, Snapshot
from app.model.time_axis import TimeAxis
from app.pictures.lab import sheet_of
from app.pictures.layout import laid_out, settle, themed
from app.pictures.place import Place, placed
from app.pictures.sheet import Sheet
from app.pictures.told import told
from app.pictures.wanted import Wanted
from app.pictures.writers import check_size, drawn, kind_of
from app.qt_messages import in_sentences
from app.views import VIEWS, create
from app.views.breakdown import BreakdownView
from app.views.roofline import RooflineView
from app.views.view import View
from pipelines.labs import record
from profiler.files.outputs import writing
from profiler.frames import FRAME_S
from profiler.session.files import own_files
from profiler.session.reader import Session


class Studio:
    """A session opened once; close it at the end.

    Raises:
        SessionError: the session cannot be read.
    """

    def __init__(self, session: str | os.PathLike[str]) -> None:
        need_no_display()
        # Held by a name: otherwise Qt's application would be garbage-collected at once.
        self._qt = application()
        self._path = Path(session)
        self._playhead = Playhead(TimeAxis())
        self._playhead.open(self._path)
        self._playhead.pause()

    def close(self) -> None:
        """Let go of the session."""
        self._playhead.close()
        self._qt.processEvents()

    def write(self, wanted: Wanted, out: str | os.PathLike[str]) -> None:
        """Write a picture; the suffix of `out` decides the kind.

        Raises:
            PictureError: what is wanted is not in the session, or no picture has it.
            OutputError: the file cannot be written.
        """
        target = Path(out)
        kind = kind_of(target)
        with writing(target, "the picture", own_files(self._path)) as draft:
            draft.write_bytes(self.draw(wanted, kind, target.name))

    def draw(
        self,
        wanted: Wanted,
        kind: str,
        name: str = "the picture",
        scale: float | None = None,
    ) -> bytes:
        """Return a picture as the file that `write` would write.

        `name` begins sentences about its size; `scale`: pixels per point of a preview instead of those wanted.
        """
        wanted = wanted.checked()
        check_size(name, kind, *wanted.size, wanted.scale)
        whole = self._playhead.snapshot()
        assert whole is not None
        if not wanted.views and (run := record.read(whole.session.meta)) is not None:
            return _lab(run, whole.session, wanted, kind, scale)
        place = placed(wanted, whole)
        with in_sentences(), themed(wanted.theme):
            views = [(view_id, *_view(view_id, place)) for view_id in wanted.shown]
            text = told(
                _snapshot(whole, place, _axis(place, place.figures_over)),
                place,
                wanted.command(self._path.name, kind),
            )
            size = QSize(*wanted.size)
            sheet = Sheet([view for _, view, _ in views], text.headline, text.caption, size)
            try:
                for _, view, axis in views:
                    view.update_snapshot(_snapshot(whole, place, axis))
                with laid_out(sheet, size):
                    return drawn(sheet, kind, scale or wanted.scale, text.origin, captioned=False)
            finally:
                sheet.deleteLater()
                settle()


def _lab(
    run: record.Record, session: Session, wanted: Wanted, kind: str, scale: float | None
) -> bytes:
    """The picture of a lab's run, which is its card and not the desk."""
    with in_sentences(), themed(wanted.theme):
        sheet, origin = sheet_of(run, session)
        try:
            with laid_out(sheet, QSize(*wanted.size)):
                return drawn(sheet, kind, scale or wanted.scale, origin, captioned=False)
        finally:
            sheet.deleteLater()
            settle()


def desk_picture(
    session: str | os.PathLike[str], out: str | os.PathLike[str], wanted: Wanted | None = None
) -> None:
    """Write one picture of a session, without a display; see `Studio`."""
    studio = Studio(session)
    try:
        studio.write(wanted or Wanted(), out)
    finally:
        studio.close()


def _view(name: str, place: Place) -> tuple[View, TimeAxis]:
    """A view and its axis: charts over time show the selection, what adds up does so over what figures count over."""
    over_time = VIEWS[name].column == "middle"
    axis = _axis(place, place.selected if over_time else place.figures_over)
    view = create(name, axis)
    if isinstance(view, BreakdownView):
        view.tree.choose(place.stage)
    elif isinstance(view, RooflineView):
        view.choose(place.stage)
    return view, axis


def _axis(place: Place, selected: tuple[int, int] | None) -> TimeAxis:
    axis = TimeAxis()
    axis.reset(place.end_s, fit=True)
    axis.set_data(place.cursor_frame * FRAME_S, place.end_s)
    if (place.first_frame, place.last_frame) != (0, place.end_frame):
        axis.set_visible(place.first_s, place.last_s)
    if selected is not None:
        axis.select(selected[0] * FRAME_S, selected[1] * FRAME_S)
    return axis


def _snapshot(whole: Snapshot, place: Place, axis: TimeAxis) -> Snapshot:
    return replace(whole, cursor_frame=place.cursor_frame, live=False, following=False, axis=axis)
