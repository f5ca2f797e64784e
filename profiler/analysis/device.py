"""What a session tells of its devices: the copies with their rates, and work that lay under the host's.

Device lanes show each stream's own time; on the decode lane the waits for it are stages that end in ".wait"
(see `profiler.device.time`). What no wait was charged for is hidden.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from profiler.analysis.machine_costs import NS
from profiler.analysis.recorded import Recorded
from profiler.analysis.stage_sums import LEAF_GROUPS
from profiler.arrays import Array, Bool
from profiler.device.time import DEVICE, TRANSFER_WORK, WAIT

TO_DEVICE: Final = "to device"  # Ending of the stages whose copies go up


@dataclass(frozen=True, slots=True)
class Transfers:
    """The copies of one stage on one stream. Times in ns; `unwaited_ns`: the part nobody waited for.

    `least_ns`: what copies of these sizes and kinds take at the measured roofs; None where one has no roof.
    """

    stage: str
    lane: str
    copies: int
    bytes: int
    pinned_bytes: int
    time_ns: int
    unwaited_ns: int
    least_ns: float | None = None

    @property
    def of_roof(self) -> float | None:
        """The rate as a part of the roof of such copies (0…1 and a little), or None where there is none."""
        return self.least_ns / self.time_ns if self.least_ns and self.time_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        return self.bytes / self.time_ns * 1e9 if self.time_ns else None

    @property
    def overlapped(self) -> float | None:
        """Which part of the time lay under other work (0…1), or None where no time was measured."""
        return self.unwaited_ns / self.time_ns if self.time_ns else None


def transfers(session: Recorded, first: int = 0, last: int | None = None) -> list[Transfers]:
    """Return the copies that begin in frames first … last − 1 (None: to the end), by stage and device lane."""
    copies = []
    for lane in _device_lanes(session):
        spans = session.spans[session.spans["lane"] == lane]
        spans = spans[_within(spans, first, last)]
        for number in np.unique(spans["stage"]):
            stage = session.stages[int(number)]
            if stage.group != "transfer" or stage.work != TRANSFER_WORK:
                continue
            of_stage, name = spans[spans["stage"] == number], session.lanes[lane].name
            size, pinned, unwaited = (int(of_stage[f"work{i}"].sum(dtype=np.int64)) for i in range(3))
            time_ns, least_ns = int(of_stage["duration_ns"].sum()), _least_ns(session, name, stage.name, of_stage)
            copies.append(Transfers(stage.name, name, len(of_stage), size, pinned, time_ns, unwaited, least_ns))
    return copies


def copies_roof(stage: str, pinned: bool) -> str:
    """The name of the bandwidth roofs of a stage's copies, from or to page-locked memory of the host or not."""
    return f"{'to' if stage.endswith(TO_DEVICE) else 'from'}_device.{'pinned' if pinned else 'pageable'}"


def _least_ns(session: Recorded, lane: str, stage: str, copies: Array) -> float | None:
    """What the copies take at the roofs of their sizes."""
    total = 0.0
    kinds, counts = np.unique(copies[["work0", "work1"]], return_counts=True)
    for (size, pinned), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        if not size:
            continue
        roof = session.calibration.bandwidth(size, 1, copies_roof(stage, pinned > 0), lane.partition(" ")[0])
        if roof is None:
            return None
        total += count * size * NS / roof.median
    return total


def hidden_ns(session: Recorded, first: int = 0, last: int | None = None) -> float | None:
    """Return the device time from `first` to `last` that no wait was charged for; None without device lanes."""
    lanes = _device_lanes(session)
    if not lanes:
        return None
    spans = session.spans
    inside = _within(spans, first, last)
    names = {stage.name for stage in session.stages.values()}
    leaves = {number: stage.name for number, stage in session.stages.items() if stage.group in LEAF_GROUPS}
    waits = [n for n, name in leaves.items() if name.endswith(WAIT) and name.removesuffix(WAIT) in names]
    on_device = np.isin(spans["lane"], lanes)
    worked = inside & on_device & np.isin(spans["stage"], [*leaves])
    charged = inside & ~on_device & np.isin(spans["stage"], waits)
    duration = spans["duration_ns"]
    return float(max(int(duration[worked].sum()) - int(duration[charged].sum()), 0))


def _within(spans: Array, first: int, last: int | None) -> Bool:
    """Which spans begin in frames first … last − 1 (None: to the end), [spans]."""
    inside: Bool = spans["first_frame"] >= first
    return inside if last is None else inside & (spans["first_frame"] < last)


def _device_lanes(session: Recorded) -> list[int]:
    return [lane.id for lane in session.lanes.values() if lane.kind == DEVICE]
