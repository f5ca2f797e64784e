"""An array that grows at its end for amortised constant cost per element.

What holds all of a session is moved to larger room again and again. In the heap, the room that it leaves stays with the
process, and zeros in such room are written at once; pages of its own are given back, and those that nobody has written
to take no memory. A window that followed the looping demo grew half as fast with them.
"""

import mmap
from math import prod
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

from profiler.arrays import Array

FIRST_CAPACITY = 1024

PAGES_FROM: Final = 1 << 15
"""Bytes from which an array has pages of its own."""


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """As `np.zeros`, in pages of its own where it is large."""
    size = prod((shape,) if isinstance(shape, int) else shape) * np.dtype(dtype).itemsize
    if size < PAGES_FROM:
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


class Growing:
    """A numpy array with spare room; `view` is what is filled, and stays valid when it grows."""

    def __init__(self, dtype: np.dtype) -> None:
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
        self._store[self._filled : need] = values
        self._filled = need
