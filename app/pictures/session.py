"""Pictures of one session, as many as wanted: the only way in which they are made, for window and command line.

Views and layout are made anew for each, so a picture depends on the session and on what is wanted, not on what was
drawn before or on any window.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.application import application, need_no_display
from app.model.playhead import Playhead, Snapshot
from app.model.scope import scope_of
from app.model.time_axis import TimeAxis
from app.pictures.drawings import lab_picture
from app.pictures.request import Extent, PictureRequest, extent_of
from app.pictures.texts import picture_texts
from app.pictures.view_picture import ViewPicture
from app.pictures.writers import Make, check_size, kind_of, picture
from app.views import create
from app.views.words import WordsView
from pipelines.labs import record
from profiler.clock import FRAME_S
from profiler.files.outputs import writing
from profiler.session.files import own_files


class SessionPictures:
    """A session opened once, SessionError if it cannot be read; close it at the end."""

    def __init__(self, session: str | os.PathLike[str]) -> None:
        need_no_display()
        # Held by a name: otherwise Qt's application would be garbage-collected at once.
        self._qt = application()
        self._path = Path(session)
        self._playhead = Playhead(TimeAxis())
        self._playhead.open(self._path)
        self._playhead.pause()

    def close(self) -> None:
        self._playhead.close()
        self._qt.processEvents()

    def write(self, wanted: PictureRequest, out: str | os.PathLike[str]) -> None:
        """Write a picture; the suffix of `out` decides the kind. PictureError for the request, OutputError."""
        target = Path(out)
        kind = kind_of(target)
        with writing(target, "the picture", own_files(self._path)) as draft:
            draft.write_bytes(self.draw(wanted, kind, target.name))

    def draw(self, wanted: PictureRequest, kind: str, name: str = "the picture", scale: float | None = None) -> bytes:
        """Return the file that `write` would write; `name` begins sentences about its size, `scale` is a preview's."""
        wanted = wanted.checked()
        check_size(name, kind, *wanted.size, wanted.scale)
        whole = self._playhead.snapshot()
        assert whole is not None
        run = None if wanted.views else record.read(whole.session.meta)
        # A lab's run has its card instead of the desk.
        make = partial(lab_picture, run, whole.session) if run else self._views(wanted, whole, kind)
        return picture(make, kind, wanted.size, scale=scale or wanted.scale, theme=wanted.theme, name=name)

    def _views(self, wanted: PictureRequest, whole: Snapshot, kind: str) -> Make:
        extent = extent_of(wanted, whole)

        def make() -> tuple[QWidget, Mapping[str, str]]:
            views = [create(view_id, _axis(extent)) for view_id in wanted.ordered_views]
            for view in views:
                if isinstance(view, WordsView):
                    view.set_spectrogram(wanted.spectrogram)
            snapshot = _snapshot(whole, extent)
            text = picture_texts(snapshot, extent, wanted.command(self._path.name, kind))
            shown = ViewPicture(views, text.headline, text.caption, wanted.size[0])
            for view in views:
                view.update_snapshot(replace(snapshot, axis=view.axis))
            return shown, text.origin

        return make


def _axis(extent: Extent) -> TimeAxis:
    axis = TimeAxis()
    end_s = extent.end_frame * FRAME_S
    axis.reset(end_s, fit=True)
    axis.set_data(extent.cursor_frame * FRAME_S, end_s)
    if not extent.is_whole:
        axis.set_visible(extent.first_s, extent.last_s)
    if extent.selected is not None:
        axis.select(extent.selected[0] * FRAME_S, extent.selected[1] * FRAME_S)
    axis.choose_stage(extent.stage)
    return axis


def _snapshot(whole: Snapshot, extent: Extent) -> Snapshot:
    """What is drawn: all views have the figures of one scope, the selection or the part of a session that is shown."""
    from app.model.desk_snapshot import desk_snapshot

    over = extent.selected
    if over is None and not extent.is_whole:
        over = extent.first_frame, min(extent.last_frame, extent.cursor_frame)
    scope = scope_of(whole.session, extent.cursor_frame, None, over)
    desk = desk_snapshot(whole.session, whole.track, scope)
    return replace(whole, cursor_frame=extent.cursor_frame, live=False, following=False, desk=desk)
