"""Lab `matrix-orders`: its products against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import matrix_orders
from pipelines.labs.desk import Desk
from pipelines.labs.matrix_orders import LAB, LIBRARIES, ORDERS, Orders, Sizes

ROUNDS = 12


@pytest.mark.parametrize(("n", "block"), [(1, 1), (7, 3), (16, 16), (17, 64)])
def test_every_order_gives_the_product(n, block):
    b, c = matrix_orders.drawn(n)
    right = b.astype(np.float64) @ c.astype(np.float64)
    made = matrix_orders.products(n, block)
    assert set(made) == {f"{library} {order}" for library in LIBRARIES for order in ORDERS}
    for name, product in made.items():
        assert np.abs(np.asarray(product()) - right).max() < 1e-4, name


def planted(element=1000.0, column=10.0, whole=1.0, blocks=1.1, noise=0.01):
    """Times in ms; `noise`: their relative spread from round to round, drawn for each arm alone."""
    draw = np.random.default_rng(1)
    middle = {"element": element, "column": column, "whole": whole, "blocks": blocks}
    at_n = {
        f"{library} {order}": (1e-3 * t * (1 + noise * draw.random(ROUNDS))).tolist()
        for library in LIBRARIES
        for order, t in middle.items()
    }
    one = [1e-3, 1.1e-3, 1.2e-3]
    by_size = {order: [one, one] for order in ORDERS[1:]}
    return Orders(
        n=256,
        block=64,
        at_n=at_n,
        sizes=[128, 256],
        by_size=by_size,
        blocks=[1, 64],
        by_block=[one, one],
        cache_bytes={1: 32768},
    )


def test_it_holds_where_each_order_is_slower_than_the_next():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["column_over_whole"] == pytest.approx(10.0, rel=0.01)
    assert found.figures["blocks_share_of_whole"] == pytest.approx(1 / 1.1, rel=0.01)
    assert found.figures["numpy_whole_flops_per_s"] == pytest.approx(2 * 256**3 / 1e-3, rel=0.01)


@pytest.mark.parametrize("change", [{"element": 5.0}, {"whole": 20.0}, {"blocks": 2.5}])
def test_it_does_not_where_one_is_not(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_as_large_as_the_difference_decides_nothing():
    assert LAB.judge(planted(column=1.02, noise=1.5)).verdict == "undecided"


def test_a_small_run_measures_and_draws():
    sizes = Sizes(n=8, block=4, largest=16, seconds=0.0)
    found = LAB.measure(sizes, Desk())
    assert found.sizes == [16]
    assert found.blocks == [1, 2, 4, 8]
    assert LAB.judge(found).why
    chart = LAB.picture(found)
    assert [layer.name for layer in chart.layers] == list(LIBRARIES)
    assert len(chart.beside) == 2


def test_the_memory_it_needs_is_that_of_its_largest_matrices():
    assert LAB.bytes_needed(Sizes(n=8, largest=16384)) >= 3 * 4 * 16384**2
