"""Sessions for tests: a small deterministic recording, and stand-ins that need no file.

Those in tests/data/sessions were made by released versions, and are never made again.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from profiler.analysis.attribution import REPLAYED
from profiler.analysis.machine_costs import FIRST_CACHE
from profiler.analysis.track import CostTrack
from profiler.costs import CHASE, KERNEL_CALL, Accesses
from profiler.machine.roofs.table import AFTER_BYTES, BANDWIDTH, LATENCY, OVERHEAD, RATE, Roof, RoofTable
from profiler.session.model import ConfigEpoch, CounterTotal, LaneInfo
from profiler.session.writer import SessionWriter
from profiler.spans import SPAN, Cost, Linear, Recorder, Stage
from tests.fake_clock import FakeClock

KEPT = Path(__file__).parents[1] / "data" / "sessions"
BLOCKS = 12
FRAMES_PER_BLOCK = 4
FRAMES = BLOCKS * FRAMES_PER_BLOCK


def roof(kind: str, name: str, median: float, size: int = 0, threads: int = 1, spread: float = 0.1) -> Roof:
    ends = median * (1 - spread), median * (1 + spread)
    return Roof(kind, name, "float32", threads, size, median, *ends, "x/s")


ROOF_TABLE = RoofTable(
    (
        roof(RATE, "gemm", 100e9),
        roof(RATE, "exp", 1e9),
        roof(BANDWIDTH, "read", 100e9, 1 << 20),
        roof(BANDWIDTH, "read", 25e9, 1 << 26),
        roof(OVERHEAD, "numpy", 500.0),
    )
)

GAUSSIANS_COST = Cost(
    {"gemm": Linear(per_work=(100.0, 0.0, 0.0)), "exp": Linear(per_work=(1.0, 0.0, 0.0))},
    bytes_min=Linear(fixed=5000.0),
    bytes_max=Linear(fixed=9000.0, per_frame=10.0),
    working_set_bytes=1000.0,
)


def record(path: Path, *, replace: bool = False, **meta: Any) -> SessionWriter:
    """Record a small run on a fake clock and return the writer, not yet closed."""
    clock = FakeClock(1_000_000_000)
    recorder = Recorder(clock)
    writer = SessionWriter(path, recorder, {"preset": "test", **meta}, replace=replace)
    decode = recorder.stage("decode.block", "decode")
    gaussians = recorder.stage("score.gaussians", "scoring", ("gaussians", "senones"))
    emit = recorder.stage("search.emit", "search", ("tokens", "arcs", "senones"))
    setup = recorder.stage("setup.model", "setup")
    idle = recorder.stage("idle.pace", "idle")
    lane = recorder.lane("decode", decode=True)
    writer.calibration(ROOF_TABLE.rows())
    writer.calibration(RoofTable((roof(RATE, "gemm", 90e9),)).rows("end"))
    start = clock()
    lane.put(setup, start, clock.advance(5_000_000))
    for epoch in range(2):
        writer.config(epoch, epoch * FRAMES // 2, {"threads": 1, "frames": {"skip": epoch + 1}})
        recorder.cost(gaussians, epoch, GAUSSIANS_COST)
    peaks, notes = np.full((FRAMES, 2), 7, np.int8), ["mixed down from 2 channels"]
    part = {"channel": 1, "begin_s": 0.5}
    audio = "/speech/one.wav"
    utterance = writer.utterance("one", audio, 0, FRAMES, FRAMES / 100, "hello world", peaks, notes, part)
    marker = writer.marker("option", "skip every second frame", FRAMES // 2 - 1, "frames.skip", 2)
    writer.marker_applied(marker, FRAMES // 2, 1)
    for block in range(BLOCKS):
        frame = block * FRAMES_PER_BLOCK
        lane.epoch = int(frame >= FRAMES // 2)
        tile = clock()
        lane.put(gaussians, tile, clock.advance(10_000), frame, FRAMES_PER_BLOCK, 3000, 200)
        for i in range(FRAMES_PER_BLOCK):
            begin = clock()
            lane.put(emit, begin, clock.advance(2_000 + block), frame + i, 1, 50 + i, 200, 30)
        lane.put(decode, tile, clock.advance(1_000), frame, FRAMES_PER_BLOCK)
        lane.put(idle, clock(), clock.advance(3_000), frame, 0)
        faults = CounterTotal(lane.id, gaussians, lane.epoch, "page_faults", block + 1, "perf_event")
        writer.counters([faults])
        writer.sample(clock(), {"process.cpu_percent": float(block), "absent": None})
    words = [("hello", 2, 10), ("word", 15, 20)]
    writer.utterance_done(utterance, "hello word", words, clock() - start, [0, 1], 1, 2, False)
    return writer


def fake_session(
    spans: np.ndarray,
    stages: list[Stage],
    costs: dict[tuple[int, int], Cost] | None = None,
    peaks: RoofTable = ROOF_TABLE,
    lanes: tuple[LaneInfo, ...] = (LaneInfo(0, "decode", "cpu", True, 0, 0),),
    **more: Any,
) -> Any:
    """Return what analysis reads of a Session, without a file."""
    return SimpleNamespace(
        spans=spans,
        stages={stage.id: stage for stage in stages},
        lanes={lane.id: lane for lane in lanes},
        costs=costs or {},
        calibration=peaks,
        configs=[ConfigEpoch(0, 0, {"threads": 1}, 0)],
        generation=0,
        utterances=more.get("utterances", []),
        meta=more.get("meta", {}),
    )


def tracked(session: Any) -> CostTrack:
    track = CostTrack()
    track.update(session)
    return track


class Sink:
    """What a sampler writes to."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Mapping[str, float | None]]] = []

    def sample(self, t_ns: int, values: Mapping[str, float | None]) -> None:
        self.rows.append((t_ns, values))


