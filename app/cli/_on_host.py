"""A run on another machine: started there over ssh, followed into a session here, reported like a run here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline
from app.model import report, report_lines
from pipelines.config import presets
from profiler.errors import BadInput

if TYPE_CHECKING:
    from profiler.remote.link import Host


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Add --on."""
    parser.add_argument(
        "--on",
        metavar="HOST",
        help="run on that machine, as ssh knows it; all files but --out are files there",
    )


def run(arguments: argparse.Namespace) -> int:
    """Start the run there, follow it to its end and report."""
    if arguments.no_profile or arguments.wait or arguments.partials is not None:
        raise BadInput("--no-profile, --wait and --partials work on this machine only; leave out --on.")
    if _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--audio - is read on this machine; with --on, name a file on the other one.")
    from profiler.files.paths import new_session_path
    from profiler.remote import link
    from profiler.session.files import check_claim

    host = link.ssh(arguments.on)
    name = Path(arguments.config).stem if arguments.config is not None else arguments.preset or presets.DEFAULT
    out = Path(arguments.out) if arguments.out is not None else new_session_path(name)
    # Before anything is started there.
    check_claim(out, replace=arguments.out is not None)
    if not out.absolute().parent.is_dir():
        raise BadInput(f"{out}: the folder {out.absolute().parent} does not exist; make it or choose another.")
    words = _words(arguments)
    return _follow(arguments, host, lambda: link.record(host, words).session, out, replace=arguments.out is not None)


def fetch(arguments: argparse.Namespace) -> int:
    """Follow a session there to its end and report."""
    if arguments.out is None:
        raise BadInput("--on HOST needs --out FILE.asrs, the session here.")
    from profiler.remote import link

    out = Path(arguments.out)
    host = link.ssh(arguments.on)
    return _follow(arguments, host, lambda: str(arguments.session), out, resume=out.exists())


def _follow(
    arguments: argparse.Namespace,
    host: Host,
    started: Callable[[], str],
    out: Path,
    *,
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
    with closing(Session.open(out)) as session:
        tree = report.report(session)
    _output.print_report(tree, arguments, report_lines.document)
    if not arguments.json:
        print(f"session: {out}")
    for problem in problems:
        _output.complain(problem)
    if problems or state in ("failed", "crashed"):
        return 2
    return stop.status if state == "stopped" else 0


def _words(arguments: argparse.Namespace) -> list[str]:
    """The arguments of `asrscope record`: what was given, as it was given."""
    words: list[str] = []
    for option in ("preset", "config", "transcripts"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option}={value}"]
    words += [f"--set={text}" for text in arguments.set]
    words += [f"--audio={name}" for name in arguments.audio]
    return [*words, f"--repeat={arguments.repeat}"]
