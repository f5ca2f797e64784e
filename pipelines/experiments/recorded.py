"""What recorded sessions ran, to run it again on this machine: settings of one or two arms, and what was decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PureWindowsPath
from typing import Final

import assets
from pipelines import config as settings
from pipelines.config import Config, Value
from pipelines.experiments import rerun
from pipelines.run.playlist import Item
from profiler.analysis.comparison.arms import arms_of
from profiler.errors import BadInput
from profiler.files import inputs, paths
from profiler.plain import one_line
from profiler.session.reader import Session

VOICES: Final = ("assets", "speech")
"""The folders of the bundled voices, wherever the program lay that decoded them."""


@dataclass(frozen=True)
class Recorded:
    """Settings of arm A and arm B, without pace and loop; what was decoded, once each; and what to report."""

    configs: tuple[Config, Config]
    items: tuple[Item, ...]
    notes: tuple[str, ...]


def recorded(sessions: Sequence[Session], moved: Mapping[str, Value]) -> Recorded:
    """What one or two sessions ran.

    One session has the same settings in both arms; if it is an A/B session, those of its arms. `moved`: where files
    are now that the settings name. Raises BadInput (one sentence) where settings, audio or these files are missing.
    """
    each = [_configs(session) for session in sessions]
    if len(sessions) > 1:
        for session, configs in zip(sessions, each, strict=True):
            if len(configs) > 1:
                raise BadInput(f"{session.path} is an A/B session; its arms are compared with each other alone.")
    places = [session for session, configs in zip(sessions, each, strict=True) for _ in configs]
    made, notes = [], []
    for config, session in zip([config for configs in each for config in configs], places, strict=True):
        there, of_files = rerun.named_files(config, session.path, moved)
        made.append(settings.replace(settings.replace(there, "pace", 0), "loop", False))
        notes += of_files
    return Recorded((made[0], made[-1]), _spoken(sessions), tuple(dict.fromkeys(notes)))


def _configs(session: Session) -> list[Config]:
    """The settings of a session: of its two arms, or those that ran longest."""
    if "ended" in session.meta.get("ab", {"ended": None}):  # an A/B within a run has an end, and the run around it
        frames = max((u.end_frame for u in session.utterances), default=0)
        return [rerun.settings_of(session.configs, frames)[0]]
    return [settings.from_dict(arm.config, "the session's configuration") for arm in arms_of(session)]


def _spoken(sessions: Sequence[Session]) -> tuple[Item, ...]:
    """What the first session decoded whose audio is all here, with the transcripts."""
    why = ""
    for session in sessions:
        done = [utterance for utterance in session.utterances if utterance.done]
        items = [_with_bundled(item) for item in rerun.items_of(done, session.path)]
        once = list({(item.path, item.part): item for item in items}.values())
        gone = [item for item in once if not (paths.of_this_machine(item.path) and inputs.regular(item.path))]
        if once and not gone:
            return tuple(once)
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            what = f"The audio of {session.path} is not here ({one_line(str(gone[0].path))}{more})"
        else:
            what = f"{session.path} holds no utterance that was decoded to its end"
        why = why or f"{what}, so it cannot be decoded again."
    raise BadInput(why)


def _with_bundled(item: Item) -> Item:
    """The item, with the bundled voice of that name in place of one of another copy of the program."""
    path = PureWindowsPath(item.path)  # takes both kinds of slashes
    here = assets.path("speech") / path.name
    if path.parts[-3:-1] == VOICES and not inputs.regular(item.path) and inputs.regular(here):
        return replace(item, path=here)
    return item
