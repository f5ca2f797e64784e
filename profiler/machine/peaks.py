"""The machine's roofs: what it can compute and move at best, as measured with the workload's libraries.

`Peaks` is the table of measured roofs that attribution divides by; it is stored in every session, so
that a replay elsewhere is judged by the machine that ran. `measure` takes them (a few seconds), and
`load_or_measure` keeps them per machine and library build. Plateaus of the bandwidth ladder are labelled
by size, not by cache name: names are right only where topology is known.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

RATE: Final = "rate"
BANDWIDTH: Final = "bandwidth"
OVERHEAD: Final = "overhead"

NOMINAL_DTYPE: Final = "float32"

LEAST: Final = 1e-3
MOST: Final = 1e24
"""Bounds of a sensible figure, in operations/s, bytes/s or ns; far beyond any machine's."""


@dataclass(frozen=True, slots=True)
class Roof:
    """One measured figure: median of repeats, with the lowest and highest of them.

    rate: operations/s; bandwidth: bytes/s over a working set of `bytes`; overhead: ns per call.
    """

    kind: str
    name: str
    dtype: str
    threads: int
    bytes: int
    median: float
    low: float
    high: float
    unit: str

    @property
    def spread(self) -> float:
        """How far the best repeat lay above the median, as a fraction of the median."""
        return max(self.high / self.median - 1.0, 0.0) if self.median > 0 else 0.0


@dataclass(frozen=True)
class Peaks:
    """All roofs of one machine; empty when nothing was measured (then nothing can be attributed)."""

    roofs: tuple[Roof, ...] = ()
    _cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.roofs)

    @property
    def threads(self) -> tuple[int, ...]:
        """Thread counts that were measured."""
        return tuple(sorted({roof.threads for roof in self.roofs if roof.kind != OVERHEAD}))

    def rate(self, operation: str, threads: int = 1, dtype: str = NOMINAL_DTYPE) -> Roof | None:
        """Return the roof of an operation class (operations/s), or None when it was not measured.

        Of the measured thread counts the largest not above `threads` is taken. A class may name its
        library ("exp.numba"); where that was not measured, the class itself counts ("exp").
        """
        key = (operation, threads, dtype)
        if key not in self._cache:
            for name in (operation, operation.partition(".")[0]):
                fitting = [
                    r for r in self.roofs if (r.kind, r.name, r.dtype) == (RATE, name, dtype)
                ]
                self._cache[key] = _at_threads(fitting, threads)
                if fitting:
                    break
        found: Roof | None = self._cache[key]
        return found

    def ladder(self, name: str = "read", threads: int = 1) -> list[Roof]:
        """Return the bandwidth roofs (bytes/s) by growing working set."""
        wanted = (BANDWIDTH, name, NOMINAL_DTYPE)
        steps = [r for r in self.roofs if (r.kind, r.name, r.dtype) == wanted]
        one = _at_threads(steps, threads)
        return sorted((r for r in steps if one and r.threads == one.threads), key=lambda r: r.bytes)

    def bandwidth(self, working_set_bytes: float, threads: int = 1) -> Roof | None:
        """Return the read bandwidth for a working set of that size, or None when none was measured.

        Between two rungs the time per byte is interpolated over the logarithm of the size: part of the
        set still lies in the faster level. Beyond the ladder's ends the end counts.
        """
        key = ("ladder", threads)
        if key not in self._cache:
            rungs = self.ladder("read", threads)
            self._cache[key] = ([rung.bytes for rung in rungs], rungs)
        sizes, rungs = self._cache[key]
        if not rungs:
            return None
        above = bisect_left(sizes, working_set_bytes)
        if above == 0 or above == len(rungs):
            found: Roof = rungs[min(above, len(rungs) - 1)]
            return found
        low, high = rungs[above - 1], rungs[above]
        part = math.log(working_set_bytes / low.bytes) / math.log(high.bytes / low.bytes)

        def between(a: float, b: float) -> float:
            return 1.0 / ((1.0 - part) / a + part / b)

        return replace(
            high,
            bytes=int(working_set_bytes),
            median=between(low.median, high.median),
            low=between(low.low, high.low),
            high=between(low.high, high.high),
        )

    def overhead_ns(self, name: str = "numpy") -> float | None:
        """Return the measured cost of one call through a library in ns, or None."""
        return next(
            (r.median for r in self.roofs if (r.kind, r.name) == (OVERHEAD, name)),
            None,
        )

    def rows(self, phase: str = "start") -> list[dict[str, Any]]:
        """Return the roofs as rows for `SessionWriter.calibration`."""
        return [
            {
                "phase": phase,
                "kind": roof.kind,
                "name": roof.name,
                "dtype": roof.dtype,
                "threads": roof.threads,
                "bytes": roof.bytes,
                "median": roof.median,
                "low": roof.low,
                "high": roof.high,
                "unit": roof.unit,
            }
            for roof in self.roofs
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[dict[str, Any]]) -> "Peaks":
        """Read what `rows` wrote; a later row replaces an earlier one of the same roof.

        Rows that are no sensible figure are left out: a roof of zero would explain anything.
        """
        roofs: dict[tuple[Any, ...], Roof] = {}
        for row in rows:
            values = {key: value for key, value in row.items() if key != "phase"}
            roof = Roof(**values)
            figures = (roof.median, roof.low, roof.high)
            sized = roof.kind != BANDWIDTH or roof.bytes > 0
            if sized and roof.threads > 0 and all(LEAST < v < MOST for v in figures):
                roofs[roof.kind, roof.name, roof.dtype, roof.threads, roof.bytes] = roof
        return cls(tuple(roofs.values()))

    def merged(self, other: "Peaks") -> "Peaks":
        """Return these roofs with those of `other` added or put in their place."""
        return Peaks.from_rows(self.rows() + other.rows())


def _at_threads(roofs: list[Roof], threads: int) -> Roof | None:
    below = [roof for roof in roofs if roof.threads <= threads]
    if below:
        return max(below, key=lambda roof: roof.threads)
    return min(roofs, key=lambda roof: roof.threads, default=None)


Progress = Callable[[str, float], None]
Cancelled = Callable[[], bool]


def measure(
    threads: int = 1, progress: Progress | None = None, cancelled: Cancelled | None = None
) -> Peaks:
    """Measure the roofs now (under 5 s once the kernels are compiled); see `measuring.measure`."""
    from profiler.machine import measuring

    return measuring.measure(threads, progress, cancelled)


def recheck(peaks: Peaks, threads: int = 1) -> Peaks:
    """Measure GEMM and memory bandwidth again, briefly, to see whether the machine has drifted."""
    from profiler.machine import measuring

    return measuring.recheck(peaks, threads)


def drift(before: Peaks, after: Peaks) -> dict[str, float]:
    """Return by how much each roof measured again has changed: gemm → -0.05 means 5 % slower."""
    old = {(r.kind, r.name, r.dtype, r.threads, r.bytes): r for r in before.roofs}
    changes = {}
    for roof in after.roofs:
        known = old.get((roof.kind, roof.name, roof.dtype, roof.threads, roof.bytes))
        if known is not None:
            label = f"{roof.name} {roof.bytes}" if roof.kind == BANDWIDTH else roof.name
            changes[label] = roof.median / known.median - 1.0
    return changes


def load_or_measure(
    threads: int = 1,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
) -> Peaks:
    """Return this machine's roofs, from the cache when machine and libraries are the same as then."""
    from profiler.machine import measuring

    return measuring.load_or_measure(threads, progress, cancelled, fresh=fresh)
