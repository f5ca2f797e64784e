"""Sessions in other programs' formats: one file per format, with its `FORMAT`.

Exports are one-way; a session is only ever opened again from its own file.
Nothing here computes figures of its own: tables come from `profiler.analysis`.
"""

import importlib
import os
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from profiler.files.outputs import writing

if TYPE_CHECKING:
    from profiler.session.reader import Session


@dataclass(frozen=True)
class Format:
    """How a format is offered on a command line and in a window."""

    name: str
    option: str  # Of the command line, without the dashes; it takes the file to write
    help: str  # What the option does
    title: str  # What is written, as a menu says it
    kind: str  # What files of this format are called
    suffix: str  # Of a file that nobody has named; its last part is that of all files of the kind
    mime: str
    place: int  # Among the others, from 1 on
    write: Callable[["Session", str | os.PathLike[str]], None]
    """Writes a session to a file; OutputError with one sentence. What takes long to load is imported there: all formats
    are loaded to be offered."""


def formats() -> list[Format]:
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names if name[0] != "_"]
    return sorted(found, key=lambda form: form.place)


def write_text(session: "Session", path: str | os.PathLike[str], fill: Callable[[TextIO], None]) -> None:
    """Let `fill` write what becomes the file `path`, never one of the session's own; OutputError."""
    from profiler.session.files import own_files

    with (
        writing(path, "the export", own_files(session.path)) as draft,
        # A file name that is no UTF-8 may stand in it.
        draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        fill(file)
