"""Smaller nets hold what they should of the larger one, and the requested number of weights."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.models import shrink
from pipelines.models.nets import BLOCK, Layer, Net
from profiler.arrays import Array
from tests.pipelines.net_files import card, forward, net

SHAPE = (Layer(40), Layer(30), Layer(12, relu=False))
FEATURES = np.random.default_rng(0).normal(0, 3, (9, 39)).astype(np.float32)


def weights(made: Net) -> dict[str, Array]:
    return {name: values for name, values in made.tensors.items() if name.endswith(".weight")}


def size(made: Net) -> int:
    return sum(values.size for values in weights(made).values())


@pytest.mark.parametrize("heads", [1, 3])
def test_low_rank_keeps_the_best_part_of_a_net(heads: int) -> None:
    made = net(card(*SHAPE, left=1, right=1, heads=heads))
    last = heads - 1
    whole = forward(made, FEATURES, last)
    errors = []
    for share in (0.1, 0.3, 0.6, 0.9):
        smaller = shrink.low_rank(made, share)
        assert {name: values.shape for name, values in smaller.tensors.items()} == smaller.card.shapes
        assert size(smaller) == pytest.approx(share * size(made), rel=0.1)
        errors.append(np.abs(forward(smaller, FEATURES, last) - whole).mean())
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 2 * np.abs(whole).mean()


def test_a_rank_that_saves_nothing_leaves_the_layers() -> None:
    made = net(card(*SHAPE, left=1, right=1))
    same = shrink.low_rank(made, 1.0)
    assert same.card == made.card
    np.testing.assert_allclose(forward(same, FEATURES), forward(made, FEATURES), atol=1e-4)


def test_bottleneck_and_output_layer_are_factored_as_one_matrix() -> None:
    made = net(card(Layer(20), Layer(12, relu=False), Layer(8, relu=False), senones=90, heads=2))
    smaller = shrink.low_rank(made, 0.5)
    first, second, head = (made.tensors[f"{n}.weight"] for n in ("layers.1", "layers.2", "heads.1"))
    both = np.concatenate([made.tensors["heads.0.weight"], head])
    product = both.astype(np.float64) @ second @ first
    rank = smaller.card.layers[-1].outputs
    assert [layer.relu for layer in smaller.card.layers] == [False, True, False]
    assert rank == round(0.5 * (both.size + second.size + first.size) / (180 + 20))
    u, s, vt = np.linalg.svd(product)
    best = u[:, :rank] * s[:rank] @ vt[:rank]
    found = np.concatenate([smaller.tensors[f"heads.{i}.weight"] for i in range(2)])
    np.testing.assert_allclose(found @ smaller.tensors["layers.2.weight"], best, atol=1e-5)
    bias = made.tensors["layers.1.bias"].astype(np.float64)
    bias = second @ bias + made.tensors["layers.2.bias"]
    np.testing.assert_allclose(smaller.tensors["heads.1.bias"], head @ bias + made.tensors["heads.1.bias"], atol=1e-5)


def test_a_net_without_layers_is_one_matrix() -> None:
    made = net(card(left=0, right=0, senones=60))
    smaller = shrink.low_rank(made, 0.5)
    assert [layer.outputs for layer in smaller.card.layers] == [12]
    assert size(smaller) < 0.55 * size(made)
    wide = shrink.low_rank(made, 1.0)
    np.testing.assert_allclose(forward(wide, FEATURES), forward(made, FEATURES), atol=1e-4)


def test_sparse_cuts_the_smallest_weights_of_each_layer() -> None:
    made = net(card(*SHAPE))
    for kept in (0.1, 0.4, 1.0):
        for name, values in weights(shrink.sparse(made, kept)).items():
            before = made.tensors[name]
            assert np.count_nonzero(values) == round(kept * before.size)
            there = values != 0
            np.testing.assert_array_equal(values[there], before[there])
            assert kept == 1.0 or np.abs(before[~there]).max() <= np.abs(before[there]).min()
        assert shrink.sparse(made, kept).tensors["layers.0.bias"] is made.tensors["layers.0.bias"]


def test_blocks_go_whole_and_the_smallest_first() -> None:
    made = net(card(*SHAPE, senones=50))  # 50 outputs: three blocks and one of two
    smaller = shrink.blocks(made, 0.3)
    for name, values in weights(smaller).items():
        before = made.tensors[name].astype(np.float64)
        norms, there = [], []
        for start in range(0, len(values), BLOCK):
            rows = slice(start, start + BLOCK)
            for column in range(values.shape[1]):
                nonzero = values[rows, column] != 0
                assert nonzero.all() or not nonzero.any()
                norms.append(np.linalg.norm(before[rows, column]))
                there.append(nonzero.any())
        mask = np.array(there)
        assert mask.sum() == round(0.3 * mask.size)
        assert np.array(norms)[mask].min() >= np.array(norms)[~mask].max()


def test_a_multi_frame_net_begins_with_one_head_for_each_frame() -> None:
    made = net(card(Layer(8)))
    several = shrink.with_heads(made, 3)
    for head in range(3):
        np.testing.assert_array_equal(forward(several, FEATURES, head), forward(made, FEATURES))
