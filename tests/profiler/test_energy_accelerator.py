"""Energy and accelerator readings: power zones laid out in a folder, and a management library of our own."""

import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from profiler_sessions import Sink

from profiler.machine import accelerator, describe, energy
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import OVERHEAD, Roof, RoofTable
from profiler.machine.sampler import Sampler, watching
from tests.each import each
from tests.waiting import wait_until


def zone(root: Path, folder: str, name: str, energy_uj: int, most: int = 1000) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    for file, value in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", most)):
        (path / file).write_text(f"{value}\n")
    return path


def test_zones_are_named_after_what_they_lie_in(tmp_path):
    folders = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:1": "package-1"}
    for folder, name in {**folders, "intel-rapl:1:0": "core", "intel-rapl-mmio:0": "package-0"}.items():
        zone(tmp_path, folder, name, 5)
    (tmp_path / "intel-rapl").mkdir()  # the driver itself counts nothing
    names = sorted(found.name for found in energy.zones(tmp_path))
    assert names == ["package-0", "package-0'", "package-0.core", "package-1", "package-1.core"]
    here, reason = energy.probe(tmp_path)
    assert (here, "package-1.core" in reason) == (True, True)


def test_energy_counts_from_the_first_reading_over_the_turn_and_until_the_zone_goes_away(tmp_path):
    folder = zone(tmp_path, "intel-rapl:0", "package-0", 900, most=999)
    watcher = Sampler(Sink(), more=energy.readings(tmp_path))
    for energy_uj, joules in ((900, 0.0), (950, 50e-6), (10, 110e-6)):  # 950 … 999, 0 … 10
        (folder / "energy_uj").write_text(f"{energy_uj}")
        assert watcher.read()["energy.package-0_joules"] == pytest.approx(joules)
    os.unlink(folder / "energy_uj")
    values = watcher.read()
    assert "energy.package-0_joules" not in values
    assert "process.rss_bytes" in values


def test_a_machine_without_zones_or_with_those_of_root_says_why(tmp_path, monkeypatch):
    def forbidden(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    assert energy.probe(tmp_path) == (False, f"{tmp_path} shows no zone that counts energy (no RAPL driver)")
    zone(tmp_path, "intel-rapl:0", "package-0", 900)
    monkeypatch.setattr(energy, "_number", forbidden)
    for root, word in ((tmp_path / "nowhere", "nowhere"), (tmp_path, "root")):
        here, reason = energy.probe(root)
        assert (here, word in reason) == (False, True)
    assert energy.readings(tmp_path) == {}


NEW, OLD = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
FIGURES: dict[str, Any] = {
    "UtilizationRates": SimpleNamespace(gpu=40, memory=7),
    "MemoryInfo": SimpleNamespace(used=1 << 30),
    "PowerUsage": 250_500,
    "TotalEnergyConsumption": 12_000,
    "Temperature": {0: 61},
    "ClockInfo": {1: 1980},
    "PcieThroughput": {0: 3000, 1: 5000},
}


class FakeNvml:
    """The part of pynvml that is used. One device reports everything, the other little."""

    NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_NO_PERMISSION = 12, 9, 4
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM = 0, 1
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"error {value}")
            self.value = value

    def __init__(self, count: int = 2, start: int | None = None) -> None:
        self.start, self.open = start, 0
        self.asked: list[str] = []
        self.nvmlDeviceGetCount = lambda: count
        self.nvmlDeviceGetHandleByIndex = lambda index: index
        self.nvmlDeviceGetName = lambda handle: b"Old GPU" if handle else "New GPU"
        self.nvmlDeviceGetUUID = lambda handle: (NEW, OLD)[handle].encode()
        self.nvmlSystemGetDriverVersion = lambda: "580.95.05"
        self.nvmlSystemGetCudaDriverVersion = lambda: 13000
        for figure in FIGURES:
            setattr(self, f"nvmlDeviceGet{figure}", partial(self.query, figure))

    def nvmlInit(self) -> None:
        if self.start is not None:
            raise self.NVMLError(self.start)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def query(self, figure: str, handle: int, *which: int) -> Any:
        assert self.open == 1
        self.asked.append(f"{figure}{handle}")
        if handle == 1 and figure != "Temperature":
            raise self.NVMLError(3)  # not supported
        value = FIGURES[figure]
        return value[which[0]] if isinstance(value, dict) else value


def test_a_device_tells_its_figures_with_units_and_one_that_it_does_not_report_is_requested_once():
    nvml = FakeNvml()
    with accelerator.devices(nvml) as found:
        assert found.names == ["New GPU", "Old GPU"]
        watcher = Sampler(Sink(), process=False, more=found.readings())
        for _ in range(3):
            values = watcher.read()
    assert {name: value for name, value in values.items() if name.startswith("gpu")} == {
        "gpu0.busy_percent": 40,
        "gpu0.memory_busy_percent": 7,
        "gpu0.memory_used_bytes": 1 << 30,
        "gpu0.power_watts": 250.5,
        "gpu0.energy_joules": 12.0,
        "gpu0.temperature_celsius": 61,
        "gpu0.clock_mhz": 1980,
        "gpu0.pcie_sent_bytes_per_s": 3e6,
        "gpu0.pcie_received_bytes_per_s": 5e6,
        "gpu1.temperature_celsius": 61,
    }
    assert [nvml.asked.count(f"PowerUsage{device}") for device in (0, 1)] == [3, 1]
    assert nvml.open == 0


