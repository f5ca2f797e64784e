"""Steps that need no speech: what the device is, the tests on it, its roofs, its clock, full memory."""

import itertools
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import torch

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, open_device
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
from tests.bench.device_steps.result import SAME_NAT, Result, Task, verdict

EVERYWHERE = (
    *(f"tests/pipelines/test_device{part}.py" for part in ("", "_backends", "_lazy")),
    *(f"tests/profiler/test_{part}.py" for part in ("device_time", "device_roofs", "energy_accelerator")),
)
ON_AN_ACCELERATOR = (
    "tests/pipelines/test_device_accelerator.py",
    "tests/pipelines/test_search_device.py::test_on_a_real_device_the_words_are_the_same",
)
CLOCK_S = 60.0
PAIR_EVERY_S = 0.1
MOST_DRIFT_NS = 5_000  # the largest error of a time that is interpolated between pairs 100 ms apart
LARGEST_RATE = 30e12  # B/s; no device's memory is faster, so that such a figure is a mistake of the measurement


def identity(task: Task) -> Result:
    machine = describe.describe()
    facts: dict[str, Any] = {"torch": torch.__version__}
    facts |= {key: machine[key] for key in ("cpu", "gpus", "gpu_settings") if machine.get(key)}
    if not task.accelerator:
        return Result(None, "the processor stands in: there is no device and no driver to name", facts)
    facts |= open_device(task.device).identity
    kept = facts.get("products") == "highest"
    wrong = {"torch does not name it": not facts.get("name"), "float32 is not kept": not kept}
    return verdict(wrong, "named, and float32 is multiplied as float32", facts)


def tests(task: Task) -> Result:
    """The tests of the device code, and on an accelerator those that need one."""
    return _tested(task, EVERYWHERE + (ON_AN_ACCELERATOR if task.accelerator else ()))


def sanitizer(task: Task) -> Result:
    """The same once more, with torch's own search for races between streams."""
    if task.device != "cuda":
        return Result(None, "only torch.cuda has a sanitizer; the lazy device of the step before looks for races")
    return _tested(task, ON_AN_ACCELERATOR, TORCH_CUDA_SANITIZER="1")


