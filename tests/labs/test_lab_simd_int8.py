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
    Found,
)
from tests.labs.planted import LOUD, arms


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


def planted(vectors=0.2, eight=0.05, noise=0.01):
    rungs = {PLAIN: 2.5, "vectors": vectors, "BLAS": 0.3, EIGHT: eight, BATCHED: 0.02}
    loops = {ONE_SUM: 3.0, UNROLLED: 1.0, LIBRARY: 0.1, INTEGERS: 2.0}
    return Found(
        frames=1,
        rungs=arms(rungs, noise),
        loops=arms(loops, noise),
        same_best=dict.fromkeys(rungs, 0.95),
        shape=(50, 20),
    )


def test_it_holds_where_each_step_is_quicker():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["vectors_over_plain"] == pytest.approx(12.5, rel=0.02)
    assert found.figures["int8_over_best_float"] == pytest.approx(4.0, rel=0.02)
    assert found.figures["int8_batched_over_plain"] == pytest.approx(125.0, rel=0.02)
    assert found.figures["unrolled_over_plain"] == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize("change", [{"vectors": 5.0}, {"eight": 0.6}])
def test_it_does_not_where_one_is_not(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(eight=0.2, noise=LOUD)).verdict == "undecided"


def test_the_picture_has_rungs_and_loops():
    chart = LAB.picture(planted())
    assert chart.layers[0].values == pytest.approx((2.5, 0.2, 0.3, 0.05, 0.02), rel=0.02)
    assert chart.beside[0].x.categories == (ONE_SUM, UNROLLED, LIBRARY, INTEGERS)
