"""The parts that the time of a stage consists of, with their intervals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from profiler.analysis.categories import NOT_ATTRIBUTED, NOT_OWN, PARTS

COMPUTE_PARTS: Final = ("arithmetic", "instructions", "calls")
MEMORY_PARTS: Final = ("bandwidth", "latency")

TOLD_FROM: Final = 0.02
"""A part below this share of the time is left out of a sentence."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Time by part in ns: the likely figures, which add up to the stage's time, and the ends of their intervals."""

    likely: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @property
    def time_ns(self) -> float:
        return sum(self.likely.values())

    @property
    def own(self) -> "Parts":
        return Parts(*({**ends, **dict.fromkeys(NOT_OWN, 0.0)} for ends in (self.likely, self.low, self.high)))

    def share(self, name: str) -> float:
        """The likely part of the time, 0…1."""
        time = self.time_ns
        return self.likely[name] / time if time else 0.0

    def ends(self, name: str) -> tuple[float, float]:
        """The interval of `share`, 0…1."""
        time = self.time_ns
        return (self.low[name] / time, self.high[name] / time) if time else (0.0, 0.0)

    @property
    def notable(self) -> list[str]:
        order = sorted(PARTS, key=lambda name: -self.likely[name])
        return [name for name in order if self.share(name) >= TOLD_FROM]


def together(stages: Iterable[tuple[float, Parts | None]]) -> Parts | None:
    """Return the parts of several stages as one, of (time in ns, parts); None where none of them has any.

    The whole time of a stage without parts is not attributed.
    """
    rows = list(stages)
    if not any(parts is not None for _, parts in rows):
        return None
    sums = [dict.fromkeys(PARTS, 0.0) for _ in range(3)]
    for time, parts in rows:
        if parts is None:
            for each in sums:
                each[NOT_ATTRIBUTED] += time
            continue
        for each, values in zip(sums, (parts.likely, parts.low, parts.high), strict=True):
            for name in PARTS:
                each[name] += values[name]
    return Parts(*sums)
