"""The roofs that need torch: the child that measures them, and what becomes of its failures."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from profiler.errors import Cancelled
from profiler.machine.roofs import calibration, timing
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs import torch as torch_roofs
from profiler.machine.roofs.calibration import measure
from profiler.machine.roofs.device import Missing
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Key, Roof
from profiler.machine.roofs.timing import Effort
from tests.each import each
from tests.waiting import PATIENCE_S

PART = calibration.part(1)


def child(tmp_path: Path, code: str) -> list[str]:
    file = tmp_path / "child.py"
    file.write_text(f"import json, os, signal, sys, time\n{code}")
    return [sys.executable, str(file)]


ANSWER = """
row = dict(kind="rate", name="gemm.torch", dtype="int8", threads=1, bytes=0,
           median=2e11, low=1e11, high=3e11, unit="op/s", disturbed=True)
print("a library says hello")
print(json.dumps(dict(progress="torch: gemm", fraction=0.5)))
print(json.dumps(dict(part=sys.argv[1], roofs=[row, {**row, "median": 0.0}], missing=[["x", "why"]])))
"""


def test_the_answer_comes_by_part(tmp_path):
    reported: list[tuple[str, float]] = []
    code = f"{ANSWER}\nprint(json.dumps(dict(done=True)))\ntime.sleep(60)"
    got = measure([PART], lambda *progress: reported.append(progress), command=child(tmp_path, code))
    (roof,) = got.roofs[PART]
    assert (roof.name, roof.dtype, roof.disturbed) == ("gemm.torch", "int8", True)
    assert got.missing == {PART: [Missing("x", "why")]}
    assert reported == [("torch: gemm", 0.5)]


def test_a_child_that_dies_gives_a_reason_and_keeps_what_it_said(tmp_path, monkeypatch):
    code = f"{ANSWER}\nsys.stdout.flush()\nsys.exit('libgomp is gone')"
    got = measure([PART, "device"], command=child(tmp_path, code))
    assert len(got.roofs[PART]) == 1
    assert got.missing[PART] == [Missing("x", "why")]
    (missing,) = got.missing["device"]
    assert missing.name == "device"
    assert missing.reason.endswith("libgomp is gone")
    assert "status 1" in missing.reason
    # One that is silent is given up.
    monkeypatch.setattr(calibration, "SILENCE_SECONDS", 0.3)
    got = measure([PART], command=child(tmp_path, "time.sleep(60)"))
    assert got.missing[PART][0].name == PART


def test_cancelling_ends_the_child(tmp_path):
    ready, lived = tmp_path / "ready", tmp_path / "lived"
    code = f"open({str(ready)!r}, 'w').close(); time.sleep(3); open({str(lived)!r}, 'w').close()"
    with pytest.raises(Cancelled):
        measure([PART], cancelled=ready.exists, command=child(tmp_path, code))
    assert not lived.exists()
    alive = [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE]
    assert not any("child.py" in " ".join(p.cmdline()) for p in alive)


def fake_torch(**more: Any) -> Any:
    """A torch of which products of int8 fail and those of float16 crawl."""

    def tensor(dtype: str = "float32") -> Any:
        return SimpleNamespace(dtype=dtype, to=tensor)

    def mm(a: Any, b: Any) -> None:
        now[0] += {"float32": 1e-3, "bfloat16": 5e-4, "float16": 5e-2}[a.dtype]

    def int_mm(a: Any, b: Any) -> None:
        raise RuntimeError("int8 needs another processor\nsecond line")

    now = [0.0]
    names = {name: name for name in ("float32", "bfloat16", "float16", "int8", "uint8")}
    quiet = ("ones", "empty", "zeros", "linspace", "set_num_threads", "mv", "exp", "log")
    own = {"now": now, "__version__": "0", "mm": mm, "_int_mm": int_mm, "randint": lambda *_: tensor()}
    return SimpleNamespace(**own, **names, **dict.fromkeys(quiet, lambda *_, **__: None), **more)


def test_a_dtype_without_a_fast_kernel_is_absent(monkeypatch):
    torch = fake_torch()
    monkeypatch.setattr(timing, "clock", lambda: torch.now[0])
    missing: list[tuple[str, str]] = []
    keys = [key for key, _ in torch_roofs._steps(torch, 2, missing)]
    assert [k.dtype for k in keys if k.name == "gemm.torch"] == ["float32", "bfloat16"]
    assert all(k.threads == 2 for k in keys)
    reasons = dict(missing)
    assert "no fast kernel" in reasons["gemm.torch float16"]
    assert reasons["gemm.torch int8, 2 threads"] == "int8 needs another processor"

    def fails(effort: Effort) -> Roof:
        raise RuntimeError("out of memory")

    # And what fails while it is measured.
    progress: list[dict[str, Any]] = []
    missing.clear()
    key = Key(RATE, "gemm.torch@cuda", "float16")
    assert torch_roofs._taken(iter([(key, fails)]), missing, 0, 1, progress.append) == []
    assert missing == [("gemm.torch@cuda float16", "out of memory")]
    assert progress[0]["progress"].endswith("gemm.torch@cuda float16")


@each("more, reason", [({}, "too old"), ({"accelerator": SimpleNamespace(is_available=lambda: False)}, "finds no")])
def test_no_accelerator_is_a_reason(more, reason):
    torch, missing = fake_torch(**more), list[tuple[str, str]]()
    assert device_roofs.accelerator(torch, missing) is None
    ((name, why),) = missing
    assert name == "device"
    assert reason in why
    assert list(device_roofs.steps(torch, None, missing)) == []


def test_roofs_of_a_device_that_does_not_tell_its_memory_are_measured_all_the_same():
    """torch.xpu has the question, and refuses it for devices on the processor's die."""

    def refuse() -> tuple[int, int]:
        raise RuntimeError("The device doesn't support querying the available free memory.")

    where = SimpleNamespace(type="xpu")
    found = SimpleNamespace(is_available=lambda: True, current_accelerator=lambda: where, synchronize=lambda: None)
    cases: list[tuple[dict[str, Any], int | None, int]] = [
        ({"mem_get_info": refuse}, None, 0),
        ({"get_device_properties": lambda _: SimpleNamespace()}, None, 0),
        ({"get_device_properties": lambda _: SimpleNamespace(L2_cache_size=50 << 20)}, None, 50 << 20),
        ({"mem_get_info": lambda: (1_000, 8_000)}, 1_000, 0),
    ]
    for backend, free, cache in cases:
        device = device_roofs.accelerator(fake_torch(accelerator=found, xpu=SimpleNamespace(**backend)), [])
        assert (device.kind, device.free, device.cache) == ("xpu", free, cache)


