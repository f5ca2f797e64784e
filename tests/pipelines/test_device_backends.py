"""torch's calls on simulated devices (`device_backends`): what these demand, their times, graphs and failures."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pipelines import device
from pipelines.device import COMPUTE, COPY, DeviceWork
from pipelines.device.accelerator import QueueDevice, TorchDevice
from profiler.recording.layout import SPAN
from profiler.spans import NullLane, Recorder
from tests.each import each
from tests.fake_clock import FakeClock
from tests.pipelines.device_backends import Cuda, FakeTensor, Mps, Streams, Xpu

MS = 1_000_000


@pytest.fixture
def rig() -> SimpleNamespace:
    clock = FakeClock(5_000 * MS)
    return a_rig(Streams(clock), clock)


def a_rig(backend: Any, clock: FakeClock, recorded: bool = True) -> SimpleNamespace:
    """A device of torch on `backend`, and what records it."""

    def empty(shape: tuple[int, ...], dtype: Any, device: str = "", pin_memory: bool = False) -> Any:
        return FakeTensor(backend, shape, pin_memory, 1 * MS)

    recorder = Recorder(clock)
    lane = recorder.lane("decode", decode=True) if recorded else NullLane()
    if hasattr(backend, "Stream"):
        found: Any = TorchDevice("cuda", backend, empty)
    else:
        found = QueueDevice("mps", backend, empty, clock=clock)
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(found, recorder, lane)
    return SimpleNamespace(
        clock=clock, backend=backend, recorder=recorder, lane=lane, work=work, stage=stage, empty=empty
    )


def run_block(rig: SimpleNamespace, pinned: bool) -> None:
    work, there, empty = rig.work, rig.work.device, rig.empty
    features = there.host_tensor((100, 39), None, pinned=pinned)
    scores = there.host_tensor((100, 1000), None, pinned=pinned)
    work.upload(empty((100, 39), None, "cuda"), features, 0, 100)
    work.then(COPY, COMPUTE)
    work.work(rig.stage, lambda: rig.backend.run(20 * MS), 0, 100)
    work.then(COMPUTE, COPY)
    work.download(scores, empty((100, 1000), None, "cuda"), 0, 100)
    work.wait_for(work.mark(COPY), COPY)
    work.end_block(0, 100)


@pytest.mark.parametrize("pinned", [False, True])
def test_each_stage_gets_its_own_time_pinned_or_not(rig, pinned):
    before = rig.backend.waits
    run_block(rig, pinned)
    # Memory that is not page-locked makes the host wait for either copy; the scores are waited for anyway.
    assert rig.backend.waits - before == (1 if pinned else 3)
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


def test_times_stay_exact_over_an_hour_of_32_bit_milliseconds(rig):
    there = rig.work.device
    begin = rig.clock()
    first = there.time_ns(there.record(0))
    for second in range(3600):
        rig.clock.advance(1_000_100_000 + 137 * second)
        there.rebase(there.record(0))
    last = there.time_ns(there.record(0))
    elapsed = rig.clock() - begin
    # Some 30 ns are lost or won each second, and they do not all fall to one side.
    assert last - first == pytest.approx(elapsed, abs=20_000)
    rig.clock.advance(3_123_456)
    assert there.time_ns(there.record(0)) - last == pytest.approx(3_123_456, abs=200)


@pytest.mark.parametrize("make", [Streams, Xpu])
def test_a_run_longer_than_the_base_reads_no_event_before_it(make):
    """The base moved to the clock pair's event while a block's older events had still to be read."""
    clock = FakeClock(5_000 * MS)

    class InOrder(make):  # type: ignore[misc]
        def between(self, begin: Any, end: Any) -> float:
            assert end.at >= begin.at, "the time from a later event to an earlier one"
            return float(super().between(begin, end))

    rig = a_rig(InOrder(clock), clock)
    for _ in range(30):
        run_block(rig, pinned=True)
        clock.advance(90 * MS)
    spans = np.frombuffer(rig.recorder.lanes[1].take(), SPAN)
    assert spans["duration_ns"].tolist() == pytest.approx([20 * MS] * 30, abs=500)


@each("make", [Streams, Xpu])
@each("waited", [True, False])
def test_an_event_between_two_pieces_ends_the_one_and_begins_the_other(make, waited):
    clock = FakeClock(5_000 * MS)
    rig = a_rig(make(clock), clock)
    work, there = rig.work, rig.work.device

    def block() -> None:
        for i in range(3):
            work.work(rig.stage, lambda: rig.backend.run(10 * MS), 0, 4, directly=i > 0)
        if waited:
            work.wait_for(work.mark(COMPUTE), COMPUTE)
        else:
            clock.advance(15 * MS)  # the second is under way, and the next block's come behind the third
        work.end_block(0, 4)
        clock.advance(10 * MS if waited else 0)

    block()
    before, made = work.timer.events, rig.backend.events
    # Over more than a second, so that times are counted from one of them after another.
    for _ in range(60):
        block()
    assert work.timer.events - before == 60 * 4
    assert not waited or rig.backend.events == made
    # None is given back twice, or while somebody may ask for its time.
    spare = there._spare
    assert len({id(event) for event in spare}) == len(spare)
    held = [event for item in work.timer._items for event in (item.began, item.ended)]
    assert not {id(event) for event in held} & {id(event) for event in spare}
    spans = np.frombuffer(rig.recorder.lanes[1].take(), SPAN)
    assert len(spans) >= (183 if waited else 60)
    assert spans["duration_ns"].tolist() == pytest.approx([10 * MS] * len(spans), abs=5_000)


def test_after_a_pause_a_piece_has_a_beginning_of_its_own(rig):
    """The stream was idle: the time until the next piece is nobody's."""
    work = rig.work
    for i in range(3):
        work.work(rig.stage, lambda: rig.backend.run(10 * MS), 0, 4, directly=i > 0)
        rig.clock.advance(30 * MS)
    work.end_block(0, 4)
    spans = np.frombuffer(rig.recorder.lanes[1].take(), SPAN)
    assert spans["duration_ns"].tolist() == pytest.approx([10 * MS] * 3, abs=5_000)


