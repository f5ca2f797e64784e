"""A run of a lab from start to end: parameters and memory checked, session opened, measured, judged, closed.

The session is like that of any run, with the fact `lab` (`pipelines.labs.record`) in its meta.
"""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pipelines import labs
from pipelines.config.options import Value, assign, check, fitted, options_of
from pipelines.labs import record
from pipelines.labs.declaration import Measured, Parameters
from pipelines.labs.desk import Desk, computing_on
from pipelines.labs.verdicts import Finding
from profiler.errors import BadInput, Cancelled
from profiler.machine import describe
from profiler.machine.describe import usable_cores
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import size_text
from profiler.machine.sampler import watching
from profiler.plain import one_line
from profiler.process import limits
from profiler.session.writer import NullWriter, SessionWriter
from profiler.spans import Lane, NullLane, Recorder

SPARE: Final = 0.8  # Of the memory that is free, the most that a lab may need: the rest is for what is not counted
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Request:
    """Which lab, with what changed of its parameters, into which session (None: recorded nowhere)."""

    name: str
    assignments: Mapping[str, Value]
    out: Path | None
    audio: Sequence[str] = ()
    transcripts: str | None = None
    replace: bool = False


@dataclass
class Outcome:
    """How a run ended: closed (judged), stopped (by the user) or failed (reason in `problem`)."""

    name: str
    session: Path | None
    state: str
    finding: Finding | None = None
    problem: str | None = None
    measured: Measured | None = None


def execute(
    request: Request,
    progress: Progress = lambda what, share: None,
    stopping: Callable[[], bool] = lambda: False,
    running: Callable[[Path | None], None] = lambda session: None,
) -> Outcome:
    """Run `request`; `running` is called when the session exists and can be followed.

    Raises BadInput or OSError (one sentence) for what makes the run impossible, such as parameters that do not fit
    or need more memory than there is. Once it measures, problems end up in the outcome, and the session is valid.
    """
    lab = labs.load(request.name)
    parameters = check(assign(lab.parameters, request.assignments))
    needed, free = lab.bytes_needed(parameters), psutil.virtual_memory().available
    if needed > SPARE * free:
        raise BadInput(
            f"With these sizes {request.name} needs {needed:,} bytes ({size_text(needed)}) of memory, and of the "
            f"{size_text(free)} that are free it may take {SPARE:.0%}; choose smaller sizes."
        )
    recorder = Recorder()
    lane: Lane | NullLane = NullLane()
    journal: SessionWriter | NullWriter = NullWriter()
    watched: AbstractContextManager[object] = nullcontext()
    if request.out is not None:
        meta = {
            "preset": "",
            "argv": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "machine": describe.describe(),
            "versions": describe.versions(),
            record.KEY: record.stored(request.name, parameters),
        }
        journal = SessionWriter(request.out, recorder, meta, replace=request.replace)
        lane, watched = recorder.lane("lab", decode=True), watching(journal)
    running(request.out)
    outcome = Outcome(request.name, request.out, "failed")
    gc.collect()
    gc.freeze()  # no garbage collection over what was loaded before
    try:
        desk = Desk(recorder, lane, journal, progress, stopping, request.audio, request.transcripts)
        progress("preparing", None)
        # A lab whose `threads` is 0 takes all.
        threads = int(getattr(parameters, "threads", 1)) or usable_cores() or 1
        with computing_on(threads), watched:
            outcome.measured = lab.measure(parameters, desk)
        outcome.finding = lab.judge(outcome.measured)
        outcome.state = "closed"
    except Cancelled:
        outcome.state = "stopped"
    except (BadInput, OSError) as problem:
        outcome.problem = limits.sentence(problem)
    finally:
        gc.unfreeze()
        fact = record.stored(request.name, parameters, outcome.measured, outcome.finding, outcome.problem or "")
        journal.meta(record.KEY, fact)
        journal.calibration(calibration.stored().rows())
        journal.close(outcome.state)
    if journal.failed:
        outcome.state, outcome.problem = "failed", str(journal.failed)
    return outcome


def assignments_of(parameters: Parameters, texts: Sequence[str]) -> dict[str, Value]:
    """Parse `--set key=value` for these parameters; raises BadInput for what does not fit."""
    options = {option.key: option for option in options_of(type(parameters))}
    assigned: dict[str, Value] = {}
    for text in texts:
        key, equals, value = map(str.strip, text.partition("="))
        if not equals or key not in options:
            keys = ", ".join(options) or "no keys"
            raise BadInput(f"--set must be key=value with one of {keys}, not {one_line(text, 60)!r}.")
        assigned[key] = fitted(options[key], value)
    return assigned
