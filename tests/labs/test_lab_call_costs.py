"""Lab `call-costs`: all libraries add the same, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import call_costs
from pipelines.labs.call_costs import LAB, PYTHON, Calls, Sizes
from pipelines.labs.desk import Desk

ROUNDS = 12


@pytest.mark.parametrize("n", [1, 7, 1000, 1001])
def test_every_library_gives_the_sum(n):
    a, b = (np.random.default_rng(0).random(n, np.float32) for _ in range(2))
    made = call_costs.additions(n, None)
    assert set(made) == {"numpy", "numba", "torch"} | ({PYTHON} if n <= 1000 else set())
    for name, call in made.items():
        assert np.asarray(call()) == pytest.approx(a + b), name


def planted(call_ns=1000.0, number_ns=1.0, noise=0.01, torch_ns=None):
    """A call of so many nanoseconds and so many for each number, in numpy and torch alike.

    `torch_ns`: a call of torch, where it takes another time.
    """
    draw = np.random.default_rng(4)
    sizes = [1 << k for k in range(0, 21, 2)]

    def times(n, call_ns=call_ns):
        # Each size has turns of its own, and as many rounds as its time allows.
        rounds = ROUNDS + n.bit_length() % 5
        return (1e-9 * (call_ns + n * number_ns) * (1 + noise * draw.random(rounds))).tolist()

    each = [times(n) for n in sizes]
    other = each if torch_ns is None else [times(n, torch_ns) for n in sizes]
    return Calls(sizes=sizes, times={"numpy": each, "torch": other}, device=None)


def test_it_holds_where_the_call_is_most_of_a_small_sum():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    at_once = 256  # the largest size that is not more than a thousand
    gain = at_once * 1001 / (1000 + at_once)
    assert found.figures["numpy_one_by_one_over_at_once"] == pytest.approx(gain, rel=0.01)
    assert found.figures["torch_call_s"] == pytest.approx(1.001e-6, rel=0.01)
    assert found.figures["torch_call_is_a_tenth_from"] == 16384


def test_one_number_alone_decides_nothing():
    one = planted()
    found = Calls(sizes=one.sizes[:1], times={k: t[:1] for k, t in one.times.items()}, device=None)
    assert LAB.judge(found).verdict == "undecided"


def test_it_does_not_where_calls_cost_next_to_nothing():
    found = LAB.judge(planted(call_ns=1.0, number_ns=10.0))
    assert found.verdict == "does not hold here"


def test_it_does_not_where_one_frameworks_calls_cost_next_to_nothing():
    assert LAB.judge(planted(torch_ns=0.5)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(call_ns=10.0, number_ns=1.0, noise=3.0)).verdict == "undecided"


def test_a_vector_too_short_for_the_call_to_vanish_gives_no_size():
    found = planted()
    short = Calls(
        sizes=found.sizes[:4], times={n: t[:4] for n, t in found.times.items()}, device=None
    )
    assert LAB.judge(short).figures["numpy_call_is_a_tenth_from"] is None


def test_a_small_run_measures_and_draws(monkeypatch):
    desk = Desk()
    desk.device = None  # whatever the machine has: torch's own is enough
    found = LAB.measure(Sizes(largest=16, seconds=0.0), desk)
    assert found.sizes == [1, 4, 16]
    assert set(found.times) == {"numpy", "numba", "torch", PYTHON}
    chart = LAB.picture(found)
    assert chart.x.categories == tuple(found.times)
    assert LAB.judge(found).why
