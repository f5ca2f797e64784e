"""Finds the sound files that a user means by files, folders and glob patterns."""

import glob
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from pipelines.audio.formats import SUFFIXES
from pipelines.audio.loading import AudioError, printable
from profiler.files import inputs

MAX_PARTS = 64  # maximum parts of a pattern of files; deeper ones recurse deeper than Python does


def collect(paths: Iterable[str | Path], matched: Collection[str] = SUFFIXES) -> list[Path]:
    """The sound files that files, folders and glob patterns name, each once, as `collected`."""
    return list(collected(paths, matched))


def collected(paths: Iterable[str | Path], matched: Collection[str] = SUFFIXES) -> dict[Path, int]:
    """The sound files that files, folders and glob patterns name, each once, and under how many paths it was named.

    Arguments keep their order; what a folder (directly in it) or a pattern holds is sorted by name, and has one of
    the suffixes `matched`. AudioError when an argument names nothing, or there is no argument at all.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(os.path.expanduser(given))
        if "\0" in str(path):
            raise AudioError(f"{printable(path)}: no file has a name with a NUL character in it.")
        if os.path.isdir(path):
            try:
                inside = [p for p in path.iterdir() if _is_sound(p, matched)]
            except OSError as error:
                raise AudioError(f"The folder {printable(path)} cannot be read: {error.strerror or error}.") from None
            if not inside:
                raise AudioError(
                    f"The folder {printable(path)} has no sound files directly in it ({', '.join(sorted(matched))})."
                )
        elif inputs.regular(path):
            inside = [path]
        elif os.path.exists(path):
            raise AudioError(
                f"{printable(path)} is a pipe or a device; a sound file is needed, or `--audio -` for standard input."
            )
        elif glob.has_magic(str(path)):
            inside = [p for p in _matching(path) if _is_sound(p, matched)]
            if not inside:
                raise AudioError(f"No sound file matches {printable(path)}.")
        else:
            raise AudioError(f"{printable(path)} does not exist.")
        found |= dict.fromkeys(sorted(inside))
    if not found:
        raise AudioError("No sound files were given.")
    first: dict[str, Path] = {}
    times: dict[Path, int] = {}
    for path in found:
        path = first.setdefault(os.path.realpath(path), path)
        times[path] = times.get(path, 0) + 1
    return times


def _matching(pattern: Path) -> list[Path]:
    """What a glob pattern names; `**` follows no linked folders, which could lead in circles."""
    parts = list(pattern.parts)
    parts = [p for p, before in zip(parts, ["", *parts], strict=False) if p != "**" or before != p]
    if len(parts) > MAX_PARTS:
        raise AudioError(
            f"{printable(pattern)} has {len(parts)} parts; a pattern of at most {MAX_PARTS} is looked for."
        )
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    wild = [part if part == "**" else part.replace("**", "*") for part in parts[first:]]
    base = Path(*parts[:first])
    found = list(base.glob("/".join(wild)))
    if any(part.startswith(".") for part in wild):
        return found
    # as the shell does: a wildcard names nothing hidden.
    return [p for p in found if not any(n.startswith(".") for n in p.relative_to(base).parts)]


def _is_sound(path: Path, matched: Collection[str]) -> bool:
    return path.suffix.lower() in matched and path.name[:1] != "." and inputs.regular(path)
