"""Cost laws: what a stage does per span, as counts, before any machine is known.

A `Cost` names operations by class, the bytes that must move, and the `Term`s that bound the kernel: its own
instruction mix, streams, scattered accesses, calls. What they take on a machine is `profiler.analysis.law`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.arrays import Array

WORK_COUNTS: Final = 3
_LIMIT_16: Final = 1 << 16

LARGEST_FACTOR: Final = 1e24
"""A cost law read from a file may not be larger: products with counts stay finite."""

LONGEST_REASON: Final = 400
"""Characters of `Cost.unmodelled` that are read from a file."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A quantity per span: fixed + per_frame·frames + Σ per_work[i]·work_i."""

    fixed: float = 0.0
    per_frame: float = 0.0
    per_work: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def of(self, spans: Array) -> Array:
        """Return the quantity for each of `spans` (dtype SPAN), float64 [n]."""
        value = np.full(len(spans), float(self.fixed))
        if self.per_frame:
            value += self.per_frame * spans["frames"]
        for i, factor in enumerate(self.per_work):
            if factor:
                value += factor * spans[f"work{i}"]
        return value

    def total(self, spans: float, frames: float, work: tuple[float, float, float]) -> float:
        """Return the sum over `spans` spans that together have these frames and work counts."""
        return (
            self.fixed * spans
            + self.per_frame * frames
            + sum(factor * count for factor, count in zip(self.per_work, work, strict=True))
        )

    def times(self, factor: float) -> "Linear":
        """Return `factor` times as much."""
        w0, w1, w2 = (factor * each for each in self.per_work)
        return Linear(factor * self.fixed, factor * self.per_frame, (w0, w1, w2))

    def as_list(self) -> list[float]:
        """Return [fixed, per_frame, w0, w1, w2] for storage."""
        return [self.fixed, self.per_frame, *self.per_work]

    @classmethod
    def from_list(cls, values: object) -> "Linear":
        """Read what `as_list` wrote; ValueError when it is anything else."""
        if (
            not isinstance(values, list)
            or len(values) != 2 + WORK_COUNTS
            or not all(isinstance(v, int | float) and abs(v) < LARGEST_FACTOR for v in values)
        ):
            raise ValueError(f"a cost law needs five sensible numbers, not {values!r:.60}")
        fixed, per_frame, *work = (float(v) for v in values)
        return cls(fixed, per_frame, (work[0], work[1], work[2]))


KERNEL: Final = "kernel"
STREAM: Final = "stream"
ACCESS: Final = "access"
CALL: Final = "call"
KINDS: Final = (KERNEL, STREAM, ACCESS, CALL)
"""What a term counts: units of a kernel's own work in cache, bytes in order, scattered accesses, calls."""

MOST_TERMS: Final = 32
"""Terms of a cost that are read from a file."""


