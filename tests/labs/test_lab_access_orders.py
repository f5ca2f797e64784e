"""Lab `access-orders`: its loop meets what it should, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import access_orders
from pipelines.labs._access_kernels import strided
from pipelines.labs.access_orders import CHAIN, IN_ORDER, LAB, RANDOM, STRIDED, Accesses, Sizes
from pipelines.labs.desk import Desk
from profiler.machine.roofs import terms

ROUNDS = 12


@pytest.mark.parametrize(("n", "stride"), [(12, 1), (12, 4), (64, 16), (8, 8)])
def test_as_many_accesses_as_values_meet_each_once(n, stride):
    values = (np.arange(n) ** 2).astype(np.uint32)
    state = np.zeros(2, np.int64)
    met = [strided(values, stride, state, 1) for _ in range(n)]
    rounds = np.arange(n).reshape(-1, stride).T.ravel()
    assert met == (rounds**2).tolist()
    assert state.tolist() == [0, 0]
    assert strided(values, stride, state, 3 * n) == 3 * int((np.arange(n) ** 2).sum())


def test_a_repeat_of_the_roofs_has_the_accesses_it_is_said_to_have():
    assert access_orders.ACCESSES_A_REPEAT == terms.ACCESSES
    assert access_orders.ACCESSES % terms.ACCESSES == 0


def planted(order=1.0, drawn=5.0, chain=60.0, noise=0.02):
    """Nanoseconds over the largest data; within the first cache all take 1 ns."""
    draw = np.random.default_rng(2)

    def times(ns):
        return (1e-9 * ns * (1 + noise * draw.random(ROUNDS))).tolist()

    last = {IN_ORDER: order, STRIDED: 2.0, RANDOM: drawn, CHAIN: chain}
    return Accesses(
        sizes=[16 << 10, 256 << 20],
        by_size={way: [times(1.0), times(ns)] for way, ns in last.items()},
        strides=[4, 64],
        by_stride=[times(1.0), times(5.0)],
        cache_bytes={1: 32768},
    )


def test_it_holds_where_chains_and_random_accesses_are_dear():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["chain_over_order"] == pytest.approx(60.0, rel=0.02)
    assert found.figures["random_over_order_in_first_cache"] == pytest.approx(1.0, rel=0.02)
    assert found.figures["along_a_chain_s"] == pytest.approx(60e-9, rel=0.02)


@pytest.mark.parametrize("change", [{"chain": 3.0}, {"drawn": 1.1}])
def test_it_does_not_where_they_are_not(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(chain=6.0, noise=1.0)).verdict == "undecided"


def test_a_small_run_measures_and_draws():
    found = LAB.measure(Sizes(largest_mib=1, seconds=0.0), Desk())
    assert found.sizes[0] == 16 << 10
    assert found.sizes[-1] == 1 << 20
    assert set(found.by_size) == {IN_ORDER, STRIDED, RANDOM, CHAIN}
    assert all(len(each) == len(found.sizes) for each in found.by_size.values())
    assert LAB.judge(found).why
    assert LAB.picture(found).beside
