"""Lab `matrix-orders`: its products against float64, its verdict on planted times."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import matrix_orders
from pipelines.labs.matrix_orders import LAB, LIBRARIES, ORDERS, Params
from pipelines.labs.sweep import SweepResult
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, at_size, timings


@pytest.mark.parametrize(("n", "block"), [(1, 1), (7, 3), (16, 16), (17, 64)])
def test_every_order_gives_the_product(n, block):
    b, c = matrix_orders.drawn(n)
    right = b.astype(np.float64) @ c.astype(np.float64)
    made = matrix_orders.products(n, block)
    assert set(made) == {f"{library} {order}" for library in LIBRARIES for order in ORDERS}
    for name, product in made.items():
        assert np.abs(np.asarray(product()) - right).max() < 1e-4, name


def planted(element=1000.0, column=10.0, whole=1.0, blocks=1.1, noise=NOISE):
    """Times in ms."""
    middle = dict(zip(ORDERS, (element, column, whole, blocks), strict=True))
    ms = {f"{library} {order}": t for library in LIBRARIES for order, t in middle.items()}
    return SweepResult(
        timings=at_size(256, ms, noise),
        more={
            "sizes": timings({order: {128: 1.0, 256: 1.0} for order in ORDERS[1:]}),
            "blocks": timings({"blocks": {1: 1.0, 64: 1.0}}),
        },
        counts={"block": 64},
        cache_bytes={1: 32768},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"element": 5.0}, {"whole": 20.0}, {"blocks": 2.5}],
    noisy=[{"column": 1.02, "noise": LOUD}],
    figures={
        "column_over_whole": about(10.0),
        "blocks_share_of_whole": about(1 / 1.1),
        "numpy_whole_flops_per_s": about(2 * 256**3 / 1e-3),
    },
    small=Params(n=8, block=4, largest=32, seconds=0.0),
    memory=(Params(n=8, largest=8), Params(n=8, largest=16384)),
)


def test_every_sweep_is_measured():
    found = CONTRACT.measured
    assert set(found.timings.variants) == set(planted().timings.variants)
    assert found.more["sizes"].sizes() == [16, 32]
    assert found.more["blocks"].sizes() == [1, 2, 4, 8]
    chart = LAB.picture(found)
    assert [layer.name for layer in chart.layers] == list(LIBRARIES)
