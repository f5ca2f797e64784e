"""Lab `parameter-bytes`: its mixtures against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs.desk import Desk
from pipelines.labs.parameter_bytes import LAB, Found, Mixtures, Sizes, arm, shapes
from tests.labs.planted import LOUD, arms

SIZES = Sizes(senones=64, gaussians=5, dimensions=3, batch=4, seconds=0.0)


@pytest.mark.parametrize(("senones", "frames"), [(16, 1), (48, 3), (64, 4)])
def test_what_is_timed_is_the_mixtures_scores(senones, frames):
    made = Mixtures(64, 5, 3, 4)
    made.scoring(senones, frames)()
    scores = made.scores.ravel()[: frames * senones].reshape(frames, senones)
    parameters = made.parameters[: senones // 16, 0].astype(float)
    g = np.einsum("tk,gmkl->tglm", made.x[:frames, 0].astype(float), parameters)
    right = np.log(np.exp(g).sum(axis=3)).reshape(frames, senones)
    np.testing.assert_allclose(scores, right, rtol=1e-4, atol=1e-4)


def planted(waiting=0.6, noise=0.01):
    """A Gaussian takes a unit in a cache and more where `waiting` is memory; batches of 4 share the reading."""
    ms = {}
    for m, d in shapes(SIZES):
        for n in (16, 64):
            slower = 1 / (1 - waiting) if n == 64 else 1.0
            ms[arm(m, d, 1, n)] = n * m * slower * 0.01
            ms[arm(m, d, 4, n)] = 4 * n * m * 0.01
    return Found(
        sizes=SIZES,
        senones=[16, 64],
        batches=[1, 4],
        seconds=arms(ms, noise),
        cache_bytes={1: 32768},
    )


def test_it_holds_where_most_of_the_time_is_memory():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["waiting_share"] == pytest.approx(0.6, abs=0.01)
    assert found.figures["batching_gain"] == pytest.approx(2.5, rel=0.02)
    size = 64 * 5 * 7 * 4
    assert found.figures["bytes_per_frame"] == size
    assert found.figures["dram_bytes_per_s"] == pytest.approx(size / 8e-3, rel=0.02)
    assert found.figures["flops_per_s_at_batch_4"] == pytest.approx(2 * size / 12.8e-3, rel=0.02)


def test_it_does_not_where_memory_is_quick():
    assert LAB.judge(planted(waiting=0.2)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(waiting=0.52, noise=LOUD)).verdict == "undecided"


def test_a_small_run_measures_and_draws():
    found = LAB.measure(SIZES, Desk())
    assert found.senones == [16, 32, 64]
    assert found.batches == [1, 4]
    assert LAB.judge(found).why
    chart = LAB.picture(found)
    assert chart.layers[0].name == "5 Gaussians × 3"
    assert [layer.name for layer in chart.beside[0].layers[:2]] == [
        "1 frame together",
        "4 frames together",
    ]


def test_sizes_that_fit_no_memory_are_told_in_bytes():
    huge = Sizes(senones=1 << 20, gaussians=1024, dimensions=1024)
    assert LAB.bytes_needed(huge) > (1 << 20) * 1024 * 2049 * 4
