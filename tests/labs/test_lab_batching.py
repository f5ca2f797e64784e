"""Lab `batching`: its bare products against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import batching
from pipelines.labs.batching import COLUMNS, LAB, MIXTURES, NET, ROWS, Found
from tests.labs.planted import LOUD, arms


def test_both_layouts_give_the_product():
    made = batching.products(30, [1, 2, 5])
    draw = np.random.default_rng(0)
    weights = draw.standard_normal((30, 81), np.float32).astype(float)
    for n in (1, 2, 5):
        right = weights @ draw.standard_normal((n, 81), np.float32).astype(float).T
        np.testing.assert_allclose(made[COLUMNS, n](), right, atol=1e-4)
        np.testing.assert_allclose(made[ROWS, n](), right.T, atol=1e-4)


def planted(gain=5.0, rows_at_2=3.0, noise=0.01, mixtures=None):
    """A frame takes 1 ms alone and 1/`gain` in batches of 2 and 4; as rows, 2 take `rows_at_2` ms a frame.

    `mixtures`: the gain of the mixtures, where it is another.
    """
    frames, ms = {}, {}
    for what in (NET, MIXTURES, COLUMNS, ROWS):
        own = mixtures if what == MIXTURES and mixtures else gain
        for n, each in {1: 1.0, 2: 1 / own, 4: 1 / own}.items():
            name = f"{what}, {n} frames"
            frames[name] = n
            ms[name] = n * (rows_at_2 if (what, n) == (ROWS, 2) else each)
    return Found(net="base", batches=[1, 2, 4], seconds=arms(ms, noise), frames=frames)


def test_it_holds_where_batches_are_quicker():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["net_gain"] == pytest.approx(5.0, rel=0.02)
    assert found.figures["rows_two_over_one"] == pytest.approx(3.0, rel=0.02)
    assert found.figures["added_latency_ms_at_4"] == 30.0


def test_it_does_not_where_one_frame_at_a_time_is_best():
    found = LAB.judge(planted(gain=0.5))
    assert found.verdict == "does not hold here"
    assert found.figures["net_gain"] == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("gains", [{"gain": 0.5, "mixtures": 5.0}, {"mixtures": 0.5}])
def test_it_does_not_where_only_one_scorer_gains(gains):
    assert LAB.judge(planted(**gains)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(gain=1.02, noise=LOUD)).verdict == "undecided"


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
