"""What the cost law of a stage counts over many spans: operations, bytes, scattered accesses, calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from profiler.costs import KERNEL_CALL, Accesses, Cost, Linear

LINE_BYTES: Final = 64


class Sums(NamedTuple):
    """Sums over spans, those on the edge of a stretch by the part that lies in it; times in ns.

    `other`, `throttled`: of the time, that of the categories NOT_OWN. What stood still is in none.
    """

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
        """Return the sums of both."""
        w0, w1, w2 = (a + b for a, b in zip(self.work, more.work, strict=True))
        return Sums(
            self.time + more.time,
            self.other + more.other,
            self.calls + more.calls,
            self.frames + more.frames,
            (w0, w1, w2),
            self.throttled + more.throttled,
        )


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
    """Return what `cost` counts of spans with these sums."""

    def total(law: Linear) -> float:
        return max(law.total(sums.calls, sums.frames, sums.work), 0.0)

    least, most = total(cost.bytes_min), total(cost.bytes_max)
    # Of scattered data nothing is read whatever is computed.
    fixed = 0.0 if cost.scattered else max(cost.bytes_min.fixed, 0.0) * sums.calls
    compiled = cost.calls.get(KERNEL_CALL, Linear())
    first = min(compiled.fixed, 1.0) * sums.calls + min(compiled.per_frame, 1.0) * sums.frames
    return Counts(
        {name: total(law) for name, law in cost.operations.items()},
        least,
        fixed,
        max(least - fixed, 0.0),
        max(least, most),
        cost.working_set_bytes,
        tuple((each, total(each.count)) for each in cost.accesses),
        {name: total(law) for name, law in cost.calls.items()},
        first,
        cost.threads,
        cost.device,
    )
