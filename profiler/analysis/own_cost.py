"""What recording itself cost a session, and what it lost: the figures of the report and of the status bar alike."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from profiler.analysis.categories import CATEGORIES, OVERHEAD
from profiler.analysis.recorded import Recorded
from profiler.analysis.track import CostTrack
from profiler.counting import MISSED
from profiler.device.time import EVENTS


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """Of a whole session; None where it is not known.

    `ns_per_span`: mean, with counters read and device events where there were any. `spans`: recorded, on all lanes.
    `dropped`: lost to a full ring. `misplaced`: naming frames far beyond what was decoded. `missed`: without counters;
    the next span has their counts. `bookkeeping`: what the run does for itself between the stages, as a fraction of the
    wall time; `perturbation`: that, and the cost of all spans within stages, lost ones too.
    """

    ns_per_span: float | None
    spans: int
    dropped: int
    misplaced: int
    missed: int
    perturbation: float | None
    bookkeeping: float | None = None

    def as_dict(self) -> dict[str, Any]:
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


def recorder_cost(session: Recorded, track: CostTrack, whole: bool = True) -> RecorderCost:
    """Return what recording cost, as a part of the wall time of the `whole` session; `track`: up to date.

    Spans on all lanes count: the decode thread records those of a device too.
    """
    stored = session.meta.get("recorder")
    stored = stored if isinstance(stored, dict) else {}
    each, reading = (_number(stored.get(key)) for key in ("ns_per_span", "ns_per_counted_span"))
    lanes = session.lanes.values()
    spans, dropped = sum(lane.recorded for lane in lanes), sum(lane.dropped for lane in lanes)
    put = spans + dropped
    share = books = None
    wall_ns = track.wall_row.total(0, track.n_frames) if whole else 0.0
    if each is not None:
        # With counters on, every span of the decode lane reads them too.
        read = sum(lane.recorded + lane.dropped for lane in lanes if lane.decode) * (reading or 0.0)
        if wall_ns:
            books = _between_ns(session, track) / wall_ns
            # Tiles are recorded there.
            share = books + (max(put - track.tiles, 0) * each + read + _events(session)) / wall_ns
        each = (put * each + read + _events(session)) / put if put else each
    missed = _number(session.meta.get(MISSED)) or 0.0
    return RecorderCost(each, spans, dropped, track.misplaced, int(missed), share, books)


def _between_ns(session: Recorded, track: CostTrack) -> float:
    """Overhead that has no name, or one of the stages `decode.…` of earlier versions."""
    left = float(track.total_ns(0, track.n_frames)[CATEGORIES.index(OVERHEAD)])
    for (_, number, _), part in track.stages.totals():
        stage = session.stages[number]
        if stage.group == OVERHEAD and not stage.name.startswith("decode."):
            left -= part.own
    return max(left, 0.0)


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
