"""Lab `sparse`: weights and products of a small net against numpy, its verdict on planted numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import sparse
from pipelines.labs.sparse import DENSE, FRAMES, KEPT, LAB, LIMITS, SPARSE, Found, arm
from pipelines.models import shrink
from pipelines.models.nets import Layer
from tests.labs.planted import LOUD, arms
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


def test_every_product_gives_what_its_net_computes(small):
    made = sparse.products_of(small)
    assert len(made) == len(FRAMES) * (len(DENSE) + len(SPARSE) * len(KEPT))
    nets = {"csr": shrink.sparse, "blocks": shrink.blocks}
    for name in (arm("simd", 16), arm("csr", 16, 0.3), arm("blocks", 1, 0.5)):
        x, out = made[name].args
        made[name]()
        product = name.partition(",")[0]
        kept = 0.3 if product == "csr" else 0.5
        some = nets[product](small, kept) if product in nets else small
        weight, bias = some.head(0)
        right = np.column_stack([weight, bias]).astype(float) @ x
        np.testing.assert_allclose(out, right, rtol=1e-3, atol=1e-3)


def planted(small=0.9, csr=0.5, noise=0.01):
    """`small`: share of weights below 0.1; the sparse products take `csr` of the dense time at 30 %, and so on."""
    ms = {arm(p, n): float(n) for p in DENSE for n in FRAMES}
    ms |= {arm(p, n, k): n * csr * k / 0.3 for p in SPARSE for n in FRAMES for k in KEPT}
    return Found(
        below={"layer 1": [small] * len(LIMITS)},
        small=small,
        seconds=arms(ms, noise),
        word_errors={"whole": 4, "pruned": 9, "retrained": 5},
        words=60,
    )


def test_it_holds_where_weights_are_small_and_csr_is_quicker():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["csr_gain_at_30_percent_16_frames"] == pytest.approx(2.0, rel=0.02)
    assert found.figures["csr_break_even_kept_16_frames"] == 0.5
    assert "4 are wrong before pruning, 9 after it and 5 retrained" in found.why


@pytest.mark.parametrize("change", [{"small": 0.5}, {"csr": 1.5}])
def test_it_does_not_where_one_part_fails(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(csr=0.97, noise=LOUD)).verdict == "undecided"


def test_the_picture_has_speeds_and_weights():
    chart = LAB.picture(planted())
    assert len(chart.layers) == 1 + len(SPARSE) * len(FRAMES)
    assert chart.beside[0].layers[0].name == "layer 1"
