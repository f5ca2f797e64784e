"""A session as a report in Markdown, to be pasted into an issue or a wiki: what `asrscope show` tells, and of what.

What is not known is left out and listed at the end, never written as zero. The same session gives the same bytes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from app.export import _gfm
from profiler.export import Format
from profiler.export._files import write_text

if TYPE_CHECKING:
    from app.model.report import Tree
    from profiler.session.reader import Session

FORMAT: Final = Format(
    name="markdown",
    option="markdown",
    help="write a report of the whole session to paste into an issue (F = - : to standard output)",
    title="Report (Markdown)",
    kind="Markdown",
    suffix=".md",
    mime="text/markdown",
    place=4,
)

NUMBERS: Final = ("time", "share", "calls")
STAGES: Final = ("stage", *NUMBERS, "verdict · evidence", "consists of", "why")
"""Titles of the columns of numbers, and of the table of stages."""

LEAST_S: Final = 0.001
LEAST_SHARE: Final = 0.001  # What is less is said to be less, not written as zero

EVIDENCE: Final = (
    "Evidence: A hardware counter; B measured, with hot replays; C measured time, parts by the law alone; D estimate; "
    "– unavailable."
)


CHANGED: Final = "Its settings changed while it ran; what changed then is not in this command."


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the report of the whole `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: file.writelines(f"{line}\n" for line in lines(session)))


def lines(session: Session) -> list[str]:
    """The report, without ends of lines."""
    from app.model import report_lines, session_facts
    from app.model.report import report
    from app.pictures.request import OUT
    from pipelines.labs import record

    tree, run = report(session), record.read(session.meta)
    found = [f"# {_gfm.text(session.path.name)}", ""]
    found += _gfm.table(("session", "as recorded"), session_facts.origin(session, run))
    if run is not None:
        found += _section("Lab", _gfm.bullets(record.lines(run)))
    decoded = tree["wall_s"] > 0
    said = report_lines.headline(tree) if decoded else ["Nothing was decoded."]
    found += _section("Result", _gfm.bullets(said))
    if decoded:
        found += _section("Categories", _categories(tree))
    if tree["stages"]:
        found += _section("Stages", [*_stages(tree), "", _gfm.text(EVIDENCE)])
    found += _section("Notes", _gfm.bullets(_notes(session, tree)))
    if words := session_facts.command(session, run):
        found += _section("To record it again", _gfm.code(shlex.join(words)))
        if len(session.configs) > 1:
            found += ["", _gfm.text(CHANGED)]
    this = ["asrscope", "export", session.path.name, f"--{FORMAT.option}", OUT]
    return found + _section("To make this report again", _gfm.code(shlex.join(this)))


def _section(title: str, body: Iterable[str]) -> list[str]:
    return ["", f"## {title}", "", *body]


def _categories(tree: Tree) -> list[str]:
    """The categories that have any time."""
    from app.model.report_lines import categories

    return _gfm.table(
        ("category", "time", "share"),
        (
            (row.name, _time(row.seconds), _share(row.share))
            for row in categories(tree)
            if row.seconds > 0
        ),
        NUMBERS,
    )


def _stages(tree: Tree) -> list[str]:
    from app.model.report_lines import parts, verdict

    return _gfm.table(
        STAGES,
        (
            (
                row["name"],
                _time(row["time_s"]),
                _share(row["share"]),
                str(row["calls"]),
                verdict(row),
                parts(row["parts"], row["parts_low"], row["parts_high"]),
                row["sentence"],
            )
            for row in tree["stages"]
        ),
        NUMBERS,
    )


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= LEAST_S or not seconds else f"<{LEAST_S} s"


def _share(share: float | None) -> str:
    from app.model.report_lines import number

    return f"<{LEAST_SHARE:.1%}" if share and share < LEAST_SHARE else number(share, ".1%")


def _notes(session: Session, tree: Tree) -> list[str]:
    """What else was found, and what nobody measured."""
    from app.model import report_lines

    found = report_lines.notes(tree) + report_lines.parts_of_groups(tree)
    for section in (
        report_lines.defects,
        report_lines.transfers,
        report_lines.drift,
        report_lines.recorder,
    ):
        found += section(tree)
    missing = _not_measured(session, tree)
    return [*found, f"not measured: {'; '.join(missing)}"] if missing else found


def _not_measured(session: Session, tree: Tree) -> list[str]:
    from profiler.analysis.conditions import OTHER_COUNT

    missing = []
    if tree["wer"] is None:
        missing.append("word errors, as no transcript was there for a whole utterance")
    if not session.calibration:
        missing.append("roofs of the machine, so there are no verdicts from them")
    elif not tree["drift"]:
        missing.append("whether the roofs changed while it ran")
    if not any(OTHER_COUNT in stage.work for stage in session.stages.values()):
        missing.append("the time that other programs took")
    if tree["counters"] is None:
        missing.append("hardware counters, which were off")
    return missing
