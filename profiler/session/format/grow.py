"""An array that grows at its end for amortised constant cost per element."""

import numpy as np

from profiler.arrays import Array

FIRST_CAPACITY = 1024


class Growing:
    """A numpy array with spare room; `view` is what is filled, and stays valid when it grows."""

    def __init__(self, dtype: np.dtype) -> None:
        self._store = np.empty(0, dtype)
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def view(self) -> Array:
        """The elements so far, read-only."""
        view = self._store[: self._filled]
        view.flags.writeable = False
        return view

    def reserve(self, elements: int) -> None:
        """Make room for `elements` in all; a hint that saves moving when the number is known."""
        if elements > len(self._store):
            store = np.empty(elements, self._store.dtype)
            store[: self._filled] = self._store[: self._filled]
            self._store = store

    def extend(self, values: Array) -> None:
        """Append `values`, doubling the room when it is used up."""
        need = self._filled + len(values)
        if need > len(self._store):
            self.reserve(max(need, 2 * len(self._store), FIRST_CAPACITY))
        self._store[self._filled : need] = values
        self._filled = need
