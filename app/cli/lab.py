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

import argparse
import json
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from app.cli import _output, _pipeline
from app.model.report import fields
from pipelines.config import value_text
from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process import children


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("name", metavar="NAME", nargs="?", help="which lab (none: list them)")
    which.add_argument("--all", action="store_true", help="run all of them, one after the other")
    help = "change one parameter; can be repeated (`asrscope lab NAME --parameters` lists them)"
    _output.repeatable(parser, "--set", "key=value", help)
    parser.add_argument("--parameters", action="store_true", help="list the parameters of the lab and end")
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    parser.add_argument("--sessions", metavar="FOLDER", help="--all: where the sessions go, as NAME.asrs")
    help = "write a page about all labs there (lab.md, with pictures in lab/); without --all, of --sessions"
    parser.add_argument("--docs", metavar="FOLDER", help=help)
    _output.speech_flags(parser)
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
    status = 0
    if arguments.parameters:
        _parameters(arguments.name, arguments.json)
    elif one:
        status = _run(arguments)
    elif arguments.all:
        status = _run_all(arguments)
    elif not arguments.docs:
        _list(arguments.json)
    if arguments.docs:
        _docs(arguments)
    return status


def _docs(arguments: argparse.Namespace) -> None:
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


def _run(arguments: argparse.Namespace) -> int:
    from pipelines import labs
    from pipelines.labs import record
    from pipelines.labs.running import Request, assignments_of, execute
    from profiler.files.paths import new_session_path
    from profiler.process import signals

    name = arguments.name
    lab = labs.load(name)
    assignments = assignments_of(lab.parameters, arguments.set)
    out = Path(arguments.out) if arguments.out else new_session_path(f"lab-{name}")
    replace = bool(arguments.out)
    request = Request(name, assignments, out, tuple(arguments.audio), arguments.transcripts, replace)
    with _output.Progress() as progress, signals.stopping() as stop:
        outcome = execute(request, progress, stop.requested)
    made = record.Record(name, lab, lab.parameters, outcome.measured, outcome.finding)
    if arguments.json:
        why = made.finding.why if made.finding else outcome.problem
        row = record.row(made) | {"why": why, "state": outcome.state, "session": str(outcome.session)}
        _output.print_json({"schema": 1, "labs": [row]})
    else:
        ended = [] if made.finding is not None else [f"  {outcome.state}"]
        print(_output.page([*record.lines(made), *ended, f"  session: {outcome.session}"]))
    return _pipeline.status(outcome.state, [outcome.problem] if outcome.problem else [], stop)


def _run_all(arguments: argparse.Namespace) -> int:
    """Every lab in a process of its own; one that fails is named, and the others go on."""
    from pipelines import labs
    from profiler.process import signals

    rows: list[dict[str, object]] = []
    status = 0
    known = labs.every()
    given = [word for path in arguments.audio for word in ("--audio", path)]
    if arguments.transcripts:
        given += ["--transcripts", arguments.transcripts]
    if arguments.sessions:
        Path(arguments.sessions).mkdir(parents=True, exist_ok=True)
    with signals.stopping() as stop:
        for number, name in enumerate(known, start=1):
            words = [name, *given]
            if arguments.sessions:
                words += ["--out", str(Path(arguments.sessions) / f"{name}.asrs")]
            with _output.Progress() as progress:
                which = f"{name} ({number} of {len(known)})"
                progress(which)
                tell = lambda what, p=progress, w=which: p(f"{w}: {what}")  # noqa: E731
                row, failed, said = in_a_process(words, tell, stop.requested)
            row = row or {"name": name, "verdict": None, "why": said, "session": None}
            rows.append(row)
            if not arguments.json:
                print(_output.page([f"{name}: {row['verdict'] or 'no verdict'}. {row['why']}"]))
            if stop.requested():
                status = stop.status
                break
            if failed:
                _output.complain(f"{name}: {said}")
                status = 2
    if arguments.json:
        _output.print_json({"schema": 1, "labs": rows})
    return status


def _list(as_json: bool) -> None:
    from pipelines import labs
    from pipelines.labs.declaration import GROUPS

    known = labs.every()
    if as_json:
        keys = ("claim", "source", "group", "measured", "bound")
        _output.print_json({"schema": 1, "labs": [{"name": name} | fields(lab, *keys) for name, lab in known.items()]})
        return
    wide = max(map(len, known))
    group = ""
    for name, lab in known.items():
        if lab.group != group:
            group = lab.group
            print(f"\n{GROUPS[lab.group]}")
        print(f"{name:{wide}} {lab.cited}")


def _parameters(name: str, as_json: bool) -> None:
    from pipelines import labs
    from pipelines.config.options import options_of

    options = options_of(type(labs.load(name).parameters))
    if as_json:
        keys = ("key", "title", "help", "type", "default", "choices", "minimum", "maximum")
        rows = [fields(option, *keys) | {"unit": option.unit or None} for option in options]
        _output.print_json({"schema": 1, "parameters": rows})
        return
    for option in options:
        unit = f" {option.unit}" if option.unit else ""
        print(f"{option.key}={value_text(option.default)}{unit}: {option.help}")


POLL_S = 0.1
LINES_KEPT = 31  # Of standard error: the last one, or those of a stack, say why it ended
PATIENCE_S = 60.0  # Seconds that a stopping lab may take to close its session


def in_a_process(
    words: Sequence[str], progress: Callable[[str], object], stopping: Callable[[], bool]
) -> tuple[dict[str, object] | None, int, str]:
    """Run `asrscope lab` with these words and --json until `stopping`: its row, if it gave one, status, last words."""
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
        stream, last = child.stderr, deque[str](maxlen=LINES_KEPT)

        def follow() -> None:
            for line in filter(str.strip, stream):
                last.append(line)
                progress(one_line(line.strip()))

        follower = threading.Thread(target=follow)
        follower.start()
        try:
            while child.poll() is None and not stopping():
                with suppress(subprocess.TimeoutExpired):
                    child.wait(POLL_S)
            if child.poll() is None:
                child.terminate()
                with suppress(subprocess.TimeoutExpired):
                    child.wait(PATIENCE_S)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            follower.join()
            stream.close()
        printed.seek(0)
        row, status = None, child.returncode
        with suppress(ValueError, KeyError, TypeError, IndexError):
            row = dict(json.loads(printed.read())["labs"][0])
    said = one_line(last[-1].strip(), 600) if last else ""
    if said.startswith("asrscope: "):
        return row, status, said.removeprefix("asrscope: ")
    return row, status, f"{children.last_words(''.join(last), status)}." if status else ""
