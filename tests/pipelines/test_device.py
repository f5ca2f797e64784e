"""Devices through torch: the CPU in a device's place, and torch's calls against a backend of our own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipelines import device
from pipelines.device import COMPUTE, COPY, DeviceError, DeviceWork, HostDevice, TorchDevice
from profiler.analysis.device import hidden_ns, transfers
from profiler.clock import FakeClock
from profiler.lanes import SPAN
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder

MS = 1_000_000


@pytest.fixture(scope="module")
def torch() -> Any:
    """Not loaded with this module: collecting the tests would load it for all of them."""
    import torch

    return torch


def block_of_work(torch: Any, work: DeviceWork, stage: int, pinned: bool = False) -> Any:
    """What a dense scorer does with a block: features up, a product there, scores down."""
    here = work.device
    features = here.host_tensor((16, 39), torch.float32, pinned=pinned)
    features.fill_(2.0)
    there = here.tensor((16, 39), torch.float32)
    weights = here.tensor((39, 100), torch.float32)
    weights.fill_(0.5)
    scores = here.host_tensor((16, 100), torch.float32, pinned=pinned)
    work.upload(there, features, 0, 16)
    work.follow(COMPUTE, work.mark(COPY))
    with work.work(stage, 0, 16, (1600, 0, 0)):
        product = there @ weights
    work.follow(COPY, work.mark(COMPUTE))
    work.download(scores, product, 0, 16)
    work.wait_for(work.mark(COPY), COPY)
    work.end_block(0, 16)
    return scores


def test_on_the_cpu_everything_is_waited_for_and_nothing_hidden(torch: Any, tmp_path: Path) -> None:
    recorder = Recorder()
    stage = recorder.stage("score.dense", "scoring", ("senones",))
    path = tmp_path / "device.asrs"
    with SessionWriter(path, recorder, {}):
        lane = recorder.lane("decode", decode=True)
        work = DeviceWork(device.open_device("cpu"), recorder, lane)
        for name, cost in work.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        for _ in range(3):
            scores = block_of_work(torch, work, stage)
    assert torch.equal(scores, torch.full((16, 100), 39.0))
    with Session.open(path) as session:
        rows = {row.stage: row for row in transfers(session)}
        assert rows["transfer.to device"].bytes == 3 * 16 * 39 * 4
        assert rows["transfer.to host"].bytes == 3 * 16 * 100 * 4
        assert all(row.pinned_bytes == 0 and row.overlapped == 0 for row in rows.values())
        assert all(row.bytes_per_s for row in rows.values())
        assert hidden_ns(session) == 0
        names = {number: stage.name for number, stage in session.stages.items()}
        lanes = {lane.name: lane for lane in session.lanes.values()}
        assert lanes["cpu compute"].kind == lanes["cpu copy"].kind == "device"
        mine = session.spans[session.spans["lane"] == lanes["decode"].id]
        waits = {names[int(number)] for number in np.unique(mine["stage"])}
        assert {"score.dense.wait", "transfer.to device.wait", "transfer.to host.wait"} <= waits
        dense = session.spans[session.spans["stage"] == stage]
        assert dense["work0"].tolist() == [1600] * 3


def test_with_the_recorder_off_the_same_work_is_done(torch: Any) -> None:
    recorder = Recorder()
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(HostDevice(), recorder, NullLane())
    assert torch.equal(block_of_work(torch, work, stage), torch.full((16, 100), 39.0))
    assert recorder.lanes == []


def test_a_device_that_is_not_there_is_refused_with_its_reason() -> None:
    with pytest.raises(DeviceError, match="there is no 'tpu'; choose one of cpu, cuda"):
        device.open_device("tpu")
    for found in device.availability():
        assert found.reason
        if not found.available:
            with pytest.raises(DeviceError, match="choose cpu"):
                device.open_device(found.name)


def test_importing_the_module_does_not_import_torch() -> None:
    code = "import sys, json; import pipelines.device; print(json.dumps('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


# -- torch's calls on a device that is simulated -------------------------------------------------


class FakeBackend:
    """What TorchDevice asks of torch.cuda: streams that work in order, events with times in milliseconds.

    Differences of times are 32-bit floats, as torch gives them.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.current = 0
        self.made: list[Any] = []
        backend = self

        class Stream:
            def __init__(self) -> None:
                self.free = 0
                backend.made.append(self)

            def wait_event(self, event: Any) -> None:
                self.free = max(self.free, event.at)

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing
                self.at = -1

            def record(self, stream: Any) -> None:
                self.at = max(backend.clock(), stream.free)

            def query(self) -> bool:
                return self.at <= backend.clock()

            def synchronize(self) -> None:
                backend.clock.advance(max(self.at - backend.clock(), 0) + 1000)

            def elapsed_time(self, other: Any) -> float:
                assert self.query()
                assert other.query()
                return float(np.float32((other.at - self.at) / 1e6))

        self.Stream, self.Event = Stream, Event

    def synchronize(self) -> None:
        pass

    def stream(self, stream: Any) -> Any:
        backend = self

        class On:
            def __enter__(self) -> None:
                self.before = backend.current
                backend.current = backend.made.index(stream)

            def __exit__(self, *_: object) -> None:
                backend.current = self.before

        return On()

    def run(self, ns: int) -> None:
        """A kernel or a copy on the current stream."""
        stream = self.made[self.current]
        stream.free = max(self.clock(), stream.free) + ns


