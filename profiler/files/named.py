"""Paths that a session names: kept so that they lead there from any folder, and found again."""

from __future__ import annotations

import os
from pathlib import Path


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


def of_this_machine(path: str | Path) -> bool:
    """Whether a path leads to no other computer by its form: \\\\server\\share would tell it who asks."""
    return not (os.name == "nt" and Path(path).drive.startswith("\\\\"))
