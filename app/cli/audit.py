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

from __future__ import annotations

import argparse

from app.cli import _again, _output, _pipeline, _recorded
from app.model import report_lines
from app.model.figures import rate_name
from app.model.report import Tree
from profiler.errors import BadInput
from profiler.plain import counted


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser, repeat=False)
    _recorded.add_arguments(parser, 1)
    _output.json_flag(parser)


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
    with _again.interruptible() as (progress, cancelled):
        found = audit.audit(request.config, request.playlist.items, progress, cancelled)
    tree = audit.report(found) | {"notes": [*chosen.notes, *request.playlist.notes]}
    _output.print_report(tree, arguments.json, as_text)
    for sentence in found.refused:
        _output.complain(sentence)
    return 2 if found.refused else 0


def as_text(tree: Tree) -> str:
    """The report as text."""
    lines = [
        f"{tree['frames']} frames in {counted(len(tree['utterances']), 'file', 'files')}",
        f"score error       {_nat(tree['score_error_near'])} within {tree['near_nat']:g} nat of the best, "
        f"{_nat(tree['score_error_asked'])} for active senones",
        f"same best senone  {_percent(tree['same_best_senone'])} of the frames",
    ]
    for name, share in tree["shares"].items():
        lines.append(f"{name + ' computed':17} {_percent(share)}")
    if tree["frames_copied"]:
        lines.append(f"{'frames copied':17} {_percent(tree['frames_copied'])}")
    if tree["wer"] is None:
        lines.append("word errors       unknown: no transcripts")
    else:
        change = f"{100 * tree['wer_change']:+.1f} points"
        if tree["wer_change_ci95"]:
            low, high = (100 * end for end in tree["wer_change_ci95"])
            change += f", 95 % interval {low:+.1f} … {high:+.1f}"
        lines.append(
            f"{rate_name(tree['wer'], tree['cer']):17} {_percent(tree['wer'])}, exact {_percent(tree['wer_exact'])} "
            f"({change}; {counted(tree['wer_words'], 'word', 'words')}{report_lines.transcribed(tree)})"
        )
    lines += [f"note: {note}" for note in tree["notes"]]
    return _output.page(lines)


def _nat(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g} nat"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