def test_torch_has_the_calls_that_the_device_makes():
    for backend in (torch.cuda, torch.xpu):
        for call in ("Stream", "Event", "stream", "synchronize"):
            assert hasattr(backend, call)
        for call in ("record", "query", "synchronize", "elapsed_time"):
            assert hasattr(backend.Event, call)
        assert hasattr(backend.Stream, "wait_event")
    for call in ("CUDAGraph", "graph", "graph_pool_handle", "memory_reserved", "memory_allocated"):
        assert hasattr(torch.cuda, call)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_device_with_one_queue_is_timed_by_the_hosts_clock(recorded):
    for call in ("Event", "synchronize"):
        assert hasattr(torch.mps, call)
    assert not hasattr(torch.mps, "Stream")
    clock = FakeClock(5_000 * MS)
    backend = Mps(clock)
    rig = a_rig(backend, clock, recorded)
    assert not rig.work.device.can_pin
    assert rig.work.device.free_bytes() is None
    for _ in range(20):
        waits = backend.waits
        run_block(rig, pinned=False)
        clock.advance(100 * MS)
        # Without a recorder only what is not pinned waits, and who wants the scores.
        assert backend.waits - waits <= (9 if recorded else 3)
    if not recorded:
        return
    spans = np.frombuffer(rig.lane.take(), SPAN)
    names = [stage.name for stage in rig.recorder.stages]
    waited = {names[n]: spans["duration_ns"][spans["stage"] == n] for n in set(spans["stage"])}
    assert waited["score.dense.wait"].tolist() == pytest.approx([20 * MS] * 20, abs=5000)
    assert waited["transfer.to device.wait"].tolist() == pytest.approx([1 * MS] * 20, abs=5000)
    leaves = spans[np.argsort(spans["start_ns"])]
    assert (leaves["start_ns"][1:] >= (leaves["start_ns"] + leaves["duration_ns"])[:-1]).all()


@pytest.mark.parametrize(
    ("message", "full", "lost"),
    [
        ("CUDA out of memory. Tried to allocate 20.00 MiB.", True, False),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True, False),
        ("CUDA error: an illegal memory access was encountered", False, True),
        ("CUDA error: unspecified launch failure", False, True),
        ("CUDA error: uncorrectable ECC error encountered", False, True),
        ("mat1 and mat2 shapes cannot be multiplied", False, False),
    ],
)
def test_full_memory_and_a_lost_device_are_distinguished(rig, message, full, lost):
    def fail() -> None:
        raise RuntimeError(message + "\nCompile with TORCH_USE_CUDA_DSA to enable assertions.")

    kind = device.base.DeviceLost if lost else RuntimeError
    with pytest.raises(kind) as problem:
        rig.work.device.run(COMPUTE, fail)
    assert device.base.is_out_of_memory(problem.value) == full
    if lost:
        assert str(problem.value).startswith("The device cuda stopped answering (CUDA error: ")
        assert "\n" not in str(problem.value)


