"""Memory traffic by stage, next to the bandwidth that was measured over working sets of all sizes. No Qt.

The bytes are what the cost law of a stage says that it must move (at least, and with the kernel's own tiling); the time
is measured. The level of a stage is the first cache that its working set fits into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.views.roofline_model import MIN_SHARE, cache_sizes, place_of
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.analysis.breakdown import StageRow
    from profiler.machine.roofs.table import Roof
    from profiler.session.reader import Session

MEMORY: Final = "memory"
"""The level of what fits into no cache."""


@dataclass(frozen=True)
class Traffic:
    """What one stage moves.

    Attributes:
        name: of the stage.
        group: of the stage.
        device: where it works; empty: the processor.
        share: of the wall time, None outside the decode lane.
        frame_bytes: bytes per frame of the stretch, if each moves once.
        most_frame_bytes: the same with the traffic of the kernel's tiling.
        working_set: bytes that one call reads again.
        rate: bytes per second, if each moves once.
        most_rate: the same with the traffic of the kernel's tiling.
        bandwidth: bytes per second measured at that working set, None without a ladder.
        level: "L1" … or MEMORY, empty where the caches are not known.
        defect: whether the stage ran faster than its roofs allow.
    """

    name: str
    group: str
    device: str
    share: float | None
    frame_bytes: float
    most_frame_bytes: float
    working_set: float
    rate: float
    most_rate: float
    bandwidth: float | None
    level: str
    defect: bool


@dataclass(frozen=True)
class Ladder:
    """Bandwidths measured in one place, (bytes, bytes/s) by growing size; the processor has neither device nor name."""

    device: str
    rungs: tuple[tuple[float, float], ...]
    name: str = ""


@dataclass(frozen=True)
class LadderModel:
    """Stages, most expensive first, the ladders of the places where they work, bytes of the processor's caches."""

    stages: tuple[Traffic, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    caches: tuple[int, ...] = ()
    threads: int = 1


def ladder_model(session: Session, rows: Sequence[StageRow], frames: int, threads: int) -> LadderModel:
    """The stages of a stretch of that many frames whose traffic is known."""
    caches = cache_sizes(session.meta.get("machine"))
    stages = tuple(_stages(session, rows, max(1, frames), threads, caches))
    at = {one.device: place_of(session, one.name, threads).device for one in stages}
    measured = ((place, session.calibration.ladder("read", threads, place)) for place in at)
    ladders = tuple(Ladder(place, _rungs(roofs), at[place]) for place, roofs in measured if roofs)
    return LadderModel(stages, ladders, caches, threads)


def _stages(
    session: Session, rows: Sequence[StageRow], frames: int, threads: int, caches: Sequence[int]
) -> Iterator[Traffic]:
    devices = {
        session.stages[number].name: cost.device
        for (number, _), cost in session.costs.items()
        if number in session.stages
    }
    for row in sorted(rows, key=lambda row: -row.own_ns):
        small = row.share is not None and row.share < MIN_SHARE
        if row.own_ns <= 0 or small or not row.bytes_min or not row.working_set:
            continue
        most, device = max(row.bytes_min, row.bytes_max or 0.0), devices.get(row.name, "")
        roof = session.calibration.bandwidth(row.working_set, threads, device=device)
        yield Traffic(
            name=one_line(row.name),
            group=row.group,
            device=one_line(device),
            share=row.share,
            frame_bytes=row.bytes_min / frames,
            most_frame_bytes=most / frames,
            working_set=row.working_set,
            rate=row.bytes_min / row.own_ns * 1e9,
            most_rate=most / row.own_ns * 1e9,
            bandwidth=None if roof is None else roof.median,
            level="" if device else level_of(row.working_set, caches),
            defect=row.defect is not None,
        )


def level_of(size: float, caches: Sequence[int]) -> str:
    """The first cache (bytes of each, from the first level on) into which a size fits; empty without any known."""
    if not caches:
        return ""
    return next((f"L{level}" for level, most in enumerate(caches, start=1) if size <= most), MEMORY)


def _rungs(roofs: Sequence[Roof]) -> tuple[tuple[float, float], ...]:
    return tuple((float(roof.bytes), roof.median) for roof in roofs)
