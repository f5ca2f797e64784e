"""Where the memory of a run went and what the run cost: the keys of the report, and what is said of them. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from profiler.analysis import resources
from profiler.analysis.resources import Slope
from profiler.machine.memory import DEVICE, FILES, LIBRARIES

if TYPE_CHECKING:
    from app.model.report import Tree
    from profiler.session.reader import Session

TITLES: Final = {
    FILES: "files of libraries",
    LIBRARIES: "Python and libraries",
    "model": "acoustic model",
    "graph": "search graph",
    "tokens": "tokens and histories",
    "lattice": "lattice",
    "frontend": "front end",
    "recorder": "recorder",
}
"""The components in their order from below; together they are the resident memory."""

ON_DEVICE: Final = "on the device"

LARGEST: Final = 3
"""Components and libraries that a line names."""


def memory(session: Session) -> Tree | None:
    """The key `memory` of a report: bytes; None where nothing was read."""
    read, peaks = resources.parts(session), resources.peaks(session)
    read = {name: one for name, one in read.items() if len(one.values)}
    if not read or peaks is None:
        return None
    known = session.meta.get("memory")
    about = known if isinstance(known, Mapping) else {}
    reserved, mapped = about.get("reserved") or {}, about.get("mappings") or {}
    total = resources.total(read[name] for name in TITLES if name in read)
    return {
        "resident_bytes": float(total.values[-1]),
        "peak_bytes": peaks[1],
        "peak_at_load_bytes": peaks[0],
        "growth_bytes_per_audio_hour": _slope(resources.growth(total)),
        "components": {
            name: {
                "used_bytes": float(read[name].values[-1]),
                "most_bytes": float(read[name].values.max()),
                "reserved_bytes": reserved.get(name),
                "growth_bytes_per_audio_hour": _slope(resources.growth(read[name])),
            }
            for name in (*TITLES, DEVICE)
            if name in read
        },
        "mappings": mapped,
    }


def cost(session: Session) -> Tree:
    """The key `cost` of a report: processor time and energy per hour of audio; None where not measured."""
    spent = resources.energy(session)
    return {
        "core_s_per_audio_hour": resources.core_seconds(session),
        "joules_per_audio_hour": spent.joules_per_hour,
        "package_watts": spent.watts,
        "idle_watts": spent.idle_watts,
        "energy": spent.text,
    }


def lines(tree: Tree) -> list[str]:
    """What the two keys say, a line each."""
    found = []
    if about := tree.get("memory"):
        used = {TITLES.get(name, ON_DEVICE): one["used_bytes"] for name, one in about["components"].items()}
        most = sorted((name for name in used if name != ON_DEVICE), key=lambda name: -used[name])[:LARGEST]
        parts = ", ".join(f"{name} {size(used[name])}" for name in most)
        on_device = f", {size(used[ON_DEVICE])} on the device" if ON_DEVICE in used else ""
        found.append(
            f"memory: {size(about['resident_bytes'])} resident ({parts}){on_device}; at most "
            f"{size(about['peak_at_load_bytes'])} during set-up, {size(about['peak_bytes'])} in all; "
            f"{growth_text(about['growth_bytes_per_audio_hour'])}"
        )
    if (about := tree.get("cost")) and about["core_s_per_audio_hour"] is not None:
        found.append(f"cost per hour of audio: {about['core_s_per_audio_hour']:.0f} core-seconds, {_energy(about)}")
    return found


def growth_text(slope: Mapping[str, float] | None) -> str:
    """How the memory grows, with the interval."""
    if slope is None:
        return "too little audio to tell whether it grows"
    ends = f"{signed(slope['low'])} to {signed(slope['high'])}"
    if slope["low"] <= 0 <= slope["high"]:
        return f"no growth found ({ends} per hour of audio)"
    return f"it grows by {signed(slope['likely'])} per hour of audio ({ends})"


def size(count: float) -> str:
    """Bytes as people read them."""
    return f"{count / 1e6:.0f} MB" if count >= 9.95e6 else f"{count / 1e6:.1f} MB"


def signed(count: float) -> str:
    """A growth in MB, to a tenth."""
    text = f"{count / 1e6:.1f}"
    return "0 MB" if text in ("0.0", "-0.0") else f"{text.replace('-', '−')} MB"


def _energy(about: Tree) -> str:
    if about["joules_per_audio_hour"] is None:
        return f"energy unknown: {about['energy']}"
    return (
        f"{about['joules_per_audio_hour']:.0f} J of the processor package beyond its {about['idle_watts']:.1f} W idle"
    )


def _slope(slope: Slope | None) -> dict[str, float] | None:
    return None if slope is None else slope._asdict()
