"""Writing an export of a session as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from profiler.files.outputs import writing

if TYPE_CHECKING:
    from profiler.session.reader import Session


def write_text(
    session: Session, path: str | os.PathLike[str], fill: Callable[[TextIO], None]
) -> None:
    """Let `fill` write what becomes the file `path`, never one of the session's own; OutputError."""
    from profiler.session.files import own_files

    with (
        writing(path, "the export", own_files(session.path)) as draft,
        # A file name that is no UTF-8 may stand in it.
        draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        fill(file)