def test_launching_is_what_the_host_does_but_for_its_waits(rig):
    work, clock = rig.work, rig.clock
    launch = rig.recorder.stage("score.launch", "scoring")
    rig.lane.take()
    with work.launching(launch, 0, 4):
        clock.advance(2 * MS)
        work.work(rig.stage, lambda: rig.backend.run(20 * MS), 0, 4)
        work.wait_for(work.mark(COMPUTE), COMPUTE)
        clock.advance(1 * MS)
    work.end_block(0, 4)
    spans = np.frombuffer(rig.lane.take(), SPAN)
    mine = spans[spans["stage"] == launch]
    assert mine["duration_ns"].tolist() == [2 * MS, 1 * MS]
    leaves = spans[np.argsort(spans["start_ns"])]
    assert (leaves["start_ns"][1:] >= (leaves["start_ns"] + leaves["duration_ns"])[:-1]).all()


def test_graphs_of_a_device_share_a_pool_for_as_long_as_there_are_any():
    backend = Cuda(FakeClock(5_000 * MS))
    there = TorchDevice("cuda", backend, None)  # type: ignore[arg-type]
    held = [there.capture(lambda: None) for _ in range(3)]
    for replay in held:
        assert replay is not None
        replay()
    assert (backend.replays, backend.handles) == (3, 1)
    # Another number type: what was held goes, and is held anew.
    held.clear()
    replay = None
    assert there.capture(lambda: None) is not None
    assert there.notices == []
    assert backend.handles == 2


def test_after_a_capture_that_failed_kernels_are_given_one_by_one():
    backend = Cuda(FakeClock(5_000 * MS))
    there = TorchDevice("cuda", backend, None)  # type: ignore[arg-type]

    def fail(message: str) -> None:
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="out of memory"):
        there.capture(lambda: fail("CUDA out of memory."))
    backend.broken = False
    for _ in range(2):
        assert there.capture(lambda: fail("operation not permitted when capturing")) is None
    assert not there.can_capture
    (notice,) = there.notices
    assert notice.startswith("cuda launches each kernel by itself")
    assert "operation not permitted" in notice


@each("call", ["record", "mark", "is_complete", "wait", "time_ns", "follow", "run"])
def test_whichever_call_hears_of_a_lost_device_tells_of_it(call):
    backend = Streams(FakeClock(5_000 * MS))
    there = TorchDevice("cuda", backend, None)  # type: ignore[arg-type]
    event = there.record(COMPUTE)

    def lost(*_: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    for kind in (backend.Event, backend.Stream):
        for name in ("record", "query", "synchronize", "elapsed_time", "wait_event"):
            if hasattr(kind, name):
                setattr(kind, name, lost)
    given: dict[str, tuple[Any, ...]] = {
        "record": (COMPUTE,),
        "mark": (COMPUTE,),
        "follow": (COPY, event),
        "run": (COMPUTE, lost),
    }
    with pytest.raises(device.base.DeviceLost, match="cuda stopped answering"):
        getattr(there, call)(*given.get(call, (event,)))


def test_memory_that_torch_holds_unused_is_free_too_where_a_device_tells():
    backend: Any = Streams(FakeClock(5_000 * MS))
    backend.mem_get_info = lambda: (1_000, 8_000)
    backend.memory_reserved, backend.memory_allocated = (lambda: 5_000), (lambda: 2_000)
    assert TorchDevice("cuda", backend, None).free_bytes() == 4_000  # type: ignore[arg-type]

    def refuse() -> tuple[int, int]:
        raise RuntimeError("The device doesn't support querying the available free memory.")

    # torch.xpu has the question, and refuses it for devices on the processor's die.
    backend.mem_get_info = refuse
    assert TorchDevice("xpu", backend, None).free_bytes() is None  # type: ignore[arg-type]
