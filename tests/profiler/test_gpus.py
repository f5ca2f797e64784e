"""Devices of a machine: read from NVML or the driver's files, identified by UUID, and matched with roofs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_energy_accelerator import NEW, OLD, FakeNvml

from profiler.machine import accelerator, describe
from profiler.machine.roofs import calibration


def test_devices_have_name_uuid_and_driver(tmp_path: Path) -> None:
    new, old = accelerator.gpus(FakeNvml(), tmp_path)
    assert old == {"name": "Old GPU", "uuid": OLD, "driver": "580.95.05", "cuda": "13.0"}
    assert new["uuid"] == NEW
    # CUDA counts the fastest first, and torch leaves out what NVML writes before the number.
    uuids = [old["uuid"], new["uuid"]]
    assert accelerator.place_of("AAAAAAAA-1111", uuids) == 1
    assert accelerator.place_of("cccccccc-3333", uuids) is None
    assert accelerator.place_of("", uuids) is None


def test_devices_by_the_drivers_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: object) -> Any:
        raise accelerator.Unavailable("not here")

    monkeypatch.setattr(accelerator, "devices", absent)
    assert accelerator.gpus(driver=tmp_path) == []
    card = tmp_path / "gpus" / "0000:01:00.0"
    card.mkdir(parents=True)
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64  580.95.05  Tue Sep 23\n")
    (card / "information").write_text(f"Model: \t New GPU\nGPU UUID: \t {NEW}\nBus: x\n")
    assert accelerator.gpus(driver=tmp_path) == [{"name": "New GPU", "uuid": NEW, "driver": "580.95.05"}]


def test_roofs_belong_to_a_device_and_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accelerator.chosen({"CUDA_VISIBLE_DEVICES": "1", "HOME": "/"}) == {"CUDA_VISIBLE_DEVICES": "1"}
    names = set()
    for devices, chosen in (
        ([], {}),
        ([{"name": "A", "driver": "1"}], {}),
        ([{"name": "B", "driver": "1"}], {}),
        ([{"name": "A", "driver": "2"}], {}),
        ([{"name": "A", "driver": "1"}], {"CUDA_VISIBLE_DEVICES": "1"}),
    ):
        monkeypatch.setattr(accelerator, "gpus", lambda result=devices: result)
        monkeypatch.setattr(accelerator, "chosen", lambda result=chosen: result)
        assert describe.describe().get("gpus", []) == devices
        names.add(calibration.file())
    assert len(names) == 5


def test_power_is_instantaneous_where_the_device_reports_it() -> None:
    class Instant(FakeNvml):
        NVML_FI_DEV_POWER_INSTANT = 186

        def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[Any]:
            assert fields == [186]
            value = SimpleNamespace(uiVal=700_000)
            return [SimpleNamespace(nvmlReturn=int(self.broken), value=value)]

    for broken, watts in ((False, 700.0), (True, 250.5)):
        nvml = Instant(count=1)
        nvml.broken = broken  # with an error for the moment it tells the mean of the last second
        with accelerator.devices(nvml) as found:
            assert found.readings()["gpu0 power"]() == {"gpu0.power_watts": watts}


def test_a_run_measures_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from profiler.machine.roofs import torch_child
    from profiler.machine.roofs.table import OVERHEAD, Roof, RoofTable

    asked: list[list[str]] = []
    launch = Roof(OVERHEAD, "launch@cuda", "", 1, 0, 6e3, 6e3, 6e3, "ns")

    def measure(parts: list[str], *_: object) -> Any:
        asked.append(parts)
        return torch_child.Answer({"device": [launch]}, {})

    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "plan", lambda *_, **__: [])
    monkeypatch.setattr(torch_child, "measure", measure)
    assert calibration.load_or_measure(1) == RoofTable()
    assert asked == []
    for _ in range(2):
        found = calibration.load_or_measure(1, device=True)
        assert found.overhead_ns("launch@cuda") == 6e3
    assert asked == [["device"]]
