"""A simulated device with exactly known times: streams on a clock of their own, and a recorder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from profiler.device.time import TRANSFER_WORK, DeviceTimer
from profiler.recording.layout import SPAN
from profiler.spans import Recorder
from tests.fake_clock import FakeClock

MS = 1_000_000
COMPUTE, COPY = 0, 1
LATENCY_NS = 2_000


@dataclass
class FakeDevice:
    """Streams that work in order on a clock of their own. `true`: what really ran, on the host's clock."""

    clock: FakeClock
    origin_ns: int = 123_456
    rate: float = 1.0  # device ns per host ns
    latency_ns: int = LATENCY_NS
    host_time: bool = False
    blocking: bool = False
    free: list[int] = field(default_factory=lambda: [0, 0])
    true: list[tuple[int, int, int]] = field(default_factory=list)
    events: int = 0

    def record(self, stream: int) -> int:
        self.events += 1
        return max(self.clock(), self.free[stream])

    def mark(self, stream: int) -> int:
        return max(self.clock(), self.free[stream])

    def rebase(self, event: int) -> None:
        assert event <= self.clock()

    def recycle(self, event: int) -> None:
        pass

    def is_complete(self, event: int) -> bool:
        return event <= self.clock()

    def wait(self, event: int) -> None:
        self.clock.advance(max(event - self.clock(), 0) + self.latency_ns)

    def time_ns(self, event: int) -> int:
        assert event <= self.clock(), "the time of an event that has not happened"
        return self.origin_ns + round(event * self.rate)

    def run(self, stream: int, ns: int) -> None:
        start = max(self.clock(), self.free[stream])
        self.free[stream] = start + ns
        self.true.append((stream, start, start + ns))

    def follow(self, stream: int, event: int) -> None:
        self.free[stream] = max(self.free[stream], event)


@contextmanager
def piece(
    timer: DeviceTimer, stage: int, stream: int = COMPUTE, frame: int = 0, work: tuple[int, int, int] = (0, 0, 0)
) -> Iterator[None]:
    """What the context gives to `stream` is one span of four frames of `stage`, where anything is recorded."""
    if not timer.recording:
        yield
        return
    given, began = timer.begin(stream)
    yield
    timer.end(given, began, stage, stream, frame, 4, work)


class Rig:
    """A recorder on a fake clock, a device, and what came out of both."""

    def __init__(self, **device: object) -> None:
        self.clock = FakeClock(1_000 * MS)
        self.device = FakeDevice(self.clock, **device)  # type: ignore[arg-type]
        self.recorder = Recorder(self.clock)
        self.host = self.recorder.lane("decode", decode=True)
        self.gemm = self.recorder.stage("score.dense", "scoring")
        self.up = self.recorder.stage("transfer.up", "transfer", TRANSFER_WORK)
        self.down = self.recorder.stage("transfer.down", "transfer", TRANSFER_WORK)
        self.timer = DeviceTimer(self.recorder, self.device, self.host, ["compute", "copy"])
        self.host.take()

    def compute(self, ns: int, stream: int = COMPUTE, frame: int = 0) -> None:
        with piece(self.timer, self.gemm, stream, frame):
            self.device.run(stream, ns)

    def blocking_copy(self, ns: int, size: int = 4096, stream: int = COMPUTE, frame: int = 0) -> None:
        with self.timer.transfer(self.down, size, False, stream, frame, 4, blocking=True):
            self.device.run(stream, ns)

    def taken(self) -> tuple[dict[str, int], list[np.ndarray]]:
        """Sum of each stage on the host's lane (ns), and the spans of each device lane."""
        spans = np.frombuffer(self.host.take(), SPAN)
        sums = {
            self.recorder.stages[stage].name: int(spans["duration_ns"][spans["stage"] == stage].sum())
            for stage in dict.fromkeys(spans["stage"].tolist())
        }
        return sums, [np.frombuffer(lane.take(), SPAN) for lane in self.recorder.lanes[1:]]
