"""What a session says of itself: when, where and with what settings it was recorded, the command to do it again, and
whether anything was decoded.

No Qt, and no figure of what was measured (`app.model.report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from app.model import pipeline
from app.model.provenance import provenance_of
from pipelines import config as settings
from pipelines.config import Config, ConfigError
from pipelines.labs import record
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.labs.record import Record
    from profiler.session.reader import Session


def origin(session: Session, run: Record | None) -> Iterator[tuple[str, str]]:
    """When and where it was recorded, and with what settings: as far as the session says."""
    known = provenance_of(session)
    for key in ("recorded", "machine", "asrscope", "versions"):
        if key in known:
            yield key, known[key]
    if session.state != "closed":
        yield "state", session.state
    if run is not None:
        yield "parameters", ", ".join(record.settings(run)) or "none"
    elif session.configs:
        yield from _settings(session)
    if "session" in known:
        yield "id", known["session"]


def _settings(session: Session) -> Iterator[tuple[str, str]]:
    """The preset and what differs from it in the end; all settings where the preset is not known here."""
    preset = str(session.meta.get("preset") or "")
    if preset:
        yield "preset", preset
    when = "" if len(session.configs) == 1 else " at the end"
    config = _last_config(session)
    if config is None:
        yield f"settings{when}", "of another version"
        return
    changed = pipeline.differing(config, preset)
    if changed is None:
        yield f"settings{when}", ", ".join(pipeline.all_set(config))
    else:
        yield f"settings{when}", ", ".join(changed) or "as in the preset"


def _last_config(session: Session) -> Config | None:
    """The settings at the end; None where this version cannot read them."""
    with suppress(ConfigError):
        return settings.from_dict(session.configs[-1].tree)
    return None


def command(session: Session, run: Record | None) -> list[str]:
    """The command that records it again (of a window's session: its settings at the end); empty where unknown."""

    words = session.meta.get("argv") or []
    if words and words[0] == "asrscope":
        return [str(word) for word in words]
    if run is not None:
        return record.command(run)
    audio, preset = session.meta.get("audio"), str(session.meta.get("preset") or "")
    if not audio or not session.configs:
        return []
    config = _last_config(session)
    changed = None if config is None else pipeline.differing(config, preset)
    if changed is None:
        return []
    sets = [word for text in changed for word in ("--set", text)]
    return ["asrscope", "run", "--preset", preset, *sets, "--audio", *audio]


def remove_if_empty(path: Path) -> bool:
    """Remove the session of a run that is over and decoded no frame; whether it was one. Others are left alone."""
    from profiler.analysis.track import CostTrack
    from profiler.session.files import own_files
    from profiler.session.reader import Session

    track = CostTrack()
    try:
        with closing(Session.open(path)) as session:
            track.update(session)
            if track.n_frames or session.state == "recording":
                return False
        for file in own_files(path):
            file.unlink(missing_ok=True)
    except (BadInput, OSError):
        return False
    return True
