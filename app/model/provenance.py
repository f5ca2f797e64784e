"""Where the numbers of a picture come from: session, configuration, machine, versions, command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.session.reader import Session


MAX_CHARACTERS = 2000  # Maximum characters of each part: a command line has a few hundred

INNER: Final = frozenset(
    {
        *("versions", "command", "range", "cursor", "selection", "settings", "changes", "drift"),
        *("drawn with", "drawn by"),
    }
)
"""Parts of the provenance that are in the file alone, or in a caption of their own."""


def provenance_of(session: Session, tree: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return where the numbers of a session come from, most important first.

    `tree`: the configuration that is meant; the last one if None.
    """
    meta: dict[str, Any] = session.meta
    machine = meta.get("machine")
    machine = machine if isinstance(machine, dict) else {}
    versions = meta.get("versions")
    versions = versions if isinstance(versions, dict) else {}
    if tree is None:
        tree = session.configs[-1].tree if session.configs else {}
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]
    found = {
        "session": str(meta.get("session_id") or ""),
        "file": Path(session.path).name,
        "recorded": _time_text(meta.get("created_wall")),
        "preset": str(meta.get("preset") or ""),
        "config": digest if tree else "",
        "machine": " + ".join(filter(None, (_machine_text(machine), *device_names(session)))),
        "asrscope": str(meta.get("asrscope_version") or ""),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "command": _command_text(meta.get("argv")),
    }
    return {key: one_line(value, MAX_CHARACTERS) for key, value in found.items() if value}


def measured_on(machine: Mapping[str, Any], measured_at: float | None) -> dict[str, str]:
    """Return where figures outside a session come from: machine, time, libraries."""
    cores = machine.get("cores", {}).get("usable")
    versions = machine.get("versions", {})
    found = {
        "machine": f"{machine.get('cpu', '')}, {cores} cores" if cores else machine.get("cpu", ""),
        "measured": _time_text(measured_at),
        **{name: versions[name] for name in ("numpy", "numba", "torch") if name in versions},
    }
    return {key: value for key, value in found.items() if value}


def caption(provenance: Mapping[str, str]) -> str:
    """Return the caption of a picture: the provenance in the given order, without long internal parts."""
    parts = []
    for key, value in provenance.items():
        if key in INNER:
            continue
        short = value[:8] if key == "session" else value
        parts.append(short if key in ("file", "machine", "cpu") else f"{key} {short}")
    return " · ".join(parts)


def device_names(session: Session) -> list[str]:
    devices = session.meta.get("devices")
    rows = devices.values() if isinstance(devices, dict) else ()
    return [row["name"] for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)]


def _machine_text(machine: Mapping[str, Any]) -> str:
    cpu = machine.get("cpu")
    if isinstance(cpu, dict):
        cpu = cpu.get("model") or cpu.get("name")
    cores = machine.get("cores")
    if isinstance(cores, dict):
        cores = cores.get("logical") or cores.get("physical")
    return f"{cpu}, {cores} cores" if cpu and cores else str(cpu or "")


def _time_text(seconds: object) -> str:
    if not isinstance(seconds, int | float) or not 0 < seconds < 1e11:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _command_text(argv: object) -> str:
    return " ".join(str(part) for part in argv) if isinstance(argv, list) else str(argv or "")
