"""Sessions in other programs' formats: one file per format, with its `FORMAT` and `write(session, path)`.

Exports are one-way; a session is only ever opened again from its own file.
Nothing here computes figures of its own: tables come from `profiler.analysis`.
"""

import importlib
import os
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from profiler.files.outputs import writing

if TYPE_CHECKING:
    from profiler.session.reader import Session


@dataclass(frozen=True)
class Format:
    """How a format is offered on a command line and in a window."""

    name: str
    option: str
    """Of the command line, without the dashes; it takes the file to write."""
    help: str
    """What the option does."""
    title: str
    """What is written, as a menu says it."""
    kind: str
    """What files of this format are called."""
    suffix: str
    """Of a file that nobody has named; its last part is that of all files of the kind."""
    mime: str
    place: int
    """Among the others, from 1 on."""


class Writer(Protocol):
    """A module of this folder.

    All of them are loaded to be offered, also where nothing is written: what takes long to load is imported by `write`.
    """

    FORMAT: Format

    @staticmethod
    def write(session: "Session", path: str | os.PathLike[str]) -> None:
        """Write `session` to `path`; OutputError with one sentence."""


def writers() -> list[Writer]:
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(f"{__name__}.{name}") for name in names if name[0] != "_"]
    return sorted(cast("list[Writer]", found), key=lambda writer: writer.FORMAT.place)


def write_text(session: "Session", path: str | os.PathLike[str], fill: Callable[[TextIO], None]) -> None:
    """Let `fill` write what becomes the file `path`, never one of the session's own; OutputError."""
    from profiler.session.files import own_files

    with (
        writing(path, "the export", own_files(session.path)) as draft,
        # A file name that is no UTF-8 may stand in it.
        draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        fill(file)
