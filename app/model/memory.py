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

TITLES: Final = {  # The components in their order from below; together they are the resident memory
    FILES: "files of libraries",
    LIBRARIES: "Python and libraries",
    "model": "acoustic model",
    "graph": "search graph",
    "tokens": "tokens and histories",
    "lattice": "lattice",
    "frontend": "front end",
    "recorder": "recorder",
}

LARGEST: Final = 3  # Components that a line names


def memory(session: Session) -> Tree | None:
    """The key `memory` of a report: bytes; None where nothing was read."""
    read, peaks = resources.parts(session), resources.peaks(session)
    read = {name: one for name, one in read.items() if len(one.values)}
    if not read or peaks is None:
        return None
    about = session.meta.get("memory") or {}
    reserved, mapped = about.get("reserved", {}), about.get("mappings", {})
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
        used = {name: one["used_bytes"] for name, one in about["components"].items()}
        on_device = f", {size(used[DEVICE])} on the device" if DEVICE in used else ""
        found.append(
            f"memory: {size(about['resident_bytes'])} resident ({largest(used)}){on_device}; "
            f"{_most(about['peak_at_load_bytes'], about['peak_bytes'])}; "
            f"{growth_text(about['growth_bytes_per_audio_hour'])}"
        )
    return found + cost_lines(tree.get("cost"))


def cost_lines(about: Tree | None) -> list[str]:
    """What the key `cost` says, a line, or none where no processor time was recorded."""
    if not about or about["core_s_per_audio_hour"] is None:
        return []
    energy, joules = f"energy unknown: {about['energy']}", about["joules_per_audio_hour"]
    if joules is not None:
        energy = f"{joules:.0f} J of the processor package beyond its {about['idle_watts']:.1f} W when idle"
    return [f"cost per hour of audio: {about['core_s_per_audio_hour']:.0f} core-seconds, {energy}"]


def largest(used: Mapping[str, float]) -> str:
    """The components with most memory, with their bytes."""
    most = sorted(used.keys() & TITLES.keys(), key=lambda name: -used[name])[:LARGEST]
    return ", ".join(f"{TITLES[name]} {size(used[name])}" for name in most)


def most_text(session: Session) -> str:
    return _most(*(resources.peaks(session) or (0.0, 0.0)))


def _most(at_load: float, in_all: float) -> str:
    return f"at most {size(at_load)} during set-up, {size(in_all)} in all"


def growth(session: Session) -> Mapping[str, float] | None:
    """Growth of the resident memory per audio hour: likely, low, high; None where that is not known."""
    read = resources.parts(session)
    known = [read[name] for name in TITLES if name in read]
    return _slope(resources.growth(resources.total(known))) if known else None


def growth_text(slope: Mapping[str, float] | None) -> str:
    """How the memory grows, with the interval."""
    if slope is None:
        return "too little audio to tell whether it grows"
    ends = f"95 %: {signed(slope['low'])} to {signed(slope['high'])}"
    if slope["low"] <= 0 <= slope["high"]:
        return f"no growth per hour of audio ({ends})"
    change = "growth" if slope["likely"] > 0 else "decline"
    return f"{change} per hour of audio {signed(abs(slope['likely']))} ({ends})"


def size(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 9.95e6 else f"{count / 1e6:.1f} MB"


def signed(count: float) -> str:
    text = f"{count / 1e6:.1f}"
    return "0 MB" if text in ("0.0", "-0.0") else f"{text.replace('-', '−')} MB"


def _slope(slope: Slope | None) -> dict[str, float] | None:
    return None if slope is None else slope._asdict()