@dataclass(frozen=True, slots=True)
class Term:
    """Something that bounds a kernel: so many units per span, each at the roof of that name.

    kernel: units of the kernel's own work with its data in the first cache (`RoofTable.kernel`); with `bytes`,
    the same loop was also timed over a working set of that size, and what that adds is memory traffic; `nearest`: at
    least so many bytes are gone through before its data come again, if it is not known how many more (0: `bytes`).
    stream: bytes in order of memory; `roof` is read, write or triad; `bytes` the working set that they come from.
    access: cache lines whose addresses are scattered over `bytes`; `roof` is chase (each waits for the one before),
    gather (they overlap), or that of a kernel whose units each meet such lines. call: calls of that kind, each after
    `bytes` of other data have been read (0: after one another), see `RoofTable.call`.
    `most`: the largest the count may be, where it is known only as an interval; empty when it is exact.
    `by_heart`: which part of a kernel's loop may be missing when it goes over the same data at once again, 0…1: a
    processor predicts branches that it has just seen.
    """

    kind: str
    roof: str
    count: Linear
    bytes: float = 0.0
    most: Linear | None = None
    nearest: float = 0.0
    by_heart: float = 0.0

    def as_list(self) -> list[Any]:
        """Return the term as JSON values."""
        most = None if self.most is None else self.most.as_list()
        values = [self.kind, self.roof, self.count.as_list(), self.bytes, most, self.nearest]
        return [*values, self.by_heart] if self.by_heart else values

    @classmethod
    def from_list(cls, values: object) -> "Term":
        """Read what `as_list` wrote; ValueError when it is anything else."""
        if not isinstance(values, list) or len(values) not in (5, 6, 7) or values[0] not in KINDS:
            raise ValueError(f"a term needs a kind, a roof, a count and a size, not {values!r:.60}")
        kind, roof, count, size, most, *later = values
        nearest, learned = [*later, 0.0, 0.0][:2]
        sizes = [size, nearest]
        for each in sizes:
            if not isinstance(each, int | float) or not 0 <= each < 2**63:
                raise ValueError(f"the size of a term must be in bytes, not {each!r:.60}")
        if not isinstance(learned, int | float) or not 0 <= learned <= 1:
            raise ValueError(f"what a term may lack by heart must be 0 to 1, not {learned!r:.60}")
        whole, near = map(float, sizes)
        largest = None if most is None else Linear.from_list(most)
        name = str(roof)[:LONGEST_REASON]
        return cls(kind, name, Linear.from_list(count), whole, largest, near, float(learned))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage does per span, under one configuration epoch.

    `operations`: operation class → count ("gemm", "fma" = vectorised multiply/add/max/compare, "scalar",
    "exp", "log"); one multiply and one add count 2. `bytes_min`: compulsory traffic. `bytes_max`: traffic
    of the kernel's actual tiling. `working_set_bytes`: what one call re-reads; it picks the bandwidth
    plateau. `transferred`: bytes moved between host and device. `threads`: how many share the work, so
    which roofs count. `scattered`: the bytes lie about in memory and each access waits for the one
    before, so that neither roof is expected to explain the time. `unmodelled`: why there is no law, for
    a stage that has none. `device`: whose memory the bytes move in ("cuda"; empty: the host's); classes
    of operations name theirs themselves ("gemm@cuda"). `terms`: what bounds the kernel, None for a law that
    says it by operations and bytes alone, as those of older sessions do.
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
    terms: tuple[Term, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the law says nothing at all, as for a stage that only waits or is not modelled."""
        laws = (*self.operations.values(), self.bytes_min, self.bytes_max, self.transferred)
        return not self.terms and all(law == Linear() for law in laws)

    def as_dict(self) -> dict[str, Any]:
        """Return the cost as JSON values."""
        return {
            "operations": {name: law.as_list() for name, law in self.operations.items()},
            "bytes_min": self.bytes_min.as_list(),
            "bytes_max": self.bytes_max.as_list(),
            "working_set_bytes": self.working_set_bytes,
            "transferred": self.transferred.as_list(),
            "threads": self.threads,
            "scattered": self.scattered,
            "unmodelled": self.unmodelled,
            "device": self.device,
            "terms": None if self.terms is None else [term.as_list() for term in self.terms],
        }

    @classmethod
    def from_dict(cls, values: object) -> "Cost":
        """Read what `as_dict` wrote; ValueError with one sentence when it is anything else."""
        if not isinstance(values, dict) or not isinstance(values.get("operations"), dict):
            raise ValueError(f"a cost needs a table of operations, not {values!r:.60}")
        working_set = values.get("working_set_bytes")
        if not isinstance(working_set, int | float) or not 0 <= working_set < 2**63:
            raise ValueError(f"working_set_bytes must be a size in bytes, not {working_set!r:.60}")
        threads = values.get("threads", 1)
        if not isinstance(threads, int) or not 0 < threads < _LIMIT_16:
            raise ValueError(f"threads of a cost must be a count from 1, not {threads!r:.60}")
        return cls(
            {str(name): Linear.from_list(law) for name, law in values["operations"].items()},
            Linear.from_list(values.get("bytes_min")),
            Linear.from_list(values.get("bytes_max")),
            float(working_set),
            Linear.from_list(values.get("transferred")),
            threads,
            values.get("scattered") is True,
            str(values.get("unmodelled", ""))[:LONGEST_REASON],
            str(values.get("device", ""))[:LONGEST_REASON],
            _terms(values.get("terms")),
        )


def _terms(values: object) -> tuple[Term, ...] | None:
    if values is None:
        return None
    if not isinstance(values, list) or len(values) > MOST_TERMS:
        raise ValueError(f"a cost needs a list of at most {MOST_TERMS} terms, not {values!r:.60}")
    return tuple(Term.from_list(term) for term in values)
