"""What can be said of any machine: orders of magnitude, and that what is absent stays absent."""

import itertools
import json
import time

import numpy as np
import psutil
import pytest
from profiler_sessions import ROOF_TABLE, Sink, roof

from profiler.analysis.device import copies_roof
from profiler.machine import describe as module
from profiler.machine.describe import describe
from profiler.machine.roofs import _kernels, cpu, table, timing
from profiler.machine.roofs.table import BANDWIDTH, KERNEL, RATE, Roof, RoofTable
from profiler.machine.sampler import Sampler
from tests.each import each


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration of a tenth of a second: fewer rungs, shorter rounds, however busy the machine is."""
    monkeypatch.setattr(cpu, "ladder_bytes", lambda _: (1 << 14, 1 << 16, 1 << 22))
    monkeypatch.setattr(timing, "REPEAT_SECONDS", 0.0005)
    monkeypatch.setattr(timing, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(cpu, "GEMM_SIZE", 128)


def measured(threads: int, *how: object) -> RoofTable:
    return RoofTable(tuple(cpu.take(cpu.plan(threads, whole=False), *how)))


@pytest.mark.usefixtures("quick")
def test_measured_roofs_are_complete_and_plausible():
    fractions: list[float] = []
    found = measured(1, lambda what, fraction: fractions.append(fraction))
    rates = {name: found.rate(name) for name in ("gemm", "gemv", "fma", "scalar", "exp", "log")}
    for name, rate in rates.items():
        # From a small board's scalar loop to a large server's widest core.
        assert 1e6 < rate.low <= rate.median <= rate.high < 1e13, name
    assert rates["fma"].median > rates["scalar"].median
    ladder = found.ladder()
    assert [r.bytes for r in ladder] == [1 << 14, 1 << 16, 1 << 22]
    assert all(1e8 < r.low <= r.median <= r.high < 1e13 for r in ladder)
    assert all(1 < found.call(name).median < 1e6 for name in ("numpy", "numba", "python"))
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    two = measured(2)
    assert {r.threads for r in (*two.ladder(threads=2), *(two.rate(n, 2) for n in ("gemm", "fma", "exp")))} == {2}


def test_the_vector_kernels_compute_what_they_are_named_after():
    x = np.linspace(-80, 80, 100_001, dtype=np.float32)
    y, out = np.exp(x), np.empty_like(x)
    _kernels.exp_vector(x, out, 1)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=5e-6)
    _kernels.log_vector(y, out, 1)
    np.testing.assert_allclose(out, np.log(y.astype(np.float64)), rtol=2e-6, atol=2e-6)
    _kernels.triad(out, x, y, 3)
    np.testing.assert_allclose(out, x + 2 * y, rtol=1e-6)
    assert _kernels.read(np.arange(10, dtype=np.float32), 3) == 3 * 45 + 3


def test_a_passing_disturbance_is_no_drift(monkeypatch):
    readings = iter([0.5e9, 0.99e9])

    def gemm(key: table.Key, effort: timing.Effort) -> Roof:
        return roof(*key[:2], next(readings), threads=key.threads)

    monkeypatch.setattr(cpu, "_gemm", gemm)
    before = RoofTable((roof(RATE, "gemm", 1e9),))
    assert table.drift(before, cpu.recheck(before)) == {"gemm": pytest.approx(-0.01)}
    assert not cpu.recheck(RoofTable())


def test_drift_is_reported_in_words_with_a_warning_from_five_percent_on():
    changes = {"gemm": -0.02, "read 134217728": 0.049}
    assert table.drift_text(changes) == "gemm −2.0%, read 128 MiB +4.9%"
    assert table.drift_warning(changes) is None
    warning = table.drift_warning({"gemm": -0.02, "read 134217728": -0.12})
    assert "read 128 MiB −12.0%" in warning
    assert "gemm" not in warning
    assert table.sound_drift({"gemm": -0.1, "x": "y", "z": float("nan")}) == {"gemm": -0.1}
    assert table.sound_drift([1]) == {}


def test_the_ladder_ends_beyond_the_caches_in_use(monkeypatch):
    monkeypatch.setattr(cpu, "last_level_caches", lambda: (30 << 20, 2))
    one, two, four = (cpu.ladder_bytes(n) for n in (1, 2, 4))
    assert one[0] == 16 << 10
    assert all(b == 2 * a for a, b in itertools.pairwise(four))
    assert (one[-1], two[-1], four[-1]) == (128 << 20, 256 << 20, 256 << 20)
    monkeypatch.setattr(cpu, "last_level_caches", lambda: None)
    assert cpu.ladder_bytes(1)[-1] == 4 * cpu.ASSUMED_CACHE_BYTES


def test_a_run_leaves_the_highest_rungs_to_calibrations(monkeypatch):
    monkeypatch.setattr(cpu, "last_level_caches", lambda: (480 << 20, 1))
    largest = {whole: max(step.key.bytes for step in cpu.plan(1, whole=whole)) for whole in (False, True)}
    assert largest == {False: cpu.RUN_BYTES, True: 2 << 30}
    # Of what a calibration has found, the end of a run looks at its own last rung again.
    timed: list[int] = []

    def bandwidth(key: table.Key, effort: timing.Effort) -> Roof:
        timed.append(key.bytes)
        return roof(*key[:2], 1e10, key.bytes)

    monkeypatch.setattr(cpu, "_bandwidth", bandwidth)
    known = RoofTable(tuple(roof(BANDWIDTH, "read", 1e10, n) for n in cpu.ladder_bytes(1)))
    assert table.drift(known, cpu.recheck(known)) == {f"read {cpu.RUN_BYTES}": 0.0}
    assert timed == [cpu.RUN_BYTES]


def test_a_rate_is_of_its_dtype_library_and_device_or_there_is_none():
    rates = {
        ("gemm", "float32", 1): 100.0,
        ("gemm.torch", "float32", 1): 90.0,
        ("gemm", "float32", 2): 180.0,
        ("gemm.torch", "float32", 2): 200.0,
        ("gemm.torch", "bfloat16", 1): 220.0,
        ("gemm.torch@cuda", "float32", 1): 6e4,
        ("exp.numpy", "float32", 1): 2.0,
        ("exp.vector", "float32", 1): 6.0,
    }
    known = RoofTable(tuple(Roof(RATE, *key, 0, rate, rate, rate, "op/s") for key, rate in rates.items()))

    def rate(operation: str, threads: int = 1, **how: str) -> float | None:
        found = known.rate(operation, threads, **how)
        return found.median if found else None

    assert (rate("gemm"), rate("gemm", 2), rate("gemm", 64)) == (100.0, 200.0, 200.0)
    assert (rate("gemm.torch"), rate("gemm.mkl")) == (90.0, 100.0)
    assert rate("gemm:bfloat16") == rate("gemm", dtype="bfloat16") == 220.0
    assert rate("gemm.torch:bfloat16", 2) == 220.0
    assert (rate("gemm@cuda"), rate("gemm:bfloat16@cuda"), rate("gemm@mps")) == (6e4, None, None)
    assert rate("gemm:float16") is None
    assert (rate("exp"), rate("exp.numpy"), rate("ex")) == (6.0, 2.0, None)


def test_a_copy_has_the_bandwidth_of_its_size_direction_and_memory():
    known = RoofTable(
        tuple(
            roof(BANDWIDTH, f"to_device.{memory}@cuda", rate, size)
            for memory, most in (("pinned", 2e10), ("pageable", 5e9))
            for size, rate in ((1 << 12, 1e9), (1 << 24, most))
        )
    )

    def copy(size: int, to_device: bool = True, pinned: bool = True) -> float | None:
        stage = "to device" if to_device else "to host"
        found = known.bandwidth(size, 1, copies_roof(stage, pinned), "cuda")
        return found.median if found else None

    assert (copy(1), copy(1 << 12), copy(1 << 30)) == (1e9, 1e9, 2e10)
    assert copy(1 << 30, pinned=False) == 5e9
    assert 1e9 < copy(1 << 18) < 2e10
    assert copy(1 << 18, to_device=False) is None
    assert known.bandwidth(1e6) is None


def test_peaks_survive_storage_and_leave_out_nonsense():
    assert RoofTable.from_rows(ROOF_TABLE.rows()) == ROOF_TABLE
    bad = [{**ROOF_TABLE.rows()[0], "median": value} for value in (0.0, -1.0, float("inf"), float("nan"))]
    assert not RoofTable.from_rows(bad)
    empty = RoofTable()
    assert empty.bandwidth(1e6) is empty.rate("gemm") is empty.call("numpy") is None
    merged = ROOF_TABLE.merged(RoofTable((roof(KERNEL, "tile", 3e9), roof(RATE, "gemm", 200e9))))
    assert (merged.kernel("tile").median, merged.rate("gemm").median) == (3e9, 200e9)
    assert len(merged.roofs) == len(ROOF_TABLE.roofs) + 1


def test_the_description_is_json_and_names_what_decides_speed():
    described = describe()
    json.dumps(described)
    assert described["cores"]["logical"] == psutil.cpu_count()
    assert described["memory_bytes"] > 1e8
    assert all((described["versions"]["numpy"], described["cpu"], described["blas"]))
    assert None not in described.values()


@each(
    "line, vectors, virtualised",
    [
        ("flags\t\t: fpu avx2 avx512f avx512_vnni hypervisor", ["AVX-512", "VNNI"], True),
        ("flags\t\t: fpu avx2 avx_vnni avx512_fp16", ["AVX2", "VNNI"], False),
        ("flags\t\t: fpu sse2", None, False),
        ("Features\t: fp asimd sve", ["NEON", "SVE"], None),
        ("", None, None),
    ],
)
def test_instructions_of_the_processor_have_their_common_names(monkeypatch, line, vectors, virtualised):
    monkeypatch.setattr(module, "_line", lambda _: f"processor\t: 0\n{line}\nbugs\t\t: avx2")
    monkeypatch.setattr("sys.platform", "linux")
    found = describe()
    assert found.get("vectors") == vectors
    assert found.get("virtualised") == virtualised


def test_the_sampler_reads_load_and_memory():
    sink = Sink()
    with Sampler(sink, interval_s=0.01):
        begun, used = time.monotonic(), time.process_time()
        while len(sink.rows) < 12:
            assert time.monotonic() < begun + 20
            sum(range(20_000))
        # On a busy machine a process gets what it gets; both clocks must say the same of it.
        share = 100 * (time.process_time() - used) / (time.monotonic() - begun)
    rows = [*sink.rows]
    assert [t for t, _ in rows] == sorted(t for t, _ in rows)
    values = rows[0][1] | rows[-1][1]
    assert values["process.rss_bytes"] > 1e6
    assert values["process.threads"] >= 1
    assert "system.cpu_percent" in values
    assert share / 2 < np.mean([row.get("process.cpu_percent") or 0.0 for _, row in rows]) < 2 * share
    time.sleep(0.03)
    assert len(sink.rows) == len(rows)


def test_a_process_that_ends_is_no_error():
    with psutil.Popen(["sleep", "60"]) as child:
        sampler = Sampler(Sink(), pid=child.pid)
        assert "process.rss_bytes" in sampler.read()
        assert "process.faults_minor" not in sampler.read()
        child.kill()
        child.wait()
        assert "process.rss_bytes" not in sampler.read()
