"""An array that grows at its end for amortised constant cost per element, and gives back memory that nobody looks at.

What holds all of a session is moved to larger room again and again. In the heap, the room that it leaves stays with the
process; pages of its own are given back. Large ones are those of a file without a name in the cache folder: `sweep`
takes them out of the process, and they are read again when they are looked at.
"""

import mmap
import os
from contextlib import suppress
from math import prod
from typing import Final
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike

from profiler.arrays import Array
from profiler.files.paths import cache_dir

FIRST_CAPACITY = 1024

PAGES_FROM: Final = 1 << 15  # Bytes from which an array has pages of its own …
FILE_FROM: Final = 1 << 18  # … and from which they are those of a file
DISK_SHARE: Final = 1 / 64  # Of what is free on the disk, for one array; larger ones stay in memory

_in_files: WeakSet[mmap.mmap] = WeakSet()


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """As `np.zeros`, in pages of its own where it is large."""
    size = prod((shape,) if isinstance(shape, int) else shape) * np.dtype(dtype).itemsize
    if size < PAGES_FROM:
        return np.zeros(shape, dtype)
    room = _in_file(size) if size >= FILE_FROM else None
    return np.frombuffer(mmap.mmap(-1, size) if room is None else room, dtype).reshape(shape)


def sweep() -> None:
    """Take the pages in files out of the process, which reads them again when they are looked at."""
    for room in _in_files:
        room.madvise(mmap.MADV_DONTNEED)


def _in_file(size: int) -> mmap.mmap | None:
    """Zeros in a file that ends with them; None where the system or the disk has no place for it."""
    with suppress(OSError, AttributeError):  # only Linux has O_TMPFILE
        file = os.open(cache_dir(), os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            disk = os.fstatvfs(file)
            if size > DISK_SHARE * disk.f_bavail * disk.f_frsize:
                return None
            # Without blocks of its own, a disk that is full would end the process at the first write.
            os.posix_fallocate(file, 0, size)
            room = mmap.mmap(file, size)
        finally:
            os.close(file)
        _in_files.add(room)
        return room
    return None


class Growing:
    """A numpy array with spare room; `view` is what is filled, and stays valid when it grows. `row`: of an element."""

    def __init__(self, dtype: DTypeLike, *row: int) -> None:
        self._store = np.empty((0, *row), dtype)
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def view(self) -> Array:
        view = self._store[: self._filled]
        view.flags.writeable = False
        return view

    def reserve(self, elements: int) -> None:
        """Make room for `elements` in all; a hint that saves moving when the number is known."""
        if elements > len(self._store):
            store = zeros((elements, *self._store.shape[1:]), self._store.dtype)
            store[: self._filled] = self._store[: self._filled]
            self._store = store

    def extend(self, values: Array) -> None:
        """Append `values`, doubling the room when it is used up."""
        need = self._filled + len(values)
        if need > len(self._store):
            self.reserve(max(need, 2 * len(self._store), FIRST_CAPACITY))
        self._store[self._filled : need] = values
        self._filled = need

    def cut(self, elements: int) -> None:
        """Keep the first `elements`; what is appended next replaces the others, in views taken before as well."""
        self._filled = min(elements, self._filled)
