"""The limit of processor time that a container has, and for how long it was held up by it (Linux, cgroup v1 and v2).

`cpu.max`, or `cpu.cfs_quota_us` and `cpu.cfs_period_us`, is the limit of a group of processes. `cpu.stat` counts for
how long a group that had used it up was not run. Groups that a group lies in may have limits of their own.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path("/")  # Where `proc` and the mounts lie; tests put their own here

STAT: Final = "cpu.stat"
_NS: Final = {"throttled_time": 1, "throttled_usec": 1000}
"""What `cpu.stat` calls the time in which the group was held up, and ns of its unit (v1, v2)."""
_ROOM: Final = 1024


class Limit(NamedTuple):
    """Processors that a group may use at once in the mean, and the folder that says so."""

    cores: float
    folder: Path


def limits() -> list[Limit]:
    return sorted(limit for folder in _folders() if (limit := _limit(folder)) is not None)


def cores() -> float | None:
    """The tightest limit, in processors; None without one."""
    return next((limit.cores for limit in limits()), None)


def text() -> str:
    """The tightest limit in words: 1.5 cores; "none" without one."""
    found = cores()
    return "none" if found is None else f"{found:.3g} {'core' if found == 1 else 'cores'}"


class Throttling:
    """Counts for how long the groups with a limit were held up; where there is none it never reads anything."""

    def __init__(self) -> None:
        self._files: list[int] = []
        for limit in limits():
            with suppress(OSError):
                self._files.append(os.open(limit.folder / STAT, os.O_RDONLY))

    @property
    def limited(self) -> bool:
        return bool(self._files)

    def total_ns(self) -> int:
        """Since the groups were made; of several processors that were held up at the same time the sum."""
        total = 0
        for file in self._files:
            for line in os.pread(file, _ROOM, 0).splitlines():
                name, _, value = line.decode().partition(" ")
                with suppress(ValueError):
                    total += int(value) * _NS.get(name, 0)
        return total

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())


def _folders() -> list[Path]:
    """The folders of the groups of this process that a limit may be in, each with those that it lies in."""
    found: list[Path] = []
    for path, mount, root in _groups():
        # A group outside of what is mounted here is shown as the mount itself.
        inside = path.removeprefix(root.rstrip("/")) if path.startswith(root) and ".." not in path else "/"
        folder, top = ROOT / f"{mount}{inside}".lstrip("/"), ROOT / mount.lstrip("/")
        found += [each for each in (folder, *folder.parents) if each.is_relative_to(top) and each not in found]
    return found


def _groups() -> list[tuple[str, str, str]]:
    """The group that controls processor time, where its hierarchy is mounted, and which group is the mount's root."""
    found: list[tuple[str, str, str]] = []
    with suppress(OSError, ValueError, IndexError):
        own = [line.split(":", 2) for line in _text(ROOT / "proc/self/cgroup").splitlines()]
        for line in _text(ROOT / "proc/self/mountinfo").splitlines():
            about, _, kind = line.partition(" - ")
            root, mount = about.split(" ")[3:5]
            name, *_, options = kind.split(" ")
            for number, controllers, path in own:
                both = "cpu" in controllers.split(",") and "cpu" in options.split(",")
                if (name == "cgroup2" and number == "0") or (name == "cgroup" and both):
                    found.append((path, mount, root))
    return found


def _limit(folder: Path) -> Limit | None:
    with suppress(OSError, ValueError, ZeroDivisionError):
        if (folder / "cpu.max").exists():
            quota, period = _text(folder / "cpu.max").split()
        else:
            quota, period = (_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota.strip() not in ("max", "-1"):
            return Limit(int(quota) / int(period), folder)
    return None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
