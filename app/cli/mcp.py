"""Serve session files to an assistant that speaks the Model Context Protocol, over standard input and output.

asrscope mcp
asrscope mcp recordings/ more/

Only sessions (.asrs) in the folders named are served, those of the window without any. They are read, never changed,
and nothing goes over a network. Tools: sessions, report, compare, predict, words. Needs the extra `mcp`.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import re
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from app.model.report import Tree, fields  # the server reads the annotations of its tools
from profiler.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import WriteableBuffer
    from mcp.server.mcpserver import MCPServer

P = ParamSpec("P")
R = TypeVar("R")

SUFFIX: Final = ".asrs"
LONGEST_NAME: Final = 4096  # Characters; no path is longer
LONGEST_MESSAGE: Final = 1 << 20  # Bytes of a message to the server; a larger one is answered, but not read
_TAIL: Final = 200
_ID: Final = re.compile(rb'"id"\s*:\s*(-?[0-9]{1,18}|"[\w-]{1,100}")')
WORDS: Final = 50  # Default number of words that `words` returns


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", metavar="FOLDER", nargs="*", help="folders with sessions")


def run(arguments: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    from profiler.files.paths import sessions_dir

    folders = [Path(name) for name in arguments.folders] or [sessions_dir()]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder.")
    serves = server(folders)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Messages(sys.stdin.fileno())), "utf-8", "replace")
    serves.run("stdio")


class _Messages(io.RawIOBase):
    """The lines of standard input; in place of one that is too long comes a call of no tool, which is answered."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._line, self._tail, self._ready = bytearray(), b"", bytearray()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what fits into `buffer`; 0 at the end."""
        while not self._ready and (piece := os.read(self._descriptor, 1 << 16)):
            for part in piece.splitlines(keepends=True):
                self._line += part[: LONGEST_MESSAGE + 1 - len(self._line)]
                self._tail = (self._tail + part)[-_TAIL:]
                if part.endswith(b"\n"):
                    self._ready += self._line if len(self._line) <= LONGEST_MESSAGE else self._refused()
                    self._line.clear()
        view = memoryview(buffer)
        view[: len(self._ready)] = self._ready[: len(view)]
        given = min(len(view), len(self._ready))
        del self._ready[:given]
        return given

    def _refused(self) -> bytes:
        found = _ID.search(self._tail) or _ID.search(self._line, 0, _TAIL)
        name = f"none, since a message of more than {LONGEST_MESSAGE:,} bytes is not read".encode()
        call = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"%b","arguments":{}}}\n'
        return call % (found[1], name) if found else b"\n"


def server(folders: Sequence[Path]) -> MCPServer[None]:
    """The server of the sessions directly in some folders."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise BadInput("asrscope mcp needs the extra mcp: pip install 'asrscope[mcp]'.") from error
    from app import api
    from app.cli import compare as verb
    from app.cli._output import finite
    from app.export.markdown import slowest_words
    from profiler.files.inputs import regular
    from profiler.plain import one_line
    from profiler.session.errors import SessionError

    serves = MCPServer[None]("asrscope", instructions=__doc__, log_level="ERROR")
    roots = [folder.resolve() for folder in folders]

    def served(path: Path) -> bool:
        """Whether a file is a session that lies directly in one of the folders, not behind a link to elsewhere."""
        try:
            there = Path(os.path.realpath(path))
        except ValueError:  # no path at all: a NUL, or what is no text
            return False
        return there.suffix == SUFFIX and there.parent in roots and regular(there)

    def opened(name: str) -> api.Recording:
        fits = len(name) <= LONGEST_NAME
        path = next((path for root in roots if fits and served(path := root / name)), None)
        if path is None:
            raise BadInput(f"{one_line(name)} is no session in {', '.join(map(str, roots))}.")
        return api.open_session(os.path.realpath(path))

    def tool(function: Callable[P, R]) -> Callable[P, R]:
        """Offer a function; what is wrong with its arguments is the answer, not a fault of the server."""

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except (BadInput, SessionError, OSError) as error:
                raise ToolError(str(error)) from error

        serves.tool()(guarded)
        return guarded

    @tool
    def sessions() -> list[Tree]:
        """List the sessions, the newest first: name, folder, bytes and when each was last written (seconds)."""
        known = []
        for path in (path for root in roots for path in root.glob(f"*{SUFFIX}") if served(path)):
            with suppress(OSError):  # removed meanwhile
                known.append((path, path.stat()))
        return [
            {"name": path.name, "folder": str(path.parent), "bytes": about.st_size, "written_s": about.st_mtime}
            for path, about in sorted(known, key=lambda row: -row[1].st_mtime)
        ]

    @tool
    def report(session: str) -> Tree:
        """Where the time of a session went: RTF, word errors, categories, stages with verdicts, percentiles, slowest
        frames and words, settings and machine. Lists that are cut say of how many."""
        with opened(session) as recording:
            return finite(recording.report())

    @tool
    def compare(a: str, b: str | None = None) -> Tree:
        """Compare two sessions, or the arms of one A/B session: time of B / time of A with interval and verdict for
        each stage, word errors, what differs, and warnings."""
        with ExitStack() as stack:
            both = [stack.enter_context(opened(name)).session for name in (a, b) if name is not None]
            return finite(verb.report(*both))

    @tool
    def predict(session: str, factors: dict[str, float]) -> Tree:
        """Predict the RTF of a session with the time of stages or groups multiplied: {"scoring": 0.5}; 0 is free."""
        with opened(session) as recording:
            return finite(fields(recording.predict(factors), "rtf", "predicted_rtf", "assumptions"))

    @tool
    def words(session: str, longest: int = WORDS) -> Tree:
        """The recognised words that took longest: ms, RTF, tokens per frame, what became of each (same, substituted,
        inserted; null without a reference) and its reference."""
        if longest < 0:
            raise BadInput(f"longest must be a number of words from 0, not {longest}.")
        with opened(session) as recording:
            return finite(slowest_words(recording.words(), longest))

    return serves
