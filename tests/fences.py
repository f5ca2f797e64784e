"""Arrays with a wall right behind or right before them: one element too far and the process dies at once.

A page without any rights lies next to the data, so that reading past the end is caught as surely as writing.
The side that has no wall, and the gaps of a strided array, are filled with a pattern that `intact` compares.
(POSIX; elsewhere only the pattern.)
"""

import ctypes
import mmap
import sys
from functools import cache
from typing import Literal

import numpy as np

from profiler.arrays import Array

PAGE = mmap.PAGESIZE
PATTERN = 0xA5
Side = Literal["behind", "before"]


class Fenced:
    """One array between two pages that nobody may touch; `array` is what a kernel gets.

    It has the shape, the type and the strides of the one that it is like, which are those of rows in any order.
    """

    def __init__(self, like: Array, side: Side = "behind", *, align: int = 1) -> None:
        """Copy `like` next to a wall. `align`: the data's start is a multiple of this many bytes; the bytes between
        its end and the wall hold the pattern."""
        data = np.asarray(like)
        if any(stride < 0 for stride in data.strides) or data.flags.c_contiguous:
            data = np.ascontiguousarray(data).reshape(data.shape)
        reach = sum((n - 1) * stride for n, stride in zip(data.shape, data.strides, strict=True))
        extent = reach + data.itemsize if data.size else 0
        room = -(-max(extent + align, 1) // PAGE) * PAGE
        self._map = _zeros(room + 2 * PAGE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        inside = self._bytes[PAGE : PAGE + room]
        inside[:] = PATTERN
        start = PAGE if side == "before" else PAGE + room - extent
        start -= start % align
        self.array: Array = np.ndarray(data.shape, data.dtype, self._map, start if data.size else PAGE, data.strides)
        # What belongs to the array and what only lies between its elements.
        mine = np.zeros(room + 2 * PAGE, np.bool_)
        cells = np.ndarray((*data.shape, data.itemsize), np.bool_, mine, start % len(mine), (*data.strides, 1))
        if data.size:
            cells[:] = True
            self.array[:] = data
        self._around = np.flatnonzero(~mine[PAGE : PAGE + room])
        self._inside = inside
        base = self._bytes.ctypes.data
        _protect(base)
        _protect(base + PAGE + room)

    def intact(self) -> bool:
        """Whether nothing around the array, or between its elements, was written."""
        return bool((self._inside[self._around] == PATTERN).all())


@cache
def _libc() -> ctypes.CDLL:
    """The system's functions: looked up once, for tens of thousands of walls."""
    return ctypes.CDLL(None, use_errno=True)


def _zeros(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # What is shared, the default, would be a file in memory: its pages take several times as long to come and go.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _protect(address: int) -> None:
    if sys.platform == "win32":
        return
    none = 0  # PROT_NONE
    if _libc().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), none):
        raise OSError(ctypes.get_errno(), "a page cannot be protected")
