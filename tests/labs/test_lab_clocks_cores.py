"""Lab `clocks-cores`: its chain against the same numbers in Python, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs._clock_kernel import chain
from pipelines.labs.clocks_cores import CLOCK, DEVICE, EVERY, LAB, ONE, Params
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import NOISE, at_size

MASK = (1 << 64) - 1


def test_the_chain_is_xorshift():
    x = 88172645463325252
    for _ in range(50):
        x ^= (x << 13) & MASK
        x ^= x >> 7
        x ^= (x << 17) & MASK
    assert int(chain(np.uint64(88172645463325252), 50)) == x


def planted(per_cycle=32.0, noise=NOISE, device=None):
    """A core of 3 GHz that does so many operations in a cycle, two of them; products of 100 × 100."""
    one = 1e3 * 2 * 100**3 / (per_cycle * 3e9)
    ms = {CLOCK: 1.0, ONE: one, EVERY: one / 2} | ({DEVICE: 1e3 * device} if device else {})
    return SweepResult(
        timings=at_size(100, ms, noise),
        counts={"cores": 2, "cycles": 3_000_000},
        device="cuda" if device else "",
    )


CONTRACT = Contract(
    LAB,
    planted,
    true=[{}, {"device": 1e-6}],
    false=[{"per_cycle": 2.0}],
    noisy=[{"per_cycle": 4.0, "noise": 2.0}],
    figures={
        "per_cycle_over_gpu_core": about(16),
        "clock_hz": about(3e9),
        "k80_over_laptop_by_clock_and_cores": about(226),
        "device_flops_per_s": None,
    },
    small=Params(n=32, seconds=0.0),
    memory=(Params(n=32), Params(n=8192)),
)


def test_a_device_stands_beside_the_processor():
    found = LAB.judge(planted(device=1e-6))
    assert found.figures["device_flops_per_s"] == pytest.approx(2e12, rel=0.02)
    assert len(LAB.picture(planted(device=1e-6)).beside[0].layers[0].values) == 3
