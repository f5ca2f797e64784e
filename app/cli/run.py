"""Run a pipeline without a window and record a session.

    asrscope run
    asrscope run --preset gmm --audio my.wav --set search.beam=10 --out my.asrs
    asrscope run --audio corpus/ --transcripts corpus/transcripts.tsv --json
    asrscope run --audio call.wav --set audio.channel=each
    ffmpeg -i talk.m4a -f wav - | asrscope run --audio -
    asrscope run --transcripts data/test/text
    asrscope run --on gpu --preset dnn --set device=cuda --out gpu.asrs

The last but one decodes the audio named by Kaldi's wav.scp (and segments) next to `text`; docs/formats.md lists the
formats. The last runs on the machine that ssh calls gpu, and records the session here; docs/other-machines.md.
The speech is decoded once, also with a preset that begins again and again in the window: `--set loop=true` does so
here. Without --out the session is saved in the same folder as those of the window, and its path is printed. Ctrl+C
stops after the current block and leaves a valid session.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.cli import _output, _pipeline, tail
from app.model import report, report_lines
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.config import Config
    from pipelines.run.control import Control
    from pipelines.run.recogniser import Progress
    from pipelines.run.session_run import Outcome

DECODING: Final = "decoding"  # What a run says when all is prepared
WAITING_S: Final = 0.2  # Between two looks whether a run that waits is to stop


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser)
    parser.add_argument("--out", metavar="FILE.asrs", help="session file to write")
    help = "the same run without recorder and session, to measure the cost of the recorder"
    parser.add_argument("--no-profile", action="store_true", help=help)
    help = "file or pipe for the partial results of a stream (stream.chunk_ms), a line of JSON each"
    parser.add_argument("--partials", metavar="FILE", help=help)
    help = "prepare, then decode from the first line on standard input until its end: several runs can begin at once"
    parser.add_argument("--wait", action="store_true", help=help)
    help = "run on that machine, as ssh knows it; all files but --out are files there"
    parser.add_argument("--on", metavar="HOST", help=help)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Decode and report."""
    if arguments.on is not None:
        return tail.run_there(arguments)
    chosen = _pipeline.preset(arguments)
    if arguments.wait and _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--wait and --audio - both read standard input; name a file of sound.")
    name = None if arguments.no_profile else chosen.name
    request = _pipeline.request(arguments, chosen, name)
    from pipelines.run.session_run import execute
    from profiler.process import signals
    from profiler.session.reader import Session

    try:
        with (
            _control(arguments.partials) as control,
            _output.Progress() as progress,
            signals.stopping(control.stop) as stop,
        ):
            outcome = execute(request, control, _waiting(control, progress) if arguments.wait else progress)
    except Exception:
        if arguments.out is None and request.out is not None:
            from app.model.provenance import remove_if_empty

            remove_if_empty(request.out)
        raise
    if request.out is None:
        tree = _without_session(outcome, chosen.config)
    else:
        with Session.open(request.out) as session:
            tree = report.report(session)
    _output.print_report(tree, arguments, report_lines.document)
    if request.out is not None and not arguments.json:
        print(f"session: {request.out}")
    return _pipeline.status(outcome.state, outcome.problems, stop)


def _waiting(control: Control, progress: Progress) -> Progress:
    """`progress` that holds up decoding until standard input has a line; the run stops where that ends."""
    begun = threading.Event()

    def follow() -> None:
        # Not sys.stdin: a thread that waits there holds a lock that the end of the process needs.
        while piece := os.read(0, 1):
            if piece == b"\n":
                begun.set()
        control.stop()

    threading.Thread(target=follow, daemon=True).start()

    def step(stage: str, fraction: float | None = None) -> None:
        progress(stage, fraction)
        while stage == DECODING and not control.stopping and not begun.wait(WAITING_S):
            pass

    return step


@contextmanager
def _control(partials: str | None) -> Iterator[Control]:
    """The control of the run; it writes the partial results of a stream to a file or pipe, if there is one."""
    from pipelines.run.control import Control

    if partials is None:
        yield Control()
        return
    with open(partials, "w", encoding="utf-8") as file:

        class Writing(Control):
            def show(self, utterance: str, text: str, chunk: int) -> None:
                print(json.dumps({"utterance": utterance, "text": text, "chunk": chunk}), file=file, flush=True)

        yield Writing()


def _without_session(outcome: Outcome, config: Config) -> report.Tree:
    """The report of a run without a session: what the decode loop itself knows."""
    from pipelines.audio.word_errors import transcribed, word_errors
    from pipelines.config import to_dict
    from profiler.analysis.recorded import real_time_factor
    from profiler.machine.describe import describe

    result = outcome.result
    audio_s = sum(u.audio_s for u in result.utterances)
    recorded = ("session", "stopped_s", "latency", "memory", "cost", "latency_s", "shares", "categories", "recorder")
    return {
        "schema": 1,
        **dict.fromkeys(recorded),
        "state": outcome.state,
        "audio_s": audio_s,
        "wall_s": result.wall_ns / 1e9,
        "setup_s": outcome.setup_ns / 1e9,
        "idle_s": result.idle_ns / 1e9,
        "rtf": real_time_factor(result.wall_ns, audio_s),
        **report.words(word_errors(result.utterances)),
        "transcribed": transcribed(result.utterances)._asdict(),
        "notes": list(outcome.notes),
        "utterances": [report.utterance(u, u.alternatives) | {"stream": u.stream} for u in result.utterances],
        "stages": [],
        "config": to_dict(config),
        "machine": describe(),
    }
