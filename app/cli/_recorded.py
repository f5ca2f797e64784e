"""What `ab` and `audit` run: a preset or configuration file, or what recorded sessions ran."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.cli import _pipeline
from pipelines import config as settings
from pipelines.config.presets import Preset
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.run.playlist import Item


@dataclass(frozen=True)
class Chosen:
    """The preset of arm A and that of arm B; what was decoded, empty unless sessions say it; and what to report."""

    arms: tuple[Preset, Preset]
    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser, sessions: int) -> None:
    """Add --session, which takes up to `sessions` files."""
    parser.add_argument(
        "--session",
        metavar="FILE.asrs",
        nargs=1 if sessions == 1 else "+",
        help="settings, audio and transcripts of a recorded session"
        + ("" if sessions == 1 else "; of two, arm A has the settings of the first and arm B those of the second"),
    )


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
        sessions = [stack.enter_context(closing(Session.open(path))) for path in arguments.session]
        ran = recorded(sessions, changes)
        name = str(sessions[0].meta.get("preset", ""))
    arms = [settings.assign(config, changes) for config in ran.configs]
    a, b = (Preset(name, name, "", config) for config in arms)
    # Other sound is decoded where it is named.
    return Chosen((a, b), () if arguments.audio or arguments.transcripts else ran.items, ran.notes)
