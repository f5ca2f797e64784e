"""Paths that a session names: kept so that they lead there from any folder, and found again."""

from __future__ import annotations

import os
from pathlib import Path


def kept(path: str) -> str:
    """`path` as a session keeps it: from the root where something is there, so that it is found from any folder."""
    place = os.path.expanduser(path)
    return os.path.join(os.getcwd(), place) if os.path.exists(place) else path


def found(path: str, session: Path) -> str:
    """Where that is which `session` names: a relative path begins beside the session file, or in the current folder.

    What is in neither place, or on another machine, comes back as it is.
    """
    place = os.path.expanduser(path)
    if os.path.isabs(place) or not of_this_machine(path):
        return place
    beside = os.path.join(os.path.abspath(session.parent), place)
    return beside if os.path.exists(beside) else kept(path)


def of_this_machine(path: str | Path) -> bool:
    """Whether a path leads to no other computer by its form: \\\\server\\share would tell it who asks."""
    return not (os.name == "nt" and Path(path).drive.startswith("\\\\"))
