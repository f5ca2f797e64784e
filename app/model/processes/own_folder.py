"""A folder for the temporary files of a process of ours, which is gone when the process is, however either ends.

The window removes it when the process has ended. A window that is killed cannot: it holds a lock in each folder, which
ends with it, and the next window that wants such a folder removes those that nobody holds.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile

LOCK: Final = "window.lock"  # File in the folder that its window has locked


class OwnFolder:
    """One folder, made at once; OSError where none can be.

    Args:
        prefix: what its name begins with, by which those left behind are found.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = _lock(self.path)
        # Not before it holds its own: another window that does the same at this moment leaves it alone then.
        if self._lock.tryLock(0):
            _remove_left_behind(self.path.parent, prefix)

    def remove(self) -> None:
        self._lock.unlock()
        shutil.rmtree(self.path, ignore_errors=True)


def _lock(folder: Path) -> QLockFile:
    lock = QLockFile(str(folder / LOCK))
    lock.setStaleLockTime(0)  # however old it is, it is good as long as its window lives
    return lock


def _remove_left_behind(parent: Path, prefix: str) -> None:
    for folder in parent.glob(f"{prefix}*"):
        if not (_is_ours(folder) and (folder / LOCK).is_file()):
            continue
        lock = _lock(folder)
        if lock.tryLock(0):
            lock.unlock()
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder, no link to one, and this user's: others may write into the folder for temporary files."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    mine = os.name != "posix" or found.st_uid == os.geteuid()
    return mine and stat.S_ISDIR(found.st_mode)
