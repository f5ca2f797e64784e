"""Lab `exp-cost`: its operations compute what they say, its verdict on planted times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipelines.labs import exp_cost
from pipelines.labs.desk import Desk
from pipelines.labs.exp_cost import LAB, OPERATIONS, PYTHON, Params, ways_of
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size


def test_lists_hold_what_the_operations_make_of_the_values():
    calls = exp_cost.in_python(50)
    values, pairs = (calls[name]() for name in ("nothing", "nothing, in pairs"))
    assert values == pairs
    assert calls["exp"]() == [math.exp(x) for x in values]
    others = [s - x for s, x in zip(calls["add"](), values, strict=True)]
    product = [x * y for x, y in zip(values, others, strict=True)]
    assert calls["multiply"]() == pytest.approx(product)
    assert calls["compare"]() == [x < y for x, y in zip(values, others, strict=True)]


@pytest.mark.parametrize("make", [exp_cost.in_numpy, exp_cost.in_numba, exp_cost.in_torch])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_way_computes_the_same(make, dtype):
    x, y = np.random.default_rng(0).uniform(-5, 5, (2, 70)).astype(dtype)
    right = {"add": x + y, "multiply": x * y, "compare": x < y, "exp": np.exp(x.astype(float))}
    for what, call in make(x, y).items():
        if what in right:
            np.testing.assert_allclose(np.asarray(call()), right[what], rtol=1e-5)


def planted(exp=3.0, zip_loop=0.6, noise=NOISE, in_numpy=None):
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
    return SweepResult(timings=at_size(1000, ms, noise))


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"exp": 0.5}, {"in_numpy": 0.5}],
    noisy=[{"exp": 1.4, "zip_loop": 0.3, "noise": LOUD}],
    figures={
        "numpy_float32_exp_over_slowest": about(3.0),
        "numpy_float32_exp_ns": about(3000.0),
    },
    small=Params(elements=64, items=10, seconds=0.0),
    memory=(Params(elements=64, items=10), Params(elements=10**7)),
)


def test_the_loop_is_taken_off():
    found = LAB.judge(planted(exp=1.5, zip_loop=4.0))
    assert found.verdict == "holds here"
    assert found.figures["flawed_add_over_exp"] == pytest.approx(5.0 / 1.8, rel=0.05)
    assert found.figures["repaired_add_over_exp"] == pytest.approx(1.0 / 1.5, rel=0.1)


@pytest.mark.parametrize("items", [10, 64])
def test_every_way_is_measured_in_the_order_of_the_picture(items):
    """Also where lists are as long as arrays."""
    found = LAB.measure(Params(elements=64, items=items, seconds=0.0), Desk())
    assert ways_of(found)[0] == PYTHON
    assert found.timings.size(f"{PYTHON}, add") == items
    assert found.timings.size("numpy float32, add") == 64
    chart = LAB.picture(found)
    assert [layer.name for layer in chart.layers] == list(OPERATIONS)
    assert chart.x.categories == tuple(ways_of(found))
