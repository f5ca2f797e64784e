"""The cache of reproducible data: named arrays and facts, verified before use.

A folder per kind, a file per thing: a preamble with a digest of all that follows, a JSON header (name, types, shapes,
places, facts), then the arrays, aligned to 64 bytes. A file that does not match is rebuilt. Readers map the arrays, so
processes share their pages. Files are written under a temporary name and renamed. The least recently used go when the
total is over LIMIT_BYTES. A digest proves a file whole, not honest: who may write to a cache is trusted by its owner.
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.files.outputs import writing
from profiler.files.paths import KERNELS, cache_path

GRAPHS: Final = "graphs"
MODELS: Final = "models"
SELECTION: Final = "selection"
ROOFS: Final = "peaks"
SUFFIX: Final = ".kept"

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((GRAPHS, MODELS, SELECTION, ROOFS), (f"*{SUFFIX}",)),
    KERNELS: ("[0-9a-f]" * 24, "*-" + "[0-9a-f]" * 24),
}
"""Kinds, and the names of what is kept of each: files, and folders of compiled kernels. Nothing else is touched."""

LIMIT_BYTES: Final = 2 << 30  # Of all kinds: fifty graphs of the default size, or half a dozen of the largest
STALE_S: Final = 24 * 3600.0  # A draft or a building place this old was left by a process that was killed
UNFINISHED: Final = (".draft-*", ".build-*", ".unfinished-*", ".making-*")

MAGIC: Final = b"ASRSKEPT"
LAYOUT: Final = 1
ALIGNMENT: Final = 64
MAX_HEADER: Final = 64 << 20
LARGEST_FILE: Final = 4 << 30
PIECE: Final = 4 << 20  # Bytes that a thread digests at a time
DIGESTING_THREADS: Final = 4
_PREAMBLE: Final = struct.Struct("<8sII32s")


class CacheError(BadInput):
    """A file that is not, whole and under its own name, what was put into the cache."""


@dataclass(frozen=True)
class Kept:
    """Cached arrays, mapped read-only, and their facts (JSON values)."""

    arrays: Mapping[str, Array]
    about: Mapping[str, Any]


class Entry(NamedTuple):
    """A file in the cache, or a folder of compiled kernels."""

    path: Path
    bytes: int
    used: float


def path_of(kind: str, name: str) -> Path:
    return cache_path(kind, f"{name}{SUFFIX}")


def find(kind: str, name: str) -> Kept | None:
    """Return what is kept under that name; None where it is not there, not whole or not to be reached."""
    path = path_of(kind, name)
    try:
        found = read(path)
    except CacheError:
        return None
    used(path)
    return found


def keep(kind: str, name: str, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Keep arrays and facts under that name; a cache that cannot be written keeps nothing."""
    path = path_of(kind, name)
    with contextlib.suppress(OSError, BadInput):
        path.parent.mkdir(parents=True, exist_ok=True)
        clear(path)
        write(path, arrays, about)
        evict(path)


def read(path: Path) -> Kept:
    """Map the file `path`; CacheError (one sentence) unless it is there and whole."""
    try:
        with _regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            preamble = file.read(_PREAMBLE.size)
            if len(preamble) < _PREAMBLE.size or preamble[: len(MAGIC)] != MAGIC:
                raise CacheError(f"{path} is no file of this program's cache.")
            _, layout, length, digest = _PREAMBLE.unpack(preamble)
            if layout != LAYOUT:
                raise CacheError(f"{path} has layout {layout} of the cache, wanted is {LAYOUT}.")
            if length > min(size - _PREAMBLE.size, MAX_HEADER) or size > LARGEST_FILE:
                raise CacheError(f"{path} is damaged: its header does not fit its size.")
            mapped = np.memmap(file, np.uint8, "r")
        if len(mapped) != size or _digest(mapped) != digest:
            raise CacheError(f"{path} is damaged: it does not match its digest.")
        header = json.loads(bytes(mapped[_PREAMBLE.size : _PREAMBLE.size + length]))
        if header["name"] != path.name:
            raise CacheError(f"{path} is a copy of {header['name']!r}.")
        start = _body(length)
        arrays = {name: _array(mapped[start:], *place) for name, place in header["arrays"].items()}
        return Kept(arrays, dict(header["about"]))
    except OSError as error:
        raise CacheError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, CacheError):
            raise
        raise CacheError(f"{path} is damaged: its header is not as it was written.") from error


