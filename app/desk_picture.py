"""Pictures of a session, without a display: the whole desk, or one view of it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from app.application import application, need_no_display
from app.model.playhead import Playhead
from app.model.recent import Memory
from app.model.time_axis import TimeAxis
from app.pictures.layout import PictureError, settle, themed
from app.pictures.provenance import provenance_of
from app.pictures.writers import export
from app.style.theme import THEMES
from app.views import VIEWS, create
from app.window.main_window import MainWindow
from profiler.session.files import own_files

DESK_SIZE = (1600, 1000)


def desk_picture(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    view: str | None = None,
    size: tuple[int, int] = DESK_SIZE,
    theme: str = "dark",
    scale: float = 2.0,
) -> None:
    """Write a picture of a session, without a display: the whole desk, or one view of it.

    Args:
        session_path: session file.
        out: .png, .svg or .pdf.
        view: name of a view; None for the whole desk.
        size: width and height in points without the caption line.
        theme: "dark" or "light".
        scale: pixels per point of a PNG.

    Raises:
        PictureError: unknown view, theme or suffix, impossible size.
        OutputError: the file cannot be written.
        SessionError: the session cannot be read.
    """

    if view is not None and view not in VIEWS:
        raise PictureError(f"no view is called {view!r}; the views are {', '.join(VIEWS)}.")
    if theme not in THEMES:
        raise PictureError(f"the theme of a picture is {' or '.join(THEMES)}, not {theme!r}.")
    need_no_display()

    # Held by a name: otherwise Qt's application would be garbage-collected at once.
    qt = application()
    with _quiet(), themed(theme):
        if view is None:
            _whole_desk(session_path, out, size, scale)
        else:
            _one_view(session_path, out, view, size, scale)
        qt.processEvents()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the message that the offscreen platform prints on every resize off stderr."""

    def tell(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if "propagateSizeHints" in text:
            return
        if before is not None:
            before(kind, context, text)
        else:
            sys.stderr.write(f"{text}\n")

    before = qInstallMessageHandler(tell)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def _one_view(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    view_id: str,
    size: tuple[int, int],
    scale: float,
) -> None:

    axis = TimeAxis()
    playhead = Playhead(axis)
    view = create(view_id, axis)
    playhead.changed.connect(view.update_snapshot)
    try:
        playhead.open(Path(session_path))
        playhead.pause()
        assert playhead.session is not None
        origin = provenance_of(playhead.session)
        export(view, out, size, scale, origin, sources=own_files(session_path))
    finally:
        playhead.close()
        view.deleteLater()
        settle()


def _whole_desk(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    size: tuple[int, int],
    scale: float,
) -> None:
    """The content of the main window, with settings that are not saved."""

    with tempfile.TemporaryDirectory() as folder:
        window = MainWindow(memory=Memory(Path(folder) / "settings.ini"))
        try:
            window.playhead.open(Path(session_path))
            window.playhead.pause()
            window.show_desk()
            window.menuBar().hide()
            assert window.playhead.session is not None
            origin = provenance_of(window.playhead.session)
            inside = window.takeCentralWidget()
            assert inside is not None
            export(inside, out, size, scale, origin, sources=own_files(session_path))
            window.setCentralWidget(inside)
        finally:
            window.close()
            window.deleteLater()
            settle()
