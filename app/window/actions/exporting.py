"""Export of pictures and data from the window: asks for a file and passes the work on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.style.theme import theme
from profiler.session.files import own_files

if TYPE_CHECKING:
    from app.model.playhead import Playhead
    from app.window.actions.files import Files
    from profiler.export import Writer

PICTURE_SCALE = 2.0
"""Pixels per point of a picture: sharp on paper and on dense screens."""

PICTURE_KINDS = "PNG (*.png);;SVG (*.svg);;PDF (*.pdf)"


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("exporting", text)


def ask_picture(files: Files, playhead: Playhead, widget: QWidget, name: str) -> None:
    """Ask for a file, then write a picture of ``widget`` as PNG, SVG or PDF."""
    title = tr("Picture of {0}").format(name)
    target = files.ask_target(title, ".png", PICTURE_KINDS)
    if target is not None:
        files.write(target, partial(write_picture, playhead, widget))


def write_picture(playhead: Playhead, widget: QWidget, target: Path) -> None:
    """Write a picture of ``widget`` as it is on the screen."""
    from app.pictures.provenance import provenance_of
    from app.pictures.writers import export

    session = playhead.session
    if session is not None:
        size = (widget.width(), widget.height())
        own = own_files(session.path)
        export(widget, target, size, PICTURE_SCALE, provenance_of(session), theme().name, own)


def ask_data(files: Files, playhead: Playhead, writer: Writer) -> None:
    """Ask for a file, then write the data of the session."""
    form = writer.FORMAT
    kinds = f"{form.kind} (*.{form.suffix.rpartition('.')[2]})"
    target = files.ask_target(tr("Export"), form.suffix, kinds)
    if target is not None:
        files.write(target, partial(write_data, playhead, writer))


def write_data(playhead: Playhead, writer: Writer, target: Path) -> None:
    """Write the current session with ``writer``."""
    if playhead.session is not None:
        writer.write(playhead.session, target)
