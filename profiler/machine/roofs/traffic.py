"""Memory gone through as cost laws say that stages do: so many bytes in order, so many accesses at random, a frame.

It stands in for stages that are not run, where others are timed beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import numpy as np

from profiler.costs import ACCESS, STREAM
from profiler.machine.roofs import timing
from profiler.machine.roofs.cpu import aligned
from profiler.machine.roofs.terms import LINE_BYTES, lines_at_random

VALUE_BYTES: Final = 4

Amounts = Mapping[tuple[str, int], float]
"""(STREAM or ACCESS, bytes of the data that is gone through) → bytes, or accesses, a frame."""


class Traffic:
    """Goes through memory of its own, as much as the data named, each time on from where it stopped."""

    def __init__(self, amounts: Amounts) -> None:
        """Data smaller than a cache line are left out."""
        self._parts: list[_Part] = [
            _KINDS[kind](size, amount)
            for (kind, size), amount in amounts.items()
            if size >= LINE_BYTES
        ]

    def frames(self, count: int) -> float:
        """Go through the memory of so many frames; returns the seconds that it took."""
        start = timing.clock()
        for _ in range(count):
            for part in self._parts:
                part.frame()
        return timing.clock() - start

    def rewind(self) -> None:
        """Go on from the beginning of all data."""
        for part in self._parts:
            part.rewind()


class _Part(Protocol):
    def frame(self) -> None: ...
    def rewind(self) -> None: ...


class _InOrder:
    def __init__(self, size: int, amount: float) -> None:
        from profiler.machine.roofs import _kernels as kernels

        self._read = kernels.read
        self._values = aligned(size // VALUE_BYTES)
        self._step = min(round(amount / VALUE_BYTES), len(self._values))
        self._at = 0

    def frame(self) -> None:
        end = self._at + self._step
        self._read(self._values[self._at : end], 1)
        if end > len(self._values):
            end -= len(self._values)
            self._read(self._values[:end], 1)
        self._at = end

    def rewind(self) -> None:
        self._at = 0


class _AtRandom:
    def __init__(self, size: int, amount: float) -> None:
        from profiler.machine.roofs import _kernels as kernels

        self._gather = kernels.gather
        self._places, self._order = lines_at_random(size)
        self._place = np.zeros(1, np.int64)
        self._count = round(amount)

    def frame(self) -> None:
        self._gather(self._places, self._order, self._place, self._count)

    def rewind(self) -> None:
        self._place[0] = 0


_KINDS: Final[Mapping[str, Callable[[int, float], _Part]]] = {STREAM: _InOrder, ACCESS: _AtRandom}
