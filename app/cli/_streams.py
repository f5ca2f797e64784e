"""The standard streams of the command line: always open, able to take any text, and safe from control characters.

Stage names, settings and file names may be untrusted. All output goes through here: every non-printing character
and everything that the encoding of the terminal lacks is escaped. Output to a stream that was closed before the
start (`>&-`) is discarded.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, TextIO

from profiler.files.outputs import OutputError
from profiler.plain import printable

BROKEN_PIPE: Final = 128 + 13
"""Exit status for a broken pipe (SIGPIPE elsewhere): the reader has gone."""


class Shown(io.TextIOBase):
    """A text stream over `beneath`. If the reader has gone, text is discarded if `patient`; otherwise it raises."""

    def __init__(self, beneath: TextIO, patient: bool) -> None:
        self.beneath = beneath
        self._patient = patient
        self.failed = False
        if isinstance(beneath, io.TextIOWrapper):
            beneath.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write `text` with non-printing characters escaped; line ends and tabs stay."""
        with self._trying():
            self.beneath.write(printable(text, keep="\n\t"))
        return len(text)

    def flush(self) -> None:
        with self._trying():
            self.beneath.flush()

    @contextmanager
    def _trying(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as problem:
            self.failed = True
            if self._patient:
                return
            if isinstance(problem, BrokenPipeError) or not isinstance(problem, OSError):
                raise
            reason = (problem.strerror or str(problem)).lower()
            raise OutputError(f"Standard output cannot be written: {reason}.") from problem

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        with contextlib.suppress(ValueError):
            return self.beneath.isatty()
        return False

    def fileno(self) -> int:
        return self.beneath.fileno()

    def close(self) -> None:
        """Does nothing: the underlying stream belongs to the interpreter."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.beneath, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        """The underlying byte stream, for data that is not text."""
        return self.beneath.buffer


@contextmanager
def printable_output() -> Iterator[None]:
    """Standard output and error as above; restored at the end."""
    if isinstance(sys.stdout, Shown):  # a verb that calls another
        yield
        return
    _open_what_is_closed()
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        out = Shown(before[0] or nowhere, patient=False)
        errors = Shown(before[1] or nowhere, patient=True)
        sys.stdout, sys.stderr = out, errors
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                out.flush()
            errors.flush()
            # The interpreter would retry at its end, and complain.
            sys.stdout = None if out.failed else before[0]
            sys.stderr = None if errors.failed else before[1]


def beneath(stream: TextIO) -> TextIO:
    return stream.beneath if isinstance(stream, Shown) else stream


def holds(stream: TextIO, text: str) -> bool:
    """Whether the encoding of `stream` has every character of `text`."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _open_what_is_closed() -> None:
    # Else the next file that is opened, a session perhaps, would get the number that libraries print to.
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)
