"""The folder of a capacity: what was measured, and with which settings, so that the same command goes on.

study.json     what is measured, on which sound and how many cores, by which version
first/1.json   a run of the sound as fast as possible: how many words it has
levels/8-2/    the second measurement of 8 streams: the report of each, and result.json, written last
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pipelines.experiments.capacity.streams import RESULT, Level
from pipelines.experiments.sweep.folder import held
from profiler.files import paths
from profiler.files.inputs import InputError, read_struct
from profiler.plain import one_line

LEVELS: Final = "levels"


class About(msgspec.Struct, frozen=True):
    """What makes two studies the same: settings as text by key, sound as digest."""

    version: str
    machine: str
    cores: int
    seconds: float | None
    settings: dict[str, str]
    sound: str


@dataclass(frozen=True)
class Kept:
    """A measurement and the folder of its reports."""

    level: Level
    folder: Path


def opened(folder: Path, about: About) -> AbstractContextManager[None]:
    """Hold the study in `folder`, or make it. BadInput where it is another one, or another process works on it."""
    return held(folder, about, "capacity", _difference)


def kept(folder: Path) -> dict[int, list[Kept]]:
    """The measurements that have ended, by number of streams and in their order; what has no result is removed."""
    found: dict[int, list[Kept]] = {}
    for n, _, each in paths.numbered(folder / LEVELS):
        try:
            level = read_struct(each / RESULT, Level, "a measurement")
        except InputError:
            level = None
        if level is None or level.n != n:
            shutil.rmtree(each, ignore_errors=True)
        else:
            found.setdefault(n, []).append(Kept(level, each))
    return found


def next_folder(folder: Path, n: int) -> Path:
    """Where the next measurement of `n` streams goes."""
    last = max((attempt for of, attempt, _ in paths.numbered(folder / LEVELS) if of == n), default=0)
    return folder / LEVELS / f"{n}-{last + 1}"


def _difference(kept: About, now: About) -> str:
    """The first difference of two studies, in words."""
    if kept.settings != now.settings:
        key = next(key for key in now.settings if kept.settings.get(key) != now.settings[key])
        return f"a study with other settings ({key} is {one_line(kept.settings.get(key, 'unknown'))} there)"
    titles = {"version": "version of asrscope", "machine": "machine", "cores": "number of cores"}
    titles |= {"seconds": "length of a measurement", "sound": "sound"}
    return "a study with another " + next(t for name, t in titles.items() if getattr(kept, name) != getattr(now, name))
