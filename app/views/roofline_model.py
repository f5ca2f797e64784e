"""What the roofline draws: each stage's rate over its intensity, and the roofs above it. No Qt.

Williams, Waterman & Patterson 2009: a stage that does I operations per byte at bandwidth B and ceiling P can do
at most min(P, I · B) operations per second. Bandwidth and ceiling are each stage's own: of its working set and
of its mix of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.analysis.breakdown import StageRow


@dataclass(frozen=True)
class Point:
    """One stage.

    Attributes:
        name: of the stage.
        group: of the stage.
        share: of the wall time, None outside the decode lane.
        intensity: operations per byte, if each byte moves once.
        min_intensity: the same with the traffic of the kernel's tiling.
        rate: operations per second.
        bandwidth: bytes per second that a working set of this size can have.
        ceiling: operations per second that this mix of operations can have.
        defect: whether it ran faster than its roof allows.
    """

    name: str
    group: str
    share: float | None
    intensity: float
    min_intensity: float
    rate: float
    bandwidth: float
    ceiling: float
    defect: bool

    @property
    def ridge(self) -> float:
        """Operations per byte from which arithmetic is the limit."""
        return self.ceiling / self.bandwidth

    @property
    def roof(self) -> float:
        """Maximum operations per second at its intensity."""
        return min(self.ceiling, self.intensity * self.bandwidth)


MIN_SHARE: Final = 0.005
"""Stages with a smaller share are left out: their dots would stretch the axes without adding information."""


def points(rows: Sequence[StageRow]) -> tuple[Point, ...]:
    """The stages with a relevant share and known operations, bytes and roofs, most expensive first."""
    found = []
    for row in sorted(rows, key=lambda row: -row.time_ns):
        known = (row.flops, row.bytes_min, row.bytes_max, row.arithmetic_ns, row.traffic_min_ns)
        small = row.share is not None and row.share < MIN_SHARE
        if row.time_ns <= 0 or small or not all(known):
            continue
        flops, low, high, arithmetic, traffic = (float(value or 0.0) for value in known)
        found.append(
            Point(
                name=one_line(row.name),
                group=row.group,
                share=row.share,
                intensity=flops / low,
                min_intensity=flops / max(low, high),
                rate=flops / row.time_ns * 1e9,
                bandwidth=low / traffic * 1e9,
                ceiling=flops / arithmetic * 1e9,
                defect=row.defect is not None,
            )
        )
    return tuple(found)


def short(value: float) -> str:
    """Three figures and the prefix of a unit, set off: 27 G, 1 T, 850 (with a space at the end)."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.3g} "


def rate(value: float) -> str:
    """Operations per second: 104 Gop/s."""
    return f"{short(value)}op/s"