def _tested(task: Task, files: tuple[str, ...], **more: str) -> Result:
    """The result of pytest. A test that is skipped on the device proves nothing; on MPS some have to be."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", **more}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    summary = next((line for line in reversed(done.stdout.splitlines()) if " in " in line), "")
    figures = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", summary)}
    skipped, failed = (
        re.findall(pattern, done.stdout, re.MULTILINE)
        for pattern in (r"^SKIPPED \[\d+\] (.+)", r"^(?:FAILED|ERROR) (\S+)")
    )
    races = (done.stdout + done.stderr).count("CSAN detected a possible data race")
    words = (done.stderr.strip() or done.stdout.strip())[-300:]
    wrong = {
        f"the sanitizer names {races} possible data races": races,
        f"these do not pass: {', '.join(failed)}": failed,
        f"it ended with {done.returncode}: {words}": done.returncode or not figures.get("passed"),
        f"skipped: {'; '.join(skipped)}": skipped and task.device in ("cuda", "xpu"),
    }
    return verdict(wrong, f"all {figures.get('passed')} that ran pass", figures)


def roofs(task: Task) -> Result:
    """Every roof measured again, and whether they are plausible."""
    kind = task.device if task.accelerator else "cpu"
    table = device_measured(fresh=True) if task.accelerator else _stand_in()
    rates = {dtype: table.rate(f"gemm.torch@{kind}", 1, dtype) for dtype in ("float32", "tf32", "bfloat16", "float16")}
    gemm = {dtype: roof.median for dtype, roof in rates.items() if roof is not None}
    read = {roof.bytes: roof.median for roof in table.ladder("read", 1, kind)}
    others = {name: table.rate(f"{name}@{kind}") for name in ("exp", "log", "fma")}
    launch = table.call(f"launch@{kind}")
    figures: dict[str, Any] = {
        **{f"gemm {dtype} TFLOP/s": rate / 1e12 for dtype, rate in gemm.items()},
        **{f"read {size >> 10} KiB GB/s": rate / 1e9 for size, rate in read.items()},
        **{f"{name} Gop/s": roof.median / 1e9 for name, roof in others.items() if roof is not None},
        "launch µs": launch and launch.median / 1e3,
    }
    for end, memory in itertools.product(("to", "from"), ("pinned", "pageable")):
        if rungs := table.ladder(f"{end}_device.{memory}", 1, kind):
            figures[f"{end} device, {memory}, GB/s"] = max(r.median for r in rungs) / 1e9
    caches = [read[size] for size in sorted(read)[:-1]]
    wrong = {
        **{f"{name} has no roof": roof is None for name, roof in others.items()},
        "float32 products have no roof": "float32" not in gemm,
        "products of bfloat16 are slower than those of float32": kind == "cuda"
        and gemm.get("bfloat16", 0.0) < 0.8 * gemm.get("float32", 0.0),
        "the ladder of reading has fewer than three rungs": len(read) < 3,
        "no cache is as fast as the memory behind it": caches and max(caches) < 0.9 * read[max(read)],
        "such a rate of reading cannot be": max(read.values(), default=0.0) > LARGEST_RATE,
        "a launch has no roof": launch is None,
    }
    why = "products, memory and copies are such as a machine can have"
    return verdict(wrong, why, figures, unless="the processor in the device's place shows the method" * (kind == "cpu"))


def _stand_in() -> RoofTable:
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
        with suppress(RuntimeError):  # a pass that its launches outlast
            found.append(take(Effort(3, 0.05)))
    return RoofTable(tuple(found))


def clock(task: Task) -> Result:
    """How well times of the device are known on the host's clock, over a minute: each pair from its neighbours."""
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
    away = []
    for before, here, after in zip(pairs, pairs[1:], pairs[2:], strict=False):
        neighbours = ClockMap()
        neighbours.add(before)
        neighbours.add(after)
        away.append(abs(neighbours.to_host(here.device_ns) - here.host_ns))
    widths, (first, last) = [pair.uncertainty_ns for pair in pairs], (pairs[0], pairs[-1])
    figures = {
        "seconds": seconds,
        "pairs": len(pairs),
        "uncertainty ns, median": median(widths),
        "uncertainty ns, most": max(widths),
        "estimated from the neighbours, ns off, median": median(away),
        "estimated from the neighbours, ns off, most": max(away),
        "drift ppm": ((last.host_ns - first.host_ns) / max(last.device_ns - first.device_ns, 1) - 1) * 1e6,
    }
    wrong = {"the clocks drift apart": median(away) > max(MOST_DRIFT_NS, 2 * median(widths))}
    unless = f"{task.device} is timed by the host's own clock: nothing can drift" if device.host_time else ""
    return verdict(wrong, "times are estimated within the width of the readings", figures, unless=unless)


def memory(task: Task) -> Result:
    """Full memory: scoring goes on on the processor, with the same scores and a notice."""
    model = sphinx.load(sphinx.default_directory())
    config = settings.assign(Config(), {"device": task.device, "placement.dtype": "bf16"})
    work = DeviceWork(open_device(task.device), Recorder(), NullLane())
    here = settings.replace(config, "device", "cpu")
    scorer = DeviceScorer(config, model, work, lambda: build_scorer(here, model))
    scorer.warm_up()
    features = np.random.default_rng(1).normal(0, 1, (16, 39)).astype(np.float32)
    expected = np.array(build_scorer(here, model).score(features, 0, NullLane()))
    if planted := task.device not in ("cuda", "xpu"):
        full = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")
        device_gmm.Tied.score = mock.Mock(side_effect=full)
    else:
        # Whatever else needs the device has its memory: only this process gets no more.
        backend = getattr(torch, task.device)
        backend.empty_cache()
        backend.set_per_process_memory_fraction(0.0)
        # Twice as large as what it replaces.
        scorer.configure(settings.assign(config, {"placement.dtype": "fp32"}))
    scorer.reset()
    error = float(np.abs(np.array(scorer.score(features, 0, NullLane())) - expected).max())
    notices = scorer.take_notices()
    figures = {"notice": list(notices[:1]), "largest difference, nat": error}
    figures |= {"failure": "planted" if planted else "real"}
    # Not a number is no small difference.
    wrong = {"nothing was said of it": not notices, f"scores are {error:.2g} nat off": not error < SAME_NAT}
    return verdict(wrong, "without memory, scoring went on on the processor and said so", figures)
