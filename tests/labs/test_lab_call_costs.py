"""Lab `call-costs`: all libraries add the same, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import call_costs
from pipelines.labs.call_costs import LAB, PYTHON, Params
from pipelines.labs.sweep import SweepResult, Timings
from tests.labs.contract import Contract, NoDevice, about
from tests.labs.planted import NOISE, ROUNDS


@pytest.mark.parametrize("n", [1, 7, 1000, 1001])
def test_every_library_gives_the_sum(n):
    a, b = (np.random.default_rng(0).random(n, np.float32) for _ in range(2))
    made = call_costs.additions(n, None)
    assert set(made) == {"numpy", "numba", "torch"} | ({PYTHON} if n <= 1000 else set())
    for name, call in made.items():
        assert np.asarray(call()) == pytest.approx(a + b), name


def planted(call_ns=1000.0, number_ns=1.0, noise=NOISE, torch_ns=None, largest=1 << 20):
    """A call of so many nanoseconds and so many for each number, in numpy and torch alike.

    `torch_ns`: a call of torch, where it takes another time.
    """
    draw = np.random.default_rng(4)
    sizes = [1 << k for k in range(0, 21, 2) if 1 << k <= largest]

    def times(n, call_ns=call_ns):
        # Each size has turns of its own, and as many rounds as its time allows.
        rounds = ROUNDS + n.bit_length() % 5
        return (1e-9 * (call_ns + n * number_ns) * (1 + noise * draw.random(rounds))).tolist()

    each = {n: times(n) for n in sizes}
    other = each if torch_ns is None else {n: times(n, torch_ns) for n in sizes}
    return SweepResult(timings=Timings(seconds={"numpy": each, "torch": other}))


AT_ONCE = 256
"""The largest size that is not more than a thousand."""

CONTRACT = Contract(
    LAB,
    planted,
    false=[{"call_ns": 1.0, "number_ns": 10.0}, {"torch_ns": 0.5}],
    # One number alone decides nothing.
    noisy=[{"call_ns": 10.0, "noise": 3.0}, {"largest": 1}],
    figures={
        "numpy_one_by_one_over_at_once": about(AT_ONCE * 1001 / (1000 + AT_ONCE)),
        "torch_call_s": about(1.001e-6),
        "torch_call_is_a_tenth_from": 16384,
    },
    small=Params(largest=16, seconds=0.0),
    desk=NoDevice,
    memory=(Params(largest=16), Params(largest=1 << 26)),
)


def test_a_vector_too_short_for_the_call_to_vanish_gives_no_size():
    assert LAB.judge(planted(largest=64)).figures["numpy_call_is_a_tenth_from"] is None


def test_every_library_is_measured_at_every_size():
    found = CONTRACT.measured
    assert found.timings.sizes() == [1, 4, 16]
    assert set(found.timings.variants) == {"numpy", "numba", "torch", PYTHON}
    assert LAB.picture(found).x.categories == tuple(found.timings.variants)
