"""Where numbers come from: session, configuration, machine, versions, command; no measured figures. No Qt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipelines import config as settings
from pipelines.config import Config, ConfigError, presets
from profiler.errors import BadInput
from profiler.plain import one_line

if TYPE_CHECKING:
    from app.model.audio_choice import AudioChoice
    from pipelines.labs.record import Record
    from profiler.session.reader import Session


MAX_CHARACTERS = 2000  # Maximum characters of each part: a command line has a few hundred
INNER: Final = frozenset(  # Parts of the provenance that are in the file alone, or in a caption of their own
    ("versions", "command", "range", "cursor", "selection", "settings", "changes", "drift", "drawn with", "drawn by")
)


def provenance_of(session: Session, tree: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Where the numbers of a session come from, most important first; `tree`: its settings, without it the last."""
    meta = session.meta
    if tree is None:
        tree = session.configs[-1].tree if session.configs else {}
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]
    found = {
        "session": meta.get("session_id"),
        "file": Path(session.path).name,
        "recorded": _time_text(meta.get("created_wall")),
        "preset": meta.get("preset"),
        "config": digest if tree else "",
        "machine": " + ".join(filter(None, (_machine_text(meta.get("machine") or {}), *device_names(session)))),
        "asrscope": meta.get("asrscope_version"),
        "versions": ", ".join(f"{name} {version}" for name, version in (meta.get("versions") or {}).items()),
        "command": " ".join(meta.get("argv") or ()),
    }
    return {key: one_line(value, MAX_CHARACTERS) for key, value in found.items() if value}


def measured_on(machine: Mapping[str, Any], measured_at: float | None) -> dict[str, str]:
    """Return where figures outside a session come from: machine, time, libraries."""
    versions = machine.get("versions", {})
    found = {
        "machine": _machine_text(machine, "usable"),
        "measured": _time_text(measured_at),
        **{name: versions[name] for name in ("numpy", "numba", "torch") if name in versions},
    }
    return {key: value for key, value in found.items() if value}


def caption(provenance: Mapping[str, str]) -> str:
    """Return the caption of a picture: the provenance in the given order, without long internal parts."""
    shown = {key: value[:8] if key == "session" else value for key, value in provenance.items() if key not in INNER}
    return " · ".join(text if key in ("file", "machine", "cpu") else f"{key} {text}" for key, text in shown.items())


def device_names(session: Session) -> list[str]:
    return [row["name"] for row in (session.meta.get("devices") or {}).values() if "name" in row]


def _machine_text(machine: Mapping[str, Any], kind: str = "logical") -> str:
    cpu, cores = machine.get("cpu"), machine.get("cores")
    number = cores.get(kind) if isinstance(cores, dict) else cores
    return f"{cpu}, {number} cores" if cpu and number else str(cpu or "")


def _time_text(seconds: float | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else ""


def origin(session: Session, run: Record | None) -> Iterator[tuple[str, str]]:
    """When and where it was recorded, and with what settings: as far as the session says."""
    known = provenance_of(session)
    for key in ("recorded", "machine", "asrscope", "versions"):
        if key in known:
            yield key, known[key]
    if session.state != "closed":
        yield "state", session.state
    if run is not None:
        from pipelines.labs import record

        yield "parameters", ", ".join(record.settings(run)) or "none"
    elif session.configs:
        yield from _settings(session)
    if "session" in known:
        yield "id", known["session"]


def _settings(session: Session) -> Iterator[tuple[str, str]]:
    """The preset and what differs from it in the end; all settings where the preset is not known here."""
    preset = session.meta.get("preset") or ""
    if preset:
        yield "preset", preset
    when = "" if len(session.configs) == 1 else " at the end"
    config, text = _last_config(session), "of another version"
    if config is not None:
        changed = differing(config, preset)
        text = ", ".join(all_set(config) if changed is None else changed) or "as in the preset"
    yield f"settings{when}", text


def _last_config(session: Session) -> Config | None:
    with suppress(ConfigError):
        return settings.from_dict(session.configs[-1].tree)
    return None


def command(session: Session, run: Record | None) -> list[str]:
    """The command that records it again (of a window's session: its settings at the end); empty where unknown."""
    words = session.meta.get("argv") or []
    if words[:1] == ["asrscope"]:
        return list(words)
    if run is not None:
        from pipelines.labs import record

        return record.command(run)
    audio, preset = session.meta.get("audio") or [], session.meta.get("preset") or ""
    config = _last_config(session) if audio and session.configs else None
    changed = None if config is None else differing(config, preset)
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
        with Session.open(path) as session:
            track.update(session)
            if track.n_frames or session.state == "recording":
                return False
        for file in own_files(path):
            file.unlink(missing_ok=True)
    except (BadInput, OSError):
        return False
    return True


def all_set(config: Config) -> list[str]:
    return [_assignment(config, option.key) for option in settings.options() if settings.get(config, option.key) != ""]


def differing(config: Config, preset: str) -> list[str] | None:
    """The active settings that differ from a preset, as key=value; None if there is no such preset."""
    if preset not in presets.names():
        return None
    bases = [presets.load(preset).config]
    with suppress(ConfigError):
        # What the model folder brings would replace what equals the preset.
        bases.append(settings.with_folder(bases[0], config.model_directory, bases[0]))
    return [
        _assignment(config, option.key)
        for option in settings.options()
        if any(settings.get(config, option.key) != settings.get(base, option.key) for base in bases)
        and settings.unavailable_reason(config, option.key) is None
    ]


def words_of_run(config: Config, preset: str, audio: AudioChoice | None) -> list[str]:
    """The arguments of the command line for a preset with these settings, but those of `COURSE`, and for its audio."""
    changed = differing(config, preset)
    texts = all_set(config) if changed is None else changed
    of_work = [text for text in texts if text.partition("=")[0] not in settings.COURSE]
    words = ["--preset", preset, *(word for text in of_work for word in ("--set", text))]
    if audio is not None and not audio.bundled:
        words += ["--audio", *audio.paths]
        words += [] if audio.transcripts is None else ["--transcripts", audio.transcripts]
    return words


def _assignment(config: Config, key: str) -> str:
    return f"{key}={settings.value_text(settings.get(config, key))}"
