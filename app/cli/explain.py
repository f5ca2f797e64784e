"""Say what the time of a stage consists of, by doing it again: hot, cold, placed elsewhere, reshaped.

    asrscope explain run.asrs score.mixture
    asrscope explain run score.gaussians --preset gmm-continuous --set block=1
    asrscope explain run.asrs search.emit --json
    asrscope explain run.asrs search.emit --set graph.grammar=new/place/lamp.gram

SESSION is a session file, whose settings and audio are taken (--set says where a file is now that it names), or the
word `run` for the settings given here. A block scored, or searched from the same tokens, again at once finds its data
hot: what it took longer in the run, it waited for caches and memory. That is measured on this machine now and compared
with the stage's cost law. Scoring is also done with a frame more and less, the search with half as many
tokens.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline, _recorded
from app.model import report
from app.model.document import Document, Drawing, Notes, Part, Table, interval, joined
from pipelines.labs.chart import Axis, Bars, Chart
from profiler.errors import BadInput
from profiler.plain import counted

if TYPE_CHECKING:
    from profiler.analysis.breakdown import StageRow

RUN = "run"
OF_A_RUN = ("preset", "config", "audio", "transcripts")  # Arguments that do not go with a session, which has its own
US = 1e3
NOTHING = ("", "0%", "0% – 0%")  # Cells of a part that is left out


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help=f"a session file (.asrs), or `{RUN}`")
    parser.add_argument("stage", metavar="STAGE", help="a stage of scoring or search, as in `asrscope show`")
    _pipeline.add_arguments(parser, repeat=False)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> None:
    """Replay the stage and report."""
    from profiler.analysis.breakdown import breakdown
    from profiler.session.reader import Session

    notes, recorded = list[str](), None
    if arguments.session == RUN:
        request = _pipeline.request(arguments, _pipeline.preset(arguments))
        config, spoken = request.config, request.playlist.items
        origin = RUN
    else:
        if given := [f"--{name}" for name in OF_A_RUN if getattr(arguments, name)]:
            raise BadInput(
                f"A session brings its own settings and audio; {', '.join(given)} can only be given with `{RUN}` "
                "in place of SESSION."
            )
        moved = _recorded.moved_files(arguments.set)
        with Session.open(arguments.session) as session:
            again = _recorded.prepare(session, moved)
            config, notes = again.config, again.notes
            stages = breakdown(session, again.first_frame, again.last_frame).stages
            recorded = next((_measured(row) for row in stages if row.name == arguments.stage), None)
            utterances, origin = session.utterances, str(session.path)
        from pipelines.experiments import rerun

        spoken = rerun.items_of(utterances, Path(origin))
    from pipelines.experiments import explain, rerun

    with _recorded.interruptible() as (progress, cancelled), tempfile.TemporaryDirectory() as folder:
        stretch = rerun.audio_of(spoken, Path(folder))
        found = explain.explain(config, arguments.stage, stretch, progress, cancelled)
    row = found.row
    tree: report.Tree = {
        "schema": 1,
        "session": None if origin == RUN else origin,
        "stage": row.name,
        "sentence": row.sentence,
        **_measured(row),
        **report.fields(found, "conclusion", "rounds", "blocks"),
        "recorded": recorded,
        "ways": [
            {"name": way.name, "what": way.shown}
            | {"us_per_frame": way.ns / US, "low": way.low / US, "high": way.high / US}
            for way in found.ways
        ],
        "waiting": dict(zip(("low", "likely", "high"), found.waiting, strict=True)),
        "audio_s": stretch.audio_s,
        "audio": stretch.note if origin != RUN else f"{stretch.audio_s:.1f} s of audio",
        "notes": notes,
    }
    _output.print_report(tree, arguments, document)


def _measured(row: StageRow) -> report.Tree:
    return {
        "verdict": row.verdict,
        "evidence": row.evidence,
        "us_per_frame": row.time_ns / (row.work.get("frames") or 1) / US,
        **report.intervals(row.parts),
    }


def document(tree: report.Tree) -> Document:
    """How long the stage took in each variant, and what its time consists of: here, and in the session."""
    from profiler.analysis.categories import PART_NAMES

    rounds, blocks = counted(tree["rounds"], "round", "rounds"), counted(tree["blocks"], "block", "blocks")
    here = f"Here {tree['us_per_frame']:.2f} µs per frame ({joined(tree['verdict'], tree['evidence'])})"
    if (there := tree["recorded"]) is not None:
        graded = joined(there["verdict"], there["evidence"])
        here += f"; in the session {there['us_per_frame']:.2f} µs per frame ({graded})"
    ways, title = tree["ways"], "How long the stage took in each variant"
    values, low, high = (tuple(way[key] for way in ways) for key in ("us_per_frame", "low", "high"))
    names = tuple(way["name"] for way in ways)
    chart = Chart(Axis("", categories=names), Axis("µs per frame", low=0.0), (Bars("", values, low, high),))
    rows = [
        (name, f"{value:.2f}", interval(ends, ".2f"), f"{value / values[0]:.2f}", way["what"])
        for name, value, ends, way in zip(names, values, zip(low, high, strict=True), ways, strict=True)
    ]
    headers = ("done again", "µs per frame", "interquartile range", "of the run", "what that is")
    parts: list[Part] = [f"{here}. {tree['sentence']}", Drawing(title, chart), Table(title, headers, rows, (4,))]
    if tree["parts"]:
        titles = ("part", "here", "interval", "in the session", "interval")
        columns = [_shares(tree), _shares(there or {})]
        shown = [
            (PART_NAMES[key.removesuffix("_s")], *(cell for column in columns for cell in column.get(key, ("", ""))))
            for key in tree["parts"]
        ]
        seen = [row for row in shown if any(cell not in NOTHING for cell in row[1:])]
        parts.append(Table("What the stage's time consists of", titles, seen))
    return Document(
        f"{tree['stage']}, measured on this machine, now: {rounds} over {tree['audio']}; of each, {blocks} done again.",
        [Notes(tree["notes"]), *parts, tree["conclusion"]],
    )


def _shares(of: report.Tree) -> dict[str, tuple[str, str]]:
    likely, low, high = (of.get(key) or {} for key in ("parts", "parts_low", "parts_high"))
    total = sum(likely.values()) or 1.0
    return {
        key: (f"{value / total:.0%}", interval((low[key] / total, high[key] / total), ".0%"))
        for key, value in likely.items()
    }
