"""Devices through torch: which are here, and the processor in a device's place."""

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

from pipelines import availability, device
from pipelines.device import COMPUTE, COPY, DeviceError, DeviceWork, HostDevice, base
from profiler.analysis.device import hidden_ns, transfers
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import NullLane, Recorder
from tests.waiting import PATIENCE_S

MS = 1_000_000


def block_of_work(work: DeviceWork, stage: int, pinned: bool = False) -> Any:
    """What a dense scorer does with a block: features up, a product there, scores down."""
    here = work.device
    features = here.host_tensor((16, 39), torch.float32, pinned=pinned)
    features.fill_(2.0)
    there = torch.empty((16, 39), device=here.where)
    weights = torch.full((39, 100), 0.5, device=here.where)
    product = torch.empty((16, 100), device=here.where)
    scores = here.host_tensor((16, 100), torch.float32, pinned=pinned)
    work.upload(there, features, 0, 16)
    work.then(COPY, COMPUTE)
    work.work(stage, lambda: torch.mm(there, weights, out=product), 0, 16, (1600, 0, 0))
    work.then(COMPUTE, COPY)
    work.download(scores, product, 0, 16)
    work.wait_for(work.mark(COPY), COPY)
    work.end_block(0, 16)
    return scores


def test_on_the_processor_copies_work_and_waits_are_recorded(tmp_path):
    recorder = Recorder()
    stage = recorder.stage("score.dense", "scoring", ("senones",))
    path = tmp_path / "device.asrs"
    with SessionWriter(path, recorder, {}):
        lane = recorder.lane("decode", decode=True)
        work = DeviceWork(device.open_device("torch-cpu"), recorder, lane)
        for name, cost in work.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        for _ in range(3):
            scores = block_of_work(work, stage)
    assert torch.equal(scores, torch.full((16, 100), 39.0))
    with Session.open(path) as session:
        rows = {row.stage: row for row in transfers(session)}
        assert rows["transfer.to device"].bytes == 3 * 16 * 39 * 4
        assert rows["transfer.to host"].bytes == 3 * 16 * 100 * 4
        assert all(row.pinned_bytes == 0 and row.bytes_per_s for row in rows.values())
        # Work is given first and waited for then: what little ran in between was hidden.
        assert hidden_ns(session) < 10 * MS
        names = {number: stage.name for number, stage in session.stages.items()}
        lanes = {lane.name: lane for lane in session.lanes.values()}
        assert lanes["torch-cpu compute"].kind == lanes["torch-cpu copy"].kind == "device"
        mine = session.spans[session.spans["lane"] == lanes["decode"].id]
        waits = {names[int(number)] for number in np.unique(mine["stage"])}
        assert waits & {"score.dense.wait", "transfer.to device.wait", "transfer.to host.wait"}
        dense = session.spans[session.spans["stage"] == stage]
        assert dense["work0"].tolist() == [1600] * 3


def test_with_the_recorder_off_the_same_work_is_done():
    recorder = Recorder()
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(HostDevice(), recorder, NullLane())
    assert torch.equal(block_of_work(work, stage), torch.full((16, 100), 39.0))
    assert recorder.lanes == []


def test_a_device_that_is_not_there_is_refused_with_its_reason():
    for name in ("tpu", "cpu"):
        with pytest.raises(DeviceError, match=f"there is no '{name}'; choose one of torch-cpu, cu"):
            device.open_device(name)
    for found in availability.availability():
        assert found.reason
        if not found.available:
            with pytest.raises(DeviceError, match="choose cpu"):
                device.open_device(found.name)


@pytest.mark.slow
def test_what_a_process_of_its_own_tells_is_what_torch_tells():
    assert availability.probe() == tuple(availability.availability())
    absent = {found.name for found in availability.probe() if not found.available}
    for key in ("device", "search.device"):
        obstacles = availability.unavailable_choices(key)
        assert absent <= set(obstacles)
        assert "torch-cpu" not in obstacles
    assert availability.unavailable_choices("search.beam") == {}


