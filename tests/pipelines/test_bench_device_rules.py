"""What the steps of `bench device` take for proved, for not proved, and for unknown: every rule on planted figures."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.analysis.breakdown import BETWEEN
from profiler.device.clock import ClockPair
from profiler.device.time import LATENCY, RECORDING
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Roof, RoofTable
from tests.bench.device_steps import rules

HERE = "torch-cpu"
NAN = float("nan")


def test_a_device_is_named_and_multiplies_float32_as_float32() -> None:
    told = {"name": "H200", "products": "highest"}
    assert rules.identity(told, True).proved is True
    assert rules.identity(told, True).figures == told
    for changed, why in (({"products": "high"}, "float32 is not kept"), ({"name": ""}, "not name")):
        found = rules.identity({**told, **changed}, True)
        assert found.proved is False
        assert why in found.why
    assert rules.identity({}, False).proved is None


def table(kind: str = "cuda", **changed: float) -> RoofTable:
    def roof(sort: str, name: str, value: float, size: int = 0, dtype: str = "float32") -> Roof:
        value = changed.get(f"{name} {dtype} {size}", value)
        return Roof(sort, f"{name}@{kind}", dtype, 1, size, value, value, value, "")

    return RoofTable(
        (
            roof(RATE, "gemm.torch", 5e13),
            roof(RATE, "gemm.torch", 7e14, dtype="bfloat16"),
            roof(RATE, "fma.torch", 5e13),
            roof(RATE, "exp.torch", 2e12),
            roof(RATE, "log.torch", 2e12),
            *(roof(BANDWIDTH, "read", 5e12, 1 << p) for p in (16, 20, 24)),
            roof(BANDWIDTH, "read", 3e12, 1 << 30),
            roof(OVERHEAD, "launch", 5e3, dtype=""),
        )
    )


DOUBTS = [
    ({"gemm.torch bfloat16 0": 1e13}, "slower than those of float32"),
    ({"gemm.torch float32 0": 0.0}, "float32 products have no roof"),
    ({"read float32 65536": 9e13}, "cannot be"),
    ({"read float32 1073741824": 6e12}, "no cache is as fast"),
    ({"read float32 65536": 0.0, "read float32 1048576": 0.0}, "fewer than three rungs"),
    ({"exp.torch float32 0": 0.0}, "exp has no roof"),
    ({"launch  0": 0.0}, "a launch has no roof"),
]


@pytest.mark.parametrize(("changed", "doubt"), DOUBTS)
def test_roofs_that_cannot_be_are_doubted(changed: dict[str, float], doubt: str) -> None:
    found = RoofTable(tuple(roof for roof in table(**changed).roofs if roof.median))
    judged = rules.roofs(found, "cuda")
    assert judged.proved is False
    assert doubt in judged.why
    assert ";" not in judged.why


def test_roofs_are_a_devices_or_show_the_method_alone() -> None:
    judged = rules.roofs(table(), "cuda")
    assert judged.proved is True
    assert judged.figures["read 64 KiB GB/s"] == pytest.approx(5000.0)
    assert rules.roofs(table("cpu"), "cpu").proved is None


def clock_pairs(away_ns: int = 0, width_ns: int = 1_000, rate: float = 1.00005) -> list[ClockPair]:
    """Sixty pairs 100 ms apart; every other one tells the host's time so much too late."""
    return [
        ClockPair(i * 100_000_000 + (i % 2) * away_ns, round(i * 100_000_000 * rate), width_ns)
        for i in range(60)
    ]


def test_clocks_are_followed_within_the_width_of_their_readings() -> None:
    judged = rules.clock(clock_pairs(), 6.0, False, "cuda")
    assert judged.proved is True
    assert judged.figures["drift ppm"] == pytest.approx(-50.0, rel=1e-3)
    assert rules.clock(clock_pairs(20_000), 6.0, False, "cuda").proved is False
    assert rules.clock(clock_pairs(20_000, 15_000), 6.0, False, "cuda").proved is True
    judged = rules.clock(clock_pairs(20_000), 6.0, True, HERE)
    assert judged.proved is None
    assert "the host's own clock" in judged.why


def test_full_memory_is_survived_with_the_same_scores_and_said() -> None:
    assert rules.memory(["Scoring goes on"], 1e-5, True).proved is True
    assert rules.memory(["Scoring goes on"], 1e-5, True).why.startswith("a planted failure")
    assert not rules.memory(["Scoring goes on"], 1e-5, False).why.startswith("a planted failure")
    for notices, error, why in (
        ([], 1e-5, "nothing was said"),
        (["Scoring goes on"], 0.2, "0.2 nat off"),
        (["Scoring goes on"], NAN, "nan nat off"),
    ):
        judged = rules.memory(notices, error, True)
        assert judged.proved is False
        assert why in judged.why


def combination(name: str = "dnn bf16 frame", overhead: float = 0.02, **changed: Any) -> Any:
    shares = {BETWEEN: 0.005, RECORDING: overhead - 0.005, LATENCY: 0.1}
    row = {"combination": name, "same words": True, "exact": True, "adds up": True}
    return {**row, "above its roof": [], "overhead": shares, **changed}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"same words": False}, "other words"),
        ({"adds up": False}, "categories do not add up"),
        ({"above its roof": ["score.exp"]}, "above its roof: score.exp"),
        # One alone, whatever the median is.
        ({"overhead": 0.12}, "12.0% overhead (11.5% device.record, 0.5% between the stages)"),
    ],
)
def test_combinations_are_judged_one_by_one(changed: dict[str, Any], why: str) -> None:
    judged = rules.combinations([combination(), combination(overhead=0.01)], 72, False)
    assert judged.proved is True
    assert "every two values together" in judged.why
    # Told, but not ours: what the device takes to begin and to answer.
    assert "at most 2.0% of a run is overhead, beside up to 10.0% in which" in judged.why
    assert judged.figures["of"] == 72
    rows = [combination("others") for _ in range(8)]
    judged = rules.combinations([*rows, combination("planted", **changed)], 72, True)
    assert (judged.proved, judged.why) == (False, f"planted: {why}")
