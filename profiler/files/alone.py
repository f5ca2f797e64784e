"""A folder that one process at a time works on, and that holds what it has written itself."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import BadInput
from profiler.plain import one_line

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
