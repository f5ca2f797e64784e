"""Spans: what a stage did, when, on which lane; and what its work counts mean.

A producer thread owns a `Lane` (see `profiler.lanes`) and records spans with clock readings and the counts
that vary; one consumer (the session writer) takes them out. FLOPs and bytes are not recorded: they follow
from the stage's `Cost` and the counts. The `Recorder` holds the stages, costs and lanes of a run.

This and `profiler.kernel_spans` are the only modules of the profiler that hot code imports; they stay light.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.arrays import Array
from profiler.clock import now_ns
from profiler.lanes import RING_RECORDS, Lane, NullLane, measure_ns_per_span
from profiler.span_layout import LAYOUT, RECORD_BYTES, SPAN

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

GROUPS: Final = (
    "frontend",
    "scoring",
    "search",
    "transfer",
    "overhead",
    "idle",
    "setup",
    "prepare",
    "decode",
)
"""What a stage belongs to. Spans of `decode` (each moves the decoded frontier to its last frame) and of
`prepare` (work done ahead for the frames it names, such as an utterance's features) together tile the
decode lane's wall time; all others are leaves."""

TILING: Final = ("prepare", "decode")
"""The groups whose spans on the decode lane add up to its wall time."""

WORK_COUNTS: Final = 3
_LIMIT_16: Final = 1 << 16


LARGEST_FACTOR: Final = 1e24
"""A cost law read from a file may not be larger: products with counts stay finite."""

LONGEST_REASON: Final = 400
"""Characters of `Cost.unmodelled` that are read from a file."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A quantity per span: fixed + per_frame·frames + Σ per_work[i]·work_i."""

    fixed: float = 0.0
    per_frame: float = 0.0
    per_work: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def of(self, spans: Array) -> Array:
        """Return the quantity for each of `spans` (dtype SPAN), float64 [n]."""
        value = np.full(len(spans), float(self.fixed))
        if self.per_frame:
            value += self.per_frame * spans["frames"]
        for i, factor in enumerate(self.per_work):
            if factor:
                value += factor * spans[f"work{i}"]
        return value

    def total(self, spans: float, frames: float, work: tuple[float, float, float]) -> float:
        """Return the sum over `spans` spans that together have these frames and work counts."""
        return (
            self.fixed * spans
            + self.per_frame * frames
            + sum(factor * count for factor, count in zip(self.per_work, work, strict=True))
        )

    def as_list(self) -> list[float]:
        """Return [fixed, per_frame, w0, w1, w2] for storage."""
        return [self.fixed, self.per_frame, *self.per_work]

    @classmethod
    def from_list(cls, values: object) -> "Linear":
        """Read what `as_list` wrote; ValueError when it is anything else."""
        if (
            not isinstance(values, list)
            or len(values) != 2 + WORK_COUNTS
            or not all(isinstance(v, int | float) and abs(v) < LARGEST_FACTOR for v in values)
        ):
            raise ValueError(f"a cost law needs five sensible numbers, not {values!r:.60}")
        fixed, per_frame, *work = (float(v) for v in values)
        return cls(fixed, per_frame, (work[0], work[1], work[2]))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage does per span, under one configuration epoch.

    `operations`: operation class → count ("gemm", "fma" = vectorised multiply/add/max/compare, "scalar",
    "exp", "log"); one multiply and one add count 2. `bytes_min`: compulsory traffic. `bytes_max`: traffic
    of the kernel's actual tiling. `working_set_bytes`: what one call re-reads; it picks the bandwidth
    plateau. `transferred`: bytes moved between host and device. `threads`: how many share the work, so
    which roofs count. `scattered`: the bytes lie about in memory and each access waits for the one
    before, so that neither roof is expected to explain the time. `unmodelled`: why there is no law, for
    a stage that has none. `device`: whose memory the bytes move in ("cuda"; empty: the host's); classes
    of operations name theirs themselves ("gemm@cuda").
    """

    operations: Mapping[str, Linear] = field(default_factory=dict)
    bytes_min: Linear = Linear()
    bytes_max: Linear = Linear()
    working_set_bytes: float = 0.0
    transferred: Linear = Linear()
    threads: int = 1
    scattered: bool = False
    unmodelled: str = ""
    device: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the law says nothing at all, as for a stage that only waits or is not modelled."""
        laws = (*self.operations.values(), self.bytes_min, self.bytes_max, self.transferred)
        return all(law == Linear() for law in laws)

    def as_dict(self) -> dict[str, Any]:
        """Return the cost as JSON values."""
        return {
            "operations": {name: law.as_list() for name, law in self.operations.items()},
            "bytes_min": self.bytes_min.as_list(),
            "bytes_max": self.bytes_max.as_list(),
            "working_set_bytes": self.working_set_bytes,
            "transferred": self.transferred.as_list(),
            "threads": self.threads,
            "scattered": self.scattered,
            "unmodelled": self.unmodelled,
            "device": self.device,
        }

    @classmethod
    def from_dict(cls, values: object) -> "Cost":
        """Read what `as_dict` wrote; ValueError with one sentence when it is anything else."""
        if not isinstance(values, dict) or not isinstance(values.get("operations"), dict):
            raise ValueError(f"a cost needs a table of operations, not {values!r:.60}")
        working_set = values.get("working_set_bytes")
        if not isinstance(working_set, int | float) or not 0 <= working_set < 2**63:
            raise ValueError(f"working_set_bytes must be a size in bytes, not {working_set!r:.60}")
        threads = values.get("threads", 1)
        if not isinstance(threads, int) or not 0 < threads < _LIMIT_16:
            raise ValueError(f"threads of a cost must be a count from 1, not {threads!r:.60}")
        return cls(
            {str(name): Linear.from_list(law) for name, law in values["operations"].items()},
            Linear.from_list(values.get("bytes_min")),
            Linear.from_list(values.get("bytes_max")),
            float(working_set),
            Linear.from_list(values.get("transferred")),
            threads,
            values.get("scattered") is True,
            str(values.get("unmodelled", ""))[:LONGEST_REASON],
            str(values.get("device", ""))[:LONGEST_REASON],
        )


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
        """Return the id of the stage, registering it the first time.

        ValueError when the group is unknown, there are more than three work counts, or the name is
        already registered differently.
        """
        if group not in GROUPS:
            raise ValueError(f"stage {name!r}: group {group!r} is none of {', '.join(GROUPS)}")
        if len(work) > WORK_COUNTS:
            raise ValueError(f"stage {name!r}: {len(work)} work counts, at most {WORK_COUNTS} fit")
        with self._lock:
            known = self._by_name.get(name)
            if known is not None:
                if (known.group, known.work) != (group, tuple(work)):
                    raise ValueError(
                        f"stage {name!r} is already registered as {known.group} {known.work}, "
                        f"not {group} {tuple(work)}"
                    )
                return known.id
            if len(self.stages) >= _LIMIT_16:
                raise ValueError(f"stage {name!r}: no more than {_LIMIT_16} stages fit a session")
            stage = Stage(len(self.stages), name, group, tuple(work))
            self._by_name[name] = stage
            self.stages.append(stage)
            return stage.id

    def stage_id(self, name: str) -> int:
        """Return the id of a registered stage; KeyError when there is none."""
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
        """What `cost` was told last of the stage under `epoch`, or None."""
        return self._latest.get((stage_id, epoch))

    def lane(
        self, name: str, kind: str = "cpu", decode: bool = False, make: type[Lane] = Lane
    ) -> Lane:
        """Make a lane for one producer thread; `decode` marks the lane whose wall time counts.

        `make`: a kind of lane that does more than recording, such as reading counters.
        """
        with self._lock:
            if len(self.lanes) >= _LIMIT_16:
                raise ValueError(f"lane {name!r}: no more than {_LIMIT_16} lanes fit a session")
            lane = make(len(self.lanes), name, kind, decode)
            self.lanes.append(lane)
            return lane
