"""What recording itself cost a session, and what it lost: the figures of the report and of the status bar alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from profiler.analysis.categories import CATEGORIES, OVERHEAD
from profiler.analysis.recorded import Recorded
from profiler.analysis.track import CostTrack
from profiler.counting import MISSED
from profiler.device.time import EVENTS

DEVICE_EVENTS: Final = ("events", "ns_per_event", "recording_ns")  # Facts under EVENTS, of devices
MOST: Final = 1e300


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
        more = {"misplaced": self.misplaced, "counter readings missed": self.missed}
        return [f"{self.dropped} dropped", *(f"{number} {what}" for what, number in more.items() if number)]


def recorder_cost(session: Recorded, track: CostTrack, whole: bool = True) -> RecorderCost:
    """Return what recording cost on all lanes, as a part of the `whole` wall time; `track`: up to date."""
    each, reading = _numbers(session.meta.get("recorder"), "ns_per_span", "ns_per_counted_span")
    events, ns_per_event, ends_ns = (n or 0.0 for n in _numbers(session.meta.get(EVENTS), *DEVICE_EVENTS))
    lanes = session.lanes.values()
    spans, dropped = sum(lane.recorded for lane in lanes), sum(lane.dropped for lane in lanes)
    put = spans + dropped
    share = books = None
    wall_ns = track.wall_row.total(0, track.n_frames) if whole else 0.0
    if each is not None:
        # With counters on, every span of the decode lane reads them too.
        read = sum(lane.recorded + lane.dropped for lane in lanes if lane.decode) * (reading or 0.0)
        more_ns = read + events * ns_per_event + ends_ns
        if wall_ns:
            books = _between_ns(session, track) / wall_ns
            # Tiles are recorded there.
            share = books + (max(put - track.tiles, 0) * each + more_ns) / wall_ns
        each = (put * each + more_ns) / put if put else each
    (missed,) = _numbers(session.meta, MISSED)
    return RecorderCost(each, spans, dropped, track.misplaced, int(missed or 0), share, books)


def _between_ns(session: Recorded, track: CostTrack) -> float:
    """Overhead that has no name, or one of the stages `decode.…` of earlier versions."""
    left = float(track.total_ns(0, track.n_frames)[CATEGORIES.index(OVERHEAD)])
    for (_, number, _), part in track.stages.totals():
        stage = session.stages[number]
        if stage.group == OVERHEAD and not stage.name.startswith("decode."):
            left -= part.own
    return max(left, 0.0)


def _numbers(stored: object, *names: str) -> list[float | None]:
    """Numbers of a session by name; None for what is none, or none that a cost can be."""
    values = [stored.get(name) if isinstance(stored, Mapping) else None for name in names]
    # Compared first: an integer of a stranger may be too large for a float.
    return [
        float(v) if isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < MOST else None for v in values
    ]
