"""List the labs, or run one: each tries a claim about the cost of recognition on this machine.

    asrscope lab
    asrscope lab matrix-orders
    asrscope lab matrix-orders --set n=512 --out orders.asrs --json
    asrscope lab --all --json
    asrscope lab --all --sessions build/labs --docs docs

Every run is a session with the figures and the verdict: holds here, holds in part, does not hold here, undecided,
cannot be tried here. `asrscope export FILE.asrs --png F` draws it. Use the machine for nothing else meanwhile. Ctrl+C
stops it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from app.cli import _output
from pipelines.config import value_text
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process import children

if TYPE_CHECKING:
    from pipelines.labs.record import Record
    from pipelines.labs.running import Outcome


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("name", metavar="NAME", nargs="?", help="which lab (none: list them)")
    which.add_argument("--all", action="store_true", help="run all of them, one after the other")
    help = "change one parameter; can be repeated (`asrscope lab NAME --parameters` lists them)"
    _output.repeatable(parser, "--set", "key=value", help)
    parser.add_argument("--parameters", action="store_true", help="list the parameters of the lab and end")
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    parser.add_argument("--sessions", metavar="FOLDER", help="--all: where the sessions go, as NAME.asrs")
    parser.add_argument(
        "--docs",
        metavar="FOLDER",
        help="write a page about all labs there (lab.md, with pictures in lab/); without --all, of --sessions",
    )
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[])
    parser.add_argument("--transcripts", metavar="FILE")
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, or run and report."""
    one = arguments.name is not None
    if not one and (arguments.set or arguments.out or arguments.parameters):
        raise BadInput("--set, --out and --parameters are for one lab: asrscope lab NAME --set key=value.")
    if (arguments.sessions or arguments.docs) and one:
        raise BadInput("--sessions and --docs are for all labs: asrscope lab --all --docs FOLDER.")
    if arguments.docs and not arguments.sessions:
        raise BadInput("--docs is made of the sessions in a folder; name it with --sessions FOLDER.")
    if not one and not arguments.all:
        return _docs(arguments) if arguments.docs else _list(arguments.json)
    if arguments.parameters:
        return _parameters(arguments.name, arguments.json)
    if one:
        return _run(arguments)
    status = _run_all(arguments)
    return _docs(arguments) or status if arguments.docs else status


def _docs(arguments: argparse.Namespace) -> int:
    """The page of the docs, of the sessions that are there."""
    from app.pictures.lab_page import write_page
    from pipelines import labs

    folder = Path(arguments.sessions)
    found = [path for name in labs.every() if (path := folder / f"{name}.asrs").exists()]
    if not found:
        raise BadInput(f"{folder} holds no session of a lab; run `asrscope lab --all` first.")
    command = f"asrscope lab --all --sessions {arguments.sessions} --docs {arguments.docs}"
    page = write_page(found, Path(arguments.docs), command)
    if not arguments.json:
        print(page)
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from pipelines import labs
    from pipelines.labs.record import Record
    from pipelines.labs.running import Request, assignments_of, execute
    from profiler.files.paths import new_session_path
    from profiler.process import signals

    name = arguments.name
    lab = labs.load(name)
    assignments = assignments_of(lab.parameters, arguments.set)
    out = Path(arguments.out) if arguments.out else new_session_path(f"lab-{name}")
    request = Request(
        name, assignments, out, tuple(arguments.audio), arguments.transcripts, replace=bool(arguments.out)
    )
    asked = threading.Event()
    with _output.Progress() as progress, signals.stopping(asked.set) as stop:
        outcome = execute(request, progress, asked.is_set)
    made = Record(name, lab, lab.parameters, outcome.measured, outcome.finding)
    if arguments.json:
        _output.print_json({"schema": 1, "labs": [_row(made, outcome)]})
    else:
        print(_as_text(made, outcome))
    if outcome.problem:
        _output.complain(outcome.problem)
        return 2
    return stop.status if outcome.state == "stopped" else 0


def _run_all(arguments: argparse.Namespace) -> int:
    """Every lab in a process of its own; one that fails is named, and the others go on."""
    from pipelines import labs
    from profiler.process import signals

    asked = threading.Event()
    rows: list[dict[str, object]] = []
    status = 0
    known = labs.every()
    if arguments.sessions:
        Path(arguments.sessions).mkdir(parents=True, exist_ok=True)
    with signals.stopping(asked.set) as stop:
        for number, name in enumerate(known, start=1):
            words = [name, *(word for path in arguments.audio for word in ("--audio", path))]
            if arguments.transcripts:
                words += ["--transcripts", arguments.transcripts]
            if arguments.sessions:
                words += ["--out", str(Path(arguments.sessions) / f"{name}.asrs")]
            with _output.Progress() as progress:
                which = f"{name} ({number} of {len(known)})"
                progress(which)
                ended = in_a_process(
                    words,
                    lambda what, p=progress, w=which: p(f"{w}: {what}"),  # type: ignore[misc]
                    asked.is_set,
                )
            row = ended.row or {"name": name, "verdict": None, "why": ended.said, "session": None}
            rows.append(row)
            if not arguments.json:
                print(_output.page([f"{name}: {row['verdict'] or 'no verdict'}. {row['why']}"]))
            if asked.is_set():
                status = stop.status
                break
            if ended.status:
                _output.complain(f"{name}: {ended.said}")
                status = 2
    if arguments.json:
        _output.print_json({"schema": 1, "labs": rows})
    return status


