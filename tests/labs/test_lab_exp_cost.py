"""Lab `exp-cost`: its operations compute what they say, its verdict on planted times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipelines.labs import exp_cost
from pipelines.labs.desk import Desk
from pipelines.labs.exp_cost import LAB, OPERATIONS, PYTHON, Found, Given
from tests.labs.planted import LOUD, arms


def test_lists_hold_what_the_operations_make_of_the_values():
    calls = exp_cost.python_arms(50)
    values, pairs = (calls[f"{PYTHON}, {name}"]() for name in ("nothing", "nothing, in pairs"))
    assert values == pairs
    assert calls[f"{PYTHON}, exp"]() == [math.exp(x) for x in values]
    others = [s - x for s, x in zip(calls[f"{PYTHON}, add"](), values, strict=True)]
    product = [x * y for x, y in zip(values, others, strict=True)]
    assert calls[f"{PYTHON}, multiply"]() == pytest.approx(product)
    assert calls[f"{PYTHON}, compare"]() == [x < y for x, y in zip(values, others, strict=True)]


@pytest.mark.parametrize("make", [exp_cost.numpy_arms, exp_cost.numba_arms, exp_cost.torch_arms])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_way_computes_the_same(make, dtype):
    x, y = np.random.default_rng(0).uniform(-5, 5, (2, 70)).astype(dtype)
    right = {"add": x + y, "multiply": x * y, "compare": x < y, "exp": np.exp(x.astype(float))}
    for what, call in make(x, y).items():
        if what in right:
            np.testing.assert_allclose(np.asarray(call()), right[what], rtol=1e-5)


def planted(exp=3.0, zip_loop=0.6, noise=0.01, in_numpy=None):
    """A millisecond for an addition, in Python and in numpy; exp and the loop over pairs as given.

    `in_numpy`: exp in numpy, where it takes another time.
    """
    python = {"nothing": 0.3, "nothing, in pairs": zip_loop, "add": 1.0 + zip_loop}
    python |= {"multiply": 1.0 + zip_loop, "compare": 0.9 + zip_loop, "exp": exp + 0.3}
    numpy = {
        "nothing": 0.01,
        "add": 1.01,
        "multiply": 1.01,
        "compare": 0.8,
        "exp": (in_numpy or exp) + 0.01,
    }
    ways = {PYTHON: python, "numpy float32": numpy}
    ms = {f"{way}, {what}": t for way, some in ways.items() for what, t in some.items()}
    return Found(elements=1000, items=1000, ways=list(ways), seconds=arms(ms, noise))


def test_it_holds_where_exp_takes_longer_everywhere():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["numpy_float32_exp_over_slowest"] == pytest.approx(3.0, rel=0.02)
    assert found.figures["numpy_float32_exp_ns"] == pytest.approx(3000.0, rel=0.02)


def test_the_loop_is_taken_off():
    found = LAB.judge(planted(exp=1.5, zip_loop=4.0))
    assert found.verdict == "holds here"
    assert found.figures["flawed_add_over_exp"] == pytest.approx(5.0 / 1.8, rel=0.05)
    assert found.figures["repaired_add_over_exp"] == pytest.approx(1.0 / 1.5, rel=0.1)


def test_it_does_not_where_exp_is_cheap():
    assert LAB.judge(planted(exp=0.5)).verdict == "does not hold here"
    assert LAB.judge(planted(in_numpy=0.5)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(exp=1.8, zip_loop=0.3, noise=LOUD)).verdict == "undecided"


def test_a_small_run_measures_and_draws():
    found = LAB.measure(Given(elements=64, items=10, seconds=0.0), Desk())
    assert found.ways[0] == PYTHON
    assert LAB.judge(found).why
    chart = LAB.picture(found)
    assert [layer.name for layer in chart.layers] == list(OPERATIONS)
    assert chart.x.categories == tuple(found.ways)
