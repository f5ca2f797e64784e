"""Compare two configurations, interleaved on the same audio in one session.

    asrscope ab --b gmm.selection.method=top-n
    asrscope ab --preset gmm-quick --a search.beam=13 --b search.beam=10 --repeat 10 --out beams.asrs
    asrscope ab --a threads=1 --b threads=2 --audio corpus/ --transcripts corpus/transcripts.tsv --json

Each utterance is decoded by both arms before the next one, in alternating order, after a warm-up pass that does
not count. --set applies to both arms. `asrscope compare FILE.asrs` shows the result again. Ctrl+C stops after the
current block; the repeats completed so far count.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from app.cli import _output, _pipeline, compare

REPEATS = 10
"""Enough to find 5 % in one stage (tests/bench/ab_validation.py)."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    _pipeline.add_arguments(parser)
    parser.set_defaults(repeat=REPEATS)
    for name in "ab":
        parser.add_argument(
            f"--{name}",
            metavar="key=value",
            action="append",
            default=[],
            help=f"a setting of arm {name.upper()}; can be repeated",
        )
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Decode with both and compare."""
    # The configurations are checked first, so that a typo is reported before anything is loaded.
    from pipelines import config as settings

    chosen = _pipeline.preset(arguments)
    asked = [
        dict(settings.parse_assignment(text, option_name=f"--{name}") for text in texts)
        for name, texts in (("a", arguments.a), ("b", arguments.b))
    ]
    configs = [settings.check(settings.assign(chosen.config, assignments)) for assignments in asked]
    from pipelines.experiments.ab import Arm, Interleaved
    from pipelines.run.control import Control
    from pipelines.run.session_run import Request, execute
    from profiler.files.paths import new_session_path
    from profiler.process import signals
    from profiler.session.reader import Session

    arms = [Arm(config, assignments) for config, assignments in zip(configs, asked, strict=True)]
    out = (
        Path(arguments.out) if arguments.out is not None else new_session_path(f"ab-{chosen.name}")
    )
    request = Request(
        config=configs[0],
        preset=chosen.name,
        audio=tuple(arguments.audio),
        transcripts=arguments.transcripts,
        out=out,
        repeat=arguments.repeat,
        replace=bool(arguments.out),
    )
    control, progress = Control(), _output.Progress()
    course = Interleaved(
        arms[0],
        arms[1],
        arguments.repeat,
        progress=progress,
        cancelled=lambda: control.stopping,
    )
    try:
        with signals.stopping(control.stop) as stop:
            outcome = execute(request, control, progress, course=course)
    finally:
        progress.done()
    problems = list(outcome.result.refused)
    if outcome.problem:
        problems.append(outcome.problem)
    status = 2 if problems else stop.status if outcome.state == "stopped" else 0
    for problem in problems:
        _output.complain(problem)
    with closing(Session.open(out)) as session:
        tree = compare.report(session)
    if arguments.json:
        _output.print_json(tree | {"session": str(out), "state": outcome.state})
    else:
        print(compare.as_text(tree))
        print(f"session: {out}")
    return status
