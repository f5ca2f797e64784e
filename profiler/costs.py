"""Cost laws: what a stage does per span, as counts, before any machine is known.

A `Cost` counts operations by class, the bytes that must move, scattered accesses and calls. Their time on a
machine is estimated by `profiler.analysis.attribution`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.arrays import Array

WORK_COUNTS: Final = 3
_LIMIT_16: Final = 1 << 16

LARGEST_FACTOR: Final = 1e24  # A cost law read from a file may not be larger: products with counts stay finite
LONGEST_REASON: Final = 400  # Characters of `Cost.unmodelled` that are read from a file


@dataclass(frozen=True, slots=True)
class Linear:
    """A quantity per span: fixed + per_frame·frames + Σ per_work[i]·work_i."""

    fixed: float = 0.0
    per_frame: float = 0.0
    per_work: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def of(self, spans: Array) -> Array:
        """Return the quantity for each of `spans` (dtype SPAN), float64 [n]."""
        value = np.full(len(spans), float(self.fixed))
        for factor, count in zip((self.per_frame, *self.per_work), ("frames", "work0", "work1", "work2"), strict=True):
            if factor:
                value += factor * spans[count]
        return value

    def total(self, spans: float, frames: float, work: tuple[float, float, float]) -> float:
        """Return the sum over `spans` spans that together have these frames and work counts."""
        by_work = sum(factor * count for factor, count in zip(self.per_work, work, strict=True))
        return self.fixed * spans + self.per_frame * frames + by_work

    def times(self, factor: float) -> "Linear":
        w0, w1, w2 = (factor * each for each in self.per_work)
        return Linear(factor * self.fixed, factor * self.per_frame, (w0, w1, w2))

    def plus(self, other: "Linear") -> "Linear":
        w0, w1, w2 = (a + b for a, b in zip(self.per_work, other.per_work, strict=True))
        return Linear(self.fixed + other.fixed, self.per_frame + other.per_frame, (w0, w1, w2))

    def as_list(self) -> list[float]:
        """Return [fixed, per_frame, w0, w1, w2] for storage."""
        return [self.fixed, self.per_frame, *self.per_work]

    @classmethod
    def from_list(cls, values: object) -> "Linear":
        """Read what `as_list` wrote; ValueError when it is anything else."""
        numbers = values if isinstance(values, list) else []
        sound = [float(v) for v in numbers if isinstance(v, int | float) and abs(v) < LARGEST_FACTOR]
        if len(numbers) != 2 + WORK_COUNTS or len(sound) < len(numbers):
            raise ValueError(f"a cost law needs five sensible numbers, not {values!r:.60}")
        fixed, per_frame, w0, w1, w2 = sound
        return cls(fixed, per_frame, (w0, w1, w2))


KERNEL_CALL: Final = "kernel call"  # Of a compiled kernel, with arrays and the span that it closes
NUMPY_CALL: Final = "numpy"  # A call of one of numpy's functions
BARRIER: Final = "barrier"  # A wait of the threads of a block for each other, on a device: "barrier@cuda"

GATHER: Final = "gather"
CHASE: Final = "chase"
PATTERNS: Final = (GATHER, CHASE)  # Gathered accesses overlap, in a chase each waits for the one before
MOST_ACCESSES: Final = 32
MOST_CALLS: Final = 32  # Kinds of accesses and of calls of a cost that are read from a file


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses per span (on a device: per thread) to cache lines scattered over `bytes`; `pattern`: of PATTERNS."""

    count: Linear
    bytes: float
    pattern: str = GATHER

    def as_list(self) -> list[Any]:
        return [self.count.as_list(), self.bytes, self.pattern]

    @classmethod
    def from_list(cls, values: object) -> "Accesses":
        """Read what `as_list` wrote; ValueError when it is anything else."""
        if not isinstance(values, list) or len(values) != 3 or values[2] not in PATTERNS:
            raise ValueError(f"accesses need a count, a size in bytes and a pattern, not {values!r:.60}")
        return cls(Linear.from_list(values[0]), _size(values[1]), values[2])


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage does per span, under one configuration epoch.

    `operations`: class → count ("gemm", "fma" = vectorised multiply/add/max/compare, "scalar", "exp", "log", on a
    device "gemm@cuda"); a multiply and an add count 2. `bytes_min`: compulsory traffic; `bytes_max`: of the kernel's
    actual tiling. `working_set_bytes`: what one call re-reads; it picks the bandwidth plateau. `transferred`: between
    host and device. `threads`: how many share the work. `scattered`: a roofline says nothing of the stage.
    `unmodelled`: why there is no law. `device`: whose memory the bytes move in (empty: the host's). `calls`: by kind:
    KERNEL_CALL, NUMPY_CALL, "python", "launch@cuda", "barrier@cuda". `accesses`: to scattered lines.
    """

    operations: Mapping[str, Linear] = field(default_factory=dict)
    bytes_min: Linear = Linear()
    bytes_max: Linear = Linear()
    working_set_bytes: float = 0.0
    transferred: Linear = Linear()
    threads: int = 1
    scattered: bool = False
    unmodelled: str = ""
    device: str = ""
    calls: Mapping[str, Linear] = field(default_factory=dict)
    accesses: tuple[Accesses, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the law says nothing at all, as for a stage that only waits or is not modelled."""
        laws = (*self.operations.values(), *self.calls.values(), self.bytes_min, self.bytes_max, self.transferred)
        return not self.accesses and all(law == Linear() for law in laws)

    def as_dict(self) -> dict[str, Any]:
        return {
            **{
                name: getattr(self, name)
                for name in ("working_set_bytes", "threads", "scattered", "unmodelled", "device")
            },
            **{name: getattr(self, name).as_list() for name in ("bytes_min", "bytes_max", "transferred")},
            "operations": {name: law.as_list() for name, law in self.operations.items()},
            "calls": {name: law.as_list() for name, law in self.calls.items()},
            "accesses": [each.as_list() for each in self.accesses],
        }

    @classmethod
    def from_dict(cls, values: object) -> "Cost":
        """Read what `as_dict` wrote; ValueError with one sentence when it is anything else."""
        if not isinstance(values, dict) or not isinstance(values.get("operations"), dict):
            raise ValueError(f"a cost needs a table of operations, not {values!r:.60}")
        threads, calls, accesses = values.get("threads", 1), values.get("calls", {}), values.get("accesses", [])
        if not isinstance(threads, int) or not 0 < threads < _LIMIT_16:
            raise ValueError(f"threads of a cost must be a count from 1, not {threads!r:.60}")
        if not isinstance(calls, dict) or len(calls) > MOST_CALLS:
            raise ValueError(f"a cost needs a table of at most {MOST_CALLS} kinds of calls, not {calls!r:.60}")
        if not isinstance(accesses, list) or len(accesses) > MOST_ACCESSES:
            raise ValueError(f"a cost needs a list of at most {MOST_ACCESSES} kinds of accesses")
        return cls(
            operations={str(name): Linear.from_list(law) for name, law in values["operations"].items()},
            bytes_min=Linear.from_list(values.get("bytes_min")),
            bytes_max=Linear.from_list(values.get("bytes_max")),
            working_set_bytes=_size(values.get("working_set_bytes")),
            transferred=Linear.from_list(values.get("transferred")),
            threads=threads,
            scattered=values.get("scattered") is True,
            unmodelled=str(values.get("unmodelled", ""))[:LONGEST_REASON],
            device=str(values.get("device", ""))[:LONGEST_REASON],
            calls={str(name)[:LONGEST_REASON]: Linear.from_list(law) for name, law in calls.items()},
            accesses=tuple(map(Accesses.from_list, accesses)),
        )


def _size(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"the size of data must be in bytes, not {value!r:.60}")
    return float(value)
