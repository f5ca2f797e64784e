"""Spans: what a stage did, when, on which lane, recorded for some 200 ns apiece.

A producer thread owns a `Lane` and calls `put` with two clock readings and the counts that vary; one
consumer (the session writer) takes the records out. The ring between them is preallocated and needs no
lock: the producer only moves `recorded`, the consumer only moves the tail. A full ring drops the span
and counts it. FLOPs and bytes are not recorded: they follow from the stage's `Cost` and the counts.

This is the only module of the profiler that hot code imports, so it stays light.
"""

import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.clock import now_ns

LAYOUT: Final = "<qqHHHIIIII"
"""One record as `struct` sees it; little-endian and packed, 42 bytes."""

SPAN: Final = np.dtype(
    [
        ("start_ns", "<i8"),
        ("duration_ns", "<i8"),
        ("stage", "<u2"),
        ("lane", "<u2"),
        ("epoch", "<u2"),
        ("frames", "<u4"),
        ("first_frame", "<u4"),
        ("work0", "<u4"),
        ("work1", "<u4"),
        ("work2", "<u4"),
    ]
)
"""The same record as numpy sees it. `first_frame` is run-global; a frame is a 10 ms hop."""

RECORD_BYTES: Final = SPAN.itemsize
RING_RECORDS: Final = 1 << 16
"""Spans a lane holds before it drops: over a second at 50 000 spans/s, emptied every 50 ms."""

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
_pack_into = struct.Struct(LAYOUT).pack_into


LARGEST_FACTOR: Final = 1e24
"""A cost law read from a file may not be larger: products with counts stay finite."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A quantity per span: fixed + per_frame·frames + Σ per_work[i]·work_i."""

    fixed: float = 0.0
    per_frame: float = 0.0
    per_work: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def of(self, spans: np.ndarray) -> np.ndarray:
        """Return the quantity for each of `spans` (dtype SPAN), float64 [n]."""
        value = np.full(len(spans), float(self.fixed))
        if self.per_frame:
            value += self.per_frame * spans["frames"]
        for i, factor in enumerate(self.per_work):
            if factor:
                value += factor * spans[f"work{i}"]
        return value

    def total(self, spans: int, frames: float, work: tuple[float, float, float]) -> float:
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
    plateau. `transferred`: bytes moved between host and device.
    """

    operations: Mapping[str, Linear] = field(default_factory=dict)
    bytes_min: Linear = Linear()
    bytes_max: Linear = Linear()
    working_set_bytes: float = 0.0
    transferred: Linear = Linear()

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
        }

    @classmethod
    def from_dict(cls, values: object) -> "Cost":
        """Read what `as_dict` wrote; ValueError with one sentence when it is anything else."""
        if not isinstance(values, dict) or not isinstance(values.get("operations"), dict):
            raise ValueError(f"a cost needs a table of operations, not {values!r:.60}")
        working_set = values.get("working_set_bytes")
        if not isinstance(working_set, int | float) or not 0 <= working_set < 2**63:
            raise ValueError(f"working_set_bytes must be a size in bytes, not {working_set!r:.60}")
        return cls(
            {str(name): Linear.from_list(law) for name, law in values["operations"].items()},
            Linear.from_list(values.get("bytes_min")),
            Linear.from_list(values.get("bytes_max")),
            float(working_set),
            Linear.from_list(values.get("transferred")),
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of the pipeline and the names of its up to three work counts."""

    id: int
    name: str
    group: str
    work: tuple[str, ...] = ()


