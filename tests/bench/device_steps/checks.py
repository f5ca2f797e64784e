"""Steps that need no speech: what the device is, the tests on it, its roofs, its clock, full memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.models import sphinx
from pipelines.scoring import build_scorer
from pipelines.scoring.device import gmm as device_gmm
from pipelines.scoring.device.scorer import DeviceScorer
from profiler.device.clock import measure_pair
from profiler.machine import describe
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs.calibration import device_measured
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.machine.roofs.timing import Effort
from profiler.spans import NullLane, Recorder
from tests.bench.device_steps import rules
from tests.bench.device_steps.result import Result, Task

EVERYWHERE = (
    "tests/pipelines/test_device.py",
    "tests/pipelines/test_device_backends.py",
    "tests/pipelines/test_device_lazy.py",
    "tests/pipelines/test_device_cold.py",
    "tests/profiler/test_device_time.py",
    "tests/profiler/test_device_roofs.py",
    "tests/profiler/test_energy_accelerator.py",
)
ON_AN_ACCELERATOR = (
    "tests/pipelines/test_device_accelerator.py",
    "tests/pipelines/test_search_device.py::test_on_a_real_device_the_words_are_the_same",
)
CLOCK_S = 60.0
PAIR_EVERY_S = 0.1


def identity(task: Task) -> Result:
    """Which device, which driver."""
    import torch

    facts: dict[str, Any] = {"torch": torch.__version__}
    machine = describe.describe()
    facts |= {key: machine[key] for key in ("cpu", "gpus", "gpu_settings") if machine.get(key)}
    if task.accelerator:
        facts |= open_device(task.device).identity
    return rules.identity(facts, task.accelerator)


def tests(task: Task) -> Result:
    """The tests of the device code, and on an accelerator those that need one."""
    files = EVERYWHERE + (ON_AN_ACCELERATOR if task.accelerator else ())
    done = _tested(files, {})
    return rules.tested(done.returncode, done.stdout, done.stderr, task.device)


def sanitizer(task: Task) -> Result:
    """The same once more, with torch's own search for races between streams."""
    if task.device != "cuda":
        why = "only torch.cuda has a sanitizer; the lazy device of the step before looks for races"
        return Result(None, why)
    done = _tested(ON_AN_ACCELERATOR, {"TORCH_CUDA_SANITIZER": "1"})
    found = rules.tested(done.returncode, done.stdout, done.stderr, task.device)
    return rules.races(found, done.stdout + done.stderr)


def _tested(files: tuple[str, ...], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", **more}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def roofs(task: Task) -> Result:
    """Every roof measured again, and whether they are plausible."""
    if task.accelerator:
        return rules.roofs(device_measured(fresh=True), task.device)
    return rules.roofs(_stand_in(), "cpu")


def _stand_in() -> RoofTable:
    import torch

    device_roofs.GEMM_SIZES = (512,)
    device_roofs.LADDER_BYTES = tuple(1 << p for p in range(16, 27, 2))
    device_roofs.COPY_BYTES = tuple(1 << p for p in range(12, 25, 4))
    device_roofs.READ_BYTES, device_roofs.ELEMENTS = 1 << 26, 1 << 20
    torch.set_num_threads(1)
    found: list[Roof] = []
    stand_in = device_roofs.Device(torch.device("cpu"), "cpu", lambda: None, 1 << 30)
    for key, take in device_roofs.steps(torch, stand_in, []):
        if key.dtype in ("float16", "int8"):
            continue  # emulated here, and slow
        try:
            found.append(take(Effort(3, 0.05)))
        except RuntimeError:
            continue  # a pass that its launches outlast
    return RoofTable(tuple(found))


def clock(task: Task) -> Result:
    """How well times of the device are known on the host's clock, over a minute."""
    device = open_device(task.device)
    seconds = CLOCK_S if not device.host_time else 2.0
    pairs = []
    for _ in range(round(seconds / PAIR_EVERY_S)):
        pairs.append(measure_pair(device, time.perf_counter_ns))
        # As a run does: over a minute, times from one event to another are 4 µs wide.
        latest = device.record(COMPUTE)
        device.wait(latest)
        device.rebase(latest)
        time.sleep(PAIR_EVERY_S)
    return rules.clock(pairs, seconds, device.host_time, task.device)


def memory(task: Task) -> Result:
    """Full memory: scoring goes on on the processor, with the same scores and a notice."""
    import torch

    model = sphinx.load(sphinx.default_directory())
    config = settings.assign(Config(), {"device": task.device, "placement.dtype": "bf16"})
    work = DeviceWork(open_device(task.device), Recorder(), NullLane())
    here = settings.replace(config, "device", "cpu")
    scorer = DeviceScorer(config, model, work, lambda: build_scorer(here, model))
    scorer.warm_up()
    features = np.random.default_rng(1).normal(0, 1, (16, 39)).astype(np.float32)
    expected = np.array(build_scorer(here, model).score(features, 0, NullLane()))
    planted = task.device not in ("cuda", "xpu")
    if planted:

        def full(*_: object) -> None:
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")

        device_gmm.Tied.score = full
    else:
        # Whatever else needs the device has its memory: only this process gets no more.
        backend = getattr(torch, task.device)
        backend.empty_cache()
        backend.set_per_process_memory_fraction(0.0)
        # Twice as large as what it replaces.
        scorer.configure(settings.assign(config, {"placement.dtype": "fp32"}))
    scorer.reset()
    found = np.array(scorer.score(features, 0, NullLane()))
    notices = scorer.take_notices()
    error = float(np.abs(found - expected).max())
    return rules.memory(notices, error, planted)
