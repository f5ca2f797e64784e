"""Fetch a session from another machine, while it is recorded or later; there, send it.

    asrscope tail /data/run.asrs --on gpu --out run.asrs
    asrscope tail run.asrs > stream

With --on, FILE is a session on HOST, which `asrscope record` printed. Its rows are appended to --out, which every view
can show meanwhile; a file that an earlier command left is continued. Ctrl+C stops the run.

Without --on, the rows beyond --from POSITION go to standard output, until the session has ended; standard input takes
commands to the run. `asrscope run --on` and `asrscope tail --on` start this over ssh; docs/other-machines.md describes
the stream.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _on_host, _output
from profiler.errors import BadInput

if TYPE_CHECKING:
    from profiler.remote.send import Commands

LONGEST = 4096  # Bytes of a line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="FILE", help="a session file (.asrs); with --on, on that machine")
    parser.add_argument("--on", metavar="HOST", help="the machine, as ssh knows it")
    parser.add_argument("--out", metavar="FILE.asrs", help="with --on: the session file here")
    parser.add_argument("--from", metavar="POSITION", dest="position", default="{}", help="what the receiver has")
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send or fetch."""
    if arguments.on is not None:
        return _on_host.fetch(arguments)
    from profiler.remote.send import Commands, position_of, send

    if arguments.out is not None or arguments.json:
        raise BadInput("--out and --json go with --on HOST; without it the rows go to standard output.")
    position = position_of(arguments.position)
    if sys.stdout.isatty():
        raise BadInput("asrscope tail sends rows to a program, not to a terminal; asrscope show shows a session.")
    session = Path(arguments.session)
    commands = Commands(session.absolute())
    if not sys.stdin.isatty():
        # Not from the buffer: at the end of the program a thread that waits there would hold its lock.
        threading.Thread(target=_pass_on, args=(sys.stdin.fileno(), commands), daemon=True).start()
    output = sys.stdout.buffer

    def write(data: bytes) -> None:
        output.write(data)
        output.flush()

    send(session, position, write)
    return 0


def _pass_on(descriptor: int, commands: Commands) -> None:
    """Pass on the lines of an input that are commands to a run, until it ends."""
    line = b""
    with contextlib.suppress(OSError):
        while piece := os.read(descriptor, LONGEST):
            *lines, line = (line + piece).split(b"\n")
            line = line[-LONGEST:]
            for command in lines:
                commands.send(command)
