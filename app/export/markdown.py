"""A session as a report in Markdown, to be pasted into an issue or a wiki: what `asrscope show` tells, and of what.

What is not known is left out and listed at the end, never written as zero. The same session gives the same bytes.
Text of strangers can begin nothing, end nothing and hide nothing in GitHub's Markdown (GFM): what begins HTML, code, an
escape or a cell is a character reference, which stands for itself everywhere outside code; what else means something
within a line has a backslash before it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from app.export.details import details
from profiler.export import Format, write_text
from profiler.plain import clock, one_line, printable

if TYPE_CHECKING:
    from app.model.report import Selected, Tree
    from profiler.session.reader import Session


FORMAT: Final = Format(
    name="markdown",
    option="markdown",
    help="write a report of the whole session to paste into an issue (F = - : to standard output)",
    title="Report (Markdown)",
    kind="Markdown",
    suffix=".md",
    mime="text/markdown",
    place=2,
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


LONGEST: Final = 2000  # Characters of a text: a sentence or a list of settings has a few hundred

_REFERENCES: Final = {ord(c): f"&#{ord(c)};" for c in "|`\\"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
_MARKS: Final = {ord(c): f"\\{c}" for c in "*_[]#~!"}


def escaped(text: str) -> str:
    shown = re.sub(" +", " ", one_line(text, LONGEST)).strip()
    return shown.translate(_REFERENCES | _MARKS)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()) -> list[str]:
    """The lines of a table of any texts; `numbers`: titles of the columns that are aligned on the right."""
    rule = ["--:" if title in numbers else "---" for title in head]
    # Some readers join an empty cell to its neighbour.
    filled = ([escaped(cell) or "–" for cell in row] for row in (head, *rows))
    first, *rest = map(_row, filled)
    return [first, _row(rule), *rest]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def bullets(lines: Iterable[str]) -> list[str]:
    return [f"{'  ' if line.startswith(' ') else ''}- {escaped(line)}" for line in lines]


def code(line: str) -> list[str]:
    shown = printable(line)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", shown))])
    return [f"{fence}sh", shown, fence]


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the report of the whole `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: file.writelines(f"{line}\n" for line in lines(session)))


def lines(session: Session, selected: Selected | None = None) -> list[str]:
    """The report, without ends of lines; `selected`: what of the session it is of."""
    from app.model import report_lines, session_facts
    from app.model.report import ALL, report
    from app.pictures.request import OUT
    from pipelines.labs import record
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    selected = selected or ALL
    tree, run = report(session, track, selected), record.read(session.meta)
    found = [f"# {escaped(session.path.name)}", ""]
    found += table(("session", "as recorded"), session_facts.origin(session, run))
    if run is not None:
        found += _section("Lab", bullets(record.lines(run)))
    decoded = tree["wall_s"] > 0
    said = report_lines.headline(tree) if decoded else ["Nothing was decoded.", *report_lines.problem(tree)]
    found += _section("Result", bullets(said))
    if decoded:
        found += _section("Categories", _categories(tree))
    if tree["stages"]:
        found += _section("Stages", [*_stages(tree), "", escaped(EVIDENCE)])
    if rows := report_lines.operators(tree):
        found += _section("Operators of the net", table(report_lines.OPERATORS, rows, report_lines.OPERATORS[1:]))
    if decoded:
        unit = "frame" if tree["steps"] is None else "step"
        found += _distribution(details(session, track, selected.frames), unit)
    found += _section("Notes", bullets(_notes(session, tree)))
    if words := session_facts.command(session, run):
        found += _section("To record it again", code(shlex.join(words)))
        if len(session.configs) > 1:
            found += ["", escaped(CHANGED)]
    this = ["asrscope", "export", session.path.name, f"--{FORMAT.option}", OUT]
    if selected != ALL:
        this = [
            "asrscope",
            "report",
            session.path.name,
            *(word for name in selected.names for word in ("--select", name)),
        ]
    return found + _section("To make this report again", code(shlex.join(this)))


def _section(title: str, body: Iterable[str]) -> list[str]:
    return ["", f"## {title}", "", *body]


def _categories(tree: Tree) -> list[str]:
    """The categories that have any time."""
    from app.model.report_lines import categories

    return table(
        ("category", "time", "share"),
        ((row.name, _time(row.seconds), _share(row.share)) for row in categories(tree) if row.seconds > 0),
        NUMBERS,
    )


def _stages(tree: Tree) -> list[str]:
    from app.model.report_lines import parts, verdict

    return table(
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


def _distribution(known: Tree, unit: str) -> list[str]:
    """Percentiles of stages, the slowest frames, the words that took longest, and the most frequent confusion pairs."""
    from app.charts.scale import count
    from pipelines.audio.word_errors import SAME
    from profiler.plain import milliseconds

    found: list[str] = []
    if rows := known["percentiles"]:
        keys = [key for key in rows[0] if key.endswith("_ms")]
        head = ("stage", f"{unit}s", *(key.removesuffix("_ms") + " ms" for key in keys))
        names = {"whole frame": f"whole {unit}"}
        body = (
            (names.get(row["name"], row["name"]), count(row["frames"]), *(milliseconds(row[key]) for key in keys))
            for row in rows
        )
        found += _section(f"Time per {unit}", table(head, body, head[1:]))
    if rows := known["slowest_frames"]["rows"]:
        head = ("at", "ms", "word", "tokens")
        body = (
            (
                clock(row["at_s"], 2) if unit == "frame" else str(row["frame"]),
                milliseconds(row["ms"]),
                row["word"] or "",
                count(row["tokens"]),
            )
            for row in rows
        )
        title = f"Slowest {unit}s, {_of(known['slowest_frames'])}"
        found += _section(title, table(head, body, ("ms", "tokens")))
    if rows := known["slowest_words"]["rows"]:
        head = ("word", "at", "ms", "RTF", "tokens per frame", "error", "reference")
        body = (
            (
                row["word"],
                clock(row["at_s"], 2),
                milliseconds(row["ms"]),
                f"{row['rtf']:.3f}",
                count(row["tokens_per_frame"]),
                "" if row["kind"] in (None, SAME) else row["kind"],
                row["reference"] or "",
            )
            for row in rows
        )
        title = f"Words that took longest, {_of(known['slowest_words'])}"
        found += _section(title, table(head, body, ("ms", "RTF", "tokens per frame")))
    if rows := known["confusions"]["rows"]:
        head = ("reference", "hypothesis", "count", "seconds", "first at")
        body = (
            (
                row["reference"] or "–",
                row["hypothesis"] or "–",
                str(row["count"]),
                "–" if row["wall_s"] is None else f"{row['wall_s']:.3f}",
                clock(row["at_s"], 2),
            )
            for row in rows
        )
        title = f"Confusion pairs, {_of(known['confusions'])}"
        found += _section(title, table(head, body, ("count", "seconds")))
    return found


def _of(table: Tree) -> str:
    return f"{len(table['rows'])} of {table['of']}"


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
