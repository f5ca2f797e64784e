"""Spans: what a stage did, when, on which lane; and what its work counts mean.

A producer thread owns a `Lane` and records spans with clock readings and the counts that vary; the session writer takes
them out. FLOPs and bytes follow from the stage's `Cost` and the counts. The `Recorder` holds the stages, costs and
lanes of a run. Hot code imports only this module and `profiler.recording.kernel_spans`; both stay light.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, overload

from profiler.clock import now_ns
from profiler.costs import WORK_COUNTS, Cost, Linear
from profiler.recording.lanes import RING_RECORDS, Lane, NullLane, measure_ns_per_span
from profiler.recording.layout import LAYOUT, RECORD_BYTES, SPAN

__all__ = [
    "GROUPS",
    "LAYOUT",
    "RECORD_BYTES",
    "RING_RECORDS",
    "SPAN",
    "TILING",
    "WORK_COUNTS",
    "Cost",
    "Lane",
    "Linear",
    "NullLane",
    "Recorder",
    "Stage",
    "measure_ns_per_span",
    "now_ns",
]

GROUPS: Final = ("frontend", "scoring", "search", "transfer", "overhead", "idle", "setup", "prepare", "decode")
"""What a stage belongs to. Spans of `decode` (each moves the decoded frontier to its last frame) and of
`prepare` (work done ahead for the frames it names, such as an utterance's features) together tile the
decode lane's wall time; all others are leaves."""

TILING: Final = ("prepare", "decode")  # The groups whose spans on the decode lane add up to its wall time

_LIMIT_16: Final = 1 << 16

Made = TypeVar("Made", bound=Lane)


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of the pipeline and the names of its up to three work counts."""

    id: int
    name: str
    group: str
    work: tuple[str, ...] = ()


class Recorder:
    """The stages, costs and lanes of one run. Registering is for cold paths and may take a lock."""

    def __init__(self, clock: Callable[[], int] = now_ns) -> None:
        self.clock = clock
        self.stages: list[Stage] = []
        self.lanes: list[Lane] = []
        self.costs: list[tuple[int, int, Cost]] = []
        self._by_name: dict[str, Stage] = {}
        self._latest: dict[tuple[int, int], Cost] = {}
        self._lock = threading.Lock()

    def stage(self, name: str, group: str, work: tuple[str, ...] | list[str] = ()) -> int:
        """Return the stage's id, registered the first time; ValueError for an unknown group or another registration."""
        if group not in GROUPS:
            raise ValueError(f"stage {name!r}: group {group!r} is none of {', '.join(GROUPS)}")
        if len(work) > WORK_COUNTS:
            raise ValueError(f"stage {name!r}: {len(work)} work counts, at most {WORK_COUNTS} fit")
        with self._lock:
            known = self._by_name.get(name)
            if known is not None:
                if (known.group, known.work) != (group, tuple(work)):
                    raise ValueError(
                        f"stage {name!r} is already registered as {known.group} {known.work}, not {group} {tuple(work)}"
                    )
                return known.id
            if len(self.stages) >= _LIMIT_16:
                raise ValueError(f"stage {name!r}: no more than {_LIMIT_16} stages fit a session")
            stage = Stage(len(self.stages), name, group, tuple(work))
            self._by_name[name] = stage
            self.stages.append(stage)
            return stage.id

    def stage_id(self, name: str) -> int:
        return self._by_name[name].id

    def cost(self, stage_id: int, epoch: int, cost: Cost) -> None:
        """Say what `stage_id` costs under configuration `epoch`; before its first span there."""
        if not 0 <= stage_id < len(self.stages):
            raise ValueError(f"cost of stage {stage_id}: no such stage is registered")
        if not 0 <= epoch < _LIMIT_16:
            raise ValueError(f"cost of stage {stage_id}: epoch {epoch} is not within 0…65535")
        with self._lock:
            if self._latest.get((stage_id, epoch)) != cost:
                self._latest[stage_id, epoch] = cost
                self.costs.append((stage_id, epoch, cost))

    def cost_of(self, stage_id: int, epoch: int) -> Cost | None:
        """Return the last value given to `cost` for the stage under `epoch`, or None."""
        return self._latest.get((stage_id, epoch))

    @overload
    def lane(self, name: str, kind: str = "cpu", decode: bool = False) -> Lane: ...

    @overload
    def lane(self, name: str, kind: str = "cpu", decode: bool = False, *, make: type[Made]) -> Made: ...

    def lane(self, name: str, kind: str = "cpu", decode: bool = False, make: type[Lane] = Lane) -> Lane:
        """Make a lane for a producer; `decode`: its wall time counts; `make`: a kind of lane that does more."""
        with self._lock:
            if len(self.lanes) >= _LIMIT_16:
                raise ValueError(f"lane {name!r}: no more than {_LIMIT_16} lanes fit a session")
            lane = make(len(self.lanes), name, kind, decode)
            self.lanes.append(lane)
            return lane
