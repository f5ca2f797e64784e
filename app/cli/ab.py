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
from dataclasses import replace

from app.cli import _output, _pipeline, compare

REPEATS = 10  # Enough to find 5 % in one stage (tests/bench/ab_validation.py)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    _pipeline.add_arguments(parser)
    parser.set_defaults(repeat=REPEATS)
    for name in "ab":
        help = f"a setting of arm {name.upper()}; can be repeated"
        _output.repeatable(parser, f"--{name}", "key=value", help)
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Decode with both and compare."""
    from pipelines import config as settings

    chosen = _pipeline.preset(arguments)
    assignments = [
        dict(settings.parse_assignment(text, option_name=f"--{name}") for text in texts)
        for name, texts in (("a", arguments.a), ("b", arguments.b))
    ]
    a, b = (settings.check(settings.assign(chosen.config, changes)) for changes in assignments)
    request = _pipeline.request(arguments, replace(chosen, config=a), f"ab-{chosen.name}")
    from pipelines.experiments.ab import Arm, Interleaved
    from pipelines.run.control import Control
    from pipelines.run.session_run import execute
    from profiler.process import signals
    from profiler.session.reader import Session

    control = Control()
    with _output.Progress() as progress, signals.stopping(control.stop) as stop:
        order = Interleaved(
            Arm(a, assignments[0]),
            Arm(b, assignments[1]),
            arguments.repeat,
            progress=progress,
            cancelled=lambda: control.stopping,
        )
        outcome = execute(request, control, progress, order=order)
    status = _pipeline.status(outcome, stop)
    assert request.out is not None
    with closing(Session.open(request.out)) as session:
        tree = compare.report(session)
    if arguments.json:
        _output.print_json(tree | {"session": str(request.out), "state": outcome.state})
    else:
        print(compare.as_text(tree))
        print(f"session: {request.out}")
    return status
