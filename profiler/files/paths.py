"""Where the program keeps things for a user: a cache of what it can make again, and the sessions.

Linux follows the XDG base directory specification; macOS and Windows have their own customs.
"""

import os
import re
import stat
import sys
import time
from pathlib import Path

CACHE_VARIABLE = "ASRSCOPE_CACHE"
"""Environment variable that puts the cache elsewhere (tests, shared machines)."""

KERNELS = "kernels"
"""Folder of compiled kernels in the cache: one folder in it for each file of kernels and state of its sources."""


def cache_path(*parts: str) -> Path:
    return _base().joinpath(*parts)


def cache_dir(*parts: str) -> Path:
    """Return the cache folder (with `parts` below it), created if need be.

    Raises OSError with one sentence when it cannot be made.
    """
    path = cache_path(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"the cache folder {path} cannot be made ({error.strerror or error}); "
            f"set {CACHE_VARIABLE} to a folder that can be written"
        ) from error
    return path


def own_dir(path: Path) -> Path:
    """Return the folder `path`, created if need be, for code that will be loaded: nobody else may write to it.

    Raises OSError with one sentence where it cannot be made, is a link, another's, or may be written by others.
    """
    # Made one by one: the mode given to mkdir is that of the last folder alone, and a umask of 002 leaves the group in.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(exist_ok=True, mode=0o700)
    if os.name == "posix":
        found = path.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(
                f"code is kept in {path}, which others can write to; "
                f"remove it, or set {CACHE_VARIABLE} to a folder of your own"
            )
    return path


SESSIONS_VARIABLE = "ASRSCOPE_SESSIONS"
"""Environment variable that puts the sessions elsewhere."""


def sessions_dir() -> Path:
    """Return the folder of the user's sessions, created if need be; OSError when it cannot be."""
    chosen = os.environ.get(SESSIONS_VARIABLE)
    if chosen:
        path = Path(chosen).expanduser().absolute()
    elif sys.platform == "win32":
        path = Path(os.environ.get("APPDATA") or Path.home()) / "asrscope" / "sessions"
    elif sys.platform == "darwin":
        path = Path.home() / "Library" / "Application Support" / "asrscope" / "sessions"
    else:
        xdg = os.environ.get("XDG_DATA_HOME")
        base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".local" / "share"
        path = base / "asrscope" / "sessions"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"the folder of sessions {path} cannot be made ({error.strerror or error}); "
            f"set {SESSIONS_VARIABLE} to a folder that can be written"
        ) from error
    return path


def new_session_path(preset: str) -> Path:
    """Return a free file name ``date-time-preset.asrs`` in the folder of sessions."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", preset).strip("-.") or "run"
    stem = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{plain}"
    folder = sessions_dir()
    path, number = folder / f"{stem}.asrs", 2
    while path.exists():
        path = folder / f"{stem}-{number}.asrs"
        number += 1
    return path


def _base() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local or Path.home() / "AppData" / "Local") / "asrscope"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "asrscope"
    xdg = os.environ.get("XDG_CACHE_HOME")
    # The specification says that a relative path there is to be ignored.
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "asrscope"
    return Path.home() / ".cache" / "asrscope"
