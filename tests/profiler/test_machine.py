"""What can be said of any machine: orders of magnitude, and that what is absent stays absent."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import psutil
import pytest
from profiler_sessions import PEAKS, roof

from profiler.errors import Cancelled
from profiler.machine import measuring, peaks
from profiler.machine.describe import describe
from profiler.machine.peaks import BANDWIDTH, RATE, Peaks
from profiler.machine.sampler import Sampler


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration of a tenth of a second: fewer rungs, shorter repeats."""
    monkeypatch.setattr(measuring, "LADDER_BYTES", (1 << 14, 1 << 16, 1 << 22))
    monkeypatch.setattr(measuring, "TRIAD_BYTES", (24 << 10,))
    monkeypatch.setattr(measuring, "REPEAT_SECONDS", 0.0005)
    monkeypatch.setattr(measuring, "ROUNDS", 3)
    # However busy the machine is: whether it was steady is the matter of a test of its own.
    monkeypatch.setattr(measuring, "STEADY_SPREAD", float("inf"))
    monkeypatch.setattr(measuring, "GEMM_SIZE", 128)


@pytest.mark.usefixtures("quick")
def test_measured_roofs_are_complete_and_plausible() -> None:
    steps: list[tuple[str, float]] = []
    found = peaks.measure(1, lambda what, fraction: steps.append((what, fraction)))
    for name in (
        "gemm",
        "fma",
        "scalar",
        "exp",
        "log",
        "exp.numpy",
        "exp.numba",
        "log.numpy",
        "log.numba",
    ):
        rate = found.rate(name)
        assert rate is not None, name
        # From a small board's scalar loop to a large server's widest core.
        assert 1e6 < rate.low <= rate.median <= rate.high < 1e13, name
    vector, scalar = found.rate("fma"), found.rate("scalar")
    assert vector is not None
    assert scalar is not None
    assert vector.median > scalar.median
    ladder = found.ladder()
    assert [r.bytes for r in ladder] == [1 << 14, 1 << 16, 1 << 22]
    assert all(1e8 < r.low <= r.median <= r.high < 1e13 for r in ladder)
    for name in ("numpy", "numba", "python"):
        cost = found.overhead_ns(name)
        assert cost is not None
        assert 1 < cost < 1e6
    fractions = [fraction for _, fraction in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)


def test_the_vector_kernels_compute_what_they_are_named_after() -> None:
    from profiler.machine import _kernels

    x = np.linspace(-80, 80, 100_001, dtype=np.float32)
    out = np.empty_like(x)
    _kernels.exp_vector(x, out, 1)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=5e-6)
    y = np.exp(x)
    _kernels.log_vector(y, out, 1)
    np.testing.assert_allclose(out, np.log(y.astype(np.float64)), rtol=2e-6, atol=2e-6)
    assert _kernels.read(np.arange(10, dtype=np.float32), 3) == 3 * 45 + 3
    a = np.empty_like(x)
    _kernels.triad(a, x, y, 3)
    np.testing.assert_allclose(a, x + 2 * y, rtol=1e-6)


@pytest.mark.usefixtures("quick")
def test_two_threads_share_the_ladder() -> None:
    found = peaks.measure(2)
    assert {r.threads for r in found.ladder(threads=2)} == {2}
    for name in ("gemm", "fma", "exp"):
        rate = found.rate(name, 2)
        assert rate is not None
        assert rate.threads == 2


@pytest.mark.usefixtures("quick")
def test_calibration_can_be_cancelled_at_any_step() -> None:
    answers = iter([False, False, True])
    with pytest.raises(Cancelled):
        peaks.measure(1, None, lambda: next(answers))


@pytest.mark.usefixtures("quick")
def test_roofs_are_cached_per_machine_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    first = peaks.load_or_measure(1)
    measured: list[str] = []
    assert peaks.load_or_measure(1, lambda what, _: measured.append(what)) == first
    assert not measured
    (kept,) = (tmp_path / "peaks").iterdir()
    for spoiled in ("", "{", "[]", '{"roofs": [{}]}', '{"roofs": []}'):
        kept.write_text(spoiled)
        measured.clear()
        assert peaks.load_or_measure(1, lambda what, _: measured.append(what))
        assert measured
        assert json.loads(kept.read_text())["roofs"]
    measured.clear()
    peaks.load_or_measure(1, lambda what, _: measured.append(what), fresh=True)
    assert measured
    monkeypatch.setattr(measuring, "METHOD", 99)
    peaks.load_or_measure(1)
    assert len(list((tmp_path / "peaks").iterdir())) == 2


