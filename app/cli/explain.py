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
from contextlib import closing
from pathlib import Path

from app.cli import _again, _output, _pipeline
from app.model import report
from profiler.errors import BadInput
from profiler.plain import counted

RUN = "run"
US = 1e3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("session", metavar="SESSION", help=f"a session file (.asrs), or `{RUN}`")
    parser.add_argument("stage", metavar="STAGE", help="a stage of scoring or search, as in `asrscope show`")
    _pipeline.add_arguments(parser, repeat=False)
    _output.json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay the stage and report."""
    from profiler.session.reader import Session

    notes: list[str] = []
    if arguments.session == RUN:
        request = _pipeline.request(arguments, _pipeline.preset(arguments))
        config, spoken = request.config, request.playlist.items
        origin = RUN
    else:
        _of_a_run_alone(arguments)
        moved = _again.moved_files(arguments.set)
        with closing(Session.open(arguments.session)) as session:
            again = _again.with_moved_files(_again.prepare(session), session, moved)
            config, notes = again.config, again.notes
            utterances, origin = session.utterances, str(session.path)
        from pipelines.experiments import rerun

        spoken = rerun.items_of(utterances, Path(origin))
    from pipelines.experiments import explain, rerun

    with _again.interruptible() as (progress, cancelled), tempfile.TemporaryDirectory() as folder:
        stretch = rerun.audio_of(spoken, Path(folder))
        found = explain.explain(config, arguments.stage, stretch, progress, cancelled)
    row = found.row
    frames = row.work["frames"]
    tree: report.Tree = {
        "schema": 1,
        "session": None if origin == RUN else origin,
        "stage": row.name,
        "verdict": row.verdict,
        "evidence": row.evidence,
        "sentence": row.sentence,
        "us_per_frame": row.time_ns / frames / US,
        "ways": [
            {
                "name": way.name,
                "what": way.shown,
                "us_per_frame": way.ns / US,
                "low": way.low / US,
                "high": way.high / US,
            }
            for way in found.ways
        ],
        "waiting": dict(zip(("low", "likely", "high"), found.waiting, strict=True)),
        **report.intervals(row.parts),
        "conclusion": found.conclusion,
        "audio_s": stretch.audio_s,
        "audio": stretch.note if origin != RUN else f"{stretch.audio_s:.1f} s of audio",
        "rounds": found.rounds,
        "blocks": found.blocks,
        "notes": notes,
    }
    _output.print_report(tree, arguments.json, as_text)
    return 0


def _of_a_run_alone(arguments: argparse.Namespace) -> None:
    """Raise BadInput if settings are given with a session, which has its own."""
    names = ("preset", "config", "audio", "transcripts")
    if given := [f"--{name}" for name in names if getattr(arguments, name)]:
        raise BadInput(
            f"A session brings its own settings and audio; {', '.join(given)} can only be given with `{RUN}` "
            "in place of SESSION."
        )


def as_text(tree: report.Tree) -> str:
    """The report as text."""
    from profiler.analysis.categories import PART_NAMES

    lines = [
        f"{tree['stage']}: {tree['verdict'] or 'no verdict'} · {tree['evidence']}",
        f"  {tree['sentence']}",
        f"  {counted(tree['rounds'], 'round', 'rounds')} over {tree['audio']}; of each, "
        f"{counted(tree['blocks'], 'block', 'blocks')} done again.",
        *(f"  {note}" for note in tree["notes"]),
        "",
        f"{'replayed':26} {'µs a frame':>10}  {'interquartile range':27} of the run",
    ]
    whole = tree["ways"][0]["us_per_frame"]
    for way in tree["ways"]:
        ends = f"{way['low']:.2f} … {way['high']:.2f}"
        share = way["us_per_frame"] / whole
        lines.append(f"{way['name']:26} {way['us_per_frame']:>10.2f}  {ends:27} {share:>6.2f}  {way['what']}")
    if tree["parts"]:
        total = sum(tree["parts"].values())
        lines += ["", f"{'by its cost law':26} {'share':>10}  interval"]
        for key, value in tree["parts"].items():
            low, high = tree["parts_low"][key] / total, tree["parts_high"][key] / total
            if max(value / total, high) >= 0.005:
                name = PART_NAMES[key.removesuffix("_s")]
                lines.append(f"{name:26} {value / total:>10.1%}  {low:.1%} … {high:.1%}")
    lines += ["", tree["conclusion"]]
    return _output.page(lines)
