"""Where numba caches compiled kernels: one folder per state of all their sources.

numba looks at a kernel's own file alone, so the folder is named by a digest of all sources: if one changes, everything
is recompiled. numba loads what it finds there as code; a folder that others can write to is not used. Where the cache
cannot be used, kernels are kept in a folder of this user among the temporary files, and never next to their sources:
those of other sources may lie there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from profiler.files.paths import CACHE_VARIABLE, KERNELS, cache_path, own_dir
from profiler.process.children import ROOT

PACKAGES: Final = ("pipelines", "profiler")
"""The folders with kernels."""

KEPT: Final = 3
"""Number of folders of other states that are kept, for switching between branches."""

_DIGEST: Final = re.compile(r"[0-9a-f]{24}")
_IMPORT: Final = re.compile(rb"^from ((?:pipelines|profiler)[\w.]*) import ([^\n#]*)", re.MULTILINE)


def sources(root: Path = ROOT) -> dict[str, bytes]:
    """The files under `root` that decide what kernels are, by relative path.

    Those that use numba, and those that they import from: kernels may hold constants of them.
    """
    texts = {
        file.relative_to(root).as_posix(): file.read_bytes()
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
    }
    kernels = {path for path, text in texts.items() if b"numba" in text or b"llvmlite" in text}
    wanted = set(kernels)
    for path in kernels:
        for module, names in _IMPORT.findall(texts[path]):
            base = module.decode().replace(".", "/")
            wanted.add(f"{base}.py")
            wanted.add(f"{base}/__init__.py")
            wanted |= {f"{base}/{name}.py" for name in re.findall(r"\w+", names.decode())}
    return {path: text for path, text in texts.items() if path in wanted}


def digest(root: Path = ROOT) -> str:
    """The name of the folder for the sources under `root`."""
    made = hashlib.sha256()
    for path, text in sorted(sources(root).items()):
        made.update(f"{path}\0{len(text)}\0".encode())
        made.update(text)
    return made.hexdigest()[:24]


@cache
def own() -> str:
    """That of this copy of the program, whose sources are read once."""
    return digest()


def folder(override: str = "") -> Path:
    """Create and return the folder of this copy of the program, in the cache or, if it cannot be used, temporary files.

    `override`: the folder in NUMBA_CACHE_DIR, used instead of the cache. Raises OSError with one sentence.
    """
    place = Path(override).absolute() if override else cache_path(KERNELS)
    try:
        return _made(place)
    except OSError as problem:
        reason = problem.strerror or problem
    try:
        return _made(_among_temporary())
    except OSError as problem:
        raise OSError(
            f"compiled kernels cannot be stored in {place} ({reason}), nor among the temporary files "
            f"({problem.strerror or problem}); set {CACHE_VARIABLE} to a folder that can be written"
        ) from problem


def _made(place: Path) -> Path:
    made = own_dir(own_dir(place) / own())
    with tempfile.TemporaryFile(dir=made):
        pass
    os.utime(made)
    _forget(place, made)
    return made


def _among_temporary() -> Path:
    user = f"-{os.geteuid()}" if os.name == "posix" else ""  # elsewhere each user has a temporary folder
    return Path(tempfile.gettempdir()) / f"asrscope-{KERNELS}{user}"


def _forget(place: Path, used: Path) -> None:
    others = sorted(_others(place, used), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _others(place: Path, used: Path) -> Iterator[Path]:
    for path in place.iterdir():
        if _DIGEST.fullmatch(path.name) and path != used and not path.is_symlink():
            yield path
