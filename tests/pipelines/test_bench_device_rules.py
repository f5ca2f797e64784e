"""Planted figures that prove a step of `bench device`, do not prove it, or leave it unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from profiler.analysis.breakdown import BETWEEN
from profiler.device.clock import ClockPair
from profiler.device.time import LATENCY, RECORDING
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Roof, RoofTable
from tests.bench.device_steps import rules
from tests.bench.device_steps.result import Result

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


PASSED = "........\n8 passed in 1.20s\n"
SKIPPED = "SKIPPED [2] tests/a.py:3: needs two devices\n6 passed, 2 skipped in 1.20s\n"


def test_tests_prove_what_passed_where_none_was_skipped_on_a_device() -> None:
    assert rules.tested(0, PASSED, "", "cuda").proved is True
    # With the reason; where there is no accelerator, or on MPS, some cannot but be skipped.
    for device, proved in (("cuda", False), ("xpu", False), ("mps", True), (HERE, True)):
        found = rules.tested(0, SKIPPED, "", device)
        assert found.proved is proved
        assert "needs two devices" in found.why
        assert found.figures == {"passed": 6, "skipped": 2}
    failed = "FAILED tests/a.py::test_b - assert 1\n1 failed, 7 passed in 1.20s\n"
    assert rules.tested(1, failed, "", HERE) == Result(
        False, "these do not pass: tests/a.py::test_b", {"failed": 1, "passed": 7}
    )
    # Nothing at all ran, or the process ended after its tests had passed.
    assert rules.tested(0, "no tests ran in 0.01s", "", HERE).proved is False
    died = rules.tested(-6, PASSED, "terminate called", HERE)
    assert (died.proved, died.why) == (False, "it ended with -6: terminate called")


def test_a_race_that_the_sanitizer_names_is_one_whatever_passed() -> None:
    race = "CSAN detected a possible data race on tensor with data pointer 1\n"
    passed = rules.tested(0, PASSED, "", "cuda")
    assert rules.races(passed, PASSED).proved is True
    found = rules.races(passed, PASSED + 2 * race)
    assert (found.proved, found.figures["races"]) == (False, 2)
    failed = rules.tested(1, "FAILED tests/a.py::test_b\n1 failed in 1.20s\n", "", "cuda")
    assert rules.races(failed, "").proved is False


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


def test_words_may_differ_in_16_bits_and_that_is_said() -> None:
    judged = rules.combinations(
        [combination(), combination(exact=False, **{"same words": False})], 72, True
    )
    assert judged.proved is True
    assert "hear the same but for 1 in 16 bits" in judged.why


def test_many_reasons_are_counted() -> None:
    rows = [combination(str(i), **{"same words": False}) for i in range(9)]
    judged = rules.combinations(rows, 72, True)
    assert judged.why.endswith("5: other words; and 3 more")


def stage_row(events_us: float, kernels_us: float, kernels: int | None) -> dict[str, Any]:
    gate = {"events behind a gate, µs": events_us, "kernels, µs": kernels_us}
    return {"stage": "score.exp", "kernels": kernels, **gate}


NOTICE = ["Scoring goes on"]


@pytest.mark.parametrize(
    ("rule", "arguments", "proved"),
    [
        # 2 µs between two kernels of twenty are no mistake, of two they are.
        (rules.busy, ([stage_row(150.0, 110.0, 20)], "cuda"), True),
        (rules.busy, ([stage_row(150.0, 110.0, 20), stage_row(150.0, 110.0, 2)], "cuda"), False),
        (rules.busy, ([stage_row(150.0, 110.0, None)], "xpu"), None),
        (rules.graphs, ({"launches as graphs": 4.0}, 4, True, True, [], "cuda"), True),
        (rules.graphs, ({"launches as graphs": 4.0}, 4, True, False, [], "cuda"), False),
        (rules.graphs, ({"launches as graphs": 90.0}, 4, True, True, [], "cuda"), False),
        (rules.graphs, ({"launches as graphs": 90.0}, 4, False, True, [], HERE), None),
        (rules.search, (4, 0, 0, {}), True),
        (rules.search, (4, 1, 0, {}), False),
        (rules.search, (4, 0, 1, {}), False),
        (rules.scoring, (4, 1e-4, []), True),
        (rules.scoring, (4, 0.2, []), False),
        (rules.scoring, (4, NAN, []), False),
        (rules.session, (1 << 20, "closed", {}), True),
        (rules.session, (3 << 20, "closed", {}), False),
        (rules.session, (1 << 20, "failed", {}), False),
        (rules.memory, (NOTICE, 1e-5, True), True),
        (rules.memory, ([], 1e-5, True), False),
        (rules.memory, (NOTICE, 0.2, True), False),
        (rules.memory, (NOTICE, NAN, True), False),
    ],
)
def test_figures_that_prove_a_step_or_not(
    rule: Callable[..., Result], arguments: tuple[Any, ...], proved: bool | None
) -> None:
    """Events last as long as kernels, graphs are a launch a stage, scores and words are the same, sessions small."""
    assert rule(*arguments).proved is proved
