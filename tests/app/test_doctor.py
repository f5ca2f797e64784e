"""This machine: what `asrscope doctor` says of every tier, and the roofs that `asrscope calibrate` measures."""

import errno
import importlib.metadata
import json
import os
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QImage

from app.cli import _output, _tiers, calibrate, doctor, main
from app.cli._tiers import Tier
from app.model.document import Drawing
from app.model.provenance import measured_on
from app.pictures.drawings import drawings_picture
from app.views.labs.panel import panel_of
from pipelines import availability
from pipelines.availability import Availability
from pipelines.labs.chart import Line
from profiler.files import cache
from profiler.files.outputs import OutputError
from profiler.machine import accelerator, counters, cpu_limit, energy
from profiler.machine.counters import EVENTS
from profiler.machine.roofs import calibration
from profiler.machine.roofs.calibration import Calibration
from profiler.machine.roofs.device import Missing
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Roof
from tests.app.text_geometry import faults

TORCH = (
    Availability("cpu", True, "compiled code"),
    Availability("torch-cpu", True, "torch 9"),
    Availability("cuda", True, "Fast GPU (torch 9)"),
    Availability("mps", False, "torch 9 finds no Apple GPU (MPS)"),
)


def by_name(tiers: object) -> dict[str, Tier]:
    return {tier.name: tier for tier in tiers}  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Qt and torch are tried in processes of their own, which costs seconds and is tested elsewhere."""
    monkeypatch.setattr(doctor, "_in_a_process", lambda code: (True, "Qt 6"))
    monkeypatch.setattr(availability, "probe", lambda: TORCH)


@pytest.fixture
def report(capsys, quick):
    status = main.main(["doctor", "--json"])
    tree = json.loads(capsys.readouterr().out)
    assert status == (0 if tree["ready"] else 1)
    return tree


def test_every_tier_has_a_name_of_its_own_and_a_reason(report):
    tiers = report["tiers"]
    assert all(set(tier) == {"name", "available", "grade", "reason"} for tier in tiers)
    assert all(tier["reason"] for tier in tiers)
    names = [tier["name"] for tier in tiers]
    assert len(set(names)) == len(names)
    assert {"sampled: CPU frequency", "roofs", "display", "compiled kernels", "sessions folder"} <= set(names)
    assert {f"counter: {event.title}" for event in EVENTS} <= set(names)

    checks = {check["name"]: check for check in report["checks"]}
    assert {"numpy", "Qt", "acoustic model", "cache folder"} <= set(checks)
    assert (checks["accelerator"]["works"], checks["accelerator"]["detail"]) == (True, "Fast GPU (torch 9)")
    assert all(tier["available"] for tier in tiers if tier["grade"])
    assert {tier["grade"] for tier in tiers} <= {"A", "B", None}
    assert next(t for t in tiers if t["name"] == "time spans")["grade"] == "B"


def test_the_page_for_a_person_tells_the_size_of_the_cache_which_is_emptied(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    cache.keep(cache.GRAPHS, "x", {"arcs": np.zeros(2_000_000, np.uint8)}, {})
    main.main(["doctor"])
    page = capsys.readouterr().out
    assert all(tier.name in page for tier in _tiers.counters())
    assert "torch 9 finds no Apple GPU" in page
    assert "2.0 MB in 1 file, at most 2,147.5 MB" in page
    main.main(["doctor", "--empty-cache", "--json"])
    report = capsys.readouterr()
    assert "The cache is empty: 2.0 MB freed." in report.err
    details = {check["name"]: check["detail"] for check in json.loads(report.out)["checks"]}
    assert "0.0 MB in 0 files" in details["cache folder"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def refuse(dir: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"{dir}/tmp12")

    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    found = {check.name: check for check in doctor._folders()}
    assert not found["cache folder"].works
    assert found["cache folder"].detail == f"{tmp_path} cannot be written: read-only file system"


def test_the_limit_of_a_container_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cpu_limit, "ROOT", tmp_path)
    (check,) = doctor._processors()
    assert "limit" not in check.detail
    group = tmp_path / "sys/fs/cgroup/app"
    for file, text in {
        tmp_path / "proc/self/cgroup": "0::/app\n",
        tmp_path / "proc/self/mountinfo": "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        group / "cpu.max": "50000 100000\n",
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (check,) = doctor._processors()
    assert check.detail == f"1 core can be used; the CPU limit is 0.5 cores, by {group}"


def test_a_device_makes_device_time_available_and_absent_sources_give_their_reason(monkeypatch):
    found = by_name(_tiers.devices())
    assert found["device time"].available
    assert "cuda" in found["device time"].reason
    assert "accelerator: torch-cpu" not in found
    monkeypatch.setattr(availability, "probe", lambda: TORCH[:2])
    assert not by_name(_tiers.devices())["device time"].available
    monkeypatch.setattr(energy, "probe", lambda: (False, "no energy here"))
    monkeypatch.setattr(accelerator, "probe", lambda: (True, "Fast GPU"))
    found = by_name(_tiers.samples())
    assert found["sampled: energy (RAPL)"] == Tier("sampled: energy (RAPL)", False, None, "no energy here")
    assert found["sampled: NVIDIA device (NVML)"].grade == "A"
    monkeypatch.setattr(counters.sys, "platform", "win32")
    found = by_name(_tiers.counters())
    assert not any(tier.available for tier in found.values())
    assert "no counter can be read" in found["counters per stage"].reason


def test_an_absent_package_is_no_defect_and_says_what_to_do(monkeypatch):
    (check,) = doctor._kaldi()
    version = importlib.metadata.version("kaldi-native-fbank")
    assert (check.works, check.detail) == (True, f"kaldi-native-fbank {version}: Kaldi models can be opened")

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    for probe, line in ((doctor._onnx, "pip install onnx onnxruntime"), (doctor._kaldi, "'asrscope[kaldi]'")):
        (check,) = probe()
        assert (check.works, check.needed) == (False, False)
        assert line in check.detail


def roof(
    kind: str, name: str, value: float, *, dtype: str = "float32", threads: int = 1, size: int = 0,
    spread: float = 0.02, unit: str = "op/s",
) -> Roof:  # fmt: skip
    return Roof(kind, name, dtype, threads, size, value, value * 0.9, value * (1 + spread), unit)


@pytest.fixture
def known():
    made = Calibration()
    ladders = [
        roof(BANDWIDTH, name, rate * n * 1e9, threads=n, size=16384 << i, unit="B/s")
        for name in ("read", "write", "triad")
        for n in (1, 2)
        for i, rate in enumerate((200, 201, 110, 111, 60, 30, 31))
    ]
    made.add(
        [
            *ladders,
            roof(RATE, "gemm", 1e11),
            roof(RATE, "gemm.torch", 8e11, dtype="int8", threads=2, spread=0.6),
            roof(RATE, "exp.numpy", 2e9),
            Roof(OVERHEAD, "numpy", "", 1, 0, 830.0, 820.0, 900.0, "ns"),
            Roof(OVERHEAD, "kernel call", "", 1, 8 << 20, 9830.0, 9820.0, 9900.0, "ns"),
            roof(RATE, "gemm.torch@cuda", 5e13, dtype="float16"),
            roof(BANDWIDTH, "to_device.pinned@cuda", 2e10, size=1 << 20, unit="B/s"),
        ],
        "run",
        1.8e9,
    )
    made.roofs[ladders[2].key] = replace(ladders[2], disturbed=True)
    made.unavailable["torch on 1"] = [Missing("gemm.torch float16", "no fast kernel")]
    return made


@pytest.fixture
def measured(known, monkeypatch):
    asked: list[dict[str, Any]] = []

    def instead(threads: int | None, progress: object, **how: object) -> Calibration:
        asked.append({"threads": threads, **how})
        return known

    monkeypatch.setattr(calibration, "calibrate", instead)
    return asked


def test_the_json_has_the_contracts_keys(measured, capsys):
    assert main.main(["calibrate", "--json", "--threads", "1", "--fresh"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["schema"] == 1
    assert tree["machine"]["cores"]
    assert tree["measured_at"] == 1.8e9
    assert tree["unavailable"] == [{"name": "gemm.torch float16", "reason": "no fast kernel"}]
    row = next(r for r in tree["roofs"] if r["dtype"] == "int8")
    wanted = {"kind": "rate", "name": "gemm.torch", "threads": 2, "median": 8e11, "steady": False}
    assert {key: row[key] for key in wanted} == wanted
    assert row["spread"] == pytest.approx(0.6)
    assert (measured[0]["threads"], measured[0]["fresh"]) == (1, True)
    assert set(measured[0]["kernels"]) <= {"gemm.scorer:int8"}


def test_the_tables_have_units_spread_plateaus_and_reasons(known):
    def text_of(calibrated: Calibration) -> str:
        return _output.text(calibrate.document(calibrate.as_json(calibrated)))

    text = text_of(known)
    lines = [re.sub(" {2,}", "|", line) for line in text.splitlines()]
    assert "GEMM float32|1|100 Gop/s|102 Gop/s|2.0%" in lines
    assert "GEMM int8 (torch)|2|800 Gop/s|1.28 Top/s|60.0%*" in lines
    assert any(line.startswith("GEMM float16 (torch) on cuda|") for line in lines)
    assert "numpy|830 ns|820 ns" in lines
    assert "kernel call|8 MiB|9830 ns|9820 ns" in lines
    assert [line.split("|")[5] for line in lines if "|64 KiB|" in line].count("2.0%*") == 1
    assert "read|1|16 KiB|200 GB/s|204 GB/s|2.0%|201 GB/s over 16 KiB … 32 KiB" in lines
    assert any(line.startswith("to_device.pinned@cuda|1|1 MiB|") for line in lines)
    assert "gemm.torch float16: no fast kernel" in lines
    assert any(line.startswith("* 2 figures were disturbed") for line in lines)
    assert text_of(Calibration()).startswith("Last measured: never")


def test_ctrl_c_stops_and_keeps_nothing(tmp_path, monkeypatch, capsys):
    from profiler.machine.roofs import cpu

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cpu, "take", stopped)
    assert main.main(["calibrate"]) == main.INTERRUPTED
    assert capsys.readouterr().err == "asrscope: stopped.\n"
    assert not list(tmp_path.rglob("*.kept"))


def draw(tree: dict[str, Any], out: Path, theme: str = "dark") -> None:
    document, origin = calibrate.document(tree), measured_on(tree["machine"], tree["measured_at"])
    drawings_picture(document, origin, out, calibrate.SIZE, theme=theme, scale=1.0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_drawn_in_both_themes_and_what_was_disturbed_otherwise(known, tmp_path, theme, qapp):
    tree = calibrate.as_json(known)
    images = []
    for kind in (None, "rate", "bandwidth"):
        rows = [{**row, "steady": row["kind"] != kind} for row in tree["roofs"]]
        draw({**tree, "roofs": rows}, tmp_path / f"{kind}.png", theme)
        images.append(QImage(str(tmp_path / f"{kind}.png")))
    assert not any(a == b for a, b in combinations(images, 2))
    image = images[0]
    assert (image.width(), image.height()) == (1200, 640 + 26)
    corner = image.pixelColor(3, 3).lightness()
    assert corner > 200 if theme == "light" else corner < 60
    assert image.text("asrscope")


def test_a_picture_of_nothing_says_so_and_a_bad_place_is_refused(tmp_path, known, qapp):
    tree = calibrate.as_json(Calibration())
    draw(tree, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()
    with pytest.raises(OutputError):
        draw(tree, tmp_path / "no" / "folder.png")
    drawings = [part for part in calibrate.document(calibrate.as_json(known)).parts if isinstance(part, Drawing)]
    ladder, rates = (drawing.chart for drawing in drawings)
    assert [layer.name for layer in ladder.layers if isinstance(layer, Line)] == [
        *(f"{name} ×{n}" for name in ("read", "write", "triad") for n in (1, 2)),
        "disturbed by other programs",
    ]
    assert len(rates.x.categories) == 4
    for drawing in drawings:
        panel = panel_of(drawing)
        panel.resize(600, 400)
        panel.show()
        assert faults(panel) == []
        panel.deleteLater()