def test_roofs_of_a_busy_machine_are_not_kept_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    now = [1e9]
    monkeypatch.setattr(measuring.time, "time", lambda: now[0])
    taken = []

    def measure(spread: float) -> None:
        def fake(*_: object) -> Peaks:
            taken.append(spread)
            read = roof(BANDWIDTH, "read", 1e9, 1 << 20, spread=0.05)
            return Peaks((roof(RATE, "gemm", 1e9, spread=spread), read))

        monkeypatch.setattr(measuring, "measure", fake)

    measure(0.9)
    for wait in (0.0, measuring.BUSY_SECONDS / 2, measuring.BUSY_SECONDS, 0.0):
        now[0] += wait
        assert peaks.load_or_measure(1)
    assert taken == [0.9, 0.9]
    measure(0.01)
    for wait in (2 * measuring.BUSY_SECONDS, 1e9, 1e9):
        now[0] += wait
        assert peaks.load_or_measure(1)
    assert taken == [0.9, 0.9, 0.01]


def test_the_median_is_of_rounds_that_no_other_program_disturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    # Of each nine rounds six are three times as slow.
    pace = itertools.cycle([3, 3, 1, 3, 3, 1, 3, 3, 1])
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: clock[0])

    def task(repeats: int) -> None:
        clock[0] += repeats * 0.001 * next(pace)

    repeats, seconds = measuring._times(task, measuring.Effort(9, 1e9))
    assert len(seconds) == 9
    assert seconds[len(seconds) // 2] / repeats == pytest.approx(0.001)


@pytest.mark.usefixtures("quick")
def test_recheck_measures_two_roofs_and_drift_compares_them() -> None:
    before = peaks.measure(1)
    after = peaks.recheck(before)
    changes = peaks.drift(before, after)
    assert set(changes) == {"gemm", f"read {1 << 22}"}
    assert peaks.drift(PEAKS, Peaks((roof(RATE, "gemm", 95e9),))) == {"gemm": pytest.approx(-0.05)}


def test_peaks_survive_storage_and_leave_out_nonsense() -> None:
    assert Peaks.from_rows(PEAKS.rows()) == PEAKS
    bad = [
        {**PEAKS.rows()[0], "median": value} for value in (0.0, -1.0, float("inf"), float("nan"))
    ]
    assert not Peaks.from_rows(bad)
    assert Peaks().bandwidth(1e6) is None
    assert Peaks().rate("gemm") is None
    assert Peaks().overhead_ns() is None
    faster = PEAKS.merged(Peaks((roof(RATE, "gemm", 200e9),)))
    rate = faster.rate("gemm")
    assert rate is not None
    assert rate.median == 200e9
    assert len(faster.roofs) == len(PEAKS.roofs)


def test_bandwidth_falls_steadily_between_two_plateaus() -> None:
    sizes = [2.0**power for power in range(10, 32)]
    found = [PEAKS.bandwidth(size) for size in sizes]
    rates = [r.median for r in found if r is not None]
    assert len(rates) == len(sizes)
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[-1]) == (100e9, 25e9)
    assert PEAKS.ladder("triad") == []
    assert [r.kind for r in PEAKS.ladder()] == [BANDWIDTH] * 2


def test_the_description_is_json_and_names_what_decides_speed() -> None:
    described = describe()
    json.dumps(described)
    assert described["cores"]["logical"] == psutil.cpu_count()
    assert described["memory_bytes"] > 1e8
    assert described["versions"]["numpy"]
    assert described["cpu"]
    assert described["blas"]
    assert None not in described.values()


class Sink:
    def __init__(self) -> None:
        self.rows: list[tuple[int, Mapping[str, float | None]]] = []

    def sample(self, t_ns: int, values: Mapping[str, float | None]) -> None:
        self.rows.append((t_ns, values))


@pytest.fixture
def sink() -> Sink:
    return Sink()


def test_the_sampler_reads_load_and_memory(sink: Sink) -> None:
    with Sampler(sink, interval_s=0.01):
        end = time.monotonic() + 20
        while len(sink.rows) < 3:
            assert time.monotonic() < end
            sum(range(20_000))
    count = len(sink.rows)
    times = [t for t, _ in sink.rows]
    assert times == sorted(times)
    values = sink.rows[-1][1]
    assert (values["process.rss_bytes"] or 0) > 1e6
    assert (values["process.threads"] or 0) >= 1
    assert "system.cpu_percent" in values
    time.sleep(0.03)
    assert len(sink.rows) == count


def test_what_cannot_be_read_is_absent_not_zero(sink: Sink) -> None:
    sampler = Sampler(sink)

    def refuse() -> dict[str, float]:
        raise psutil.AccessDenied

    sampler._readings["memory"] = refuse
    for _ in range(2):
        values = sampler.read()
        assert "process.rss_bytes" not in values
        assert "process.cpu_percent" in values


def test_a_process_that_ends_is_no_error(sink: Sink) -> None:
    with psutil.Popen(["sleep", "60"]) as child:
        sampler = Sampler(sink, pid=child.pid)
        assert "process.rss_bytes" in sampler.read()
        assert "process.faults_minor" not in sampler.read()
        child.kill()
        child.wait()
        assert "process.rss_bytes" not in sampler.read()