def write(path: Path, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Write a file that `read` takes under this name; OutputError (one sentence) where it cannot be."""
    places, at = {}, 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, list(array.shape), at)
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    description = {"name": path.name, "arrays": places, "about": dict(about)}
    header = json.dumps(description).encode()
    with writing(path, "the cache") as draft, draft.open("r+b") as file:
        file.write(_PREAMBLE.pack(MAGIC, LAYOUT, len(header), bytes(32)))
        file.write(header)
        file.write(bytes(_body(len(header)) - file.tell()))
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(bytes(-array.nbytes % ALIGNMENT))
        file.flush()
        digest = _digest(np.memmap(file, np.uint8, "r"))
        file.seek(0)
        file.write(_PREAMBLE.pack(MAGIC, LAYOUT, len(header), digest))


def used(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


def clear(path: Path) -> None:
    """Remove what stands in the place of a file and is none: a link, a pipe, a folder."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            _remove(path)


def entries() -> list[Entry]:
    """Return all that is kept, the most recently used first."""
    found = []
    for kind, patterns in PATTERNS.items():
        folder = cache_path(kind)
        for path in {p for pattern in patterns for p in folder.glob(pattern)}:
            with contextlib.suppress(OSError):
                about = path.lstat()
                size = about.st_size
                if stat.S_ISDIR(about.st_mode):
                    size = sum(f.lstat().st_size for f in path.rglob("*") if not f.is_dir())
                found.append(Entry(path, size, about.st_mtime))
    return sorted(found, key=lambda entry: -entry.used)


def evict(keep: Path) -> None:
    """Remove the least recently used files until the rest fits with `keep`, and leftovers of killed processes."""
    _sweep()
    total = 0
    for entry in sorted(entries(), key=lambda entry: entry.path != keep):
        total += entry.bytes
        if total > LIMIT_BYTES and entry.path != keep:
            _remove(entry.path)


def empty() -> int:
    """Remove all that is kept; returns the bytes that were freed."""
    before = sum(entry.bytes for entry in entries())
    for entry in entries():
        _remove(entry.path)
    _sweep()
    return before - sum(entry.bytes for entry in entries())


def _sweep() -> None:
    for kind in PATTERNS:
        folder = cache_path(kind)
        for left in [p for pattern in UNFINISHED for p in folder.glob(pattern)]:
            with contextlib.suppress(OSError):
                if time.time() - left.lstat().st_mtime > STALE_S:
                    _remove(left)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextlib.contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    """The file itself, opened without following a link or waiting for a pipe."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise CacheError(f"{path} is not a regular file.")
        yield file


def _body(header_length: int) -> int:
    return -(-(_PREAMBLE.size + header_length) // ALIGNMENT) * ALIGNMENT


def _array(body: Array, kind: str, shape: list[int], at: int) -> Array:
    """The array of that type and shape at a place of `body`; ValueError where it does not fit."""
    dtype = np.dtype(str(kind))
    if dtype.kind not in "biuf" or min([at, *shape]) < 0:
        raise ValueError(kind)
    size = dtype.itemsize * math.prod(shape)
    if at + size > len(body):
        raise ValueError(shape)
    made: Array = np.asarray(body[at : at + size]).view(dtype).reshape(shape)
    return made


def _digest(content: Array) -> bytes:
    """BLAKE2b over the preamble's own facts and the digests of pieces of the rest, which several threads share."""
    whole = hashlib.blake2b(content[: _PREAMBLE.size - 32].tobytes(), digest_size=32)
    pieces = range(_PREAMBLE.size, len(content), PIECE)
    if len(pieces) < 2:
        parts = [_piece(content[at : at + PIECE]) for at in pieces]
    else:
        threads = min(DIGESTING_THREADS, len(pieces), os.cpu_count() or 1)
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(_piece, (content[at : at + PIECE] for at in pieces)))
    for part in parts:
        whole.update(part)
    return whole.digest()


def _piece(content: Array) -> bytes:
    return hashlib.blake2b(content.data, digest_size=32).digest()
