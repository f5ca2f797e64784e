"""The folder of a capacity: what was measured, and with which settings, so that the same command goes on.

study.json     what is measured, on which sound and how many cores, by which version
first/1.json   a run of the sound as fast as possible: how many words it has
levels/8-2/    the second measurement of 8 streams: the report of each, and result.json, written last
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pipelines.experiments.capacity.streams import RESULT, Level
from profiler.errors import BadInput
from profiler.files import outputs, paths
from profiler.files.inputs import InputError, read_struct
from profiler.files.paths import alone, refuse_others
from profiler.plain import one_line

ABOUT: Final = "study.json"
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


@contextlib.contextmanager
def opened(folder: Path, about: About) -> Iterator[None]:
    """Open the study in `folder`, or make it. BadInput where it is another one, or another process works on it."""
    shown, file = one_line(str(folder)), folder / ABOUT
    if os.path.lexists(folder) and not os.path.lexists(file) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{shown} is no study of a capacity; --out takes one, or a folder that is not there yet.")
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, "study"):
        refuse_others(folder, "study")
        if file.exists():
            _check_same(file, about, shown)
        else:
            with outputs.writing(file, "the study") as draft:
                draft.write_bytes(msgspec.json.encode(about))
        yield


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


def _check_same(file: Path, about: About, shown: str) -> None:
    """BadInput that names the first difference of two studies."""
    before = read_struct(file, About, "the study")
    if before == about:
        return
    if before.settings != about.settings:
        key = next(key for key in about.settings if before.settings.get(key) != about.settings[key])
        what = f"with other settings ({key} is {one_line(before.settings.get(key, 'unknown'))} there)"
    else:
        titles = {"version": "version of asrscope", "machine": "machine", "cores": "number of cores"}
        titles |= {"seconds": "length of a measurement", "sound": "sound"}
        what = "with another " + next(t for name, t in titles.items() if getattr(before, name) != getattr(about, name))
    raise BadInput(f"{shown} holds a study {what}; give another --out, or the same arguments.")