def _row(run: Record, outcome: Outcome) -> dict[str, object]:
    """One lab of the JSON."""
    from pipelines.labs import record

    return record.row(run) | {
        "why": run.finding.why if run.finding else outcome.problem,
        "state": outcome.state,
        "session": None if outcome.session is None else str(outcome.session),
    }


def _as_text(run: Record, outcome: Outcome) -> str:
    from pipelines.labs import record

    ended = [] if run.finding is not None else [f"  {outcome.state}"]
    return _output.page([*record.lines(run), *ended, f"  session: {outcome.session}"])


def _list(as_json: bool) -> int:
    from pipelines import labs
    from pipelines.labs.declaration import GROUPS

    known = labs.every()
    if as_json:
        rows = [
            {
                "name": name,
                "claim": lab.claim,
                "source": lab.source,
                "group": lab.group,
                "measured": lab.measured,
                "bound": lab.bound,
            }
            for name, lab in known.items()
        ]
        _output.print_json({"schema": 1, "labs": rows})
        return 0
    wide = max((len(name) for name in known), default=0)
    group = ""
    for name, lab in known.items():
        if lab.group != group:
            group = lab.group
            print(f"\n{GROUPS[lab.group]}")
        print(f"{name:{wide}} {lab.cited}")
    return 0


def _parameters(name: str, as_json: bool) -> int:
    from pipelines import labs
    from pipelines.config.options import options_of

    options = options_of(type(labs.load(name).parameters))
    if as_json:
        rows = [
            {
                "key": option.key,
                "title": option.title,
                "help": option.help,
                "type": option.type,
                "default": option.default,
                "choices": list(option.choices),
                "minimum": option.minimum,
                "maximum": option.maximum,
                "unit": option.unit or None,
            }
            for option in options
        ]
        _output.print_json({"schema": 1, "parameters": rows})
        return 0
    for option in options:
        unit = f" {option.unit}" if option.unit else ""
        print(f"{option.key}={value_text(option.default)}{unit}: {option.help}")
    return 0


POLL_S = 0.1
LINES_KEPT = 31
"""Of standard error: the last one, or those of a stack, say why it ended."""
PATIENCE_S = 60.0
"""Seconds that a stopping lab may take to close its session."""


@dataclass
class Ended:
    """What came of it: its row of the JSON, if it gave one; its exit status; its last words."""

    row: dict[str, object] | None
    status: int
    said: str = ""


def in_a_process(words: Sequence[str], progress: Callable[[str], object], stopping: Callable[[], bool]) -> Ended:
    """Run `asrscope lab` with these words and --json; ends the child when `stopping`."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        child = subprocess.Popen(
            children.python("-m", "app.cli.main", "lab", *words, "--json"),
            env=children.environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl+C reaches us alone, who pass it on: the second one would end it at once
        )
        assert child.stderr is not None
        last: deque[str] = deque(maxlen=LINES_KEPT)
        follower = threading.Thread(target=_follow, args=(child.stderr, last, progress))
        follower.start()
        try:
            _wait(child, stopping)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            follower.join()
            child.stderr.close()
        printed.seek(0)
        return Ended(_row_of(printed.read()), child.returncode, _last_sentence(list(last), child.returncode))


def _follow(stream: IO[str], last: deque[str], progress: Callable[[str], object]) -> None:
    """Pass on the lines of standard error, and keep the last of them."""
    for line in stream:
        if line.strip():
            last.append(line)
            progress(one_line(line.strip()))


def _wait(child: subprocess.Popen[str], stopping: Callable[[], bool]) -> None:
    asked = False
    while True:
        try:
            child.wait(PATIENCE_S if asked else POLL_S)
            return
        except subprocess.TimeoutExpired:
            if asked:
                return
            if stopping():
                asked = True
                child.terminate()


def _row_of(text: str) -> dict[str, object] | None:
    try:
        rows = json.loads(text)["labs"]
        return dict(rows[0]) if rows else None
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _last_sentence(lines: Sequence[str], status: int) -> str:
    """The last sentence of the command, without the name of the program."""
    last = one_line(lines[-1].strip(), 600) if lines else ""
    if last.startswith("asrscope: "):
        return last.removeprefix("asrscope: ")
    return "" if status == 0 else f"{children.last_words(''.join(lines), status)}."
