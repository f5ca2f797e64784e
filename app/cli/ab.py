"""Compare two configurations, interleaved on the same audio in one session.

    asrscope ab --b gmm.selection.method=top-n
    asrscope ab --preset gmm-quick --a search.beam=13 --b search.beam=10 --repeat 10 --out beams.asrs
    asrscope ab --a threads=1 --b threads=2 --audio corpus/ --transcripts corpus/transcripts.tsv --json
    asrscope ab --session before.asrs after.asrs           what two sessions ran, in turns on this machine
    asrscope ab --session run.asrs --b block=64 --until-decided 64

Each utterance is decoded by both arms before the next one, in alternating order, after a warm-up pass that does
not count. --set applies to both arms. `asrscope compare FILE.asrs` shows the result again. Ctrl+C stops after the
current block; the repeats completed so far count.

--session takes settings, audio and transcripts of recorded sessions, without pace and loop. One session is compared
with itself, changed by --a and --b; if it is an A/B session, its arms are compared again.
--until-decided N doubles the repeats, up to N, until the whole run is decided. It looks more than once, so it stops
only where p is below 0.05 / 4, or where the interval lies within 0.98…1.02.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from app.cli import _output, _pipeline, _recorded, compare
from profiler.errors import BadInput

REPEATS = 10  # Enough to find 5 % in one stage (tests/bench/ab_validation.py)
LOOKS = 4  # From 10 repeats to 64, doubled: a level of 5 % is shared out among them (Bonferroni)


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser)
    parser.set_defaults(repeat=REPEATS)
    _recorded.add_arguments(parser, 2)
    for name in "ab":
        _output.repeatable(parser, f"--{name}", "key=value", f"a setting of arm {name.upper()}; can be repeated")
    help = "double the repeats until the whole run is decided, N at most"
    _output.number_flag(parser, "--until-decided", 1, _pipeline.MAX_REPEATS, help, 0)
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Decode with both and compare."""
    from pipelines import config as settings

    chosen = _recorded.chosen(arguments)
    assignments = [
        dict(settings.parse_assignment(text, option_name=f"--{name}") for text in texts)
        for name, texts in (("a", arguments.a), ("b", arguments.b))
    ]
    a, b = (
        settings.check(settings.assign_with_folder(base.config, changes))
        for base, changes in zip(chosen.arms, assignments, strict=True)
    )
    preset = replace(chosen.arms[0], config=a)
    request = _pipeline.request(arguments, preset, f"ab-{preset.name}", chosen.items)
    from pipelines.experiments.ab import Arm, Interleaved, differences
    from pipelines.run.control import Control
    from pipelines.run.session_run import execute
    from profiler.analysis.comparison.compare import UNDECIDED
    from profiler.process import signals
    from profiler.session.reader import Session

    if chosen.items:
        assignments[1] = {key: settings.get(b, key) for key in differences(a, b)} | assignments[1]
    control, out = Control(), request.out
    assert out is not None
    try:
        with _output.Progress() as progress, signals.stopping(control.stop) as stop:
            order = Interleaved(
                Arm(a, assignments[0]),
                Arm(b, assignments[1]),
                arguments.repeat,
                progress=progress,
                cancelled=stop.requested,
                most=arguments.until_decided,
                decided=lambda: _decided(out),
            )
            outcome = execute(request, control, progress, order=order)
        status = _pipeline.status(outcome.state, outcome.problems, stop)
        with Session.open(out) as session:
            tree = compare.report(session, frames=arguments.json)
    except BadInput:
        if arguments.out is None:  # nobody has named it, and it has nothing to compare
            out.unlink(missing_ok=True)
        raise
    tree["warnings"] += chosen.notes
    if arguments.until_decided and tree["overall"]["verdict"] == UNDECIDED:
        tree["warnings"].append(f"Nothing is decided after {tree['repeats']} repeats of each arm.")
    _output.print_report(tree | {"session": str(out), "state": outcome.state}, arguments, compare.document)
    if not arguments.json:
        print(f"session: {out}")
    return status


def _decided(path: Path) -> bool:
    """Whether the repeats recorded so far say which arm is faster, or that neither is."""
    from profiler.analysis.comparison.compare import LEVEL, NO_DIFFERENCE, compare
    from profiler.session.reader import Session

    try:
        with Session.open(path) as session:
            overall = compare(session).overall
    except (BadInput, OSError):  # nothing to compare yet
        return False
    p = overall.p_adjusted
    return overall.verdict == NO_DIFFERENCE or (p is not None and p < LEVEL / LOOKS)
