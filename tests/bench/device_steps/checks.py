"""Steps that need no speech: what the device is, the tests on it, its roofs, its clock, full memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, open_device
from pipelines.device import opening as device_opening
from pipelines.models import sphinx
from pipelines.scoring import build_scorer
from pipelines.scoring.device import gmm as device_gmm
from pipelines.scoring.device.scorer import DeviceScorer
from profiler.device.clock import ClockMap, measure_pair
from profiler.machine import describe
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs.calibration import device_measured
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.machine.roofs.timing import Effort
from profiler.spans import NullLane, Recorder
from tests.bench.device_steps.found import Found, Task

EVERYWHERE = (
    "tests/pipelines/test_device.py",
    "tests/pipelines/test_device_backends.py",
    "tests/pipelines/test_device_lazy.py",
    "tests/pipelines/test_device_cold.py",
    "tests/profiler/test_device_time.py",
    "tests/profiler/test_device_roofs.py",
    "tests/profiler/test_gpus.py",
)
ON_AN_ACCELERATOR = (
    "tests/pipelines/test_device_accelerator.py",
    "tests/pipelines/test_search_device.py::test_on_a_real_device_the_words_are_the_same",
)
CLOCK_S = 60.0
PAIR_EVERY_S = 0.1
MOST_DRIFT_NS = 5_000
"""How far a moment may be told wrong by the pairs around it, 100 ms apart."""
LARGEST_RATE = 30e12
"""B/s; no device's memory is faster, so that such a figure is a mistake of the measurement."""


def identity(task: Task) -> Found:
    """Which device, which driver."""
    import torch

    told: dict[str, Any] = {"torch": torch.__version__}
    machine = describe.describe()
    told |= {key: machine[key] for key in ("cpu", "gpus", "gpu_settings") if machine.get(key)}
    if not task.accelerator:
        return Found(
            None, "the processor stands in: there is no device and no driver to name", told
        )
    told |= device_opening.identity(task.device)
    named = bool(told.get("name"))
    exact = told.get("products") == "highest"
    why = "named, and float32 is multiplied as float32" if exact else "float32 is not kept"
    return Found(named and exact, why if named else "torch does not name it", told)


def tests(task: Task) -> Found:
    """The tests of the device code, and on an accelerator those that need one."""
    files = EVERYWHERE + (ON_AN_ACCELERATOR if task.accelerator else ())
    return _tested(task, files, {})


def sanitizer(task: Task) -> Found:
    """The same once more, with torch's own search for races between streams."""
    if task.device != "cuda":
        why = "only torch.cuda has a sanitizer; the lazy device of the step before looks for races"
        return Found(None, why)
    found = _tested(task, ON_AN_ACCELERATOR, {"TORCH_CUDA_SANITIZER": "1"})
    races = found.figures.pop("said").count("CSAN detected a possible data race")
    found.figures["races"] = races
    if races:
        found.proved, found.why = False, f"the sanitizer names {races} possible data races"
    return found


def _tested(task: Task, files: tuple[str, ...], more: dict[str, str]) -> Found:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", **more}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    found = tested(done.returncode, done.stdout, done.stderr, task.device)
    if more:
        found.figures["said"] = (done.stdout + done.stderr)[-20_000:]
    return found


def tested(returned: int, said: str, complained: str, device: str) -> Found:
    """What pytest's words say. A test that is skipped on `device` proves nothing; on MPS some have to be."""
    summary = next((line for line in reversed(said.splitlines()) if " in " in line), "")
    counts = {
        kind: int(number)
        for number, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", summary)
    }
    skipped = re.findall(r"^SKIPPED \[\d+\] (.+)", said, re.MULTILINE)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    if returned or not counts.get("passed"):
        words = (complained.strip() or said.strip())[-300:]
        why = (
            f"these do not pass: {', '.join(failed)}"
            if failed
            else f"it ended with {returned}: {words}"
        )
        return Found(False, why, dict(counts))
    left_out = f"; skipped: {'; '.join(skipped)}" if skipped else ""
    proved = not skipped or device not in ("cuda", "xpu")
    return Found(proved, f"all {counts['passed']} that ran pass{left_out}", dict(counts))


def roofs(task: Task) -> Found:
    """Every roof anew, and whether such a machine can be."""
    table = device_measured(fresh=True) if task.accelerator else _stand_in()
    kind = task.device if task.accelerator else "cpu"
    figures, doubts = plausible(table, kind)
    if doubts:
        return Found(False, "; ".join(doubts), figures)
    if not task.accelerator:
        why = "measured with the processor in the device's place, which shows the method and no device"
        return Found(None, why, figures)
    return Found(True, "products, memory and copies are such as a machine can have", figures)


