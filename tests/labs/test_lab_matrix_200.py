"""Lab `matrix-200`: its products against float64, its break-even by hand, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.device import open_device
from pipelines.labs import matrix_200
from pipelines.labs.desk import Desk
from pipelines.labs.matrix_200 import LAB, PARTS, Products, Sizes
from tests.labs.planted_training import times


class NoDevice(Desk):
    device = None


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


def planted(resident=1e-5, copied=6e-5, noise=0.01, real=True):
    one = {"numpy": 6e-5, "resident": resident, "copied": copied}
    # Numpy by size: 32, 200, 1024; the device gains on it.
    by_size = {
        arm: [times(factor * seconds, noise) for factor in factors]
        for (arm, seconds), factors in zip(
            one.items(), ((0.01, 1, 100), (0.9, 1, 4), (0.9, 1, 6)), strict=True
        )
    }
    parts = {part: times(1e-5) for part in PARTS}
    return Products(
        n=200,
        device="cuda",
        real=real,
        sizes=[32, 200, 1024],
        by_size=by_size,
        parts=parts,
        cold={"numpy": 1e-4, "resident": 0.3, "copied": 1e-3},
    )


def test_it_holds_where_resident_is_fast_and_copies_eat_it():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["resident_over_numpy"] == pytest.approx(6, rel=0.02)
    assert found.figures["break_even_n"] == 1024
    assert found.figures["cold_first_product_s"] == 0.3


@pytest.mark.parametrize("change", [{"resident": 6e-5}, {"copied": 1e-5}])
def test_it_does_not_where_the_device_is_slow_or_copies_are_cheap(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(resident=3.1e-5, copied=6e-5, noise=0.7)).verdict == "undecided"


def test_without_an_accelerator_the_half_of_the_processor_is_run():
    found = LAB.measure(Sizes(n=8, largest=32, seconds=0.0), NoDevice())
    assert found.sizes == [8, 32]
    judged = LAB.judge(found)
    assert judged.verdict == "cannot be tried here"
    assert "only the processor's half" in judged.why
    assert judged.figures["numpy_flops_per_s"] > 0
    assert judged.figures["resident_over_numpy"] is None
    assert len(LAB.picture(found).beside) == 2


def test_the_memory_it_needs_is_that_of_its_largest_matrices():
    assert LAB.bytes_needed(Sizes(largest=16384)) == 6 * 4 * 16384**2