DEVICE_ON_THE_PROCESSOR = """
import json, torch
from profiler.machine.roofs import device as device_roofs, timing
from profiler.machine.roofs.timing import Effort
device_roofs.GEMM_SIZES = (32, 64)
device_roofs.LADDER_BYTES = (1 << 14, 1 << 16, 1 << 40)
device_roofs.COPY_BYTES = (1 << 12, 1 << 14)
timing.REPEAT_SECONDS = 0.0002
waits, missing, rows = [], [], []
device_roofs.ELEMENTS, device_roofs.READ_BYTES = 1 << 12, 1 << 18
device_roofs.LAUNCHES_LONG = device_roofs.LAUNCHES_AHEAD = 0
stand_in = device_roofs.Device(torch.device("cpu"), "cpu", lambda: waits.append(1), free=1 << 20)
for key, take in device_roofs.steps(torch, stand_in, missing):
    roof = take(Effort(2, 0.0))
    assert roof.key == key
    rows.append([*key, roof.low, roof.median, roof.high, roof.unit])
pinned = torch.accelerator.is_available()
print(json.dumps({"rows": rows, "missing": missing, "waits": len(waits), "pinned": pinned}))
"""


@pytest.mark.slow
def test_the_devices_roofs_on_the_processor_in_its_place():
    # In a process of its own, as always: torch and the tests of the window do not go together.
    command = [sys.executable, "-c", DEVICE_ON_THE_PROCESSOR]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["waits"]
    sizes: dict[str, list[int]] = {}
    dtypes: dict[tuple[str, str], set[str]] = {}
    for kind, name, dtype, _, size, low, median, high, unit in answer["rows"]:
        assert 0 < low <= median <= high
        assert (kind == BANDWIDTH) == (unit == "B/s")
        if kind == BANDWIDTH:
            sizes.setdefault(name, []).append(size)
        dtypes.setdefault((kind, name), set()).add(dtype)
    overheads = {name for kind, name in dtypes if kind == OVERHEAD}
    assert overheads == {"launch@cpu", "view@cpu", "piece@cpu", "roundtrip@cpu"}
    assert dtypes[RATE, "gemm.torch@cpu"] == {"float32", "bfloat16", "float16", "int8"}
    assert {(RATE, f"{name}.torch@cpu") for name in ("fma", "exp", "log")} <= dtypes.keys()
    for name in ("read@cpu", "write@cpu", "triad@cpu"):
        assert sizes[name] == [1 << 14, 1 << 16]
    for name in ("to_device.pageable@cpu", "from_device.pageable@cpu"):
        assert sizes[name] == [1 << 12, 1 << 14]
    reasons = dict(answer["missing"])
    assert "gemm tf32@cpu" in reasons
    if not answer["pinned"]:
        assert reasons["pinned copies@cpu"]
        assert not any("pinned" in name for name in sizes)


@pytest.mark.slow
def test_the_real_child_answers_for_the_device():
    reported: list[str] = []
    got = measure([calibration.DEVICE], lambda what, _: reported.append(what))
    assert got.roofs[calibration.DEVICE] or got.missing[calibration.DEVICE][0].name == "device"
