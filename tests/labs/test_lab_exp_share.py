"""Lab `exp-share`: numpy's mixtures against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import exp_share
from pipelines.labs.exp_share import LAB, Found
from tests.labs.planted import LOUD, arms


@pytest.mark.parametrize("streams", [1, 3])
def test_mixtures_in_numpy_are_those_of_float64(streams):
    draw = np.random.default_rng(0)
    gaussians = draw.standard_normal((2, streams, 5, 9, 16)).astype(np.float32)
    features = draw.standard_normal((3, streams * 4)).astype(np.float32)
    arms = exp_share.library_arms(gaussians, features)
    x = features.astype(float).reshape(3, streams, 4)
    x = np.concatenate([x**2, x, np.ones((3, streams, 1))], axis=2)
    g = np.einsum("tsk,gsmkl->tsglm", x, gaussians.astype(float)).reshape(3, streams, 32, 5)
    sums = np.log(np.exp(g).sum(axis=3)).sum(axis=1)
    np.testing.assert_allclose(arms["library sum 3"](), sums, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        arms["library best 3"](), g.max(axis=3).sum(axis=1), rtol=1e-4, atol=1e-4
    )


def planted(share_at_1=0.05, share_at_64=0.2, noise=0.01):
    ms = {"sum 1": 20.0, "best 1": 20.0 * (1 - share_at_1)}
    ms |= {"sum 64": 32.0, "best 64": 32.0 * (1 - share_at_64)}
    return Found(model="single-stream", gaussians=100, batches=[1, 64], seconds=arms(ms, noise))


def test_it_holds_where_exp_takes_little():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["exp_share_at_1"] == pytest.approx(0.05, abs=0.01)
    assert found.figures["exp_share_at_64"] == pytest.approx(0.2, abs=0.01)
    assert found.figures["ms_per_frame_at_1"] == pytest.approx(20 / 8, rel=0.02)
    assert found.figures["ms_per_frame_at_64"] == pytest.approx(0.5, rel=0.02)


def test_it_does_not_where_batches_make_it_most_of_the_time():
    assert LAB.judge(planted(share_at_64=0.7)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(share_at_1=0.45, share_at_64=0.48, noise=LOUD)).verdict == "undecided"


def test_the_picture_has_the_shares_and_the_times():
    chart = LAB.picture(planted())
    assert chart.layers[0].x == (1.0, 64.0)
    assert chart.layers[0].y == pytest.approx((5.0, 20.0), abs=1.0)
    assert len(chart.beside[0].layers) == 2
