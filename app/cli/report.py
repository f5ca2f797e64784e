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

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from app.cli import _output, _select, compare
from profiler.errors import BadInput

if TYPE_CHECKING:
    from app.model.report import Tree


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    parser.add_argument("other", metavar="SESSION", nargs="?", help="a session that it is compared with")
    _select.add_argument(parser)
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    from app.api import Recording
    from app.export import markdown
    from profiler.session.reader import Session

    if arguments.select and arguments.other is not None:
        raise BadInput("--select is of one session; a comparison of two is of whole utterances.")
    with ExitStack() as stack:
        names = [name for name in (arguments.session, arguments.other) if name is not None]
        sessions = [stack.enter_context(closing(Session.open(name))) for name in names]
        comparison = compare.report(*sessions, frames=arguments.json) if len(sessions) == 2 else None
        if arguments.json:
            trees = [Recording(session).report(arguments.select or ()) for session in sessions]
            _output.print_json({"schema": 1, "sessions": trees, "comparison": comparison})
            return 0
        chosen = [_select.selected(arguments, session) for session in sessions]
        pages = (markdown.lines(*one) for one in zip(sessions, chosen, strict=True))
        lines = [line for page in pages for line in [*page, ""]]
    if comparison is not None:
        lines = [*_comparison(comparison), "", *lines]
    print(_output.page(lines).rstrip())
    return 0


def _comparison(tree: Tree) -> list[str]:
    """The comparison as Markdown."""
    from app.export.markdown import bullets, table
    from app.model.report_lines import number

    without_stages = compare.as_text(tree | {"stages": [], "only_a": {}, "only_b": {}}).split("\n")
    text = bullets(line for line in without_stages if line and not line.startswith("stage "))
    rows = [
        (
            row["name"],
            f"{row['a_s']:.3f} s",
            f"{row['b_s']:.3f} s",
            compare.ratio_text(row),
            number(row["p_adjusted"], ".4f"),
            row["verdict"],
        )
        for row in tree["stages"]
    ]
    rows += [
        (
            name,
            *(f"{seconds:.3f} s" if arm == side else "–" for arm in "ab"),
            "–",
            "–",
            f"only in {side.upper()}",
        )
        for side in "ab"
        for name, seconds in tree[f"only_{side}"].items()
    ]
    titles = ("stage", "A", "B", "B / A", "p (adjusted)", "verdict")
    return ["# Comparison", "", *text, "", *table(titles, rows, titles[1:5])]
