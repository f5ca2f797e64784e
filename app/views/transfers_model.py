"""The copies between host and device in a stretch of a session, next to what the link was measured to do. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.analysis.device import TO_DEVICE, Transfers, transfers
from profiler.device.time import DEVICE
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

UP, DOWN = "host → device", "device → host"

TO_HOST = "to host"
"""Ending of the stages whose copies go down."""


@dataclass(frozen=True)
class Copies:
    """One kind of copy over a stretch.

    Attributes:
        kind: UP, DOWN or, of a stage with another name, that name.
        copies: how many.
        bytes: of all of them.
        seconds: of all of them, on the device's own lane.
        rate: bytes per second achieved; None where no time was measured.
        reach: bytes per second that copies of these sizes reach; None where that was not measured.
        link: bytes per second of the fastest copy measured in this direction, None likewise.
        least_s: what the smallest copy measured takes, seconds, None likewise.
        least_bytes: its size.
        share: their time as a share of the wall time of the stretch.
        overlapped: which part of it lay under other work, None where no time was measured.
    """

    kind: str
    copies: int
    bytes: int
    seconds: float
    rate: float | None
    reach: float | None
    link: float | None
    least_s: float | None
    least_bytes: int
    share: float
    overlapped: float | None


@dataclass(frozen=True)
class TransfersModel:
    """The kinds of copies over a stretch; `on_device`: whether the session has any device."""

    on_device: bool
    rows: tuple[Copies, ...]

    @property
    def waited(self) -> float:
        return sum(row.share * (1.0 - (row.overlapped or 0.0)) for row in self.rows)


def transfers_model(session: Session, track: CostTrack, first: int, last: int) -> TransfersModel:
    """The copies that begin in frames [first, last)."""
    wall_ns = float(track.total_ns(first, last).sum())
    found = transfers(session, first, last)
    return TransfersModel(
        on_device=any(lane.kind == DEVICE for lane in session.lanes.values()),
        rows=tuple(_copies(session, row, wall_ns) for row in found),
    )


def _copies(session: Session, row: Transfers, wall_ns: float) -> Copies:
    up, pinned = row.stage.endswith(TO_DEVICE), 2 * row.pinned_bytes >= row.bytes
    name = f"{'to' if up else 'from'}_device.{'pinned' if pinned else 'pageable'}"
    rungs = session.calibration.ladder(name, 1, row.lane.partition(" ")[0])
    smallest = rungs[0] if rungs else None
    return Copies(
        kind=UP if up else DOWN if row.stage.endswith(TO_HOST) else one_line(row.stage),
        copies=row.copies,
        bytes=row.bytes,
        seconds=row.time_ns * 1e-9,
        rate=row.bytes_per_s,
        reach=row.bytes / row.least_ns * 1e9 if row.least_ns else None,
        link=max((rung.median for rung in rungs), default=None),
        least_s=smallest.bytes / smallest.median if smallest else None,
        least_bytes=smallest.bytes if smallest else 0,
        share=row.time_ns / wall_ns if wall_ns else 0.0,
        overlapped=row.overlapped,
    )
