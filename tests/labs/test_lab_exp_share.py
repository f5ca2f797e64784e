"""Lab `exp-share`: numpy's mixtures against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import exp_share
from pipelines.labs.exp_share import BEST, LAB, LIBRARY_BEST, LIBRARY_SUM, SUM, Params
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, timings


@pytest.mark.parametrize("streams", [1, 3])
def test_mixtures_in_numpy_are_those_of_float64(streams):
    draw = np.random.default_rng(0)
    gaussians = draw.standard_normal((2, streams, 5, 9, 16)).astype(np.float32)
    features = draw.standard_normal((3, streams * 4)).astype(np.float32)
    made = exp_share.library_variants(gaussians, features)
    x = features.astype(float).reshape(3, streams, 4)
    x = np.concatenate([x**2, x, np.ones((3, streams, 1))], axis=2)
    g = np.einsum("tsk,gsmkl->tsglm", x, gaussians.astype(float)).reshape(3, streams, 32, 5)
    sums = np.log(np.exp(g).sum(axis=3)).sum(axis=1)
    np.testing.assert_allclose(made[LIBRARY_SUM](), sums, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        made[LIBRARY_BEST](), g.max(axis=3).sum(axis=1), rtol=1e-4, atol=1e-4
    )


def planted(share_at_1=0.05, share_at_64=0.2, noise=NOISE):
    ms = {
        SUM: {1: 20.0, 64: 32.0},
        BEST: {1: 20.0 * (1 - share_at_1), 64: 32.0 * (1 - share_at_64)},
    }
    return SweepResult(timings=timings(ms, noise), texts={"model": "single-stream"})


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"share_at_64": 0.7}],
    noisy=[{"share_at_1": 0.45, "share_at_64": 0.48, "noise": LOUD}],
    figures={
        "exp_share_at_1": pytest.approx(0.05, abs=0.01),
        "exp_share_at_64": pytest.approx(0.2, abs=0.01),
        "ms_per_frame_at_1": about(20 / 8),
        "ms_per_frame_at_64": about(0.5),
    },
    memory=(Params(components=8), Params(components=128)),
)


def test_the_picture_has_the_shares_and_the_times():
    chart = LAB.picture(planted())
    assert chart.layers[0].x == (1.0, 64.0)
    assert chart.layers[0].y == pytest.approx((5.0, 20.0), abs=1.0)
    assert len(chart.beside[0].layers) == 2