def _stand_in() -> RoofTable:
    import torch

    device_roofs.GEMM_SIZES = (512,)  # type: ignore[misc]
    device_roofs.LADDER_BYTES = tuple(1 << p for p in range(16, 27, 2))  # type: ignore[misc]
    device_roofs.COPY_BYTES = tuple(1 << p for p in range(12, 25, 4))  # type: ignore[misc]
    device_roofs.READ_BYTES, device_roofs.ELEMENTS = 1 << 26, 1 << 20  # type: ignore[misc]
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


def plausible(table: RoofTable, kind: str) -> tuple[dict[str, Any], list[str]]:
    """The main figures of a device's roofs, and what of them cannot be, one phrase each."""
    doubts: list[str] = []
    gemm = {
        dtype: roof.median
        for dtype in ("float32", "tf32", "bfloat16", "float16")
        if (roof := table.rate(f"gemm.torch@{kind}", 1, dtype)) is not None
    }
    read = {roof.bytes: roof.median for roof in table.ladder("read", 1, kind)}
    figures: dict[str, Any] = {
        **{f"gemm {dtype} TFLOP/s": rate / 1e12 for dtype, rate in gemm.items()},
        **{f"read {size >> 10} KiB GB/s": rate / 1e9 for size, rate in read.items()},
    }
    for name in ("exp", "log", "fma"):
        rate = table.rate(f"{name}@{kind}")
        if rate is None:
            doubts.append(f"{name} has no roof")
        else:
            figures[f"{name} Gop/s"] = rate.median / 1e9
    if "float32" not in gemm:
        doubts.append("float32 products have no roof")
    elif kind == "cuda" and gemm.get("bfloat16", 0.0) < 0.8 * gemm["float32"]:
        doubts.append("products of bfloat16 are slower than those of float32")
    if len(read) < 3:
        doubts.append("the ladder of reading has fewer than three rungs")
    else:
        largest = max(read)
        if max(rate for size, rate in read.items() if size != largest) < 0.9 * read[largest]:
            doubts.append("no cache is as fast as the memory behind it")
        if max(read.values()) > LARGEST_RATE:
            doubts.append(f"reading at {max(read.values()) / 1e12:.0f} TB/s cannot be")
    launch = table.overhead_ns(f"launch@{kind}")
    if launch is None:
        doubts.append("a launch has no roof")
    else:
        figures["launch µs"] = launch / 1e3
    for way in ("to", "from"):
        for memory in ("pinned", "pageable"):
            rungs = table.ladder(f"{way}_device.{memory}", 1, kind)
            if rungs:
                figures[f"{way} device, {memory}, GB/s"] = max(r.median for r in rungs) / 1e9
    return figures, doubts


def clock(task: Task) -> Found:
    """How well a moment of the device is known on the host's clock, over a minute."""
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
    widths = [pair.uncertainty_ns for pair in pairs]
    # Each pair told by its neighbours alone.
    away = []
    for before, here, after in zip(pairs, pairs[1:], pairs[2:], strict=False):
        told = ClockMap()
        told.add(before)
        told.add(after)
        away.append(abs(told.to_host(here.device_ns) - here.host_ns))
    first, last = pairs[0], pairs[-1]
    rate = (last.host_ns - first.host_ns) / max(last.device_ns - first.device_ns, 1)
    figures = {
        "seconds": seconds,
        "pairs": len(pairs),
        "uncertainty ns, median": median(widths),
        "uncertainty ns, most": max(widths),
        "told by the neighbours, ns off, median": median(away),
        "told by the neighbours, ns off, most": max(away),
        "drift ppm": (rate - 1) * 1e6,
    }
    if device.host_time:
        return Found(
            None, f"{task.device} is timed by the host's own clock: nothing can drift", figures
        )
    proved = median(away) <= max(MOST_DRIFT_NS, 2 * median(widths))
    why = (
        "moments are told within the width of the readings" if proved else "the clocks drift apart"
    )
    return Found(proved, why, figures)


def memory(task: Task) -> Found:
    """Full memory: scoring goes on on the processor, with the same scores, and says so."""
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

        device_gmm.Tied.score = full  # type: ignore[method-assign, assignment]
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
    proved = bool(notices) and error < 0.05
    why = ("a planted failure" if planted else "torch was given no more of the device's memory") + (
        ": scoring went on on the processor and said so"
        if proved
        else ": scoring did not go on as it should"
    )
    return Found(proved, why, {"notice": notices[:1], "largest difference, nat": error})
