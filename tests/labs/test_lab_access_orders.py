"""Lab `access-orders`: its loop meets what it should, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import access_orders
from pipelines.labs._access_kernels import strided
from pipelines.labs.access_orders import CHAIN, IN_ORDER, LAB, RANDOM, STRIDED, Params
from pipelines.labs.sweep import SweepResult
from profiler.machine.roofs import accesses
from tests.labs.contract import Contract, about
from tests.labs.planted import NOISE, timings


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
    assert access_orders.ACCESSES_A_REPEAT == accesses.ACCESSES
    assert access_orders.ACCESSES % accesses.ACCESSES == 0


def planted(order=1.0, drawn=5.0, chain=60.0, noise=NOISE):
    """Nanoseconds over the largest data; within the first cache all take 1 ns."""
    last = {IN_ORDER: order, STRIDED: 2.0, RANDOM: drawn, CHAIN: chain}
    ms = {variant: {16 << 10: 1e-6, 256 << 20: 1e-6 * ns} for variant, ns in last.items()}
    return SweepResult(
        timings=timings(ms, noise),
        more={"strides": timings({"strided": {4: 1e-6, 64: 5e-6}}, noise)},
        cache_bytes={1: 32768},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"chain": 3.0}, {"drawn": 1.1}],
    noisy=[{"chain": 6.0, "noise": 1.0}],
    figures={
        "chain_over_order": about(60.0),
        "random_over_order_in_first_cache": about(1.0),
        "along_a_chain_s": about(60e-9),
    },
    small=Params(largest_mib=1, seconds=0.0),
    memory=(Params(largest_mib=1), Params(largest_mib=1024)),
)


def test_every_way_is_measured_at_every_size():
    found = CONTRACT.measured
    sizes = found.timings.sizes()
    assert (sizes[0], sizes[-1]) == (16 << 10, 1 << 20)
    assert found.timings.variants == [IN_ORDER, STRIDED, RANDOM, CHAIN]
    assert all(found.timings.sizes(variant) == sizes for variant in found.timings.variants)
