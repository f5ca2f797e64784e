"""Predict what a session would cost with a faster stage or another setting, and check it.

    asrscope whatif run.asrs --scale scoring=0                 scoring free
    asrscope whatif run.asrs --scale search=0.5                search twice as fast
    asrscope whatif run.asrs --scale transfer=0                host-device copies removed
    asrscope whatif run.asrs --scale memory=0.25               memory of scoring four times as fast
    asrscope whatif run.asrs --set block=64 --check            batch 64, predicted and run
    asrscope whatif run.asrs --set gmm.selection.enabled=true --set frames.skip=2 --check --json

FACTOR multiplies time: 0 is free, 0.5 twice as fast, 2 half as fast. STAGE is a stage as `asrscope show` names
it, a group (frontend, scoring, search, transfer, overhead) or a part of scoring (compute, memory,
unexplained = not attributed) or of all stages (other_programs, throttled).
--set tries both settings in turns on a few seconds of the session's audio, some rounds of it, and scales the session's
stages by what changed there; it says so where a setting cannot be tried.
--check decodes the same seconds again, in more rounds, with an interval, and counts the word errors of the files that
fit whole into them.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import _output, _recorded
from app.model.document import Document, RatioRow, Ratios, Table, interval, number
from app.model.report import Tree, fields
from app.model.report_lines import words_changed
from pipelines import config as settings
from profiler.plain import counted

if TYPE_CHECKING:
    from pipelines.experiments.rerun import Arm, Stretch
    from profiler.analysis.comparison.statistics import Ratio
    from profiler.analysis.whatif import Prediction


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    help = "multiply the time of a stage, group or part of scoring; can be repeated"
    _output.repeatable(parser, "--scale", "STAGE=FACTOR", help)
    _output.repeatable(parser, "--set", "key=value", "change a setting; can be repeated")
    help = "run what --set changes, and show the result next to the prediction"
    parser.add_argument("--check", action="store_true", help=help)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict, perhaps check, and report."""
    from profiler.analysis import whatif
    from profiler.analysis.breakdown import breakdown
    from profiler.clock import FRAME_S
    from profiler.errors import BadInput
    from profiler.session.reader import Session

    if not arguments.scale and not arguments.set:
        raise BadInput("Give --scale STAGE=FACTOR or --set key=value, otherwise there is nothing to predict.")
    if arguments.check and not arguments.set:
        raise BadInput("--check runs what --set changes; a stage that is only scaled cannot be run.")
    factors = [whatif.parse_factor(text) for text in arguments.scale]
    assignments = dict(settings.parse_assignment(text) for text in arguments.set)
    with ExitStack() as stack:
        session = stack.enter_context(Session.open(arguments.session))
        again = _recorded.prepare(session)
        start = whatif.unchanged(breakdown(session, again.first_frame, again.last_frame))
        whatif.scaled(start, factors)  # a wrong name is found before anything slow
        settings.assign(again.config, assignments)
        if assignments:
            from pipelines.experiments import rerun

            given = {settings.option(key).key: value for key, value in assignments.items()}
            if changed := [key for key in settings.SOUND if key in given]:
                raise BadInput(f"{changed[0]} says what is decoded; what it changes is not predicted.")
            again = _recorded.with_files(again, session, given)
        new = settings.assign(again.config, assignments)
        tree: Tree = {"schema": 1, "session": str(session.path), "check": None}
        progress, cancelled = stack.enter_context(_recorded.interruptible())

        of_settings, without = start, list[str]()
        if assignments:
            from pipelines.experiments.predict import Predictor

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            spoken = rerun.items_of(session.utterances, session.path)
            stretch = rerun.audio_of(spoken, folder)
            predictor = Predictor(again.config, new, session.calibration, stretch, progress, cancelled)
            of_settings, without = predictor.changed(start)
        prediction = whatif.scaled(of_settings, factors)
        tree |= _report(prediction, without, again.notes)
        if arguments.check:
            if stretch.beginning and again.first_frame is None:
                # Of the same frames: other speech has other tokens, and other shares of the time.
                frames = round(stretch.audio_s / FRAME_S)
                start = whatif.unchanged(breakdown(session, 0, frames))
                of_settings, without = predictor.changed(start)
            roof_table = _recorded.roof_table([again.config.threads], progress, cancelled)
            arms = [rerun.Arm("unchanged", again.config), rerun.Arm("changed", new)]
            rounds = rerun.decode(arms, stretch, roof_table, progress, cancelled)
            tree["check"] = _check(arms, stretch, rounds, None if without else of_settings)
    _output.print_report(tree, arguments, document)


