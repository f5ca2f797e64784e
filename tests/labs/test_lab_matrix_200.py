"""Lab `matrix-200`: its products against float64, its break-even by hand, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.device import open_device
from pipelines.labs import matrix_200
from pipelines.labs.matrix_200 import LAB, PARTS, Params
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, NoDevice, about
from tests.labs.planted import NOISE, at_size, timings


def test_both_ways_give_the_product():
    there = matrix_200._There(open_device("torch-cpu"), 9)
    right = there.a.astype(np.float64) @ there.b
    for way in (there.numpy, there.copied):
        there.out[:] = 0
        way()
        np.testing.assert_allclose(there.out, right, rtol=1e-5)
    parts = there.apart()
    assert set(parts) == set(PARTS)
    assert min(parts.values()) >= 0


def planted(resident=10.0, copied=62.0, noise=NOISE, device="cuda"):
    """Microseconds at 200; numpy takes 60. Over the sizes the device gains on it."""
    one = {"numpy": 60.0, "resident": resident, "copied": copied}
    factors = {"numpy": (0.01, 1, 100), "resident": (0.9, 1, 4), "copied": (0.9, 1, 6)}
    ms = {
        variant: {n: 1e-3 * us * f for n, f in zip((32, 200, 1024), factors[variant], strict=True)}
        for variant, us in one.items()
    }
    cold = {"numpy": 0.1, "resident": 300.0, "copied": 1.0}
    return SweepResult(
        timings=timings(ms, noise),
        more={
            "parts": at_size(200, dict.fromkeys(PARTS, 0.01)),
            "cold": at_size(200, cold, noise=0.0),
        },
        counts={"n": 200},
        texts={"place": device or "torch-cpu"},
        device=device,
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"resident": 60.0}, {"copied": 10.0}],
    noisy=[{"resident": 31.0, "noise": 0.7}],
    impossible=[{"device": ""}],
    figures={
        "resident_over_numpy": about(6),
        "break_even_n": 1024,
        "cold_first_product_s": about(0.3),
    },
    small=Params(n=8, largest=32, seconds=0.0),
    desk=NoDevice,
    memory=(Params(largest=32), Params(largest=16384)),
)


def test_without_an_accelerator_the_half_of_the_processor_is_run():
    found = CONTRACT.measured
    assert found.timings.sizes() == [8, 32]
    judged = LAB.judge(found)
    assert "only the processor's half" in judged.why
    assert judged.figures["numpy_flops_per_s"] > 0
    assert judged.figures["resident_over_numpy"] is None
    assert len(LAB.picture(found).beside) == 2


@pytest.mark.parametrize(("sooner", "n"), [((0, 0, 0), None), ((1, 0, 1), 3), ((1, 1, 1), 1)])
def test_it_breaks_even_where_it_stays_faster(sooner, n):
    ms = {"numpy": dict.fromkeys((1, 2, 3), 1.0)}
    ms["copied"] = {size: 0.5 if fast else 2.0 for size, fast in enumerate(sooner, start=1)}
    assert matrix_200.break_even(timings(ms)) == n
