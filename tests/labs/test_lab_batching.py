"""Lab `batching`: its bare products against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import batching
from pipelines.labs.batching import COLUMNS, FEW, LAB, MIXTURES, NET, ROWS, Params
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, timings


def test_both_layouts_give_the_product():
    made = batching.products(30, [1, 2, 5])
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((30, 81), np.float32).astype(float)
    for n in (1, 2, 5):
        right = weights @ draw.standard_normal((n, 81), np.float32).astype(float).T
        np.testing.assert_allclose(made[COLUMNS, n](), right, atol=1e-4)
        np.testing.assert_allclose(made[ROWS, n](), right.T, atol=1e-4)


def planted(gain=5.0, rows_at_2=3.0, noise=NOISE, mixtures=None):
    """A frame takes 1 ms alone and 1/`gain` in batches of 2 and 4; as rows, 2 take `rows_at_2` ms a frame.

    `mixtures`: the gain of the mixtures, where it is another. A turn of a scorer scores eight frames.
    """
    ms = {}
    for variant in (NET, MIXTURES, COLUMNS, ROWS):
        own = mixtures if variant == MIXTURES and mixtures else gain
        each = {1: 1.0, 2: 1 / own, 4: 1 / own}
        if variant == ROWS:
            each[2] = rows_at_2
        frames = {n: n if variant in (COLUMNS, ROWS) else FEW for n in each}
        ms[variant] = {n: frames[n] * each[n] for n in each}
    return SweepResult(timings=timings(ms, noise), texts={"net": "base"})


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"gain": 0.5}, {"gain": 0.5, "mixtures": 5.0}, {"mixtures": 0.5}],
    noisy=[{"gain": 1.02, "noise": LOUD}],
    figures={
        "net_gain": about(5.0),
        "rows_two_over_one": about(3.0),
        "added_latency_ms_at_4": 30.0,
    },
    memory=(Params(gaussians=1), Params(gaussians=1 << 20)),
)


def test_the_picture_has_times_and_waiting():
    chart = LAB.picture(planted())
    assert [line.name for line in chart.layers] == [
        "net base",
        "continuous mixtures",
        COLUMNS,
        ROWS,
    ]
    assert chart.layers[0].y == pytest.approx((1.0, 0.2, 0.2), rel=0.02)
    assert chart.beside[0].layers[0].y == (0.0, 10.0, 30.0)
