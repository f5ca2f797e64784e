"""Lab `clocks-cores`: its chain against the same numbers in Python, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs._clock_kernel import chain
from pipelines.labs.clocks_cores import LAB, Rates, Sizes
from pipelines.labs.desk import Desk
from tests.labs.planted_training import times

MASK = (1 << 64) - 1


def test_the_chain_is_xorshift():
    x = 88172645463325252
    for _ in range(50):
        x ^= (x << 13) & MASK
        x ^= x >> 7
        x ^= (x << 17) & MASK
    assert int(chain(np.uint64(88172645463325252), 50)) == x


def planted(per_cycle=32.0, noise=0.01, device=None):
    """A core of 3 GHz that does so many operations in a cycle, two of them; products of 100 × 100."""
    one = 2 * 100**3 / (per_cycle * 3e9)
    return Rates(
        n=100,
        cores=2,
        cycles=3_000_000,
        clock=times(1e-3, noise),
        one=times(one, noise),
        every=times(one / 2, noise),
        device=times(device, noise) if device else [],
        device_name="cuda" if device else "",
    )


def test_it_holds_where_a_core_does_more_in_a_cycle():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["per_cycle_over_gpu_core"] == pytest.approx(16, rel=0.02)
    assert found.figures["clock_hz"] == pytest.approx(3e9, rel=0.02)
    assert found.figures["k80_over_laptop_by_clock_and_cores"] == pytest.approx(226, abs=1)
    assert found.figures["device_flops_per_s"] is None


def test_it_does_not_where_it_does_as_much():
    assert LAB.judge(planted(per_cycle=2.0)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(per_cycle=4.0, noise=2.0)).verdict == "undecided"


def test_a_device_stands_beside_the_processor():
    found = LAB.judge(planted(device=1e-6))
    assert found.figures["device_flops_per_s"] == pytest.approx(2e12, rel=0.02)
    assert len(LAB.picture(planted(device=1e-6)).beside[0].layers[0].values) == 3


def test_a_small_run_measures_and_draws():
    found = LAB.measure(Sizes(n=32, seconds=0.0), Desk())
    assert len(found.clock) == len(found.one) == len(found.every) >= 3
    assert LAB.judge(found).why
    assert LAB.picture(found).beside
