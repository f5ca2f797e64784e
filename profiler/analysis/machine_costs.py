"""What operations, bytes, accesses and calls take on a machine, by its measured roofs.

Each figure is an array [1 + draws]: the measured middle, then values drawn from the roof's interval, so that what
follows from several of them has an interval too (GUM supplement 1, JCGM 101:2008).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.costs import KERNEL_CALL, Accesses, Cost, Linear
from profiler.machine.roofs.table import AFTER_BYTES, Key, Roof, RoofTable

LINE_BYTES: Final = 64


class Sums(NamedTuple):
    """Sums over spans by their part in a stretch, times in ns; `other`, `throttled`: of the time, by NOT_OWN."""

    time: float
    other: float
    calls: float
    frames: float
    work: tuple[float, float, float]
    throttled: float = 0.0

    @property
    def own(self) -> float:
        return max(self.time - self.other - self.throttled, 0.0)

    def plus(self, more: Sums) -> Sums:
        w0, w1, w2 = (a + b for a, b in zip(self.work, more.work, strict=True))
        time, other, calls, frames = (a + b for a, b in zip(self[:4], more[:4], strict=True))
        return Sums(time, other, calls, frames, (w0, w1, w2), self.throttled + more.throttled)


class Counts(NamedTuple):
    """What a law counts of some spans.

    `bytes_min`: compulsory traffic. `parameters`: bytes that each span reads whatever it computes, and that the next
    one reads again; `streamed`: other bytes; `most_streamed`: the most that all of them may be. `own_bytes`: what one
    span goes over again. `first_calls`: of the calls of compiled kernels, those that come after other stages' data.
    """

    operations: Mapping[str, float]
    bytes_min: float
    parameters: float
    streamed: float
    most_streamed: float
    own_bytes: float
    accesses: tuple[tuple[Accesses, float], ...]
    calls: Mapping[str, float]
    first_calls: float
    threads: int
    device: str

    @property
    def scattered(self) -> float:
        return sum(count for _, count in self.accesses)

    @property
    def touched(self) -> float:
        return self.parameters + self.streamed + LINE_BYTES * self.scattered


def counted(cost: Cost, sums: Sums) -> Counts:
    def total(law: Linear) -> float:
        return max(law.total(sums.calls, sums.frames, sums.work), 0.0)

    least, most = total(cost.bytes_min), total(cost.bytes_max)
    # Of scattered data nothing is read whatever is computed.
    fixed = 0.0 if cost.scattered else max(cost.bytes_min.fixed, 0.0) * sums.calls
    compiled = cost.calls.get(KERNEL_CALL, Linear())
    first = min(compiled.fixed, 1.0) * sums.calls + min(compiled.per_frame, 1.0) * sums.frames
    operations, calls = ({name: total(law) for name, law in laws.items()} for laws in (cost.operations, cost.calls))
    accesses = tuple((each, total(each.count)) for each in cost.accesses)
    streams = least, fixed, max(least - fixed, 0.0), max(least, most), cost.working_set_bytes
    return Counts(operations, *streams, accesses, calls, first, cost.threads, cost.device)


NS: Final = 1e9
FIRST_CACHE: Final = 16 << 10  # Bytes: the first rung of every ladder, in the first cache of any processor
MEMORY: Final = float(1 << 40)  # Bytes that no cache holds

_SCALAR: Final = re.compile(r"scalar|exp|log")


class MachineCosts:
    """`draws`: how many values of each figure besides its middle. `missing`: names of what was not measured."""

    def __init__(self, table: RoofTable, draws: int = 0, seed: int = 0) -> None:
        self._table, self._draws = table, draws
        self._rng = np.random.default_rng(seed)
        self._places: dict[Key, Array] = {}
        self.missing: dict[str, None] = {}

    def operation_ns(self, name: str, threads: int = 1) -> Array | None:
        """ns of an operation at its best rate, which no repeat undercuts, then slower draws; None: not measured."""
        roof = self._peak(name, threads)
        if roof is None:
            self.missing[name] = None
            return None
        slower = np.minimum(self._values(roof) / roof.median, 1.0)
        return NS / (roof.high * slower)

    def _peak(self, name: str, threads: int) -> Roof | None:
        found = [self._table.rate(name, threads), self._table.kernel(name, threads)]
        if ":" not in name and "@" not in name and not _SCALAR.match(name):
            # A product is multiply-adds: no library's is faster than these in vectors.
            found.append(self._table.rate("fma", threads))
        return max(filter(None, found), key=lambda roof: roof.median, default=None)

    def byte_ns(self, size: float, threads: int = 1, device: str = "") -> Array:
        """ns of a byte in order of data of that size."""
        roof = self._table.bandwidth(max(size, FIRST_CACHE), threads, "read", device)
        if roof is None:
            self.missing["read"] = None
            return np.zeros(1)
        return NS / self._values(roof)

    def access_ns(self, pattern: str, size: float, device: str = "") -> Array:
        """ns of an access scattered over that much."""
        roof = self._table.latency(max(size, FIRST_CACHE), pattern, device)
        if roof is None:
            self.missing[f"{pattern}@{device}" if device else pattern] = None
            return np.zeros(1)
        return self._values(roof)

    def call_ns(self, kind: str) -> Array:
        """ns of a call of that kind, made after another; the best repeat counts, as of operations."""
        roof = self._table.call(kind)
        if roof is None and kind == KERNEL_CALL:
            roof = self._table.call("numba")
        if roof is None:
            self.missing[f"a {kind} call" if "@" not in kind else kind] = None
            return np.zeros(1)
        if "@" in kind:
            return self._values(roof)
        return roof.low * np.maximum(self._values(roof) / roof.median, 1.0)

    def first_call_ns(self) -> Array:
        """ns that a call of a compiled kernel takes longer after other data."""
        hot, cold = (self._table.call(KERNEL_CALL, size) for size in (0, AFTER_BYTES))
        if hot is None or cold is None:
            return np.zeros(1)
        return np.asarray(np.maximum(self._values(cold) - self._values(hot), 0.0))

    def _values(self, roof: Roof) -> Array:
        if not self._draws:
            return np.array([roof.median])
        if roof.key not in self._places:
            self._places[roof.key] = np.concatenate([[0.5], self._rng.uniform(0.0, 1.0, self._draws)])
        return np.asarray(np.interp(self._places[roof.key], [0.0, 0.5, 1.0], [roof.low, roof.median, roof.high]))
