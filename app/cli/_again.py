"""What `confirm` and `whatif` need of a session before its pipeline is run again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.cli import _output

if TYPE_CHECKING:
    from pipelines.config import Config
    from profiler.machine.roofs.peaks import Peaks
    from profiler.session.reader import Session


@dataclass(frozen=True)
class Again:
    """The settings that ran longest in a session, the frames they ran for, and what should be said."""

    config: Config
    first_frame: int | None
    last_frame: int | None
    notes: list[str] = field(default_factory=list)


def prepare(session: Session) -> Again:
    """Find what to run again. BadInput (one sentence) when there is nothing to start from."""
    from pipelines.experiments import rerun
    from profiler.analysis.track import CostTrack
    from profiler.errors import BadInput

    track = CostTrack()
    track.update(session)
    if not track.n_frames:
        raise BadInput(f"{session.path} holds no decoded frames, so there is nothing to go by.")
    if session.meta.get("ab"):
        raise BadInput(
            f"{session.path} holds two configurations in turns; take a session of `asrscope run`."
        )
    if not session.calibration:
        raise BadInput(
            f"{session.path} holds no measured peaks of its machine, so nothing can be predicted "
            "from it; record it again."
        )
    config, first, last = rerun.settings_of(session.configs, track.n_frames)
    notes = []
    if len(session.configs) > 1:
        notes.append(
            f"The settings changed while the session ran; frames {first} to {last} are taken, "
            "the longest stretch under one configuration."
        )
        return Again(config, first, last, notes)
    return Again(config, None, None, notes)


def peaks(
    threads: Iterable[int], progress: Callable[..., None], cancelled: Callable[[], bool]
) -> Peaks:
    """The roofs of this machine with so many threads, as far as it has them; measured unless known."""
    from pipelines.scoring import roofs
    from profiler.machine.roofs import calibration
    from profiler.machine.roofs.peaks import Peaks

    found = Peaks()
    for count in threads:
        if 1 <= count <= (os.cpu_count() or 1):
            some = calibration.load_or_measure(
                count,
                lambda what, fraction: progress(f"measuring the machine: {what}", fraction),
                cancelled,
                kernels=roofs.KERNELS,
            )
            found = found.merged(some)
    return found


@contextmanager
def interruptible() -> Iterator[tuple[_output.Progress, Callable[[], bool]]]:
    """Progress on stderr, and whether Ctrl+C or another signal asks to stop; a second one is not patient."""
    from profiler.errors import Cancelled
    from profiler.process import signals

    asked, progress = threading.Event(), _output.Progress()
    with signals.stopping(asked.set) as stop:
        try:
            yield progress, asked.is_set
        except Cancelled:
            raise signals.Ended(stop.number or signal.SIGINT) from None
        finally:
            progress.done()