def spans_of(rows: list[tuple[int, ...]]) -> np.ndarray:
    """Make spans from tuples (start, duration, stage, first_frame, frames, *work); lane and epoch are 0."""
    spans = np.zeros(len(rows), SPAN)
    for i, (start, duration, stage, first, frames, *work) in enumerate(rows):
        work = [*work, 0, 0, 0][:3]
        spans[i] = (start, duration, stage, 0, 0, frames, first, *work)
    return spans


def edit(path: Path, *statements: str) -> None:
    """Change a session behind the program's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


ROOFS = ROOF_TABLE.merged(
    RoofTable(
        (
            roof(RATE, "fma", 50e9),
            roof(LATENCY, CHASE, 2.0, FIRST_CACHE),
            roof(LATENCY, CHASE, 102.0, 1 << 26),
            roof(LATENCY, "gather", 1.0, FIRST_CACHE),
            roof(LATENCY, "gather", 11.0, 1 << 26),
            roof(OVERHEAD, "numba", 100.0),
            roof(OVERHEAD, KERNEL_CALL, 1000.0),
            roof(OVERHEAD, KERNEL_CALL, 3000.0, AFTER_BYTES),
        )
    )
)
LARGE = 1 << 26
SCORE, REPLAY = 1, 2
STAGES = [
    Stage(0, "decode.block", "decode"),
    Stage(SCORE, "score.some", "scoring", ("arcs",)),
    Stage(REPLAY, f"{REPLAYED}score.some", "setup", ("timed_ns",)),
]


def law(gemm: float = 0, read: float = 0, chase: float = 0, calls: float = 0) -> Cost:
    """Per span: gemm / 100 ns of arithmetic; bytes of parameters, 0.03 ns more each from LARGE than near by; 100 ns an
    access; 100 to 1000 ns a call."""
    return Cost(
        {"gemm": Linear(gemm)} if gemm else {},
        Linear(read),
        Linear(read),
        float(LARGE),
        calls={KERNEL_CALL: Linear(calls)} if calls else {},
        accesses=(Accesses(Linear(chase), float(LARGE), CHASE),) if chase else (),
    )


def session_of(
    duration: int, cost: Cost | None, hot: float | None = None, roofs: RoofTable = ROOFS, blocks: int = 40
) -> Any:
    """A stage that records one span of `duration` a block; every fourth block is replayed, and takes `hot` of it."""
    rows: list[tuple[int, ...]] = []
    now = 0
    for i in range(blocks):
        rows += [(now, duration, SCORE, 16 * i, 16, 50), (now, duration, 0, 16 * i, 16)]
        now += duration
        if hot is not None and i % 4 == 3:
            rows.append((now, round(duration * hot), REPLAY, 16 * i, 0, duration))
            now += round(duration * hot)
    return fake_session(spans_of(rows), STAGES, {(SCORE, 0): cost} if cost else {}, roofs)
