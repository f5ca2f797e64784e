"""Measure what a configuration costs in accuracy: its scores and words compared with exact scoring.

    asrscope audit --set gmm.selection.method=top-n
    asrscope audit --preset gmm --set frames.skip=2 --audio corpus/ --transcripts corpus/transcripts.tsv
    asrscope audit --set gmm.senones=ci --set gmm.ci_beam=10 --json
    asrscope audit --preset dnn --set dnn.dtype=int8 --set dnn.senones=active
    asrscope audit --session run.asrs                      settings, audio and transcripts of a session

Nothing is timed. Each file is decoded with the configuration, and again with every senone of every frame computed
by all Gaussians or by the whole net in float32 (same model, graph and search settings). The JSON object has

    score_error_near       mean |difference| in nat over senones within near_nat of the frame's best
    score_error_asked      the same over the senones that the search looked up
    largest_error_near     the largest of the former
    same_best_senone       share of frames whose best senone is the exact one
    wer, wer_exact         word error rates; null without transcripts
    cer                    of the transcripts without spaces between words, whose characters count as words
    wer_change             wer − wer_exact, with wer_change_ci95 [low, high]: paired bootstrap over utterances
    wer_words              words of the transcripts
    transcribed            utterances that have a transcript, of how many
    notes                  what was left out of the transcripts
    shares                 work done / exact work: gaussians, senones, components, exponentials
    frames_copied          share of the frames with the scores of another frame
    work, exact_work       all work counts
    utterances             id, frames, hypothesis, exact (its words), reference, errors, exact_errors
    frames, refused        number compared; a sentence for each file that could not be read
    config                 the settings
    approximations         those of them that make scoring inexact

A lazy configuration (gmm.senones or dnn.senones = active) computes only the active senones and is compared on those.
"""

import argparse
import math
from typing import Final

from app.cli import _output, _pipeline, _recorded
from app.model import report_lines
from app.model.document import Document, Drawing, Notes, Part, Table, joined, number, percent
from app.model.report import Tree
from pipelines.audio.word_errors import rate_name
from pipelines.config import value_text
from pipelines.labs.chart import Axis, Bars, Chart
from profiler.errors import BadInput
from profiler.plain import counted

ROOM: Final = 0.2  # Of the axis of shares, above all that exact scoring does: figures stand there


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser, repeat=False)
    _recorded.add_arguments(parser, 1)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Audit and report."""
    chosen = _recorded.chosen(arguments)
    if chosen.arms[0] != chosen.arms[1]:
        raise BadInput("An A/B session has two configurations; use a session of `asrscope run`.")
    request = _pipeline.request(arguments, chosen.arms[0], items=chosen.items)
    from pipelines.experiments import audit

    if arguments.session and not audit.approximations(request.config):
        raise BadInput(
            f"{arguments.session[0]} was scored exactly, every Gaussian or the whole net for every frame, so there is "
            "nothing to audit."
        )
    with _recorded.interruptible() as (progress, cancelled):
        found = audit.audit(request.config, request.playlist.items, progress, cancelled)
    tree = audit.report(found) | {"notes": [*chosen.notes, *request.playlist.notes]}
    _output.print_report(tree, arguments, document)
    for sentence in found.refused:
        _output.complain(sentence)
    return 2 if found.refused else 0


def document(tree: Tree) -> Document:
    """What the configuration costs in scores and words, and the work that it saves."""
    utterances = tree["utterances"]
    of = counted(len(utterances), "utterance", "utterances")
    settings = (f"{key}={value_text(value)}" for key, value in tree["approximations"].items())
    differ = sum(one["hypothesis"] != one["exact"] for one in utterances)
    parts: list[Part] = [
        Notes(tree["notes"]),
        f"Scores: {_nat(tree['score_error_near'])} off on average, within {tree['near_nat']:g} nat of the best senone, "
        f"which is the exact one in {percent(tree['same_best_senone'])} of the frames; "
        f"{_nat(tree['score_error_asked'])} off for active senones.",
        _words(tree),
        f"The words differ from those of exact scoring in {differ} of {of}.",
    ]
    work = {name.capitalize(): share for name, share in tree["shares"].items()}
    if work:
        said = f"{', '.join(f'{name} {percent(share)}' for name, share in work.items())}."
        percents = tuple(100 * share for share in work.values())
        axis = Axis("work done, of exact scoring", "%", low=0.0, high=max(100.0, *percents) * (1 + ROOM))
        chart = Chart(Axis("", categories=tuple(work)), axis, (Bars("work", percents),))
        parts += [f"Work done, of exact scoring: {said}", Drawing("Work done, of exact scoring", chart, said)]
    if tree["frames_copied"]:
        parts.append(f"Frames copied: {percent(tree['frames_copied'])}.")
    keys = ("id", "exact_errors", "errors", "reference", "exact", "hypothesis")
    headers = ("utterance", "errors exact", "errors", "reference", "exact scoring", "this configuration")

    def gain(one: Tree) -> float:
        return math.inf if one["errors"] is None else one["exact_errors"] - one["errors"]

    worst_first = sorted(utterances, key=gain)
    rows = [[one[key] if "errors" in key else one[key] or "–" for key in keys] for one in worst_first]
    parts.append(Table("Words of each utterance, the worst first", headers, rows, (3, 4, 5), aside=True))
    return Document(joined(*settings, of, f"{tree['frames']} frames"), parts)


def _words(tree: Tree) -> str:
    if tree["wer"] is None:
        return "Without transcripts the word errors are not known."
    ends = tree["wer_change_ci95"]
    between = "" if ends is None else ", 95 % interval {:+.1f} … {:+.1f}".format(*(100 * end for end in ends))
    name = rate_name(tree["wer"], tree["cer"])
    unit = ("character", "characters") if name == "CER" else ("word", "words")
    return (
        f"{name} {percent(tree['wer_exact'])} exact → {percent(tree['wer'])}: {100 * tree['wer_change']:+.1f} points"
        f"{between}, over {counted(tree['wer_words'], *unit)}{report_lines.transcribed(tree)}."
    )


def _nat(value: float | None) -> str:
    return number(value, ".3g", " nat")
