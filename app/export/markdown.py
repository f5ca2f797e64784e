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
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from profiler.clock import FRAME_S
from profiler.export import Format, write_text
from profiler.plain import clock, one_line, printable

if TYPE_CHECKING:
    from app.model.document import Part, Table
    from app.model.report import Selected, Tree
    from app.views.word_costs_model import Confusion, WordCost
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

CHANGED: Final = "Its settings changed while it ran; what changed then is not in this command."


LONGEST: Final = 2000  # Characters of a text: a sentence or a list of settings has a few hundred

_REFERENCES: Final = {ord(c): f"&#{ord(c)};" for c in "|`\\"} | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_MARKS: Final = {ord(c): f"\\{c}" for c in "*_[]#~!"}


def escaped(text: str) -> str:
    shown = re.sub(" +", " ", one_line(text, LONGEST)).strip()
    return shown.translate(_REFERENCES | _MARKS)


def text(parts: Iterable[Part]) -> list[str]:
    """Sections, bullets and tables of a document, without those that are aside; no charts."""
    from app.model.document import Notes, Section, Table, shown_as_text

    found: list[str] = []
    before: type | None = None
    for part in parts:
        if not shown_as_text(part):
            continue
        if found and not (before is type(part) is str):
            found.append("")
        if isinstance(part, Section):
            found.append(f"## {part.title}")
        elif isinstance(part, Table):
            found += table(part)
        elif isinstance(part, str | Notes):
            lines = [part] if isinstance(part, str) else part.sentences
            found += [f"{'  ' if line.startswith(' ') else ''}- {escaped(line)}" for line in lines]
        before = type(part)
    return found


def table(table: Table) -> list[str]:
    rule = ["--:" if place in table.numbers else "---" for place in range(len(table.headers))]
    # Some readers join an empty cell to its neighbour.
    shown = (
        [escaped("" if cell is None else str(cell)) or "–" for cell in row] for row in (table.headers, *table.rows)
    )
    first, *rest = (f"| {' | '.join(cells)} |" for cells in shown)
    return [first, f"| {' | '.join(rule)} |", *rest]


