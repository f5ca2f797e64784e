"""Export of pictures and data from the window: begins with what is shown, asks for a file, passes the work on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.pictures.request import SIZE, WORDS, PictureRequest, range_text, seconds_text
from app.style.theme import theme
from app.views import PICTURES
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from pathlib import Path

    from app.model.playhead import Playhead
    from app.window.main_window import MainWindow
    from app.window.pictures.dialog import PictureDialog
    from profiler.export import Format

tr = partial(QCoreApplication.translate, "exporting")

VIEW_SIZE = (1000, 560)  # Points of a picture of one view, unless somebody chooses otherwise
PICTURE_KINDS = {"png": "PNG (*.png)", "svg": "SVG (*.svg)", "pdf": "PDF (*.pdf)"}


def open_picture(window: MainWindow, view_id: str | None = None) -> PictureDialog | None:
    from app.views.words import WordsView
    from app.window.pictures.dialog import PictureDialog

    session = window.playhead.session
    if session is None:
        return None
    desk = window.desk
    shown = (view_id,) if view_id else desk.docks.in_front()
    names = (desk.views[view].page or view for view in shown)
    views = tuple(name for name in names if name in PICTURES)
    words = desk.views[WORDS]
    begin = start(window.playhead, views, isinstance(words, WordsView) and words.with_spectrogram)
    ask = partial(ask_picture, window)
    dialog = PictureDialog(window.playhead.path or session.path, begin, ask, window)
    dialog.written.connect(window.notices.written)
    dialog.open()
    return dialog


def start(playhead: Playhead, views: tuple[str, ...], spectrogram: bool) -> PictureRequest:
    """What the window shows, as the picture of it."""
    axis, end_s = playhead.axis, playhead.n_frames * FRAME_S
    first, last = (round(min(max(second, 0.0), end_s), 2) for second in axis.visible)
    in_view = (first, last) if 0 <= first < last and (first, last) != (0.0, round(end_s, 2)) else None
    cursor_s = round(playhead.cursor_frame * FRAME_S, 2)
    whole = playhead.cursor_frame >= playhead.n_frames and not playhead.live
    if in_view is not None and not whole and not in_view[0] < cursor_s <= in_view[1]:
        in_view = None  # nothing of it is counted before the cursor
    shown, select = playhead.snapshot(), []
    if axis.selected is not None:
        select = [range_text(axis.selected)]
    elif axis.scope is not None and shown is not None and shown.desk.frames:
        # A picture has no other way to be of a scope that somebody chose.
        select = [range_text((shown.desk.scope.first * FRAME_S, shown.desk.scope.last * FRAME_S))]
    size = SIZE if len(views) != 1 else VIEW_SIZE
    return PictureRequest(
        views=views,
        size=size,
        theme=theme().name,
        range_s=in_view,
        at_s=None if whole else cursor_s,
        select=(*select, *([] if axis.stage is None else [axis.stage])),
        spectrogram=spectrogram,
    )


def file_name(session: Path, wanted: PictureRequest) -> str:
    """A name for the picture without suffix: session, views and what stretch of it."""
    parts = [session.stem, wanted.name]
    if wanted.range_s is not None:
        parts.append("-".join(seconds_text(end) for end in wanted.range_s if end is not None) + "s")
    elif wanted.at_s is not None:
        parts.append(f"at-{seconds_text(wanted.at_s)}s")
    return "-".join(parts)


def ask_picture(w: MainWindow, wanted: PictureRequest, form: str = "png") -> Path | None:
    """Ask for the file of a picture, in a format unless another suffix is typed."""
    session = w.playhead.path
    name = "picture" if session is None else file_name(session, wanted)
    kinds = ";;".join(sorted(PICTURE_KINDS.values(), key=lambda kind: kind != PICTURE_KINDS[form]))
    return w.files.ask_target(tr("Save the picture"), f"{name}.{form}", kinds)


def ask_data(w: MainWindow, form: Format) -> None:
    if (session := w.playhead.path) is None:
        return
    kinds = f"{form.kind} (*.{form.suffix.rpartition('.')[2]})"
    target = w.files.ask_target(tr("Export"), f"{session.stem}{form.suffix}", kinds)
    if target is not None:
        w.session_files.export(session, form.option, target)
