"""Nets from files: what is written comes back, what cannot be is refused in one sentence."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pipelines.models import nets, shrink
from pipelines.models.nets import BLOCK, Layer, Net
from profiler.arrays import Array
from profiler.process.children import ROOT
from tests.each import each
from tests.pipelines.net_files import card, forward, net, write
from tests.pipelines.refusing import refusal

SHAPE = (Layer(16), Layer(8), Layer(4, relu=False))
FEATURES = np.random.default_rng(0).normal(0, 3, (9, 39)).astype(np.float32)


@each("dtype, close", [(np.float16, 1e-3), (np.float32, 0.0)])
def test_a_net_comes_back_as_it_was_written(tmp_path, dtype, close):
    made = net(card(*SHAPE, heads=2, about={"wer": 0.3}))
    read = nets.load(write(tmp_path, made, dtype), senones=50, dimension=39)
    assert (read.card, read.name, set(read.tensors)) == (made.card, "made", set(made.tensors))
    for name, values in made.tensors.items():
        np.testing.assert_allclose(read.tensors[name], values, rtol=close, atol=close)
    assert made.card.n_parameters == sum(values.size for values in made.tensors.values())


CUT = np.add.outer(np.arange(16), np.arange(234)) % 3 > 0


def thinned(path: Path) -> None:
    """The net `made` at `path` with a third of its first layer's weights, stored as mask and rest."""
    tensors = dict(load_file(path))
    tensors["layers.0.weight"][CUT] = 0
    save_file(nets.stored(tensors), path)


def test_weights_that_are_mostly_zero_take_less_room_and_come_back(tmp_path):
    made = net(card(*SHAPE))
    path = write(tmp_path, made)
    whole = path.stat().st_size
    thinned(path)
    found = load_file(path)
    assert {name for name in found if "mask" in name} == {"layers.0.weight.mask"}
    assert found["layers.0.weight.mask"].shape == (16, 30)  # 234 inputs
    assert found["layers.0.weight.kept"].dtype == np.float16
    assert whole - path.stat().st_size > 16 * 234 * 2 * 0.5
    read = nets.load(path)
    values = made.tensors["layers.0.weight"].astype(np.float16).astype(np.float32)
    values[CUT] = 0
    np.testing.assert_array_equal(read.tensors["layers.0.weight"], values)
    assert set(read.tensors) == set(made.tensors)


def test_whole_blocks_share_a_bit_of_the_mask(tmp_path):
    made = shrink.blocks(net(card(Layer(24), senones=50)), 0.3)
    made.tensors["heads.0.weight"][3, np.flatnonzero(made.tensors["heads.0.weight"][3])[0]] = 0.0
    path = write(tmp_path, made)
    save_file(nets.stored(made.tensors), path)
    found = load_file(path)
    assert found["layers.0.weight.mask"].shape == (2, 30)
    assert found["heads.0.weight.mask"].shape == (4, 3)  # 50 outputs, 24 inputs
    read = nets.load(path)
    for name, values in made.tensors.items():
        np.testing.assert_array_equal(read.tensors[name], values.astype(np.float16))


def test_input_statistics_fold_into_the_first_layer():
    for layers in (SHAPE, ()):
        made = net(card(*layers, left=0, right=0))
        x = FEATURES.astype(np.float64)
        for weight, bias, relu in made.matrices():
            x = x @ weight.T + bias
            x = np.maximum(x, 0) if relu else x
        weight, bias = made.head(0)
        np.testing.assert_allclose(x @ weight.T + bias, forward(made, FEATURES), atol=1e-4)


def nested(path: Path) -> None:
    file, deep = path.with_suffix(".json"), "[" * 100_000 + "]" * 100_000
    file.write_text(file.read_text().replace('"about":{}', f'"about":{{"deep":{deep}}}'))


NO_CARD = "does not describe a net"


