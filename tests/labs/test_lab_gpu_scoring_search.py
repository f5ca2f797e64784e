"""Lab `gpu-scoring-search`: its verdict on planted times with a device, and what it says without one."""

from __future__ import annotations

import pytest

from pipelines.labs.gpu_scoring_search import LAB, THREADS, Found
from tests.labs.planted import LOUD, arms


def planted(scoring=10.0, search=0.8, device="cuda", noise=0.01):
    """How many times as fast each part is on the device."""
    ms = {
        "scoring, processor": 10.0,
        "scoring, device": 10.0 / scoring,
        f"scoring, {THREADS} threads": 5.5,
        "search, processor": 4.0,
        "search, device": 4.0 / search,
    }
    return Found(
        frames=10,
        device=device,
        reason="" if device else "torch was built without CUDA",
        senones=5126,
        asked=1800.0,
        seconds=arms(ms, noise),
    )


def test_it_holds_where_scoring_gains_and_search_does_not():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["scoring_gain"] == pytest.approx(10.0, rel=0.02)
    assert found.figures["search_gain"] == pytest.approx(0.8, rel=0.02)


@pytest.mark.parametrize("change", [{"scoring": 1.2}, {"search": 8.0}])
def test_it_does_not_where_both_or_neither_gain(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(scoring=2.05, noise=LOUD)).verdict == "undecided"


def test_without_a_device_it_says_so_and_gives_the_processors_half():
    found = LAB.judge(planted(device="", search=0.1))
    assert found.verdict == "cannot be tried here"
    assert "torch was built without CUDA" in found.why
    assert found.figures["scoring_gain"] is None
    assert found.figures["scoring_threads_gain"] == pytest.approx(10 / 5.5, rel=0.02)
    assert found.figures["search_stand_in_gain"] == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("device", ["cuda", ""])
def test_the_picture_has_both_parts_and_places(device):
    chart = LAB.picture(planted(device=device))
    assert chart.x.categories == ("scoring", "search")
    assert [bars.name for bars in chart.layers] == [
        "processor",
        device or "device code on the processor",
    ]