@each("start, count, says", [
    (12, 2, "no NVIDIA driver"), (9, 2, "not loaded"), (4, 2, "may not access"), (99, 2, "does not start"),
    (None, 0, "no device"),
])  # fmt: skip
def test_without_a_device_the_reason_is_one_sentence(start, count, says, monkeypatch):
    nvml = FakeNvml(count, start)
    with pytest.raises(accelerator.Unavailable, match=says), accelerator.devices(nvml):
        pytest.fail("there is nothing to open")
    assert nvml.open == 0
    monkeypatch.setattr(accelerator, "PACKAGE", "a_package_that_nobody_has")
    here, reason = accelerator.probe()
    assert (here, "pip install" in reason) == (False, True)


def test_watching_samples_everything(tmp_path, monkeypatch):
    zone(tmp_path, "intel-rapl:0", "package-0", 900)
    nvml, called, sink = FakeNvml(), list[int](), Sink()
    monkeypatch.setattr(accelerator, "_library", lambda: nvml)
    monkeypatch.setattr(energy.readings, "__defaults__", (tmp_path,))
    wanted = {"gpu0.power_watts", "energy.package-0_joules", "process.rss_bytes"}
    with watching(sink, also=lambda: called.append(1)):
        wait_until(lambda: bool(called) and wanted <= {name for _, values in sink.rows for name in values})
    assert nvml.open == 0
    rows = len(sink.rows)
    time.sleep(0.05)
    assert len(sink.rows) == rows


def test_devices_have_name_uuid_and_driver(tmp_path, monkeypatch):
    new, old = accelerator.gpus(FakeNvml(), tmp_path)
    assert old == {"name": "Old GPU", "uuid": OLD, "driver": "580.95.05", "cuda": "13.0"}
    assert new["uuid"] == NEW
    # CUDA counts the fastest first, and torch leaves out what NVML writes before the number.
    uuids = [old["uuid"], new["uuid"]]
    assert accelerator.place_of("AAAAAAAA-1111", uuids) == 1
    assert accelerator.place_of("cccccccc-3333", uuids) is accelerator.place_of("", uuids) is None

    def absent(_: object) -> Any:
        raise accelerator.Unavailable("not here")

    # Without the library, the driver's files.
    monkeypatch.setattr(accelerator, "devices", absent)
    assert accelerator.gpus(driver=tmp_path) == []
    card = tmp_path / "gpus" / "0000:01:00.0"
    card.mkdir(parents=True)
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64  580.95.05  Tue Sep 23\n")
    (card / "information").write_text(f"Model: \t New GPU\nGPU UUID: \t {NEW}\nBus: x\n")
    assert accelerator.gpus(driver=tmp_path) == [{"name": "New GPU", "uuid": NEW, "driver": "580.95.05"}]


def test_roofs_belong_to_a_device_and_its_driver(monkeypatch):
    assert accelerator.chosen({"CUDA_VISIBLE_DEVICES": "1", "HOME": "/"}) == {"CUDA_VISIBLE_DEVICES": "1"}
    device = {"name": "A", "driver": "1"}
    cases = [([], {}), ([device], {}), ([device | {"name": "B"}], {}), ([device | {"driver": "2"}], {})]
    names = set()
    for devices, chosen in [*cases, ([device], {"CUDA_VISIBLE_DEVICES": "1"})]:
        monkeypatch.setattr(accelerator, "gpus", lambda result=devices: result)
        monkeypatch.setattr(accelerator, "chosen", lambda result=chosen: result)
        assert describe.describe().get("gpus", []) == devices
        names.add(calibration.file())
    assert len(names) == 5


def test_power_is_instantaneous_where_the_device_reports_it():
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


def test_a_run_measures_its_device(tmp_path, monkeypatch):
    asked: list[list[str]] = []
    launch = Roof(OVERHEAD, "launch@cuda", "", 1, 0, 6e3, 6e3, 6e3, "ns")

    def measure(parts: list[str], *_: object) -> Any:
        asked.append(parts)
        return calibration.Answer({"device": [launch]}, {})

    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "plan", lambda *_, **__: [])
    monkeypatch.setattr(calibration, "measure", measure)
    assert calibration.load_or_measure(1) == RoofTable()
    for _ in range(2):
        found = calibration.load_or_measure(1, device=True)
        assert found.call("launch@cuda").median == 6e3
    assert asked == [["device"]]
