"""What the roofline draws: each stage's rate over its intensity, and the roofs above it. No Qt.

Williams, Waterman & Patterson 2009: a stage that does I operations per byte at bandwidth B and ceiling P can do
at most min(P, I · B) operations per second. Bandwidth and ceiling are each stage's own: of its working set and
of its mix of operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from profiler.analysis.breakdown import StageRow
from profiler.machine.roofs.table import FLAT, Roof, plateaus, size_text
from profiler.plain import one_line, prefixed
from profiler.session.reader import Session

if TYPE_CHECKING:
    from profiler.analysis.comparison.arms import Arm


@dataclass(frozen=True)
class Stage:
    """What a dot is of."""

    name: str
    group: str
    share: float | None  # Of the wall time, None outside the decode lane
    defect: bool  # Whether it ran faster than its roofs allow


@dataclass(frozen=True)
class Point(Stage):
    """A stage in the roofline."""

    intensity: float  # Operations per byte, if each byte moves once
    min_intensity: float  # The same with the traffic of the kernel's tiling
    rate: float  # Operations per second
    bandwidth: float  # Bytes per second that a working set of this size can have
    ceiling: float  # Operations per second that this mix of operations can have

    @property
    def ridge(self) -> float:
        """Operations per byte from which arithmetic is the limit."""
        return self.ceiling / self.bandwidth

    @property
    def roof(self) -> float:
        """Maximum operations per second at its intensity."""
        return min(self.ceiling, self.intensity * self.bandwidth)


MIN_SHARE: Final = 0.005  # Stages with less are left out: their dots would stretch the axes for nothing


def points(rows: Sequence[StageRow]) -> tuple[Point, ...]:
    """The stages with a relevant share and known operations, bytes and roofs, most expensive first."""
    found = []
    for row in sorted(rows, key=lambda row: -row.own_ns):
        known = (row.flops, row.bytes_min, row.bytes_max, row.arithmetic_ns, row.traffic_min_ns)
        small = row.share is not None and row.share < MIN_SHARE
        if row.own_ns <= 0 or small or not all(known):
            continue
        flops, low, high, arithmetic, traffic = (float(value or 0.0) for value in known)
        found.append(
            Point(
                name=one_line(row.name),
                group=row.group,
                share=row.share,
                intensity=flops / low,
                min_intensity=flops / max(low, high),
                rate=flops / row.own_ns * 1e9,
                bandwidth=low / traffic * 1e9,
                ceiling=flops / arithmetic * 1e9,
                defect=row.defect is not None,
            )
        )
    return tuple(found)


def arm_points(arm: Arm) -> tuple[Point, ...]:
    """The stages of one side of a comparison: of its session, or of its configuration in the repeats that count."""
    from profiler.analysis.breakdown import breakdown, stages_under
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(arm.session)
    if arm.epoch is None:
        return points(breakdown(arm.session, track=track).stages)
    first = min(utterance.first_frame for utterance in arm.utterances)
    return points(stages_under(arm.session, track, arm.epoch, first))


@dataclass(frozen=True)
class Level:
    """A level of memory: its name ("L2", "memory", sizes where the caches are not known), bytes per second."""

    name: str
    bandwidth: float


@dataclass(frozen=True)
class Place:
    """Where a stage works: threads (0: unknown), name of the device (empty: the processor), levels, fastest first."""

    threads: int = 1
    device: str = ""
    levels: tuple[Level, ...] = ()

    def level_of(self, bandwidth: float) -> str:
        near = (one.name for one in self.levels if abs(one.bandwidth / bandwidth - 1.0) <= FLAT)
        return next(near, "")


def place_of(session: Session, stage: str, threads: int) -> Place:
    numbers = {number for number, one in session.stages.items() if one.name == stage}
    laws = (cost for (number, _), cost in session.costs.items() if number in numbers)
    device = next((cost.device for cost in laws if cost.device), "")
    rungs = session.calibration.ladder("read", threads, device)
    if not device:
        return Place(threads, "", levels(rungs, cache_sizes(session.meta.get("machine"))))
    # The ladder of a device ends beyond all its caches.
    name = (session.meta.get("devices") or {}).get(device, {}).get("name", device)
    return Place(1, one_line(name), levels(rungs, (), rungs[-1:]))


class _Cache(msgspec.Struct):
    level: int
    bytes: int
    type: str = ""


def cache_sizes(machine: Mapping[str, object] | None) -> tuple[int, ...]:
    """Bytes of the caches that a machine says it has, from the first level on; empty where that makes no sense."""
    try:
        caches = msgspec.convert((machine or {}).get("caches", []), list[_Cache])
    except msgspec.ValidationError:
        return ()
    found = {cache.level: cache.bytes for cache in caches if cache.type != "instruction"}
    sizes = tuple(found[level] for level in sorted(found))
    numbered = sorted(found) == list(range(1, len(found) + 1))
    return sizes if numbered and all(a < b for a, b in pairwise((0, *sizes))) else ()


def levels(rungs: Sequence[Roof], caches: Sequence[int], memory: Sequence[Roof] = ()) -> tuple[Level, ...]:
    """The levels that a ladder of bandwidths shows, each at the middle of its sizes.

    Without the sizes of the caches, they are the plateaus of the ladder, named by their sizes. `memory`: what of the
    ladder is known to lie beyond all caches; the largest size is named as such where it is within the last one.
    """
    if not rungs:
        return ()
    found, below, last = [], rungs[0].bytes, rungs[-1]
    for number, size in enumerate(caches, start=1):
        inside = [rung for rung in rungs if below <= rung.bytes <= size]
        if inside:
            middle = math.log(below * size) / 2
            nearest = min((abs(math.log(rung.bytes) - middle), rung.median) for rung in inside)[1]
            found.append(Level(f"L{number}", nearest))
        below = size
    if not caches:
        flat = [one for one in plateaus(rungs) if not memory or one.last_bytes < last.bytes]
        found = [Level(f"up to {size_text(one.last_bytes)}", one.rate) for one in flat]
    if memory or (caches and last.bytes > caches[-1]):
        found.append(Level("memory", last.median))
    elif caches and (not found or last.median < found[-1].bandwidth * (1.0 - FLAT)):
        found.append(Level(size_text(last.bytes), last.median))
    kept: list[Level] = []
    for level in found:
        # A level that is no slower than the one before has no line of its own.
        if not kept or level.bandwidth < kept[-1].bandwidth * (1.0 - FLAT):
            kept.append(level)
        else:
            kept[-1] = Level(f"{kept[-1].name}, {level.name}", kept[-1].bandwidth)
    return tuple(kept)


def rate(value: float) -> str:
    """Operations per second: 104 Gop/s."""
    return f"{prefixed(value)}op/s"
