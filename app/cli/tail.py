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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline
from app.model import report, report_lines
from pipelines.config import presets
from profiler.errors import BadInput

if TYPE_CHECKING:
    from profiler.remote.link import Host
    from profiler.remote.send import Commands


LONGEST = 4096  # Bytes of a line


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="FILE", help="a session file (.asrs); with --on, on that machine")
    parser.add_argument("--on", metavar="HOST", help="the machine, as ssh knows it")
    parser.add_argument("--out", metavar="FILE.asrs", help="with --on: the session file here")
    parser.add_argument("--from", metavar="POSITION", dest="position", default="{}", help="what the receiver has")
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send or fetch."""
    if arguments.on is not None:
        if arguments.out is None:
            raise BadInput("--on HOST needs --out FILE.asrs, the session here.")
        from profiler.remote import link

        out, host = Path(arguments.out), link.ssh(arguments.on)
        return _follow(arguments, host, lambda: str(arguments.session), out, resume=out.exists())
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
    send(session, position, lambda data: (output.write(data), output.flush()))
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


def run_there(arguments: argparse.Namespace) -> int:
    """Start the run there, follow it to its end and report."""
    if arguments.no_profile or arguments.wait or arguments.partials is not None:
        raise BadInput("--no-profile, --wait and --partials work on this machine only; leave out --on.")
    if _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--audio - is read on this machine; with --on, name a file on the other one.")
    from profiler.files.paths import new_session_path
    from profiler.remote import link

    host = link.ssh(arguments.on)
    name = Path(arguments.config).stem if arguments.config is not None else arguments.preset or presets.DEFAULT
    named = arguments.out is not None
    out = Path(arguments.out) if named else new_session_path(name)
    _pipeline.check_place(out, replace=named)  # before anything is started there
    given = ((option, getattr(arguments, option)) for option in ("preset", "config", "transcripts"))
    words = [f"--{option}={value}" for option, value in given if value is not None]
    words += [*(f"--set={text}" for text in arguments.set), *(f"--audio={name}" for name in arguments.audio)]
    words.append(f"--repeat={arguments.repeat}")
    return _follow(arguments, host, lambda: link.record(host, words).session, out, replace=named)


def _follow(
    arguments: argparse.Namespace,
    host: Host,
    started: Callable[[], str],
    out: Path,
    replace: bool = False,
    resume: bool = False,
) -> int:
    from profiler.process import signals
    from profiler.remote.link import Following, Steering
    from profiler.session.reader import Session

    problems: list[str] = []
    steering = Steering()
    with _output.Progress() as progress, signals.stopping(steering.stop) as stop:

        def hear(message: dict[str, object]) -> None:
            if message["event"] == "progress":
                fraction = message.get("fraction")
                progress(str(message.get("stage", "")), fraction if isinstance(fraction, float) else None)
            elif message["event"] == "error":
                problems.append(str(message.get("message", "")))

        progress(f"reaching {host.name}")
        following = Following(
            host, started(), out, replace=replace, resume=resume, steering=steering, message=hear, progress=progress
        )
        state = following.run()
    with Session.open(out) as session:
        tree = report.report(session)
    _output.print_report(tree, arguments, report_lines.document)
    if not arguments.json:
        print(f"session: {out}")
    return _pipeline.status(state, problems, stop)
