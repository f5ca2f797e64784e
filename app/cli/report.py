"""Write a report of a session, or of two with their comparison, to paste into an issue or to be read by a script.

asrscope report run.asrs
asrscope report before.asrs after.asrs
asrscope report run.asrs --json
asrscope report run.asrs --select 10..20

Markdown on standard output: result, categories, stages with verdicts, percentiles, slowest frames with their words,
confused words, settings. Lists that are cut say of how many. `--json` has the keys of `show` for each session under
`sessions`, with `percentiles`, `slowest_frames`, `slowest_words` and `confusions` (pairs with their count, seconds of
processing and first time), and those of `compare` under `comparison`. `--select` is that of `show`, for one session.
"""

import argparse
from contextlib import ExitStack

from app.cli import _output, _recorded, compare
from profiler.errors import BadInput


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    parser.add_argument("other", metavar="SESSION", nargs="?", help="a session that it is compared with")
    _recorded.add_select(parser)
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the report."""
    from app.api import Recording
    from app.export import markdown
    from profiler.session.reader import Session

    if arguments.select and arguments.other is not None:
        raise BadInput("--select is of one session; a comparison of two is of whole utterances.")
    with ExitStack() as stack:
        names = [name for name in (arguments.session, arguments.other) if name is not None]
        sessions = [stack.enter_context(Session.open(name)) for name in names]
        comparison = compare.report(*sessions, frames=arguments.json) if len(sessions) == 2 else None
        if arguments.json:
            trees = [Recording(session).report(arguments.select or ()) for session in sessions]
            _output.print_json({"schema": 1, "sessions": trees, "comparison": comparison})
            return
        chosen = [_recorded.selected(arguments, session) for session in sessions]
        pages = (markdown.lines(*one) for one in zip(sessions, chosen, strict=True))
        lines = [line for page in pages for line in [*page, ""]]
    if comparison is not None:
        compared = compare.document(comparison)
        lines = ["# Comparison", "", *markdown.text([compared.summary, *compared.parts]), "", *lines]
    print(_output.page(lines).rstrip())
