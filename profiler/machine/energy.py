"""Energy of the processor package from the powercap files of the kernel (RAPL), joules since the first reading by zone.

The files count microjoules and begin again at their maximum. Since 2020 they are for root alone (CVE-2020-8694), and
virtual machines have none: `probe` says why.
"""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

POWERCAP: Final = Path("/sys/class/powercap")

COUNTER: Final = "energy_uj"
RANGE: Final = "max_energy_range_uj"
PACKAGE: Final = re.compile(r"energy\.package-\d{1,3}_joules")  # Samples of packages, cores and memory included
IDLE: Final = "energy"  # Key of a session's meta: what `idle` returns
IDLE_SECONDS: Final = 1.0  # RAPL counts anew every millisecond: this is known to a thousandth

Reading = Callable[[], Mapping[str, float]]


class Zone(NamedTuple):
    """A part of the machine whose energy is counted: a package, its cores, its memory."""

    name: str
    folder: Path
    unreadable: str  # Why it cannot be read; empty where it can

    @property
    def sample(self) -> str:
        return f"energy.{self.name}_joules"


def zones(root: Path = POWERCAP) -> list[Zone]:
    """Return the zones that the kernel shows, readable or not; empty where it shows none."""
    found: dict[str, Zone] = {}
    try:
        folders = sorted(folder for folder in root.iterdir() if (folder / COUNTER).exists())
    except OSError:
        return []
    for folder in folders:
        name = _name(folder, root)
        while name in found:
            name += "'"
        problem = ""
        try:
            _number(folder / COUNTER)
            _number(folder / RANGE)
        except PermissionError:
            problem = (
                f"{folder / COUNTER} is readable only by root; `sudo chmod a+r {root}/*/{COUNTER}` "
                "allows it until the next start"
            )
        except (OSError, ValueError) as error:
            problem = f"{folder / COUNTER} cannot be read: {error}"
        found[name] = Zone(name, folder, problem)
    return [*found.values()]


def probe(root: Path = POWERCAP) -> tuple[bool, str]:
    """Return whether energy can be read here, and a sentence with the source or the reason."""
    found = zones(root)
    if readable := [zone.name for zone in found if not zone.unreadable]:
        return True, f"joules of {', '.join(readable)}"
    if found:
        return False, found[0].unreadable
    if root.is_dir():
        return False, f"{root} shows no zone that counts energy (no RAPL driver)"
    return False, f"there is no {root} here (virtual machines and other systems have none)"


def readings(root: Path = POWERCAP) -> dict[str, Reading]:
    """Return what a Sampler can read: `energy.ZONE_joules` since the first reading, by zone."""
    return {f"energy {zone.name}": _counter(zone) for zone in zones(root) if not zone.unreadable}


def packages(root: Path = POWERCAP) -> Callable[[], float] | None:
    """What reads the joules of all packages since now; None where none can be read."""
    found = [_counter(zone) for zone in zones(root) if not zone.unreadable and PACKAGE.fullmatch(zone.sample)]
    return (lambda: sum(sum(read().values()) for read in found)) if found else None


def idle(root: Path = POWERCAP, seconds: float = IDLE_SECONDS) -> dict[str, float | str]:
    """Wait; return `watts` of all packages, `busy_percent` of processors, and `text`: source, or at once the reason."""
    joules = packages(root)
    if joules is None:
        return {"text": probe(root)[1]}
    import psutil  # here, as who reads sessions does without

    psutil.cpu_percent()
    begin = time.monotonic()
    time.sleep(seconds)
    watts = joules() / (time.monotonic() - begin)
    return {"text": probe(root)[1], "watts": watts, "busy_percent": psutil.cpu_percent()}


def _counter(zone: Zone) -> Reading:
    """What reads the joules of a zone since now, its turns taken into account."""
    most = _number(zone.folder / RANGE)
    last, total = _number(zone.folder / COUNTER), 0

    def read() -> Mapping[str, float]:
        nonlocal last, total
        before, last = last, _number(zone.folder / COUNTER)
        # Where it has passed its maximum it has begun again at 0.
        total += last - before + (most + 1 if last < before else 0)
        return {zone.sample: total / 1e6}

    return read


def _name(folder: Path, root: Path) -> str:
    """Return `package-0`, or `package-0.core` for a zone within another (intel-rapl:0:1)."""
    parent = folder.name.rpartition(":")[0]
    within = f"{_label(root / parent)}." if ":" in parent and (root / parent).exists() else ""
    return within + _label(folder)


def _label(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "name").read_text().strip() or folder.name
    return folder.name


def _number(path: Path) -> int:
    return int(path.read_text())
