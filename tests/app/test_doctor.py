"""What `asrscope doctor` says: every tier with its reason, and the same in JSON."""

import errno
import importlib.metadata
import json
import os
from pathlib import Path

import numpy as np
import pytest

from app.cli import _tiers, doctor, main
from app.cli._tiers import Tier
from pipelines import availability
from pipelines.availability import Availability
from profiler.files import cache
from profiler.machine import accelerator, counters, cpu_limit, energy
from profiler.machine.counters import EVENTS

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


def test_a_device_makes_device_time_available(monkeypatch):
    found = by_name(_tiers.devices())
    assert found["device time"].available
    assert "cuda" in found["device time"].reason
    assert "accelerator: torch-cpu" not in found
    monkeypatch.setattr(availability, "probe", lambda: TORCH[:2])
    assert not by_name(_tiers.devices())["device time"].available


def test_absent_sources_give_their_reason(monkeypatch):
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
