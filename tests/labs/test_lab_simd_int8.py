"""Lab `simd-int8`: its loops against float64, its rungs are those of the ladder, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import presets
from pipelines.labs import _unrolled_kernels as kernels
from pipelines.labs import simd_int8
from pipelines.labs.simd_int8 import (
    BATCHED,
    EIGHT,
    INTEGERS,
    LAB,
    LIBRARY,
    ONE_SUM,
    PLAIN,
    PRESETS,
    UNROLLED,
)
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 8), (4, 29)])
@pytest.mark.parametrize("loop", [kernels.plain, kernels.unrolled])
def test_loops_give_the_product(shape, loop):
    draw = np.random.default_rng(0)
    weight, x = draw.standard_normal(shape, np.float32), draw.random(shape[1], np.float32)
    out = np.full(shape[0], np.nan, np.float32)
    loop(weight, x, out)
    np.testing.assert_allclose(out, weight.astype(float) @ x, atol=1e-5)


def test_every_loop_of_the_lab_runs():
    weight = np.random.default_rng(1).standard_normal((20, 9), np.float32)
    assert list(simd_int8.loops_of(weight)) == [ONE_SUM, UNROLLED, LIBRARY, INTEGERS]
    for call in simd_int8.loops_of(weight).values():
        call()


def test_rungs_are_presets_of_the_ladder_in_order():
    steps = [presets.load(name).step for name in PRESETS.values()]
    assert steps == sorted(steps)
    assert presets.load(PRESETS[EIGHT]).config.dnn.dtype == "int8"


def planted(vectors=0.2, eight=0.05, noise=NOISE):
    rungs = {PLAIN: 2.5, "vectors": vectors, "BLAS": 0.3, EIGHT: eight, BATCHED: 0.02}
    loops = {ONE_SUM: 3.0, UNROLLED: 1.0, LIBRARY: 0.1, INTEGERS: 2.0}
    return SweepResult(
        timings=at_size(1, rungs, noise),
        more={"loops": at_size(1, loops, noise)},
        counts={"outputs": 50, "inputs": 20},
        by_variant={"same_best": dict.fromkeys(rungs, 0.95)},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"vectors": 5.0}, {"eight": 0.6}],
    noisy=[{"eight": 0.2, "noise": LOUD}],
    figures={
        "vectors_over_plain": about(12.5),
        "int8_over_best_float": about(4.0),
        "int8_batched_over_plain": about(125.0),
        "unrolled_over_plain": about(3.0),
    },
)


def test_the_picture_has_rungs_and_loops():
    chart = LAB.picture(planted())
    assert chart.layers[0].values == pytest.approx((2.5, 0.2, 0.3, 0.05, 0.02), rel=0.02)
    assert chart.beside[0].x.categories == (ONE_SUM, UNROLLED, LIBRARY, INTEGERS)
