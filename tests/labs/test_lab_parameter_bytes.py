"""Lab `parameter-bytes`: its mixtures against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs.parameter_bytes import LAB, Mixtures, Params, shapes, variant
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, timings

SMALL = Params(senones=64, gaussians=5, dimensions=3, batch=4, seconds=0.0)


@pytest.mark.parametrize(("senones", "frames"), [(16, 1), (48, 3), (64, 4)])
def test_what_is_timed_is_the_mixtures_scores(senones, frames):
    made = Mixtures(64, 5, 3, 4)
    made.scoring(senones, frames)()
    scores = made.scores.ravel()[: frames * senones].reshape(frames, senones)
    parameters = made.parameters[: senones // 16, 0].astype(float)
    g = np.einsum("tk,gmkl->tglm", made.x[:frames, 0].astype(float), parameters)
    right = np.log(np.exp(g).sum(axis=3)).reshape(frames, senones)
    np.testing.assert_allclose(scores, right, rtol=1e-4, atol=1e-4)


def planted(waiting=0.6, noise=NOISE):
    """A Gaussian takes a unit in a cache and more where `waiting` is memory; batches of 4 share the reading."""
    ms = {}
    for m, d in shapes(SMALL.gaussians, SMALL.dimensions):
        slower = {16: 1.0, 64: 1 / (1 - waiting)}
        ms[variant(m, d, 1)] = {n: 0.01 * n * m * factor for n, factor in slower.items()}
        ms[variant(m, d, 4)] = {n: 0.01 * 4 * n * m for n in slower}
    return SweepResult(
        timings=timings(ms, noise),
        counts={"gaussians": SMALL.gaussians, "dimensions": SMALL.dimensions},
        cache_bytes={1: 32768},
    )


SIZE = 64 * 5 * 7 * 4
"""Bytes of the parameters."""

CONTRACT = Contract(
    LAB,
    planted,
    false=[{"waiting": 0.2}],
    noisy=[{"waiting": 0.52, "noise": LOUD}],
    figures={
        "waiting_share": pytest.approx(0.6, abs=0.01),
        "batching_gain": about(2.5),
        "bytes_per_frame": SIZE,
        "dram_bytes_per_s": about(SIZE / 8e-3),
        "flops_per_s_at_batch_4": about(2 * SIZE / 12.8e-3),
    },
    small=SMALL,
    memory=(SMALL, Params(senones=1 << 20, gaussians=1024, dimensions=1024)),
)


def test_every_batch_is_measured_at_every_size():
    found = CONTRACT.measured
    assert found.timings.sizes() == [16, 32, 64]
    assert set(found.timings.variants) == {
        variant(m, d, batch) for m, d in shapes(5, 3) for batch in (1, 4)
    }
    chart = LAB.picture(found)
    assert chart.layers[0].name == "5 Gaussians × 3"
    assert [layer.name for layer in chart.beside[0].layers[:2]] == [
        "1 frame together",
        "4 frames together",
    ]


def test_sizes_that_fit_no_memory_are_told_in_bytes():
    huge = Params(senones=1 << 20, gaussians=1024, dimensions=1024)
    assert LAB.bytes_needed(huge) > (1 << 20) * 1024 * 2049 * 4
