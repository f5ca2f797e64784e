"""Start a run that goes on by itself, and print where its session is.

    asrscope record --preset gmm --audio my.wav
    asrscope record --json
    asrscope tail FILE.asrs --on HOST

The command ends as soon as the session exists; the run goes on in a process of its own, also after a logout. The last
example, on another machine, fetches its session while it grows; `asrscope run --on HOST` does both at once. A SIGTERM
to the process stops the run and leaves a valid session. FILE.asrs.log holds its messages, FILE.asrs.control takes
commands.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline
from profiler.errors import BadInput
from profiler.plain import one_line

if TYPE_CHECKING:
    from pipelines.run.request import Request
    from profiler.remote.send import Log

POLL_S = 0.05
PIPE_BYTES = 1 << 16  # What a pipe holds without a reader


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser)
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    parser.add_argument("--protocol", help=argparse.SUPPRESS)  # that of `asrscope run --on`
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> None:
    """Start the run and report."""
    from profiler.machine.describe import own_version
    from profiler.remote.wire import AS_HERE

    if arguments.protocol not in (None, AS_HERE):
        raise BadInput(
            f"asrscope {own_version()} there has protocol {AS_HERE}, this one {one_line(arguments.protocol)}; "
            "install the same asrscope on both machines."
        )
    chosen = _pipeline.preset(arguments)
    if not hasattr(os, "mkfifo"):
        raise BadInput("asrscope record needs named pipes, which this system lacks; asrscope run records here.")
    if _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--audio - ends with this command, and the run goes on; name a file.")
    request = _pipeline.request(arguments, chosen, chosen.name)
    assert request.out is not None
    session = request.out.absolute()
    process = start(request, session)
    if arguments.json:
        _output.print_json({"schema": 1, "session": str(session), "pid": process.pid})
    else:
        print(_output.page([f"session: {session}", f"process: {process.pid}"]))


def start(request: Request, session: Path) -> subprocess.Popen[bytes]:
    """Start the worker that records `session`, and wait until the file exists. BadInput says why it does not."""
    from pipelines.config import to_dict
    from profiler.process import children
    from profiler.remote.send import Log, control_of, log_of

    _pipeline.check_place(session, replace=False)
    command = {
        "do": "start",
        "config": to_dict(request.config),
        "preset": request.preset,
        "audio": request.audio,
        "transcripts": request.transcripts,
        "out": str(session),
        "repeat": request.repeat,
    }
    line = json.dumps(command).encode("ascii") + b"\n"
    if len(line) > PIPE_BYTES:
        raise BadInput("--audio names too many files for a run that goes on by itself; name their folder.")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
    control = control_of(session)
    os.mkfifo(control, 0o600)
    pipe = os.open(control, os.O_RDWR)
    try:
        os.write(pipe, line)
        with open(os.open(log_of(session), flags, 0o600), "wb") as log:
            process = subprocess.Popen(
                children.python("-m", "pipelines.worker", str(control)),
                stdin=pipe,
                stdout=log,
                stderr=log,
                env=children.environment(),
                start_new_session=True,
            )
        try:
            _wait(process, Log(session))
        except BaseException:
            process.terminate()
            process.wait()
            log_of(session).unlink(missing_ok=True)
            raise
        process.returncode = 0  # Nobody waits for its end: it outlives this command
        return process
    except BaseException:
        control.unlink(missing_ok=True)
        raise
    finally:
        os.close(pipe)


def _wait(process: subprocess.Popen[bytes], log: Log) -> None:
    """Wait for the message that the session exists; BadInput with the sentence of one that says why it does not."""
    last = ""
    while True:
        ended = process.poll() is not None
        for _, last in log.lines():
            try:
                message = json.loads(last)
            except ValueError:
                continue
            if message.get("event") == "running":
                return
            if message.get("event") == "error":
                raise BadInput(str(message.get("message")))
        if ended:
            raise BadInput(f"The run ended before it began: {last or 'it gave no reason'}.")
        time.sleep(POLL_S)
