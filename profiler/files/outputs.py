"""Writes output files atomically, and never over anything but a plain file.

The draft is in the target's folder under an unpredictable name (`mkstemp` follows no link) and replaces the target when
complete. Links, devices and the files that the output is made from are refused. Pipes and ``-`` are written through.
"""

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from profiler.errors import BadInput
from profiler.plain import one_line

STANDARD_OUTPUT: Final = "-"

DESCRIPTORS: Final = ("/dev/fd", "/proc/self/fd")

READER_SECONDS: Final = 5.0  # How long a pipe may be without a program that reads from it


class OutputError(BadInput):
    """An output that cannot be written to the requested place."""


@contextmanager
def writing(
    target: str | os.PathLike[str], what: str, sources: Iterable[str | os.PathLike[str]] = ()
) -> Iterator[Path]:
    """Yield the path of a draft to write; when the block ends without an exception it becomes `target`.

    `what` names it in a sentence ("the picture"); `sources` are the files that it is made from. OutputError
    when it cannot be, an OSError of the block included; then the draft is gone and `target` is as it was.
    """
    name = os.fspath(target)
    shown = one_line(name)
    try:
        kind = _kind(name, shown, what, [os.fspath(source) for source in sources])
        draft = _draft(name, aside=kind != "file")
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise OutputError(f"{shown}: {what} cannot be written there: {_reason(error)}.") from error
    try:
        yield draft
        if kind == "file":
            draft.chmod(_mode(name))
            draft.replace(name)
        else:
            with draft.open("rb") as file, _stream(name, kind) as out:
                shutil.copyfileobj(file, out)
                out.flush()
    except BrokenPipeError as error:
        if kind == "stream":
            raise
        raise OutputError(f"{shown}: the program that read {what} from it has ended.") from error
    except OSError as error:
        raise OutputError(f"{shown}: {what} cannot be written there: {_reason(error)}.") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _kind(name: str, shown: str, what: str, sources: list[str]) -> str:
    """`stream`, `pipe` or `file`; OutputError for what must not be written over."""
    if name == STANDARD_OUTPUT:
        return "stream"
    if not name:
        raise OutputError(f"The name of the file for {what} is empty.")
    try:
        about = os.lstat(name)
        if stat.S_ISLNK(about.st_mode) and os.path.dirname(name) in DESCRIPTORS:
            about = os.stat(name)  # a shell's >(program): a pipe behind a link of the system's own
    except FileNotFoundError:
        return "file"
    if stat.S_ISFIFO(about.st_mode):
        return "pipe"
    if stat.S_ISDIR(about.st_mode):
        raise OutputError(f"{shown}: this is a folder; name a file in it for {what}.")
    if stat.S_ISLNK(about.st_mode):
        raise OutputError(
            f"{shown}: this is a symbolic link; name the file itself for {what}, "
            f"or {STANDARD_OUTPUT} for standard output."
        )
    if not stat.S_ISREG(about.st_mode):
        raise OutputError(
            f"{shown}: this is a device; name a file for {what}, or {STANDARD_OUTPUT} for standard output."
        )
    for source in sources:
        with contextlib.suppress(OSError):
            if os.path.samefile(source, name):
                raise OutputError(f"{shown}: this is the file that {what} is made from; choose another name.")
    return "file"


def _draft(name: str, aside: bool) -> Path:
    folder, base = os.path.split(os.path.abspath(name))
    handle, made = tempfile.mkstemp(
        prefix=".draft-", suffix=os.path.splitext(base)[1][:16], dir=None if aside else folder
    )
    os.close(handle)
    return Path(made)


def _mode(name: str) -> int:
    """Permissions: those of the file that is replaced, else what the user's mask leaves."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.lstat(name).st_mode) & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _stream(name: str, kind: str) -> Iterator[BinaryIO]:
    if kind == "stream":
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    # Opening a pipe that nobody reads from would wait for ever.
    until = time.monotonic() + READER_SECONDS
    while True:
        try:
            descriptor = os.open(name, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
            break
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > until:
                raise
            time.sleep(0.05)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as out:
        yield out


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return one_line(reason).lower().rstrip(".")