class FakeTensor:
    def __init__(self, backend: FakeBackend, shape: tuple[int, ...], pinned: bool, ns: int) -> None:
        self.backend, self.shape, self.pinned, self.ns = backend, shape, pinned, ns

    def is_pinned(self) -> bool:
        return self.pinned

    def numel(self) -> int:
        return int(np.prod(self.shape))

    def element_size(self) -> int:
        return 4

    def copy_(self, source: Any, non_blocking: bool) -> None:
        assert non_blocking
        self.backend.run(max(self.ns, source.ns))


@pytest.fixture
def rig() -> SimpleNamespace:
    clock = FakeClock(5_000 * MS)
    backend = FakeBackend(clock)

    def empty(
        shape: tuple[int, ...], dtype: Any, device: str = "", pin_memory: bool = False
    ) -> Any:
        return FakeTensor(backend, shape, pin_memory, 1 * MS)

    recorder = Recorder(clock)
    lane = recorder.lane("decode", decode=True)
    found = TorchDevice("cuda", backend, empty)
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(found, recorder, lane)
    return SimpleNamespace(
        clock=clock, backend=backend, recorder=recorder, lane=lane, work=work, stage=stage
    )


def run_block(rig: SimpleNamespace, pinned: bool) -> None:
    work, there = rig.work, rig.work.device
    features = there.host_tensor((100, 39), None, pinned=pinned)
    scores = there.host_tensor((100, 1000), None, pinned=pinned)
    work.upload(there.tensor((100, 39), None), features, 0, 100)
    work.follow(COMPUTE, work.mark(COPY))
    with work.work(rig.stage, 0, 100):
        rig.backend.run(20 * MS)
    work.follow(COPY, work.mark(COMPUTE))
    work.download(scores, there.tensor((100, 1000), None), 0, 100)
    work.wait_for(work.mark(COPY), COPY)
    work.end_block(0, 100)


@pytest.mark.parametrize("pinned", [False, True])
def test_each_stage_gets_its_own_time_pinned_or_not(rig: SimpleNamespace, pinned: bool) -> None:
    run_block(rig, pinned)
    names = [stage.name for stage in rig.recorder.stages]
    sums: dict[str, int] = {}
    for span in np.frombuffer(rig.lane.take(), SPAN):
        name = names[span["stage"]]
        sums[name] = sums.get(name, 0) + int(span["duration_ns"])
    # Copies of 1 ms, 20 ms of arithmetic: nobody is billed for another's time.
    assert sums["score.dense.wait"] == pytest.approx(20 * MS, abs=5000)
    assert sums["transfer.to device.wait"] == pytest.approx(1 * MS, abs=5000)
    assert sums["transfer.to host.wait"] == pytest.approx(1 * MS, abs=5000)
    copy = np.frombuffer(rig.recorder.lanes[2].take(), SPAN)
    assert copy["work0"].tolist() == [100 * 39 * 4, 100 * 1000 * 4]
    assert copy["work1"].tolist() == (copy["work0"].tolist() if pinned else [0, 0])
    assert copy["duration_ns"].tolist() == pytest.approx([1 * MS, 1 * MS], abs=5000)


def test_times_stay_exact_over_an_hour_of_32_bit_milliseconds(rig: SimpleNamespace) -> None:
    there = rig.work.device
    begin = rig.clock()
    first = there.time_ns(there.record(0))
    for second in range(3600):
        rig.clock.advance(1_000_100_000 + 137 * second)
        there.time_ns(there.record(0))
    last = there.time_ns(there.record(0))
    elapsed = rig.clock() - begin
    # Some 30 ns are lost or won each second, and they do not all fall to one side.
    assert last - first == pytest.approx(elapsed, abs=20_000)
    rig.clock.advance(3_123_456)
    assert there.time_ns(there.record(0)) - last == pytest.approx(3_123_456, abs=200)


def test_torch_has_the_calls_that_the_device_makes(torch: Any) -> None:
    for backend in (torch.cuda, torch.xpu):
        for call in ("Stream", "Event", "stream", "synchronize"):
            assert hasattr(backend, call)
        for call in ("record", "query", "synchronize", "elapsed_time"):
            assert hasattr(backend.Event, call)
        assert hasattr(backend.Stream, "wait_event")


def test_on_a_real_device_arithmetic_is_not_billed_to_the_copy(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(device.open_device("cuda"), recorder, lane)
    there = work.device
    big = there.tensor((4096, 4096), torch.float32)
    big.fill_(0.001)
    small = there.host_tensor((64,), torch.float32, pinned=False)
    torch.cuda.synchronize()
    for _ in range(3):  # the first rounds load kernels
        lane.take()
        start = time.perf_counter_ns()
        with work.work(stage, 0, 1):
            for _ in range(20):
                product = big @ big
        work.follow(COPY, work.mark(COMPUTE))
        work.download(small, product[0, :64], 0, 1)
        work.end_block(0, 1)
        wall = time.perf_counter_ns() - start
    names = [found.name for found in recorder.stages]
    spans = np.frombuffer(lane.take(), SPAN)
    sums = {
        names[number]: int(spans["duration_ns"][spans["stage"] == number].sum())
        for number in np.unique(spans["stage"])
    }
    assert sums["score.dense.wait"] > 0.5 * wall
    assert sums["transfer.to host.wait"] < 0.2 * wall
