"""What strategies prepared, kept on disk: arrays by the content of the model and the settings they follow from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from profiler.paths import cache_dir

VERSION = 4
"""To be raised whenever what is prepared changes for the same model and settings."""
MOST_BYTES = 512 << 20
"""The cache is thinned to this, oldest first."""

Array = np.ndarray[Any, Any]


def digest(*arrays: Array) -> str:
    """Identity of a model's parameters."""
    made = hashlib.blake2b(digest_size=16)
    for array in arrays:
        made.update(f"{array.dtype} {array.shape}".encode())
        made.update(np.ascontiguousarray(array).data)
    return made.hexdigest()


def kept(name: str, facts: object, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """The arrays that `make` makes, from the cache if they are there; `facts` (by repr) decide which.

    A file that cannot be read is made again; where nothing can be written, nothing is kept.
    """
    key = hashlib.sha256(repr((VERSION, name, facts)).encode()).hexdigest()[:24]
    try:
        folder = cache_dir("selection")
    except OSError:
        return make()
    path = folder / f"{name}-{key}.npz"
    found = _read(path)
    if found is None:
        found = make()
        with contextlib.suppress(OSError):
            _write(path, found)
            _thin(folder)
    return found


def _read(path: Path) -> dict[str, Array] | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        os.utime(path)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    return found


def _write(path: Path, arrays: dict[str, Array]) -> None:
    handle, name = tempfile.mkstemp(prefix=".making-", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def _thin(folder: Path) -> None:
    files = sorted(folder.glob("*.npz"), key=lambda file: -file.stat().st_mtime)
    total = 0
    for file in files:
        total += file.stat().st_size
        if total > MOST_BYTES:
            file.unlink(missing_ok=True)
