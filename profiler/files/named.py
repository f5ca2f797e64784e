"""Paths that a session names: kept so that they lead there from any folder, and found again."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NUMBERED = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def kept(path: str) -> str:
    """`path` as a session keeps it: from the root where something is there, so that it is found from any folder."""
    place = os.path.expanduser(path)
    return os.path.join(os.getcwd(), place) if os.path.exists(place) else path


def locate(path: str, session: Path) -> str:
    """Return where the file `path` of a session is: a relative path starts in the session's folder or the current one.

    A path that is in neither, or on another machine, is returned unchanged.
    """
    place = os.path.expanduser(path)
    if os.path.isabs(place) or not of_this_machine(path):
        return place
    beside = os.path.join(os.path.abspath(session.parent), place)
    return beside if os.path.exists(beside) else kept(path)


def inside(folder: Path, path: str, levels: int) -> Path | None:
    """The file in `folder` that has the last `levels` names of `path`, wherever the folder was when that was written.

    None where these are no names, or links lead out of the folder.
    """
    parts = Path(path).parts[-levels:]
    if len(parts) < levels or Path(path).anchor in parts or ".." in parts or "\0" in path:
        return None
    found, whole = folder.joinpath(*parts), os.path.realpath(folder)
    return found if os.path.realpath(found).startswith(os.path.join(whole, "")) else None


def numbered(folder: Path) -> list[tuple[int, int, Path]]:
    """The folders in `folder` that are called NUMBER-ATTEMPT, in order; no links, and nothing of other names."""
    try:
        each = [(_NUMBERED.fullmatch(one.name), one) for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted((int(name[1]), int(name[2]), Path(one.path)) for name, one in each if name)


def of_this_machine(path: str | Path) -> bool:
    return not (os.name == "nt" and Path(path).drive.startswith("\\\\"))
