"""Rerun a stage of a session with a change, and say whether its verdict survives.

    asrscope confirm run.asrs score.mixture
    asrscope confirm run.asrs search.emit --json
    asrscope confirm run.asrs search.emit --set graph.grammar=new/place/lamp.gram

A verdict predicts the effect of a change: a bandwidth-bound stage takes less time per frame if more frames
share a block, a compute-bound stage does not, and a call-bound stage takes half the time with half the calls.
Where possible, block ×2 and ×½, another thread, a shorter data type and a smaller model are run on a few seconds
of the session's audio, interleaved with the unchanged configuration, on this machine. --set says where a file is now
that the session names (grammar, language model, dictionary, net, model folder).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Final

from app.cli import _output, _recorded
from app.model.document import Document, Notes, RatioRow, Ratios, Table, interval, joined, number
from app.model.report import Tree, fields
from profiler.errors import BadInput
from profiler.plain import counted


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    parser.add_argument("stage", metavar="STAGE", help="a stage, named as in `asrscope show`")
    help = "where a file is now that the session names; can be repeated"
    _output.repeatable(parser, "--set", "key=PATH", help)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> None:
    """Rerun the stage and report."""
    from profiler.analysis.breakdown import breakdown
    from profiler.session.reader import Session

    moved = _recorded.moved_files(arguments.set)
    with Session.open(arguments.session) as session:
        again = _recorded.prepare(session, moved)
        parts = breakdown(session, again.first_frame, again.last_frame)
        spoken, path = session.utterances, session.path
    row = next((row for row in parts.stages if row.name == arguments.stage), None)
    if row is None:
        names = ", ".join(row.name for row in parts.stages)
        raise BadInput(f"There is no stage {arguments.stage!r} in {path}; it has {names}.")
    from pipelines.experiments import perturb, rerun
    from profiler.analysis.comparison.perturbation import conclude

    with _recorded.interruptible() as (progress, cancelled), tempfile.TemporaryDirectory() as folder:
        stretch = rerun.audio_of(rerun.items_of(spoken, path), Path(folder))
        threads = again.config.threads
        wanted = [threads - 1, threads, threads + 1] if row.group == "scoring" else [threads]
        roof_table = _recorded.roof_table(wanted, progress, cancelled)
        found = perturb.confirm(again.config, row, stretch, roof_table, progress, cancelled)
    survives, why = conclude(row.verdict, found.perturbations)
    now = found.unchanged
    tree: Tree = {
        "schema": 1,
        "session": str(path),
        "stage": row.name,
        **fields(row, "verdict", "evidence", "sentence"),
        "verdict_now": now.verdict if now else None,
        "sentence_now": now.sentence if now else None,
        "survives": survives,
        "why": why,
        "audio_s": stretch.audio_s,
        "audio": stretch.note,
        "rounds": found.rounds,
        "notes": again.notes,
        "perturbations": [p.as_dict() for p in found.perturbations],
    }
    _output.print_report(tree, arguments, document)


OUTCOMES: Final = {
    True: "The verdict survives.",
    False: "The verdict does not survive.",
    None: "The verdict is neither confirmed nor refuted.",
}


def document(tree: Tree) -> Document:
    """The outcome, and each change as predicted and as measured."""
    from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, UNDECIDED

    rounds = counted(tree["rounds"], "round", "rounds")
    verdicts = f"In the session: {joined(tree['verdict'] or '–', tree['evidence'])}; now: {tree['verdict_now'] or '–'}."
    shown = {
        True: (B_FASTER, "as predicted", "yes"),
        False: (A_FASTER, "not so", "no"),
        None: (UNDECIDED, "not compared", "–"),
    }
    drawn, rows = [], []
    for one in tree["perturbations"]:
        name, change, ratio, predicted = (one[key] for key in ("name", "change", "measured_ratio", "predicted"))
        verdict, text, agrees = shown[one["agrees"]]
        if ratio is not None:
            drawn.append(RatioRow(change or name, ratio, one["ci95"], verdict, predicted, text))
        figures = number(predicted, ".3f"), number(ratio, ".3f"), interval(one["ci95"])
        rows.append((name, change or "", *figures, agrees, one["unavailable"] or one["why"] or ""))
    headers = ("change", "of", "predicted", "measured", "95 % interval", "as predicted", "why")
    return Document(
        f"{tree['stage']}, measured on this machine, now: {rounds}, interleaved, over {tree['audio']}.",
        [
            Notes(tree["notes"]),
            " ".join(filter(None, (OUTCOMES[tree["survives"]], verdicts, tree["why"]))),
            f"In the session: {tree['sentence']}",
            *([f"Run again: {tree['sentence_now']}"] if tree["sentence_now"] else []),
            Ratios("Measured ratios with intervals; a bar across the row is the prediction", drawn),
            Table("Time with the change over time without it", headers, rows, (-1,)),
        ],
    )
