"""An array that grows at its end for amortised constant cost per element, and gives back memory that nobody looks at.

What holds all of a session is moved to larger room again and again. In the heap, the room that it leaves stays with the
process, and zeros in such room are written at once; pages of its own are given back, and those that nobody has written
to take no memory. `put_away` moves pages that are written into a file without a name in the cache folder and maps them
from there, at the same address: they are read again when they are looked at, and `sweep` lets go of them.
"""

import ctypes
import mmap
import os
from math import prod
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from profiler.arrays import Array
from profiler.files.paths import cache_dir

FIRST_CAPACITY = 1024

PAGES_FROM: Final = 1 << 15
"""Bytes from which an array has pages of its own."""

PIECE_BYTES: Final = 1 << 16
"""Bytes that are put away in one go at least; a 32nd of those that lie there, where that is more."""

SPARE_BYTES: Final = 1 << 30
"""What is left free on the disk."""

_FIXED: Final = 0x10
"""MAP_FIXED of Linux, which the module mmap does not name."""

_away: WeakKeyDictionary[mmap.mmap, int] = WeakKeyDictionary()
"""How many bytes of a room lie in files, from its beginning."""


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """As `np.zeros`, in pages of its own where it is large."""
    size = prod((shape,) if isinstance(shape, int) else shape) * np.dtype(dtype).itemsize
    if size < PAGES_FROM:
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


def put_away(values: Array, used: int) -> None:
    """Put the first `used` elements of what `zeros` made into a file, once they are many more than lie there.

    They are to be written to only after `written`. Nothing is done where the system or the disk has no place for them.
    """
    room = _room(values)
    if room is None:
        return
    begin, end = _away.get(room, 0), used * values.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
    if end - begin < max(PIECE_BYTES, end // 32) or not hasattr(os, "O_TMPFILE"):
        return
    try:
        file = os.open(cache_dir(), os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return
    try:
        disk = os.fstatvfs(file)
        if disk.f_bavail * disk.f_frsize < SPARE_BYTES + end - begin:
            return
        if os.pwrite(file, memoryview(room)[begin:end], 0) < end - begin:
            return
        # Private: what is written to them nevertheless is in memory again, and nowhere else.
        access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _FIXED
        if _map(values.ctypes.data + begin, end - begin, access, kind, file, 0) != values.ctypes.data + begin:
            return
        _away[room] = end
    except OSError:
        return
    finally:
        os.close(file)


def written(values: Array, begin: int) -> None:
    """Say that elements of `values` from `begin` on are written to."""
    room = _room(values)
    if room is not None and room in _away:
        _away[room] = min(_away[room], begin * values.itemsize // mmap.PAGESIZE * mmap.PAGESIZE)


def sweep() -> None:
    """Let go of the pages in files that have been looked at."""
    for room, size in _away.items():
        if size:
            room.madvise(mmap.MADV_DONTNEED, 0, size)


def _room(values: Array) -> mmap.mmap | None:
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    room = base.obj if isinstance(base, memoryview) else None
    return room if isinstance(room, mmap.mmap) else None


def _map(*arguments: int) -> int:
    function = ctypes.CDLL(None).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    )  # fmt: skip
    return int(function(*arguments) or 0)


class Growing:
    """A numpy array with spare room; `view` is what is filled, and stays valid when it grows."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._store = np.empty(0, dtype)
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
            store = zeros(elements, self._store.dtype)
            store[: self._filled] = self._store[: self._filled]
            self._store = store

    def extend(self, values: Array) -> None:
        """Append `values`, doubling the room when it is used up."""
        need = self._filled + len(values)
        if need > len(self._store):
            self.reserve(max(need, 2 * len(self._store), FIRST_CAPACITY))
        # The page that is full in part is not put away.
        self._store[self._filled : need] = values
        self._filled = need
        put_away(self._store, need)
