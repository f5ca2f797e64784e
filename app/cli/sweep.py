"""Try settings one after the other, and find which are best: the Pareto front of time, word errors, memory and latency.

    asrscope sweep --over search.beam=8..14 --over block=8,16,32 --png front.png
    asrscope sweep --preset dnn --over dnn.net=base,small --over frames.skip=1..3 --constraint 'wer<=0.2' --trials 30
    asrscope sweep --over search.beam=8..14 --audio corpus/ --transcripts corpus/transcripts.tsv --out beams --json
    asrscope sweep --over search.beam=8..14 --server ~/hq --parallel 4 --out beams

Optuna's sampler chooses the settings; if all combinations fit into --trials, each is tried once. A trial is an
`asrscope run` between two runs of the reference (preset and --set), and its times are ratios to these. A trial whose
reference drifts is repeated. What may be on the front is compared with the reference in turns, like `asrscope ab`,
which gives the intervals.

--out names a folder, the study: sessions, a report and Optuna's journal. The same command with the same --out goes on
after a stop; `asrscope open` shows it in the window. --server runs the trials on the workers of a running HyperQueue
server, which see this folder and this program under the same paths; each trial has its worker alone. Needs the extra
`sweep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline
from app.model import study_texts
from app.model.document import Document
from app.model.report import Tree
from app.model.study import REPORT, study_of, write_csv
from pipelines import config as settings
from profiler.errors import BadInput, Cancelled

if TYPE_CHECKING:
    from pipelines.experiments.sweep.folder import Sweep
    from pipelines.experiments.sweep.home import Engine
    from pipelines.experiments.sweep.study import Study, Trial

REPEATS = 5  # One to warm up, and four whose differences are the noise
TRIALS = 24
PARALLEL = 2
MOST_TRIALS = 10_000
SIZE = (960, 600)


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser)
    parser.set_defaults(repeat=REPEATS)
    help = "a setting to vary: values, or a range of numbers; can be repeated"
    _output.repeatable(parser, "--over", "KEY=a,b,c|KEY=lo..hi", help)
    help = f"how many settings to try (default: {TRIALS})"
    _output.number_flag(parser, "--trials", 1, MOST_TRIALS, help, TRIALS)
    help = "what is to be low, of rtf, wer, memory, latency (default: rtf,wer)"
    parser.add_argument("--objectives", metavar="NAMES", default="rtf,wer", help=help)
    help = "what a trial on the front must hold: seconds, bytes or a share; can be repeated"
    _output.repeatable(parser, "--constraint", "NAME<=NUMBER", help)
    parser.add_argument("--server", metavar="DIR", help="the folder of a running HyperQueue server")
    help = f"with --server: how many trials run at once (default: {PARALLEL})"
    _output.number_flag(parser, "--parallel", 1, 1000, help, PARALLEL)
    parser.add_argument("--out", metavar="STUDY", help="folder of the study; a study that is there already goes on")
    _output.picture_arguments(parser, "draw the trials and the front as a PNG")
    parser.add_argument("--csv", metavar="F", help="write a row for each trial with its settings and figures")
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Try, confirm and report."""
    sweep = _sweep(arguments)
    from pipelines.experiments.sweep.folder import opened
    from pipelines.experiments.sweep.home import Cluster, Home
    from pipelines.experiments.sweep.study import Study, StudyRun, plan_grid
    from pipelines.experiments.sweep.trial import write_json
    from profiler.files.paths import new_session_path
    from profiler.process import signals

    named = Path(arguments.out) if arguments.out is not None else new_session_path("sweep").with_suffix(".sweep")
    folder, server = named.absolute(), arguments.server
    # What goes on with the study on this machine, but for its folder; nothing if a server has its trials.
    command = [] if server is not None else _command(arguments, sweep)
    with _output.Progress() as progress, signals.stopping() as stop:
        engine: Engine = Home() if server is None else Cluster(Path(server).absolute(), arguments.parallel)
        with opened(folder, sweep, _output.complain) as storage:
            study = Study(folder, sweep, storage)
            wanted = plan_grid(study, arguments.trials)

            def report(stage: str, fraction: float | None) -> None:
                write_json(folder / REPORT, _report(study, command))
                progress(stage, fraction)

            try:
                StudyRun(study, engine, report, stop.requested).run(wanted)
                status = 0
            except Cancelled:
                status = stop.status
            tree = _report(study, command, complete=not status)
            write_json(folder / REPORT, tree)
    if arguments.png:
        from app.pictures.drawings import drawings_picture

        hosts = ", ".join(sorted({row["host"] for row in tree["trials"] if row["host"]}))
        origin = {"file": tree["study"]} | ({"on": hosts} if hosts else {})
        drawings_picture(document(tree), origin, arguments.png, SIZE, theme=arguments.theme)
    if arguments.csv:
        write_csv(study_of(tree), arguments.csv)
    _output.print_report(tree, arguments, document)
    if status:
        _output.complain("stopped; the same command with --out goes on with the study.")
    return status


