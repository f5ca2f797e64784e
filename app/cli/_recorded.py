"""What verbs take of recorded sessions: what `ab` and `audit` run, what `confirm`, `explain` and `whatif` need to run
it again, and the option --select."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from app.cli import _output, _pipeline
from pipelines import config as settings
from pipelines.config import Config, Value
from pipelines.config.presets import Preset
from profiler.errors import BadInput

if TYPE_CHECKING:
    from app.model.report import Selected
    from pipelines.run.playlist import Item
    from profiler.machine.roofs.table import RoofTable
    from profiler.session.reader import Session


@dataclass(frozen=True)
class Chosen:
    """The preset of arm A and that of arm B; what was decoded, empty unless sessions say it; and what to report."""

    arms: tuple[Preset, Preset]
    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser, sessions: int) -> None:
    """Add --session, which takes one file or two."""
    help = "settings, audio and transcripts of a recorded session"
    if sessions == 2:
        help += "; of two, arm A has the settings of the first and arm B those of the second"
    parser.add_argument("--session", metavar="FILE.asrs", nargs=1 if sessions == 1 else "+", help=help)


def chosen(arguments: argparse.Namespace) -> Chosen:
    """What the arguments say, with the --set assignments applied. BadInput where sessions cannot be run again."""
    if not arguments.session:
        preset = _pipeline.preset(arguments)
        return Chosen((preset, preset))
    if arguments.preset is not None or arguments.config is not None:
        raise BadInput("--session brings its own settings; give either it or --preset or --config.")
    if len(arguments.session) > 2:
        raise BadInput(f"--session takes the session of arm A and that of arm B, not {len(arguments.session)} files.")
    from pipelines.experiments.ab import recorded
    from profiler.session.reader import Session

    changes = dict(settings.parse_assignment(text) for text in arguments.set)
    with ExitStack() as stack:
        sessions = [stack.enter_context(Session.open(path)) for path in arguments.session]
        ran = recorded(sessions, changes)
        name = str(sessions[0].meta.get("preset", ""))
    arms = [settings.assign(config, changes) for config in ran.configs]
    a, b = (Preset(name, name, "", config) for config in arms)
    # Other sound is decoded where it is named.
    return Chosen((a, b), () if arguments.audio or arguments.transcripts else ran.items, ran.notes)


def add_select(parser: argparse.ArgumentParser) -> None:
    help = "a stretch FROM..TO, an utterance, a stage, or the note of a bookmark (bookmark:NOTE)"
    parser.add_argument("--select", metavar="WHAT", action="append", help=help)


def selected(arguments: argparse.Namespace, session: Session) -> Selected:
    """What is selected in a session; BadInput for what is not there."""
    from app.model.report import ALL

    if not arguments.select:
        return ALL
    from app.pictures.request import selected_of
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    return selected_of(arguments.select, session, int(track.n_frames))


@dataclass(frozen=True)
class Again:
    """The settings that ran longest in a session, the frames they ran for, and what to report."""

    config: Config
    first_frame: int | None
    last_frame: int | None
    notes: list[str] = field(default_factory=list)


def prepare(session: Session, moved: Mapping[str, Value] | None = None) -> Again:
    """What to run again, with the settings `moved` of files that are elsewhere now; BadInput if there is nothing."""
    from pipelines.experiments import rerun
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    if not track.n_frames:
        raise BadInput(f"{session.path} contains no decoded frames, so there is nothing to run again.")
    # An A/B of one utterance within a run has an end, and the run around it.
    if "ended" not in session.meta.get("ab", {"ended": None}):
        raise BadInput(f"{session.path} contains two interleaved configurations; use a session of `asrscope run`.")
    if not session.calibration:
        raise BadInput(
            f"{session.path} contains no measured roofs of its machine, so nothing can be predicted "
            "from it; record it again."
        )
    config, first, last = rerun.settings_of(session.configs, track.n_frames)
    again = Again(config, None, None)
    if len(session.configs) > 1:
        note = (
            f"The settings changed while the session ran; frames {first} to {last} are taken, "
            "the longest stretch under one configuration."
        )
        again = Again(config, first, last, [note])
    if moved is None:
        return again
    return with_files(replace(again, config=settings.assign(config, moved)), session, moved)


def moved_files(texts: Iterable[str]) -> dict[str, Value]:
    """What --set says of files that a session names and that lie elsewhere now; BadInput for other settings."""
    from profiler.files import paths

    found: dict[str, Value] = {}
    for text in texts:
        key, value = settings.parse_assignment(text)
        if (option := settings.option(key)) not in settings.of_files():
            names = ", ".join(option.key for option in settings.of_files())
            raise BadInput(
                f"--set {key}: a session brings its own settings; beside it --set says only where its files are now "
                f"({names})."
            )
        found[option.key] = value if value in option.shipped() else paths.kept(str(value))
    return found


def with_files(again: Again, session: Session, moved: Mapping[str, Value]) -> Again:
    """The same with the files found that its settings name; `moved`: settings for those that are gone."""
    from pipelines.experiments import rerun

    config, notes = rerun.named_files(again.config, session.path, moved)
    return replace(again, config=config, notes=[*again.notes, *notes])


def roof_table(threads: Iterable[int], progress: _output.Progress, cancelled: Callable[[], bool]) -> RoofTable:
    """The roofs of this machine for these numbers of threads, if it has that many; measured unless known."""
    from pipelines.scoring import peaks
    from profiler.machine.roofs import calibration
    from profiler.machine.roofs.table import RoofTable

    found = RoofTable()
    for count in threads:
        if 1 <= count <= (os.cpu_count() or 1):
            some = calibration.load_or_measure(
                count,
                lambda what, fraction: progress(f"measuring the machine: {what}", fraction),
                cancelled,
                kernels=peaks.everywhere(),
            )
            found = found.merged(some)
    return found


@contextmanager
def interruptible() -> Iterator[tuple[_output.Progress, Callable[[], bool]]]:
    """Progress on stderr, and whether Ctrl+C or another signal asks to stop; a second one ends the process at once."""
    from profiler.errors import Cancelled
    from profiler.process import signals

    with signals.stopping() as stop, _output.Progress() as progress:
        try:
            yield progress, stop.requested
        except Cancelled:
            raise signals.Ended(stop.number or signal.SIGINT) from None
