"""Energy of the processor package from the powercap files of the kernel (RAPL), joules since the first reading by zone.

The files count microjoules and begin again at their maximum. Since 2020 they are for root alone (CVE-2020-8694), and
virtual machines have none: `probe` says why.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

POWERCAP: Final = Path("/sys/class/powercap")

COUNTER: Final = "energy_uj"
RANGE: Final = "max_energy_range_uj"

PACKAGE: Final = re.compile(r"energy\.package-\d{1,3}_joules")
"""The samples of whole packages, which hold those of their cores and memory."""

IDLE: Final = "energy"
"""Key of a session's meta: what `idle` returns."""

IDLE_SECONDS: Final = 1.0
"""RAPL counts anew every millisecond: this is known to a thousandth."""

Reading = Callable[[], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of the machine whose energy is counted: a package, its cores, its memory."""

    name: str
    folder: Path
    readable: bool
    reason: str


def zones(root: Path = POWERCAP) -> list[Zone]:
    """Return the zones that the kernel shows, readable or not; empty where it shows none."""
    found: list[Zone] = []
    try:
        folders = sorted(folder for folder in root.iterdir() if (folder / COUNTER).exists())
    except OSError:
        return []
    taken: set[str] = set()
    for folder in folders:
        name = _name(folder, root)
        while name in taken:
            name += "'"
        taken.add(name)
        try:
            _number(folder / COUNTER)
            _number(folder / RANGE)
        except PermissionError:
            reason = (
                f"{folder / COUNTER} is readable only by root; `sudo chmod a+r {root}/*/{COUNTER}` "
                "allows it until the next start"
            )
            found.append(Zone(name, folder, False, reason))
        except (OSError, ValueError) as error:
            found.append(Zone(name, folder, False, f"{folder / COUNTER} cannot be read: {error}"))
        else:
            found.append(Zone(name, folder, True, f"joules of {name}"))
    return found


def probe(root: Path = POWERCAP) -> tuple[bool, str]:
    """Return whether energy can be read here, and a sentence with the source or the reason."""
    found = zones(root)
    if not found:
        if not root.is_dir():
            return False, f"there is no {root} here (virtual machines and other systems have none)"
        return False, f"{root} shows no zone that counts energy (no RAPL driver)"
    readable = [zone.name for zone in found if zone.readable]
    if readable:
        return True, f"joules of {', '.join(readable)}"
    return False, found[0].reason


def readings(root: Path = POWERCAP) -> dict[str, Reading]:
    """Return what a Sampler can read: `energy.ZONE_joules` since the first reading, by zone."""
    return {f"energy {zone.name}": _Counter(zone).read for zone in _readable(root)}


def packages(root: Path = POWERCAP) -> Callable[[], float] | None:
    """What reads the joules of all packages since now; None where none can be read."""
    found = [counter for counter in map(_Counter, _readable(root)) if PACKAGE.fullmatch(counter.sample)]
    return (lambda: sum(sum(counter.read().values()) for counter in found)) if found else None


def idle(root: Path = POWERCAP, seconds: float = IDLE_SECONDS) -> dict[str, float | str]:
    """Wait, and return the `watts` of all packages meanwhile and for how much of the time processors were busy.

    With a `text` that names the source. Where no package can be read the text says why, and there is no wait.
    """
    joules = packages(root)
    if joules is None:
        return {"text": probe(root)[1]}
    import psutil  # here, as who reads sessions does without

    psutil.cpu_percent()
    begin = time.monotonic()
    time.sleep(seconds)
    watts = joules() / (time.monotonic() - begin)
    return {"text": probe(root)[1], "watts": watts, "busy_percent": psutil.cpu_percent()}


def _readable(root: Path) -> list[Zone]:
    return [zone for zone in zones(root) if zone.readable]


class _Counter:
    """One zone, its turns taken into account."""

    def __init__(self, zone: Zone) -> None:
        self.sample = f"energy.{zone.name}_joules"
        self._file = zone.folder / COUNTER
        self._range = _number(zone.folder / RANGE)
        self._last = _number(self._file)
        self._total = 0

    def read(self) -> Mapping[str, float]:
        now = _number(self._file)
        step = now - self._last
        if step < 0:
            # It has passed its maximum and begun again at 0.
            step += self._range + 1
        self._last = now
        self._total += step
        return {self.sample: self._total / 1e6}


def _name(folder: Path, root: Path) -> str:
    """Return `package-0`, or `package-0.core` for a zone within another (intel-rapl:0:1)."""
    name = _label(folder)
    parent, colon, _ = folder.name.rpartition(":")
    if colon and parent.count(":") >= 1 and (root / parent).exists():
        return f"{_label(root / parent)}.{name}"
    return name


def _label(folder: Path) -> str:
    try:
        text = (folder / "name").read_text().strip()
    except OSError:
        text = ""
    return text or folder.name


def _number(path: Path) -> int:
    return int(path.read_text())
