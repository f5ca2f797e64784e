"""List the labs, or run one: each tries a claim about the cost of recognition on this machine.

    asrscope lab
    asrscope lab matrix-orders
    asrscope lab matrix-orders --set n=512 --out orders.asrs --json
    asrscope lab --all --json
    asrscope lab --all --sessions build/labs --docs docs

Every run is a session with the figures and the verdict: holds here, does not hold here, undecided, cannot be tried
here. `asrscope export FILE.asrs --png F` draws it. Use the machine for nothing else meanwhile. Ctrl+C stops it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.labs.running import Outcome


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("name", metavar="NAME", nargs="?", help="which lab (none: list them)")
    which.add_argument("--all", action="store_true", help="run all of them, one after the other")
    parser.add_argument(
        "--set",
        metavar="key=value",
        action="append",
        default=[],
        help="change one parameter; can be repeated (`asrscope lab NAME --parameters` lists them)",
    )
    parser.add_argument(
        "--parameters", action="store_true", help="list the parameters of the lab and end"
    )
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    parser.add_argument(
        "--sessions", metavar="FOLDER", help="--all: where the sessions go, as NAME.asrs"
    )
    parser.add_argument(
        "--docs",
        metavar="FOLDER",
        help="write a page about all labs there (lab.md, with pictures in lab/); without --all, of --sessions",
    )
    parser.add_argument("--audio", metavar="FILE", nargs="+", action="extend", default=[])
    parser.add_argument("--transcripts", metavar="FILE.tsv")
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, or run and report."""
    from pipelines import labs

    one = arguments.name is not None
    if not one and (arguments.set or arguments.out or arguments.parameters):
        raise BadInput(
            "--set, --out and --parameters are for one lab: asrscope lab NAME --set key=value."
        )
    if (arguments.sessions or arguments.docs) and one:
        raise BadInput("--sessions and --docs are for all labs: asrscope lab --all --docs FOLDER.")
    if arguments.docs and not arguments.sessions:
        raise BadInput(
            "--docs is made of the sessions in a folder; name it with --sessions FOLDER."
        )
    if not one and not arguments.all:
        return _docs(arguments) if arguments.docs else _list(arguments.json)
    if arguments.parameters:
        return _parameters(arguments.name, arguments.json)
    chosen = list(labs.every()) if arguments.all else [arguments.name]
    status = _run(arguments, chosen)
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


def _run(arguments: argparse.Namespace, chosen: list[str]) -> int:
    from pipelines import labs
    from pipelines.labs.running import Request, assignments_of, execute
    from profiler.files.paths import new_session_path
    from profiler.process import signals

    requests = []
    for name in chosen:
        lab = labs.load(name)
        if arguments.sessions:
            Path(arguments.sessions).mkdir(parents=True, exist_ok=True)
            out = Path(arguments.sessions) / f"{name}.asrs"
        else:
            out = Path(arguments.out) if arguments.out else new_session_path(f"lab-{name}")
        assignments = assignments_of(lab.parameters, arguments.set)
        requests.append(
            Request(
                name,
                assignments,
                out,
                tuple(arguments.audio),
                arguments.transcripts,
                replace=bool(arguments.out or arguments.sessions),
            )
        )
    asked: list[bool] = []
    rows, status = [], 0
    with signals.stopping(lambda: asked.append(True)) as stop:
        for number, request in enumerate(requests):
            progress = _output.Progress()
            before = f"{request.name} ({number + 1} of {len(requests)}): " if arguments.all else ""
            try:
                outcome = execute(
                    request,
                    lambda what, share, p=progress, b=before: p(b + what, share),  # type: ignore[misc]
                    lambda: bool(asked),
                )
            except (BadInput, OSError) as problem:
                if not arguments.all:
                    raise
                _output.complain(str(problem))
                status = 2
                continue
            finally:
                progress.done()
            rows.append(_row(request.name, outcome))
            if not arguments.json:
                print(_told(rows[-1]))
            if outcome.problem:
                _output.complain(outcome.problem)
                status = 2
            if asked:
                status = stop.status
                break
    if arguments.json:
        _output.print_json({"schema": 1, "labs": rows})
    return status


def _row(name: str, outcome: Outcome) -> dict[str, object]:
    """One lab of the JSON."""
    from pipelines import labs

    lab, finding = labs.load(name), outcome.finding
    return {
        "name": name,
        "claim": lab.claim,
        "source": lab.source,
        "group": lab.group,
        "verdict": finding.verdict if finding else None,
        "why": finding.why if finding else outcome.problem,
        "figures": dict(finding.figures) if finding else {},
        "said": [
            {"what": s.what, "value": s.value, "unit": s.unit, "ours": s.ours} for s in lab.said
        ],
        "follows": lab.follows.get(finding.verdict) if finding else None,
        "state": outcome.state,
        "session": None if outcome.session is None else str(outcome.session),
    }


def _told(row: dict[str, object]) -> str:
    lines = [f"{row['name']}: {row['claim']} ({row['source']})"]
    if row["verdict"]:
        lines.append(f"  {row['verdict']}. {row['why']}")
    else:
        lines.append(f"  {row['state']}")
    if row["follows"]:
        lines.append(f"  {row['follows']}")
    lines.append(f"  session: {row['session']}")
    return _output.page(lines)


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
        print(f"{name:{wide}} {lab.claim} ({lab.source})")
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
        print(f"{option.key}={_output.plain(option.default)}{unit}: {option.help}")
    return 0
