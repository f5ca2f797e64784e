"""Scoring by a net from an ONNX file: against float64, what it says it costs, and what it refuses."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pipelines.config import assign, presets
from pipelines.models.errors import ModelError
from pipelines.scoring.blocks import Meter
from pipelines.scoring.costs.graph import law
from pipelines.scoring.dnn.dense import SPLICE_STAGE
from pipelines.scoring.dnn.onnx import NET_STAGE, OnnxNet, check
from tests.each import each
from tests.pipelines.net_files import SHAPES, card, forward, in_blocks, net, padded, utterance
from tests.pipelines.onnx_files import (
    IR_VERSION,
    ends,
    integer,
    model,
    needs_onnx,
    needs_onnxruntime,
    node,
    tensor,
    write,
)

pytestmark = [needs_onnx, needs_onnxruntime]

NAT = 1e-3


@each("layers", SHAPES)
@each("block", [1, 5, 23])
def test_scores_are_those_of_the_formula_for_any_block(tmp_path, layers, block):
    made, features = net(card(*layers)), utterance()
    computed = OnnxNet(write(tmp_path, made), 1, 32)
    scores = in_blocks(computed, features, block)
    assert np.abs(scores - forward(made, features)).max() < NAT


def test_chosen_frames_are_scored_into_any_rows(tmp_path):
    made, features = net(card(*SHAPES[0])), utterance()
    computed = OnnxNet(write(tmp_path, made), 1, 32)
    spliced = computed.splice(padded(features, computed), Meter())
    scores = np.full((32, 50), 7.0, np.float32)
    computed.score(spliced[::2], scores[3:15], Meter())
    assert np.abs(scores[3:15] - forward(made, features)[::2]).max() < NAT
    assert (scores[:3] == 7.0).all()
    assert (scores[15:] == 7.0).all()


def probabilities_of(made: Any) -> bytes:
    """The graph of a net with a softmax behind it."""
    weight, bias = (made.tensors[f"heads.0.{part}"] for part in ("weight", "bias"))
    return model(
        [node("Gemm", ["x", "w", "b"], ["z"], transB=1), node("Softmax", ["z"], ["y"], axis=1)],
        [tensor("w", weight.astype("<f4")), tensor("b", bias.astype("<f4"))],
    )


def test_probabilities_are_seen_and_their_logarithms_taken(tmp_path):
    made, features = net(card()), utterance()
    computed = OnnxNet(write(tmp_path, made, probabilities_of(made)), 1, 32)
    assert computed.notes == ("made.onnx gives probabilities; their logarithms are taken",)
    scores = in_blocks(computed, features, 5)
    wanted = forward(made, features)
    wanted = wanted - np.logaddexp.reduce(wanted, axis=1, keepdims=True)
    assert np.abs(scores - wanted).max() < NAT
    assert np.isfinite(scores).all()
    cost = computed.costs(5)[NET_STAGE]
    assert cost.operations["exp"].per_work[0] == 2 * made.card.senones
    assert OnnxNet(write(tmp_path, made), 1, 32).notes == ()


def test_what_probability_nothing_has_is_a_finite_score(tmp_path):
    made = net(card())
    made.tensors["heads.0.bias"][3] = -1e4
    computed = OnnxNet(write(tmp_path, made, probabilities_of(made)), 1, 32)
    scores = in_blocks(computed, utterance(), 5)
    assert np.isfinite(scores).all()
    assert (scores[:, 3] < -80).all()


def test_stages_have_laws(tmp_path):
    made = net(card(*SHAPES[0]))
    computed = OnnxNet(write(tmp_path, made), 1, 32)
    laws = computed.costs(16)
    assert set(laws) == set(computed.stages) == {SPLICE_STAGE, NET_STAGE}
    for one in laws.values():
        assert not one.is_empty
        for work in (1.0, 16.0, 800.0):
            least, most = (b.total(1, 1, (work, 0, 0)) for b in (one.bytes_min, one.bytes_max))
            assert 0 < least <= most


def test_operations_are_those_that_torch_counts(tmp_path):
    made, frames = net(card(*SHAPES[0])), 9
    with FlopCounterMode(display=False) as counter:
        x = torch.zeros(frames, made.card.inputs)
        for name in ("layers.0", "layers.1", "layers.2", "heads.0"):
            x = x @ torch.from_numpy(made.tensors[f"{name}.weight"]).T
    found = law(OnnxNet(write(tmp_path, made), 2, 32)._model, 2)
    assert found.operations["gemm"].total(1, 1, (frames, 0, 0)) == counter.get_total_flops()
    # An addition for each bias, a comparison for each ReLU.
    values = frames * (24 + 16 + 8 + 50 + 24 + 16)
    assert found.operations["fma"].total(1, 1, (frames, 0, 0)) == values
    weights = sum(values.nbytes for values in made.tensors.values())
    assert (found.bytes_min.fixed, found.working_set_bytes, found.threads) == (weights, weights, 2)


def graph(*nodes: bytes, constants: tuple[bytes, ...] = ()) -> bytes:
    return model(nodes, constants)


WEIGHT = tensor("w", np.full((234, 50), 0.01, np.float32))
TURNED = tensor("t", np.full((50, 234), 0.01, np.float32))


def test_what_stands_between_products_is_counted_and_weights_may_be_turned(tmp_path):
    made = net(card())
    nodes = [
        node("Sub", ["x", "m"], ["a"]),
        node("Transpose", ["t"], ["w"]),
        node("MatMul", ["a", "w"], ["b"]),
        node("Add", ["b", "c"], ["d"]),
        node("LogSoftmax", ["d"], ["y"]),
    ]
    mean = tensor("m", np.ones(234, np.float32))
    bias = tensor("c", np.ones((1, 50), np.float32))
    path = write(tmp_path, made, graph(*nodes, constants=(TURNED, mean, bias)))
    computed = OnnxNet(path, 1, 32)
    operations = computed.costs(1)[NET_STAGE].operations
    assert operations["gemm"].per_work[0] == 2 * 234 * 50
    assert operations["exp"].per_work[0] == 50
    assert operations["fma"].per_work[0] == 234 + 50 + 4 * 50
    assert computed.costs(1)[NET_STAGE].bytes_min.fixed == 4 * (234 * 50 + 234 + 50)
    scores = np.empty((2, 50), np.float32)
    computed.score(np.zeros((2, 234), np.float32), scores, Meter())
    np.testing.assert_allclose(scores, np.log(1 / 50), rtol=1e-5)


UNMODELLED: list[tuple[bytes, str]] = [
    (graph(node("MatMul", ["x", "w"], ["a"]), node("Erf", ["a"], ["y"]), constants=(WEIGHT,)), "Erf 'y'"),
    (graph(node("Neg", ["w"], ["v"]), node("MatMul", ["x", "v"], ["y"]), constants=(WEIGHT,)), "Neg 'v'"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "name"), UNMODELLED)
def test_an_operator_without_a_law_is_named(tmp_path, content, name):
    found = OnnxNet(write(tmp_path, net(card()), content), 1, 32).costs(16)[NET_STAGE]
    assert found.is_empty
    assert f"and not {name}." in found.unmodelled


def test_the_session_has_the_requested_threads(tmp_path):
    path = write(tmp_path, net(card(*SHAPES[0])))
    for threads in (1, 2):
        options = OnnxNet(path, threads, 32)._session.get_session_options()
        assert (options.intra_op_num_threads, options.inter_op_num_threads) == (threads, 1)


HUGE = tensor("h", np.full((234, 50), 3e38, np.float32))
REFUSED: list[tuple[bytes, str]] = [
    (
        integer(1, 99) + graph(node("Identity", ["x"], ["y"])).removeprefix(integer(1, IR_VERSION)),
        r"cannot be computed: its IR version is 99, and this onnxruntime reads \d+ at most; update onnxruntime, "
        r"or save the file with ir_version=\d+\.$",
    ),
    (graph(node("Teleport", ["x"], ["y"])), "cannot be computed: onnxruntime says: .*Teleport"),
    (graph(node("MatMul", ["x", "v"], ["y"])), "cannot be computed: onnxruntime says: .*v"),
    (
        graph(node("MatMul", ["x", "w"], ["y"]), constants=(tensor("w", np.ones((7, 50), np.float32)),)),
        "cannot be computed: onnxruntime says: ",
    ),
    (
        model(
            [node("MatMul", ["x", "w"], ["y"])],
            [tensor("w", np.ones((234, 9), np.float32))],
            [ends("x", ["n", 234])],
            [ends("y", None)],
        ),
        r"gives the shape \[1, 9\] for 1 frame; its card asks for \[1, 50\]",
    ),
    (
        graph(
            node("Exp", ["x"], ["a"]),
            node("MatMul", ["a", "h"], ["y"]),
            constants=(HUGE,),
        ),
        "gives scores that are not finite numbers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), REFUSED)
def test_what_cannot_be_computed_is_said_in_a_sentence(tmp_path, content, sentence, capfd):
    path = write(tmp_path, net(card()), content)
    with pytest.raises(ModelError, match=sentence) as caught:
        OnnxNet(path, 1, 32)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert message.endswith(".")
    assert capfd.readouterr().err == ""


def test_without_onnxruntime_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, net(card()))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r"made\.onnx needs the package onnxruntime, .* `pip install"):
        OnnxNet(path, 1, 32)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dnn.senones": "active"}, r"dnn\.senones=active .* needs dnn\.senones=all"),
        ({"dnn.dtype": "int8"}, r"dnn\.dtype=int8 .* needs dnn\.dtype=fp32"),
        ({"dnn.product": "csr"}, r"dnn\.product=csr .* needs dnn\.product="),
        ({"dnn.shrink": "sparse"}, r"dnn\.shrink=sparse .* needs dnn\.shrink=none"),
        ({"frames.rule": "multi-frame", "frames.skip": 2}, r"needs frames\.rule=copy"),
        ({"device": "cuda"}, "needs device=cpu"),
    ],
)
def test_settings_that_need_the_weights_are_refused(settings, sentence):
    config = assign(presets.load("dnn").config, {"dnn.net": "mine.onnx"})
    check(config)
    check(assign(config, {"frames.rule": "multi-frame"}))  # without skipping there are no heads
    with pytest.raises(ModelError, match=rf"mine\.onnx .* {sentence}"):
        check(assign(config, settings))
