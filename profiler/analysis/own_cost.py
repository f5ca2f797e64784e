"""What recording itself cost a session, and what it lost: the figures of the report and of the status bar alike."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from profiler.analysis.recorded import Recorded
from profiler.counting import MISSED
from profiler.device.time import EVENTS


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """Of a whole session; None where it is not known.

    `ns_per_span`: mean, with counters read and device events where there were any. `spans`: recorded, on all lanes.
    `dropped`: lost to a full ring. `misplaced`: naming frames far beyond what was decoded. `missed`: without counters;
    the next span has their counts. `perturbation`: cost of all spans, lost ones too, as a fraction of the wall time.
    """

    ns_per_span: float | None
    spans: int
    dropped: int
    misplaced: int
    missed: int
    perturbation: float | None

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)

    @property
    def losses(self) -> list[str]:
        """What was lost, in words: the dropped spans always, the rest where there is any."""
        texts = [f"{self.dropped} dropped"]
        if self.misplaced:
            texts.append(f"{self.misplaced} misplaced")
        if self.missed:
            texts.append(f"{self.missed} counter readings missed")
        return texts


def recorder_cost(session: Recorded, wall_ns: float | None, misplaced: int = 0) -> RecorderCost:
    """Return the cost of recording as a part of `wall_ns`, the wall time of the whole session.

    Spans on all lanes count: the decode thread records those of a device too. `misplaced`: as a CostTrack counts them.
    """
    stored = session.meta.get("recorder")
    stored = stored if isinstance(stored, dict) else {}
    each, reading = (_number(stored.get(key)) for key in ("ns_per_span", "ns_per_counted_span"))
    lanes = session.lanes.values()
    spans, dropped = sum(lane.recorded for lane in lanes), sum(lane.dropped for lane in lanes)
    put = spans + dropped
    total = None
    if each is not None:
        # With counters on, every span of the decode lane reads them too.
        read = sum(lane.recorded + lane.dropped for lane in lanes if lane.decode)
        total = put * each + read * (reading or 0.0) + _events(session)
        each = total / put if put else each
    share = total / wall_ns if total is not None and wall_ns else None
    missed = _number(session.meta.get(MISSED)) or 0.0
    return RecorderCost(each, spans, dropped, misplaced, int(missed), share)


def _events(session: Recorded) -> float:
    """ns that recording devices took: their timed events, and the ends of blocks."""
    stored = session.meta.get(EVENTS)
    stored = stored if isinstance(stored, dict) else {}
    events, each, ends = (_number(stored.get(name)) or 0.0 for name in ("events", "ns_per_event", "recording_ns"))
    return events * each + ends


def _number(value: object) -> float | None:
    """A number of a session as float; None where it is none, or none that a cost can be."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None