def _sweep(arguments: argparse.Namespace) -> Sweep:
    from pipelines.experiments.sweep import space

    axes = space.parse_axes(arguments.over)
    objectives = space.parse_objectives(arguments.objectives)
    constraints = tuple(space.parse_constraint(text) for text in arguments.constraint)
    if _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--audio - can be read once, and a sweep decodes it in every trial; name a file.")
    if arguments.server is not None and (timed := [c.name for c in constraints if c.name in space.TIMES]):
        raise BadInput(f"--constraint {timed[0]}: a time on one worker says nothing about another; leave out --server.")
    preset = _pipeline.preset(arguments)
    for key, wanted in (("loop", False), ("pace", 0.0)):
        if settings.get(preset.config, key) != wanted:
            raise BadInput(f"A sweep needs runs that end, as fast as possible: {key} must be {str(wanted).lower()}.")
    request = _pipeline.request(arguments, preset)
    items = tuple(request.playlist.items)
    if "wer" in (*objectives, *(c.name for c in constraints)) and not any(item.reference for item in items):
        raise BadInput("Word errors need --transcripts; without them give --objectives rtf.")
    from pipelines.experiments.sweep.folder import Sweep
    from profiler.process import children

    words = _pipeline.source(arguments, preset)
    if arguments.audio:
        words += ["--audio", *(str(Path(name).absolute()) for name in arguments.audio)]
    if arguments.transcripts is not None:
        words += ["--transcripts", str(Path(arguments.transcripts).absolute())]
    return Sweep(
        reference=preset.config,
        axes=axes,
        objectives=objectives,
        constraints=constraints,
        items=items,
        program=tuple(children.python("-m", "app.cli.main")),
        words=tuple(words),
        repeat=arguments.repeat,
    )


def _command(arguments: argparse.Namespace, sweep: Sweep) -> list[str]:
    words = [*sweep.words, "--repeat", str(sweep.repeat), "--trials", str(arguments.trials)]
    words += [word for axis in sweep.axes for word in ("--over", axis.text)]
    words += ["--objectives", ",".join(sweep.objectives)]
    return words + [word for text in arguments.constraint for word in ("--constraint", text)]


def _report(study: Study, command: Sequence[str], complete: bool = False) -> Tree:
    from pipelines.experiments.sweep.judge import Confirmed, Failed

    touching = study.touching()
    front = []
    for point in study.front():
        outcome = study.confirmations.get(point.trial)
        ratio, ends = (outcome.ratio, list(outcome.ci95)) if isinstance(outcome, Confirmed) else (None, None)
        row = {"trial": point.trial, "rtf_ratio": ratio, "rtf_ratio_ci95": ends, "touches": touching[point.trial]}
        front.append(row | {"why": outcome.why if isinstance(outcome, Failed) else None})
    return {
        "schema": 1,
        "study": str(study.folder),
        "objectives": list(study.sweep.objectives),
        "constraints": [f"{c.name}<={c.limit:g}" for c in study.sweep.constraints],
        "unfinished": len(study.unfinished()),
        "trials": [_row(trial) for trial in study.trials()],
        "front": front,
        "importance": study.importance(),
        "command": list(command),
        "complete": complete,
    }


def _row(trial: Trial) -> Tree:
    keys = ("rtf", "rtf_ratio", "wer", "cer", "memory_bytes", "latency_s", "latency_ratio", "session", "host")
    return {
        "id": trial.number,
        "state": trial.state,
        "settings": trial.chosen,
        **{key: None if trial.figures is None else getattr(trial.figures, key) for key in keys},
        "why": trial.why,
    }


def document(tree: Tree) -> Document:
    return study_texts.document(study_of(tree))