def _report(prediction: Prediction, without: list[str], notes: list[str]) -> Tree:
    known = not without
    return {
        "audio_s": prediction.audio_s,
        "wall_s": prediction.wall_ns / 1e9,
        "rtf": prediction.rtf,
        "predicted_wall_s": prediction.predicted_ns / 1e9 if known else None,
        "predicted_rtf": prediction.predicted_rtf if known else None,
        "assumptions": [*notes, *prediction.assumptions, *without],
        "stages": [
            {
                **fields(line, "name", "group"),
                "time_s": line.time_ns / 1e9,
                "predicted_s": line.predicted_ns / 1e9 if known else None,
                "factor": line.factor if known else None,
            }
            for line in prediction.lines
        ],
    }


def _check(arms: list[Arm], stretch: Stretch, rounds: int, prediction: Prediction | None) -> Tree:
    """What came of decoding with both configurations, interleaved; ratios are changed / unchanged."""
    from profiler.analysis.categories import OVERHEAD
    from profiler.analysis.comparison.arms import pairs, total
    from profiler.analysis.recorded import real_time_factor

    unchanged, changed = (arm.times.whole_repeats() for arm in arms)
    found = pairs(unchanged, changed)
    measured = total(found.values()).ratio()
    factors, predicted = dict[str, float | None](), None
    if prediction is not None:
        factors = {line.name: line.factor for line in prediction.lines}
        predicted = prediction.predicted_ns / prediction.wall_ns
    stages = []
    for name in sorted(found.keys() - {OVERHEAD}):
        if (ratio := found[name].ratio()) is not None:
            stages.append({"name": name, "predicted": factors.get(name), **_measured(ratio)})
    return {
        "audio": stretch.note,
        "audio_s": stretch.audio_s,
        "rounds": rounds,
        "rtf": real_time_factor(unchanged.total, stretch.audio_s),
        "changed_rtf": real_time_factor(changed.total, stretch.audio_s),
        "wer_words": arms[0].words,
        "wer_errors": arms[0].errors,
        "changed_wer_errors": arms[1].errors,
        "predicted_ratio": predicted,
        **_measured(measured),
        "difference": measured.ratio / predicted - 1.0 if measured and predicted else None,
        "stages": stages,
    }


def _measured(ratio: Ratio | None) -> Tree:
    return dict.fromkeys(("ratio", "ci95")) if ratio is None else fields(ratio, "ratio", "ci95")


def document(tree: Tree) -> Document:
    """The prediction by stage, and the outcome next to it where it was checked."""
    rtf = f"RTF {number(tree['rtf'], '.4f')} → {number(tree['predicted_rtf'], '.4f')} predicted"
    rows = [
        (
            row["name"],
            *(number(row[key], ".3f", " s") for key in ("time_s", "predicted_s")),
            number(row["factor"], ".2f"),
        )
        for row in tree["stages"]
    ]
    stages = Table("Stages of the session", ("stage", "time", "predicted", "factor"), rows)
    if tree["check"] is None:
        return Document(rtf, [stages, *tree["assumptions"]])
    checked = _checked(tree["check"])
    return Document(checked.summary, [*checked.parts, f"Of the session: {rtf}.", stages, *tree["assumptions"]])


def _drawn(row: Tree, name: str, predicted: float | None) -> RatioRow:
    from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, by_interval
    from profiler.analysis.comparison.statistics import Ratio

    verdict = by_interval(Ratio(row["ratio"], *(row["ci95"] or (None, None))))
    text = {B_FASTER: "faster", A_FASTER: "slower"}.get(verdict, "")
    return RatioRow(name, row["ratio"], row["ci95"], verdict, predicted, text)


def _checked(check: Tree) -> Document:
    each = [(check, "whole run", check["predicted_ratio"])]
    each += [(row, row["name"], row["predicted"]) for row in check["stages"]]
    drawn = [_drawn(*one) for one in each if one[0]["ratio"] is not None]
    between = "" if check["ci95"] is None else f" ({interval(check['ci95'], '.1%')})"
    rows = [
        (row["name"], number(row["predicted"], ".2f"), number(row["ratio"], ".2f"), interval(row["ci95"]))
        for row in check["stages"]
    ]
    headers = ("stage", "predicted", "measured", "95 % interval")
    rounds = counted(check["rounds"], "round", "rounds")
    return Document(
        f"Measured on this machine, now: {rounds}, interleaved, of {check['audio']}.",
        [
            f"Time with the change: {number(check['ratio'], '.1%')}{between} of the time without it; "
            f"the prediction was {number(check['predicted_ratio'], '.1%')}, and the outcome is "
            f"{number(check['difference'], '+.1%')} from it.",
            f"RTF here and now {number(check['rtf'], '.4f')} → {number(check['changed_rtf'], '.4f')}.",
            Ratios("Measured ratios with their intervals; a bar across the row is the prediction", drawn),
            words_changed(check["wer_words"], check["wer_errors"], check["changed_wer_errors"]),
            Table("Time with the change over time without it", headers, rows),
        ],
    )