def test_a_device_that_cannot_search_is_reported():
    found = (availability.Availability("mps", True, "Apple GPU"),)
    assert availability.unavailable_choices("device", found) == {}
    assert "scatter-minimum" in availability.unavailable_choices("search.device", found)["mps"]


def test_where_torch_does_not_start_only_compiled_code_is_left(monkeypatch):
    availability.probe.cache_clear()
    monkeypatch.setattr(availability.sys, "executable", "/bin/false")
    try:
        found = {each.name: each for each in availability.probe()}
    finally:
        availability.probe.cache_clear()
    assert [name for name, each in found.items() if each.available] == ["cpu"]
    assert "torch does not start" in found["torch-cpu"].reason


def test_streams_of_the_processor_run_in_parallel_to_the_host_and_in_order():
    here = HostDevice()
    gate, seen = threading.Event(), []
    here.wait(here.record(COPY))
    here.run(COMPUTE, lambda: (gate.wait(PATIENCE_S), seen.append("compute")))
    here.follow(COPY, here.record(COMPUTE))
    here.run(COPY, lambda: seen.append("copy"))
    last = here.record(COPY)
    time.sleep(0.05)  # as long as it takes the other stream to go ahead, if nothing held it back
    assert not here.is_complete(last)
    assert seen == []
    gate.set()
    here.wait(last)
    assert seen == ["compute", "copy"]
    assert here.is_complete(last)
    assert here.time_ns(last) <= time.perf_counter_ns()


def test_what_fails_on_a_stream_is_raised_where_it_is_waited_for():
    here = HostDevice()

    def fail() -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    here.run(COMPUTE, fail)
    here.follow(COPY, here.record(COMPUTE))
    with pytest.raises(RuntimeError, match="allocate") as problem:
        here.wait(here.record(COPY))
    assert base.is_out_of_memory(problem.value)
    assert not base.is_out_of_memory(RuntimeError("shapes do not match"))
    here.wait(here.record(COMPUTE))


def test_threads_of_a_device_end_with_it():
    before = set(threading.enumerate())
    here = HostDevice()
    streams = set(threading.enumerate()) - before
    assert len(streams) == 2
    del here
    for stream in streams:
        stream.join(PATIENCE_S)
        assert not stream.is_alive()


@pytest.mark.slow
def test_a_program_that_ends_under_work_ends_like_any_other():
    """A thread that was inside torch when the interpreter ended brought the whole process down."""
    code = (
        "import torch; from pipelines.device import COMPUTE, COPY, HostDevice\n"
        "kept, dropped = HostDevice(), HostDevice()\n"
        "few = torch.ones(10)\n"
        "for there in (kept, dropped):\n"
        "    for _ in range(20_000): there.run(COMPUTE, lambda: few.add_(1))\n"
        "    there.follow(COPY, there.mark(COMPUTE))\n"
        "del there, dropped"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_float32_stays_float32_whatever_the_environment_says():
    code = (
        "import torch; from pipelines.device import accelerator; accelerator.exact_products();"
        "print(torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision())"
    )
    environment = {**os.environ, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["False", "highest"]


def test_a_device_that_runs_no_kernel_is_not_available(monkeypatch):
    """A build without kernels for a GPU finds the GPU, and fails with the first of them."""
    ones = torch.ones

    def none(*shape: Any, device: Any = None) -> Any:
        if device == "cuda":
            raise RuntimeError("CUDA error: no kernel image is available.\nCompile with …")
        return ones(*shape)

    monkeypatch.setattr(torch, "ones", none)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Future GPU")
    found = {each.name: each for each in availability.availability()}
    assert not found["cuda"].available
    assert "Future GPU" in found["cuda"].reason
    assert found["cuda"].reason.endswith("runs no kernel: CUDA error: no kernel image is available")