def code(line: str) -> list[str]:
    shown = printable(line)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", shown))])
    return [f"{fence}sh", shown, fence]


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the report of the whole `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: file.writelines(f"{line}\n" for line in lines(session)))


FORMAT: Final = Format(
    name="markdown",
    option="markdown",
    help="write a report of the whole session to paste into an issue (F = - : to standard output)",
    title="Report (Markdown)",
    kind="Markdown",
    suffix=".md",
    mime="text/markdown",
    place=2,
    write=write,
)


def lines(session: Session, selected: Selected | None = None) -> list[str]:
    from app.model import provenance, report_lines
    from app.model.document import Section, Table
    from app.model.report import ALL, report
    from app.pictures.request import OUT
    from pipelines.labs import record
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    selected = selected or ALL
    tree, run = report(session, track, selected), record.read(session.meta)
    decoded = tree["wall_s"] > 0
    parts: list[Part] = [Table("Session", ("session", "as recorded"), [*provenance.origin(session, run)])]
    if run is not None:
        parts += [Section("Lab"), *record.lines(run)]
    said = report_lines.headline(tree) if decoded else ["Nothing was decoded.", *report_lines.problem(tree)]
    parts += [Section("Result"), *said]
    if decoded:
        unit = "frame" if tree["steps"] is None else "step"
        parts += [*report_lines.tables(tree), *_distribution(details(session, track, selected.frames), unit)]
    parts += [Section("Notes"), *report_lines.notes(tree), *report_lines.remarks(tree)]
    if missing := _not_measured(session, tree):
        parts.append(f"not measured: {'; '.join(missing)}")
    found = [f"# {escaped(session.path.name)}", "", *text(parts)]
    if words := provenance.command(session, run):
        found += ["", "## To record it again", "", *code(shlex.join(words))]
        if len(session.configs) > 1:
            found += ["", escaped(CHANGED)]
    this = ["asrscope", "export", session.path.name, f"--{FORMAT.option}", OUT]
    if selected != ALL:
        chosen = (word for name in selected.names for word in ("--select", name))
        this = ["asrscope", "report", session.path.name, *chosen]
    return [*found, "", "## To make this report again", "", *code(shlex.join(this))]


def _distribution(known: Tree, unit: str) -> Iterator[Part]:
    """Percentiles of stages, the slowest frames, the words that took longest, and the most frequent confusion pairs."""
    from app.model.document import Section, Table, number
    from pipelines.audio.word_errors import SAME
    from profiler.plain import count, milliseconds

    stages = known["percentiles"]
    keys = [key for key in (stages[0] if stages else ()) if key.endswith("_ms")]
    frames, words, pairs = (known[key] for key in ("slowest_frames", "slowest_words", "confusions"))

    def name(row: Tree) -> str:
        return f"whole {unit}" if row["name"] == "whole frame" else str(row["name"])

    def place_of(row: Tree) -> str:
        return str(row["frame"]) if unit != "frame" and "frame" in row else clock(row["at_s"], 2)

    def error(row: Tree) -> tuple[str, str]:
        return "" if row["kind"] in (None, SAME) else str(row["kind"]), row["reference"] or ""

    for title, head, cells in (
        (
            f"Time per {unit}",
            ("stage", f"{unit}s", *(key.removesuffix("_ms") + " ms" for key in keys)),
            [(name(r), count(r["frames"]), *(milliseconds(r[key]) for key in keys)) for r in stages],
        ),
        (
            f"Slowest {unit}s, {_of(frames)}",
            ("at", "ms", "word", "tokens"),
            [(place_of(r), milliseconds(r["ms"]), r["word"] or "", count(r["tokens"])) for r in frames["rows"]],
        ),
        (
            f"Words that took longest, {_of(words)}",
            ("word", "at", "ms", "RTF", "tokens per frame", "error", "reference"),
            [
                (
                    r["word"],
                    place_of(r),
                    milliseconds(r["ms"]),
                    f"{r['rtf']:.3f}",
                    count(r["tokens_per_frame"]),
                    *error(r),
                )
                for r in words["rows"]
            ],
        ),
        (
            f"Confusion pairs, {_of(pairs)}",
            ("reference", "hypothesis", "count", "seconds", "first at"),
            [
                (
                    r["reference"] or "–",
                    r["hypothesis"] or "–",
                    str(r["count"]),
                    number(r["wall_s"], ".3f"),
                    place_of(r),
                )
                for r in pairs["rows"]
            ],
        ),
    ):
        if cells:
            yield from (Section(title), Table(title, head, cells))


def _of(cut: Tree) -> str:
    return f"{len(cut['rows'])} of {cut['of']}"


def _not_measured(session: Session, tree: Tree) -> list[str]:
    from profiler.analysis.stage_sums import OTHER_COUNT

    roofs, others = session.calibration, any(OTHER_COUNT in stage.work for stage in session.stages.values())
    facts = (
        ("word errors, as no transcript was there for a whole utterance", tree["wer"] is not None),
        ("roofs of the machine, so there are no verdicts from them", roofs),
        ("whether the roofs changed while it ran", tree["drift"] or not roofs),
        ("the time that other programs took", others),
        ("hardware counters, which were off", tree["counters"] is not None),
    )
    return [fact for fact, known in facts if not known]


ROWS: Final = 10  # Frames, words and pairs of words that a report lists; it says of how many


def details(session: Session, track: CostTrack, selected: tuple[int, int] | None = None) -> Tree:
    """`percentiles`, `slowest_frames`, `slowest_words` and `confusions` of frames `selected`; None: of all."""
    from app.model.statistics import QUANTILES, WHOLE, stage_names, statistics, word_at
    from app.views.word_costs_model import TOKENS, confusions, word_costs

    frames = int(track.n_frames)
    first, last = selected or (0, frames)
    last = min(last, frames)
    every = (statistics(session, track, name, first, last) for name in stage_names(session, track))
    known = [one for one in every if one is not None]
    tokens = track.work_rows.get(TOKENS)
    whole = next((one for one in known if one.name == WHOLE), None)
    slowest = [] if whole is None else zip(whole.slowest.tolist(), whole.slowest_ms.tolist(), strict=True)
    return {
        "percentiles": [
            {
                "name": one.name,
                "frames": one.frames,
                "mean_ms": one.mean,
                **{f"{name}_ms": ms for name, ms in zip(QUANTILES, one.quantiles, strict=True)},
                "highest_ms": one.highest,
                "highest_frame": int(one.slowest[0]),
            }
            for one in known
        ],
        "slowest_frames": {
            "of": last - first,
            "rows": [
                {
                    "frame": frame,
                    "at_s": frame * FRAME_S,
                    "ms": ms,
                    "word": word_at(session, frame),
                    "tokens": None if tokens is None else float(tokens[frame : frame + 1][0]),
                }
                for frame, ms in islice(slowest, ROWS)
            ],
        },
        "slowest_words": slowest_words(word_costs(session, track, frames, selected)[0], ROWS),
        "confusions": most_confused(confusions(session, track, frames, selected)[0], ROWS),
    }


def most_confused(pairs: Sequence[Confusion], most: int) -> Tree:
    """The `most` frequent of pairs in that order, of how many pairs, and of how many errors."""
    return {
        "of": len(pairs),
        "errors": sum(pair.count for pair in pairs),
        "rows": [
            {
                "reference": pair.reference,
                "hypothesis": pair.hypothesis,
                "count": pair.count,
                "wall_s": pair.wall_s,
                "at_s": pair.places[0][0] * FRAME_S,
            }
            for pair in pairs[:most]
        ],
    }


def slowest_words(words: Sequence[WordCost], most: int) -> Tree:
    """The `most` words that took longest, and of how many."""
    return {
        "of": len(words),
        "rows": [
            {
                "word": word.word,
                "kind": word.kind,
                "reference": word.reference,
                "utterance": word.utterance,
                "at_s": word.first_frame * FRAME_S,
                "audio_s": word.frames * FRAME_S,
                "ms": word.ms,
                "rtf": word.rtf,
                "tokens_per_frame": word.tokens,
                "senones_per_frame": word.senones,
            }
            for word in sorted(words, key=lambda word: -word.ms)[: max(0, most)]
        ],
    }
