"""Where the program keeps things for a user: a cache of what it can make again, and the sessions.

Also paths that a session names, and folders that one process at a time works on.

Linux follows the XDG base directory specification; macOS and Windows have their own customs.
"""

import contextlib
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import BadInput
from profiler.plain import one_line

CACHE_VARIABLE = "ASRSCOPE_CACHE"  # Environment variable that puts the cache elsewhere (tests, shared machines)
KERNELS = "kernels"  # Of the cache: a folder in it for each file of kernels and state of its sources


def cache_path(*parts: str) -> Path:
    return _base().joinpath(*parts)


def cache_dir(*parts: str) -> Path:
    """Return the cache folder (with `parts` below it), created if need be; OSError with one sentence otherwise."""
    return _made(cache_path(*parts), "cache folder", CACHE_VARIABLE)


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


SESSIONS_VARIABLE = "ASRSCOPE_SESSIONS"  # Environment variable that puts the sessions elsewhere


def sessions_dir() -> Path:
    """Return the folder of the user's sessions, created if need be; OSError when it cannot be."""
    home = ("APPDATA", "AppData/Roaming"), "Library/Application Support", ("XDG_DATA_HOME", ".local/share")
    path = _chosen(SESSIONS_VARIABLE) or _home(*home) / "sessions"
    return _made(path, "folder of sessions", SESSIONS_VARIABLE)


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
    home = ("LOCALAPPDATA", "AppData/Local"), "Library/Caches", ("XDG_CACHE_HOME", ".cache")
    return _chosen(CACHE_VARIABLE) or _home(*home)


def _chosen(variable: str) -> Path | None:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().absolute() if chosen else None


def _home(windows: tuple[str, str], mac: str, other: tuple[str, str]) -> Path:
    """The program's folder by the custom of the system: a variable and what holds without it."""
    variable, usual = {"win32": windows, "darwin": ("", mac)}.get(sys.platform, other)
    named = Path(os.environ.get(variable, ""))
    # The XDG specification says that a relative path there is to be ignored.
    return (named if named.is_absolute() else Path.home() / usual) / "asrscope"


def _made(path: Path, what: str, variable: str) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"the {what} {path} cannot be made ({error.strerror or error}); "
            f"set {variable} to a folder that can be written"
        ) from error
    return path


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def refuse_others(folder: Path, what: str) -> None:
    """BadInput where `folder` has more in it than files and folders: links lead elsewhere, and pipes are waited for."""
    with os.scandir(folder) as entries:
        others = [e.name for e in entries if not (e.is_file(follow_symlinks=False) or e.is_dir(follow_symlinks=False))]
    if others:
        shown = one_line(os.path.join(folder, min(others)))
        raise BadInput(f"{shown} is a link, a pipe or a device; a {what} has only files and folders.")


def demand_room(folder: Path, least: float) -> None:
    """BadInput where the disk of `folder`, a study, has less than `least` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < least:
        raise BadInput(
            f"{one_line(str(folder))}: the disk is full ({free / 1e6:.0f} MB are free); the study is kept, "
            "and the same command goes on with it once there is room."
        )


@contextlib.contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """Hold `folder` while the context lasts; BadInput where another process holds it. `what` it is: study."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shown = one_line(str(folder))
            raise BadInput(f"{shown}: another process works on this {what}; wait for it, or stop it.") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


_NUMBERED = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def kept(path: str) -> str:
    """`path` as a session keeps it: from the root where something is there, so that it is found from any folder."""
    place = os.path.expanduser(path)
    return os.path.join(os.getcwd(), place) if os.path.exists(place) else path


def locate(path: str, session: Path) -> str:
    """Return a session's file: relative to its folder or the current one; unchanged where it is in neither."""
    place = os.path.expanduser(path)
    if os.path.isabs(place) or not of_this_machine(path):
        return place
    beside = os.path.join(os.path.abspath(session.parent), place)
    return beside if os.path.exists(beside) else kept(path)


def inside(folder: Path, path: str, levels: int) -> Path | None:
    """The file in `folder` with the last `levels` names of `path`; None where none, or links lead out of the folder."""
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
