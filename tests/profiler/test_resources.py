"""Growth of memory, processor time and energy per hour of audio, from readings with known answers."""

import re
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from profiler.analysis import resources
from profiler.analysis.resources import Series, growth
from profiler.arrays import F64
from profiler.machine import energy as rapl
from tests.each import each
from tests.profiler.test_energy_accelerator import zone

MB = 1e6
HOURS = np.linspace(0.0, 2.0, 2000)


def readings(values: F64, hours: F64 = HOURS) -> Series:
    return Series(hours * 360, hours, values)


def test_growth_is_found_in_noise_and_in_steps():
    noise = np.random.default_rng(4).normal(0, MB, len(HOURS))
    slope = growth(readings(300 * MB + 10 * MB * HOURS + noise))
    assert slope.likely == pytest.approx(10 * MB, rel=0.05)
    assert 9 * MB < slope.low < slope.likely < slope.high < 11 * MB
    steps = growth(readings(300 * MB + 4 * MB * np.floor(HOURS * 5)))
    assert 15 * MB < steps.low < 20 * MB < steps.high


@each(
    "values",
    [
        np.full(len(HOURS), 300 * MB),
        300 * MB + 50 * MB * (HOURS * 60 % 1.0),
        300 * MB + 50 * MB * np.minimum(HOURS / 0.4, 1.0),
        300 * MB + 5 * MB * (HOURS > 1.4),
    ],
)
def test_of_what_does_not_go_on_growing_the_interval_holds_none(values):
    slope = growth(readings(values))
    assert slope.low <= 0 <= slope.high


@each(
    "hours, known",
    [
        (np.linspace(0, 0.22, 500), False),
        (np.linspace(0, 0.23, 500), True),
        (np.linspace(0, 2, 5), False),
        (np.empty(0), False),
    ],
)
def test_too_little_audio_says_nothing(hours, known):
    assert (growth(readings(hours * MB, hours)) is not None) == known


class Session(SimpleNamespace):
    """Readings every second, in each of which 100 s of audio are decoded."""

    def __init__(self, meta: dict[str, Any], **names: list[float]) -> None:
        values = {name.replace("__", ".").replace("_0_", "-0_"): np.array(one) for name, one in names.items()}
        super().__init__(meta=meta, utterances=[], sample_names=[*values])
        self.samples = lambda name: (np.arange(len(values[name])) * 10**9, values[name])

    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def pace(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = SimpleNamespace(frames_at=lambda ns: ns * 1e-9 * 10_000)
    monkeypatch.setattr(resources, "timeline_of", lambda session: timeline)


def test_processor_time_per_hour_of_audio():
    # The first percentage is of the time before the first reading.
    loaded = Session({}, process__cpu_percent=[999.0, 50.0, 150.0, 100.0])
    assert resources.core_seconds(loaded) == pytest.approx(3.0 / (300 / 3600))
    assert resources.core_seconds(Session({})) is None
    assert resources.core_seconds(Session({}, process__cpu_percent=[100.0])) is None


JOULES = [0.0, 30.0, 60.0, 90.0]


@each(
    "idle, joules, text",
    [
        ({"text": "joules of package-0", "watts": 20.0, "busy_percent": 1.0}, 30.0 * 12, "joules of package-0"),
        ({"text": "joules of package-0", "watts": 20.0, "busy_percent": 40.0}, None, "not idle before the run"),
        ({"text": "joules of package-0"}, None, "idle machine was not measured"),
        ({}, None, "idle machine was not measured"),
    ],
)
def test_energy_without_that_of_the_idle_machine(idle, joules, text):
    spent = resources.energy(Session({"energy": idle}, energy__package_0_joules=JOULES, energy__package_0__core=JOULES))
    assert spent.joules_per_hour == (None if joules is None else pytest.approx(joules))
    assert spent.watts == pytest.approx(30.0)
    assert text in spent.text
    for meta, reason in (({"energy": {"text": "there is no RAPL"}}, "there is no RAPL"), ({}, "it was not recorded")):
        assert resources.energy(Session(meta)) == (None, None, None, reason)


def test_the_power_of_the_idle_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(rapl.time, "sleep", lambda _: pytest.fail("it waits for what is not there"))
    assert rapl.idle(tmp_path / "none").keys() == {"text"}
    package = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000, 10**9)
    core = zone(tmp_path, "intel-rapl:0:0", "core", 1_000_000, 10**9)
    times = iter([100.0, 102.0])
    monkeypatch.setattr(rapl.time, "monotonic", lambda: next(times))
    monkeypatch.setattr(
        rapl.time, "sleep", lambda _: [(f / "energy_uj").write_text("31000000") for f in (package, core)]
    )
    found = rapl.idle(tmp_path)
    assert found["watts"] == pytest.approx(15.0)
    assert isinstance(found["busy_percent"], float)
    assert "package-0" in str(found["text"])


def test_energy_is_that_of_perf():
    here, reason = rapl.probe()
    if not here:
        pytest.skip(reason)
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    packages = {n: read for n, read in rapl.readings().items() if re.fullmatch(r"energy package-\d+", n)}
    before = sum(sum(read().values()) for read in packages.values())
    command = ["perf", "stat", "--all-cpus", "--field-separator", ",", "--event", "power/energy-pkg/", "sleep", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    joules = sum(sum(read().values()) for read in packages.values()) - before
    if done.returncode or "not s" in done.stderr:
        pytest.skip(f"perf does not count energy here: {done.stderr.strip()[:200]}")
    counted = sum(float(line.split(",")[0]) for line in done.stderr.splitlines() if "energy-pkg" in line)
    assert joules == pytest.approx(counted, rel=0.05)