class Lane:
    """One thread of work (or device stream) and its ring of spans. Made by `Recorder.lane`.

    `epoch` is written by the owner whenever the configuration changes and stamped on every span.
    """

    __slots__ = (
        "_limit",
        "_ring",
        "_size",
        "_tail",
        "decode",
        "dropped",
        "epoch",
        "id",
        "kind",
        "name",
        "recorded",
    )

    def __init__(
        self, lane_id: int, name: str, kind: str, decode: bool, capacity: int = RING_RECORDS
    ) -> None:
        self.id = lane_id
        self.name = name
        self.kind = kind
        self.decode = decode
        self.epoch = 0
        self.recorded = 0
        self.dropped = 0
        self._size = capacity
        self._ring = bytearray(capacity * RECORD_BYTES)
        self._tail = 0
        self._limit = capacity

    def put(
        self,
        stage: int,
        start_ns: int,
        end_ns: int,
        first_frame: int = 0,
        frames: int = 0,
        work0: int = 0,
        work1: int = 0,
        work2: int = 0,
    ) -> None:
        """Record one span; drop and count it when the ring is full.

        Frames and counts are unsigned 32 bit; struct.error when one does not fit.
        """
        n = self.recorded
        if n < self._limit:
            _pack_into(
                self._ring,
                n % self._size * RECORD_BYTES,
                start_ns,
                end_ns - start_ns,
                stage,
                self.id,
                self.epoch,
                frames,
                first_frame,
                work0,
                work1,
                work2,
            )
            self.recorded = n + 1
        else:
            self.dropped += 1

    @property
    def waiting(self) -> int:
        """Spans recorded and not yet taken."""
        return self.recorded - self._tail

    def take(self, limit: int = RING_RECORDS) -> bytes:
        """Remove and return up to `limit` of the oldest records; for the one consumer only."""
        tail, size = self._tail, self._size
        count = min(self.recorded - tail, limit)
        first = tail % size
        straight = min(count, size - first)
        ring = memoryview(self._ring)
        data = bytes(ring[first * RECORD_BYTES : (first + straight) * RECORD_BYTES])
        if straight < count:
            data += bytes(ring[: (count - straight) * RECORD_BYTES])
        # Only after the copy may the producer write there again.
        self._tail = tail + count
        self._limit = tail + count + size
        return data


class NullLane:
    """A lane that records nothing: the recorder switched off."""

    __slots__ = ("decode", "dropped", "epoch", "id", "kind", "name", "recorded")

    def __init__(self, name: str = "off", kind: str = "cpu", decode: bool = False) -> None:
        self.id = 0
        self.name = name
        self.kind = kind
        self.decode = decode
        self.epoch = 0
        self.recorded = 0
        self.dropped = 0

    def put(
        self,
        stage: int,
        start_ns: int,
        end_ns: int,
        first_frame: int = 0,
        frames: int = 0,
        work0: int = 0,
        work1: int = 0,
        work2: int = 0,
    ) -> None:
        """Do nothing."""


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

    def lane(self, name: str, kind: str = "cpu", decode: bool = False) -> Lane:
        """Make a lane for one producer thread; `decode` marks the lane whose wall time counts."""
        with self._lock:
            if len(self.lanes) >= _LIMIT_16:
                raise ValueError(f"lane {name!r}: no more than {_LIMIT_16} lanes fit a session")
            lane = Lane(len(self.lanes), name, kind, decode)
            self.lanes.append(lane)
            return lane


MEASURE_PUTS: Final = 1000
MEASURE_ROUNDS: Final = 7


def measure_ns_per_span(clock: Callable[[], int] = now_ns) -> dict[str, float]:
    """Measure what recording costs here and now, on a scratch lane (some 4 ms).

    Returns `ns_per_put` (the call alone) and `ns_per_span` (two clock readings and the call), each the
    median of rounds, loop overhead taken off.
    """
    lane = Lane(0, "scratch", "cpu", False, capacity=MEASURE_PUTS)
    put, rounds = lane.put, range(MEASURE_PUTS)
    puts, spans = [], []
    for _ in range(MEASURE_ROUNDS):
        t0 = now_ns()
        for _ in rounds:
            put(3, 1_000_000_000, 1_000_010_000, 1234, 16, 5000, 900)
        t1 = now_ns()
        lane.take()
        t2 = now_ns()
        for _ in rounds:
            start = clock()
            put(3, start, clock(), 1234, 16, 5000, 900)
        t3 = now_ns()
        lane.take()
        t4 = now_ns()
        for _ in rounds:
            pass
        loop = now_ns() - t4
        puts.append((t1 - t0 - loop) / MEASURE_PUTS)
        spans.append((t3 - t2 - loop) / MEASURE_PUTS)
    middle = MEASURE_ROUNDS // 2
    return {
        "ns_per_put": round(sorted(puts)[middle], 1),
        "ns_per_span": round(sorted(spans)[middle], 1),
    }
