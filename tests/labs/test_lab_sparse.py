"""Lab `sparse`: weights and products of a small net against numpy, its verdict on planted numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import sparse
from pipelines.labs.sparse import (
    DENSE,
    FRAMES,
    KEPT,
    LAB,
    LIMITS,
    SPARSE,
    Params,
    Result,
    variant,
)
from pipelines.models import shrink
from pipelines.models.nets import Layer
from tests.labs.contract import Contract, about
from tests.labs.planted import LOUD, NOISE, timings
from tests.pipelines.net_files import card, net


@pytest.fixture(scope="module")
def small():
    return net(card(Layer(24), senones=40))


def test_weights_are_told_layer_by_layer(small):
    found = sparse.matrices(small)
    assert list(found) == ["layer 1", "output"]
    assert found["layer 1"] is small.tensors["layers.0.weight"]


def test_the_distribution_counts_weights(small):
    weight = sparse.matrices(small)["output"]
    shares = sparse.below(weight)
    assert shares == sorted(shares)
    for limit, share in zip(LIMITS, shares, strict=True):
        assert share == pytest.approx(
            sum(abs(w) < limit for w in weight.ravel().tolist()) / weight.size
        )
    assert sparse.share_below(weight, 1e9) == 1.0


@pytest.mark.parametrize("kept", [30, 50, 100])
def test_every_product_gives_what_its_net_computes(small, kept):
    made = sparse.products_of(small, kept)
    nets = {"csr": shrink.sparse(small, kept / 100), "blocks": shrink.blocks(small, kept / 100)}
    # Dense products have all weights.
    nets |= dict.fromkeys(DENSE, small) if kept == 100 else {}
    assert set(made) == {variant(product, n) for product in nets for n in FRAMES}
    for product, some in nets.items():
        for n in FRAMES:
            x, out = made[variant(product, n)].args
            made[variant(product, n)]()
            weight, bias = some.head(0)
            right = np.column_stack([weight, bias]).astype(float) @ x
            np.testing.assert_allclose(out, right, rtol=1e-3, atol=1e-3)


def planted(small=0.9, csr=0.5, noise=NOISE):
    """`small`: share of weights below 0.1; the sparse products take `csr` of the dense time at 30 %, and so on."""
    ms = {variant(p, n): {100: float(n)} for p in DENSE for n in FRAMES}
    ms |= {variant(p, n): {k: n * csr * k / 30 for k in KEPT} for p in SPARSE for n in FRAMES}
    return Result(
        timings=timings(ms, noise),
        counts={"small": small, "words": 60},
        by_variant={"word_errors": {"whole": 4, "pruned": 9, "retrained": 5}},
        below={"layer 1": [small] * len(LIMITS)},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"small": 0.5}, {"csr": 1.5}],
    noisy=[{"csr": 0.97, "noise": LOUD}],
    figures={
        "csr_gain_at_30_percent_16_frames": about(2.0),
        "csr_break_even_kept_16_frames": 0.5,
    },
    memory=(Params(net="small"), Params(net="large")),
)


def test_words_are_counted_in_the_sentence():
    assert "4 are wrong before pruning, 9 after it and 5 retrained" in LAB.judge(planted()).why


def test_the_picture_has_speeds_and_weights():
    chart = LAB.picture(planted())
    assert len(chart.layers) == 1 + len(SPARSE) * len(FRAMES)
    assert chart.beside[0].layers[0].name == "layer 1"