@each(
    "spoil, sentence",
    [
        (lambda path: path.with_suffix(".json").unlink(), "cannot be read .* a net needs one beside"),
        (lambda path: path.with_suffix(".json").write_bytes(b"\xff{"), NO_CARD),
        (lambda path: path.with_suffix(".json").write_text("[1, 2]"), NO_CARD),
        (nested, NO_CARD),
        (lambda path: path.unlink(), "there is no such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "not a whole safetensors file"),
    ],
)
def test_files_that_are_no_net_are_refused(tmp_path, spoil, sentence):
    path = write(tmp_path, net(card(*SHAPE)))
    spoil(path)
    assert "made." in refusal(sentence, nets.load, path)


FIRST = "layers.0.weight"
MASK, KEPT = FIRST + nets.MASK, FIRST + nets.KEPT
Spoiled = list[tuple[Callable[[dict[str, Any], dict[str, Array]], object], str]]  # what of card and tensors is changed
DENSE: Spoiled = [
    (lambda card, _: card.update(format="onnx"), "is in the format 'onnx'"),
    (lambda card, _: card.update(scale=[1.0]), "39 means and 1 scales"),
    (lambda card, _: card.update(left=-1), NO_CARD),
    (lambda card, _: card.update(layers=[{"outputs": 0}]), NO_CARD),
    (lambda card, _: card.update(senones=10**12), NO_CARD),
    (lambda card, _: card.update(layers=[{"outputs": 16}] * 65), NO_CARD),
    (lambda card, _: card.update(mean=[1e300] * 39), "a mean or scale beyond"),
    (lambda card, _: card.update(about={"notes": "x" * (1 << 20)}), "of more than 1,048,576 is not read"),
    (lambda card, _: card.update(left=4), r"0\.weight has the shape \[16, 234\], its card asks for \[16, 312\]"),
    (lambda card, _: card.update(layers=[]), r"holds the tensor layers\.0\.bias, which its card does not know"),
    (lambda _, tensors: tensors.pop("layers.1.bias"), r"lacks the tensor layers\.1\.bias"),
    (lambda _, tensors: tensors["heads.0.bias"].put(7, np.inf), r"heads\.0\.bias holds a value that is not a finite"),
    (lambda _, tensors: tensors[FIRST].put(70, np.nan), r"layers\.0\.weight holds a value that is not a finite"),
    (lambda _, tensors: tensors.update({"layers.0.bias": np.zeros(16, "i8")}), r"layers\.0\.bias holds I64 numbers"),
    (
        lambda _, tensors: tensors.update({FIRST: tensors[FIRST][:, :99].copy()}),
        r"weight has the shape \[16, 99\], its",
    ),
]
THIN: Spoiled = [
    (lambda _, tensors: tensors.pop(KEPT), r"lacks the tensor layers\.0\.weight\.kept"),
    (lambda _, tensors: tensors.update({FIRST: np.zeros((16, 234))}), r"holds the tensor layers\.0\.weight, which its"),
    (
        lambda _, tensors: tensors.update({MASK: tensors[MASK][:, :-1].copy()}),
        r"\[16, 29\], its card asks for \[16, 30",
    ),
    (lambda _, tensors: tensors.update({KEPT: tensors[KEPT][:-1].copy()}), r"\[1247\], its mask asks for \[1248\]"),
    (lambda _, tensors: tensors.update({MASK: tensors[MASK].astype("f2")}), r"mask holds F16 numbers; U8 are needed"),
    (lambda _, tensors: tensors[MASK].put(-1, 255), r"weight\.mask has bits set beyond the 234 of a row"),
    (lambda _, tensors: tensors[KEPT].put(7, np.inf), r"layers\.0\.weight holds a value that is not a finite number"),
]


@each("thin, case", [*((False, case) for case in DENSE), *((True, case) for case in THIN)])
def test_what_is_wrong_with_a_net_is_said_in_a_sentence(tmp_path, thin, case):
    change, sentence = case
    path = write(tmp_path, net(card(*SHAPE)))
    if thin:
        thinned(path)
    described, tensors = json.loads(path.with_suffix(".json").read_text()), load_file(path)
    change(described, tensors)
    path.with_suffix(".json").write_text(json.dumps(described))
    save_file(tensors, path)
    assert re.search(r"made\..*\.$", refusal(sentence, nets.load, path))


def test_a_net_is_there_and_fits_the_model_and_the_front_end(tmp_path):
    path = write(tmp_path, net(card(*SHAPE)))
    assert nets.find(str(path)) == path
    refusal("There is no net 'nothing'", nets.find, "nothing")
    refusal("scores 50 senones and the acoustic model has 5126", nets.load, path, senones=5126)
    refusal("takes 39 features per frame and the front end makes 40", nets.load, path, dimension=40)


def test_the_page_about_cards_shows_one_that_is_read_and_names_every_field(tmp_path):
    page = (ROOT / "docs" / "nets.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "mine.json").write_text(example)
    assert nets.read_card(tmp_path / "mine.json").senones == 5126
    fields = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    assert fields == set(nets.Card.__struct_fields__)
    refusal(r"docs/nets\.md says what stands in it", nets.read_card, tmp_path / "other.json")


SHAPE_SHRINK = (Layer(40), Layer(30), Layer(12, relu=False))


def weights(made: Net) -> dict[str, Array]:
    return {name: values for name, values in made.tensors.items() if name.endswith(".weight")}


def size(made: Net) -> int:
    return sum(values.size for values in weights(made).values())


@each("layers, heads", [(SHAPE_SHRINK, 1), (SHAPE_SHRINK, 3), ((), 1)])
def test_low_rank_keeps_the_best_part_of_a_net(layers, heads):
    made = net(card(*layers, left=1, right=1, heads=heads))
    last = heads - 1
    whole = forward(made, FEATURES, last)
    errors = []
    for share in (0.1, 0.3, 0.6, 0.9):
        smaller = shrink.low_rank(made, share)
        assert {name: values.shape for name, values in smaller.tensors.items()} == smaller.card.shapes
        assert size(smaller) == pytest.approx(share * size(made), rel=0.15)
        errors.append(np.abs(forward(smaller, FEATURES, last) - whole).mean())
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 2 * np.abs(whole).mean()
    same = shrink.low_rank(made, 1.0)
    assert same.card == made.card
    np.testing.assert_allclose(forward(same, FEATURES, last), whole, atol=1e-4)


def test_bottleneck_and_output_layer_are_factored_as_one_matrix():
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
    bias = second @ made.tensors["layers.1.bias"].astype(np.float64) + made.tensors["layers.2.bias"]
    np.testing.assert_allclose(smaller.tensors["heads.1.bias"], head @ bias + made.tensors["heads.1.bias"], atol=1e-5)


def test_sparse_cuts_the_smallest_weights_of_each_layer():
    made = net(card(*SHAPE_SHRINK))
    for kept in (0.1, 0.4, 1.0):
        for name, values in weights(shrink.sparse(made, kept)).items():
            before = made.tensors[name]
            assert np.count_nonzero(values) == round(kept * before.size)
            there = values != 0
            np.testing.assert_array_equal(values[there], before[there])
            assert kept == 1.0 or np.abs(before[~there]).max() <= np.abs(before[there]).min()
        assert shrink.sparse(made, kept).tensors["layers.0.bias"] is made.tensors["layers.0.bias"]


def test_blocks_go_whole_and_the_smallest_first():
    made = net(card(*SHAPE_SHRINK, senones=50))  # 50 outputs: three blocks and one of two
    smaller = shrink.blocks(made, 0.3)
    for name, values in weights(smaller).items():
        before = made.tensors[name].astype(np.float64)
        norms, there = [], []
        for start in range(0, len(values), BLOCK):
            block = values[start : start + BLOCK]
            assert ((block != 0).all(0) == (block != 0).any(0)).all()
            norms += np.linalg.norm(before[start : start + BLOCK], axis=0).tolist()
            there += (block != 0).any(0).tolist()
        mask = np.array(there)
        assert mask.sum() == round(0.3 * mask.size)
        assert np.array(norms)[mask].min() >= np.array(norms)[~mask].max()


def test_a_multi_frame_net_begins_with_one_head_for_each_frame():
    made = net(card(Layer(8)))
    several = shrink.with_heads(made, 3)
    for head in range(3):
        np.testing.assert_array_equal(forward(several, FEATURES, head), forward(made, FEATURES))
