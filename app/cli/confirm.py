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

from __future__ import annotations

import argparse
import tempfile
from contextlib import closing
from pathlib import Path

from app.cli import _again, _output
from app.model.report import Tree
from app.model.report_lines import number
from profiler.plain import counted


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    parser.add_argument("stage", metavar="STAGE", help="a stage, named as in `asrscope show`")
    help = "where a file is now that the session names; can be repeated"
    _output.repeatable(parser, "--set", "key=PATH", help)
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rerun the stage and report."""
    from profiler.analysis.breakdown import breakdown
    from profiler.errors import BadInput
    from profiler.session.reader import Session

    moved = _again.moved_files(arguments.set)
    with closing(Session.open(arguments.session)) as session:
        again = _again.prepare(session)
        parts = breakdown(session, again.first_frame, again.last_frame)
        spoken, path = session.utterances, session.path
        again = _again.with_moved_files(again, session, moved)
    row = next((row for row in parts.stages if row.name == arguments.stage), None)
    if row is None:
        names = ", ".join(row.name for row in parts.stages)
        raise BadInput(f"There is no stage {arguments.stage!r} in {path}; it has {names}.")
    from pipelines.experiments import perturb, rerun
    from profiler.analysis.comparison.perturbation import conclude

    with _again.interruptible() as (progress, cancelled), tempfile.TemporaryDirectory() as folder:
        stretch = rerun.audio_of(rerun.items_of(spoken, path), Path(folder))
        threads = again.config.threads
        wanted = [threads - 1, threads, threads + 1] if row.group == "scoring" else [threads]
        roof_table = _again.roof_table(wanted, progress, cancelled)
        found = perturb.confirm(again.config, row, stretch, roof_table, progress, cancelled)
    survives, why = conclude(row.verdict, found.perturbations)
    now = found.unchanged
    tree: Tree = {
        "schema": 1,
        "session": str(path),
        "stage": row.name,
        "verdict": row.verdict,
        "evidence": row.evidence,
        "sentence": row.sentence,
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
    _output.print_report(tree, arguments.json, as_text)
    return 0


def as_text(tree: Tree) -> str:
    """The report as text."""
    lines = [
        f"{tree['stage']}: {tree['verdict'] or 'no verdict'} · {tree['evidence']}",
        f"  in the session: {tree['sentence']}",
    ]
    if tree["sentence_now"]:
        lines.append(f"  run again:      {tree['sentence_now']} ({tree['verdict_now']})")
    if tree["rounds"]:
        lines.append(f"  {counted(tree['rounds'], 'round', 'rounds')}, interleaved, of {tree['audio']}.")
    lines += [
        *(f"  {note}" for note in tree["notes"]),
        "",
        f"{'change':14} {'':24} {'predicted':>9} {'measured':>9}  {'95 %':15} agrees",
    ]
    for p in tree["perturbations"]:
        if p["unavailable"]:
            lines.append(f"{p['name']:14} unavailable: {p['unavailable']}")
            continue
        interval = "–" if p["ci95"] is None else "{:.3f}…{:.3f}".format(*p["ci95"])
        agrees = {True: "yes", False: "no", None: "–"}[p["agrees"]]
        lines.append(
            f"{p['name']:14} {p['change'] or '':24} {number(p['predicted'], '.3f'):>9} "
            f"{number(p['measured_ratio'], '.3f'):>9}  {interval:15} {agrees}: {p['why']}"
        )
    verdict = {
        True: "survives",
        False: "does not survive",
        None: "is neither confirmed nor refuted",
    }
    lines += ["", f"The verdict {verdict[tree['survives']]}."]
    return _output.page(lines)
