"""Serve session files to an assistant that speaks the Model Context Protocol, over standard input and output.

asrscope mcp
asrscope mcp recordings/ more/

Only sessions (.asrs) in the folders named are served, those of the window without any. They are read, never changed,
and nothing goes over a network. Tools: sessions, report, compare, predict, words. Needs the extra `mcp`.
"""

from __future__ import annotations

import argparse
import functools
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from app.model.report import Tree  # the server reads the annotations of its tools
from profiler.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server.mcpserver import MCPServer

P = ParamSpec("P")
R = TypeVar("R")

SUFFIX: Final = ".asrs"
WORDS: Final = 50
"""Default number of words that `words` returns."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("folders", metavar="FOLDER", nargs="*", help="folders with sessions")


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from profiler.files.paths import sessions_dir

    folders = [Path(name) for name in arguments.folders] or [sessions_dir()]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder.")
    server(folders).run("stdio")
    return 0


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
    from app.export.details import slowest_words
    from profiler.session.errors import SessionError

    serves = MCPServer[None]("asrscope", instructions=__doc__, log_level="ERROR")
    roots = [folder.resolve() for folder in folders]

    def opened(name: str) -> api.Recording:
        found = next((path for root in roots if (path := root / name).is_file()), Path(name))
        path = found.resolve()
        if path.suffix != SUFFIX or path.parent not in roots or not path.is_file():
            raise BadInput(f"{name} is no session in {', '.join(map(str, roots))}.")
        return api.open_session(path)

    def tool(function: Callable[P, R]) -> Callable[P, R]:
        """Offer a function; what is wrong with its arguments is the answer, not a fault of the server."""

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except (BadInput, SessionError) as error:
                raise ToolError(str(error)) from error

        serves.tool()(guarded)
        return guarded

    @tool
    def sessions() -> list[Tree]:
        """List the sessions, the newest first: name, folder, bytes and when each was last written (seconds)."""
        files = [path for root in roots for path in root.glob(f"*{SUFFIX}")]
        known = [(path, path.stat()) for path in files]
        return [
            {
                "name": path.name,
                "folder": str(path.parent),
                "bytes": about.st_size,
                "written_s": about.st_mtime,
            }
            for path, about in sorted(known, key=lambda row: -row[1].st_mtime)
        ]

    @tool
    def report(session: str) -> Tree:
        """Where the time of a session went: RTF, word errors, categories, stages with verdicts, percentiles, slowest
        frames and words, settings and machine. Lists that are cut say of how many."""
        with closing(opened(session)) as recording:
            return finite(recording.report())

    @tool
    def compare(a: str, b: str | None = None) -> Tree:
        """Compare two sessions, or the arms of one A/B session: time of B / time of A with interval and verdict for
        each stage, word errors, what differs, and warnings."""
        with closing(opened(a)) as first:
            if b is None:
                return finite(verb.report(first.session))
            with closing(opened(b)) as second:
                return finite(verb.report(first.session, second.session))

    @tool
    def predict(session: str, factors: dict[str, float]) -> Tree:
        """Predict the RTF of a session with the time of stages or groups multiplied: {"scoring": 0.5}; 0 is free."""
        with closing(opened(session)) as recording:
            found = recording.predict(factors)
            return finite(
                {
                    "rtf": found.rtf,
                    "predicted_rtf": found.predicted_rtf,
                    "assumptions": list(found.assumptions),
                }
            )

    @tool
    def words(session: str, longest: int = WORDS) -> Tree:
        """The recognised words that took longest: ms, RTF, tokens per frame, what became of each (same, substituted,
        inserted; null without a reference) and its reference."""
        with closing(opened(session)) as recording:
            return finite(slowest_words(recording.words(), longest))

    return serves
