"""The cache of search graphs: what a graph is called, who may build it, and which ones go.

A graph is named by the content of all it is made from. Building takes a lock on the folder it is
built in, so that two processes that want the same graph do not both make it; the finished file is
renamed into place. The least recently used graphs go when the cache is over its size. A graph
that another process has mapped may go too: its pages stay with that process.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.search.build import COMPILER_VERSION
from pipelines.search.recipe import Recipe
from pipelines.search.wfst import VERSION, GraphError
from profiler.paths import cache_dir

try:
    import fcntl
except ImportError:  # Windows: two builds at once both do the work, and one of them stays
    fcntl = None  # type: ignore[assignment]

LIMIT_BYTES = 4 << 30
"""What all graphs together may take: a dozen of the largest, or a hundred of the default."""
STALE_S = 24 * 3600.0
"""A build folder or an unfinished file this old was left by a process that was killed."""
_BUILD_PREFIX = ".build-"
_SUFFIX = ".graph"


def folder() -> Path:
    """Where the graphs are."""
    return cache_dir("graphs")


def path_of(recipe: Recipe) -> Path:
    """The file that the graph of `recipe` has in the cache, whether it is there or not."""
    return folder() / f"{key(recipe)}{_SUFFIX}"


def key(recipe: Recipe) -> str:
    """Hash of the content of all files, the options and the versions that decide the graph."""
    facts: dict[str, Any] = recipe.as_dict()
    model = Path(recipe.model)
    for name in ("mdef", "transition_matrices", "noisedict"):
        file = model / name
        facts[f"model/{name}"] = _digest(file) if file.exists() else None
    facts["model"] = ""
    for name in ("dictionary", "language_model", "grammar"):
        facts[name] = _digest(Path(facts[name])) if facts[name] else ""
    facts["versions"] = [COMPILER_VERSION, VERSION, importlib.metadata.version("kaldifst")]
    text = json.dumps(facts, sort_keys=True).encode()
    kind = "grammar" if recipe.grammar else f"{recipe.vocabulary}-{recipe.order}"
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:24]}"


def used(path: Path) -> None:
    """Remember that the graph is wanted; a cache that cannot be written forgets."""
    with contextlib.suppress(OSError):
        os.utime(path)


def evict(keep: Path) -> None:
    """Remove graphs, least recently used first, until the rest fits beside `keep`."""
    _sweep(keep.parent)
    found = []
    for path in keep.parent.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((path != keep, -status.st_mtime_ns, status.st_size, path))
    total = 0
    for _, _, size, path in sorted(found):
        total += size
        if total > LIMIT_BYTES and path != keep:
            with contextlib.suppress(OSError):
                path.unlink()


@contextmanager
def workplace(target: Path, wait: Callable[[], None]) -> Iterator[Path]:
    """An empty folder to build `target` in, on the same file system and gone afterwards.

    While another process builds the same graph `wait` is called, which may raise.
    """
    place, lock = _locked(target, wait)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(target: Path, wait: Callable[[], None]) -> tuple[Path, int | None]:
    if fcntl is None:
        return Path(tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=target.parent)), None
    place = target.with_name(f"{_BUILD_PREFIX}{target.stem}")
    while True:
        place.mkdir(exist_ok=True)
        try:
            lock = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue  # removed by the one who had it
        if not _taken(lock, place):
            break
        os.close(lock)
        wait()
    # What a killed process left.
    for left in place.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink()
    return place, lock


def _taken(lock: int, place: Path) -> bool:
    """Whether another process has the folder, or had it and removed it in between."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    try:
        return not os.path.samestat(os.fstat(lock), place.stat())
    except FileNotFoundError:
        return True


def _sweep(where: Path) -> None:
    for left in [*where.glob(f"{_BUILD_PREFIX}*"), *where.glob("*.tmp")]:
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise GraphError(f"{file} cannot be read: {error.strerror or error}.") from error
