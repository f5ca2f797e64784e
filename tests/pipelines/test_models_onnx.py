"""ONNX files from anywhere: what a card and a graph say is read, what must not be is refused in one sentence."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.models import nets
from pipelines.models.nets import Layer
from pipelines.models.onnx import graph as onnx
from tests.each import each
from tests.pipelines import onnx_files, refusing
from tests.pipelines.net_files import card, net
from tests.pipelines.onnx_files import attribute, ends, integer, model, node, of_net, part, tensor, varint, write
from tests.pipelines.refusing import refusal

pytestmark = [onnx_files.needs_onnx]
SHAPE = (Layer(16), Layer(8, relu=False))
MADE = net(card(*SHAPE))
INPUTS = MADE.card.inputs
WEIGHT = np.ones((INPUTS, 50), np.float32)


def one_product(more: bytes = b"", weight: bytes | None = None, **others: Any) -> bytes:
    """A graph of one matrix product, or with another weight, other nodes, inputs or outputs."""
    nodes = others.pop("nodes", [node("MatMul", ["x", "w"], ["y"])])
    return model(nodes, [tensor("w", WEIGHT) if weight is None else weight], more=more, **others)


def test_a_file_is_read_with_its_card_and_its_graph(tmp_path):
    path = write(tmp_path, MADE)
    read = onnx.load(path, senones=50, dimension=39)
    assert (read.card.left, read.card.right, read.card.mean) == (2, 3, MADE.card.mean)
    assert "layers" not in {k for k, v in json.loads(path.with_suffix(".json").read_text()).items() if v}
    assert [one.operator for one in read.nodes] == ["Gemm", "Relu", "Gemm", "Gemm"]
    assert read.nodes[0].attributes == {"transB": 1.0}
    assert read.nodes[0].inputs == ("frames", "layers.0.weight", "layers.0.bias")
    assert (read.input, read.output, read.content) == ("frames", "scores", path.read_bytes())
    assert read.constants == {name: (values.shape, 4 * values.size) for name, values in MADE.tensors.items()}
    assert nets.find(str(path)) == path


def listed(name: str, field: int, kind: int, shape: Sequence[int], *values: bytes) -> bytes:
    head = [integer(1, size) for size in shape] + [integer(2, kind), part(8, name)]
    return b"".join([*head, *(part(field, one) for one in values)])


def test_every_way_to_write_a_tensor_is_read(tmp_path):
    flat = WEIGHT.ravel()
    half, infinite = (listed("h", 5, 10, [2], varint(0x3C00) + varint(last)) for last in (0x7BFF, 0x7C00))
    packed_shape = part(1, varint(2)) + integer(2, 7) + part(8, "i") + part(7, varint(-1) + varint(5))
    content = one_product(
        part(5, half) + part(5, packed_shape) + part(5, listed("d", 10, 11, [], np.float64(3).tobytes())),
        weight=listed("w", 4, 1, WEIGHT.shape, flat[:99].tobytes(), flat[99:].tobytes()),
    )
    read = onnx.load(write(tmp_path, MADE, content))
    assert read.constants == {"w": ((INPUTS, 50), 4 * INPUTS * 50), "h": ((2,), 4), "i": ((2,), 16), "d": ((), 8)}
    path = write(tmp_path, MADE, one_product(part(5, infinite)))
    refusal("h holds a value that is not a finite number", onnx.load, path)


def test_weights_named_among_the_inputs_and_constants_are_weights(tmp_path):
    content = one_product(inputs=[ends("x", ["n", INPUTS]), ends("w", [INPUTS, 50])])
    assert onnx.load(write(tmp_path, MADE, content)).input == "x"
    constant = node("Constant", [], ["k"], value=tensor("", np.array([2.0], np.float32)))
    nodes = [constant, node("MatMul", ["x", "w"], ["z"]), node("Mul", ["z", "k"], ["y"])]
    assert onnx.load(write(tmp_path, MADE, one_product(nodes=nodes))).constants["k"] == ((1,), 4)


NAN = WEIGHT.copy()
NAN[3, 4] = np.nan
EXTERNAL = part(13, part(1, "location") + part(2, "../../etc/passwd"))
LOOP = node("Loop", ["x"], ["y"], part(5, part(1, "body") + part(6, part(2, "inner"))))
TWO_VALUES = node("Constant", [], ["y"], part(5, attribute("value", tensor("", WEIGHT)) + part(5, EXTERNAL)))
"""The second is merged into the first by other readers."""
SLICED = [node("Cast", ["x"], ["k"], to=7), node("Slice", ["w", "z", "k"], ["y"])]
HOSTILE: list[tuple[bytes, str]] = [
    (b"", "is not a whole ONNX file: it holds no graph"),
    (of_net(MADE) + b"\x3a", "is not a whole ONNX file"),
    (b"\x80\x02]q", "is not a whole ONNX file"),
    (one_product(weight=tensor("w", NAN)), "w holds a value that is not a finite number"),
    (one_product(weight=tensor("w", WEIGHT, EXTERNAL)), "w lies in another file"),
    (one_product(weight=tensor("w", WEIGHT, integer(14, 1))), "w lies in another file"),
    (one_product(nodes=[node("Constant", [], ["y"], value=tensor("", WEIGHT, EXTERNAL))]), "y lies in another file"),
    (one_product(nodes=[TWO_VALUES]), "y lies in another file"),
    (one_product(weight=tensor("w", WEIGHT, shape=[10**9] * 2)), f"{10**18} numbers, and the file holds {WEIGHT.size}"),
    (one_product(weight=tensor("w", WEIGHT, shape=[-1, 50])), r"impossible shape \[-1, 50\]"),
    (one_product(weight=integer(1, 2) + part(8, "w")), "w is of the ONNX data type 0"),
    (one_product(weight=tensor("w", WEIGHT, part(4, WEIGHT.tobytes()))), "w has two lists of values"),
    (one_product(part(15, b"")), "holds a sparse tensor"),
    (one_product(nodes=[LOOP]), "the operator Loop 'y' holds a graph of its own"),
    (one_product(nodes=[node("LSTM", ["x", "w", "w"], ["y"])]), "the operator LSTM .* only feed-forward nets"),
    (one_product(nodes=[node("ConstantOfShape", ["x"], ["y"])]), "ConstantOfShape 'y' makes .* only its values tell"),
    (one_product(nodes=[node("NonZero", ["x"], ["y"])]), "NonZero 'y' makes .* only its values tell"),
    (one_product(nodes=[node("RandomNormalLike", ["x"], ["y"])]), "'y' is random; a net to score with is not"),
    (one_product(nodes=SLICED), "the operator Slice 'y' makes a tensor of a size that depends on the speech"),
    (one_product(part(5, tensor("w", WEIGHT))), "has the tensor 'w' twice"),
    (one_product(nodes=[node("MatMul", ["x", "w"], ["y"])] * 10_001), "has more than 10000 operators"),
    (one_product() + part(20, b""), "holds training information"),
    (one_product() + part(25, b""), "holds functions of its own"),
    (
        one_product(inputs=[ends("x", ["n", 77])]),
        rf"'x' has .* asks for \[n, {INPUTS}\] \(frames of context × features",
    ),
    (one_product(inputs=[ends("x", [16, INPUTS])]), rf"shape \[16, {INPUTS}\], a fixed number of frames"),
    (one_product(inputs=[ends("x", ["n", INPUTS], kind=7)]), "is no tensor of 32-bit floats"),
    (one_product(inputs=[ends("x", ["n", INPUTS]), ends("state", ["n", 8])]), r"has 2 inputs \(x, state\)"),
    (one_product(outputs=[ends("y", ["n", 49])]), r"'y' has .* asks for \[n, 50\] \(the senones\)"),
    (one_product(outputs=[ends("y", ["n", 50]), ends("z", ["n", 50])]), r"has 2 outputs \(y, z\)"),
]


@each("content, sentence", HOSTILE)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(tmp_path, content, sentence):
    path = write(tmp_path, MADE, content)
    message = refusal(sentence, onnx.load, path)
    assert str(path) in message
    assert message.endswith(".")


def test_cards_say_what_they_lack(tmp_path):
    for changed, sentence in (
        ({"heads": 2}, "the card says 2 heads; an .onnx net can have one"),
        ({"left": 3}, r"has the shape \[n, 234\]; its card asks for \[n, 273\]"),
        ({"senones": 49}, r"has the shape \[n, 50\]; its card asks for \[n, 49\]"),
    ):
        path = write(tmp_path, MADE)
        file = path.with_suffix(".json")
        file.write_text(json.dumps(json.loads(file.read_text()) | changed))
        refusal(sentence, onnx.load, path)
    path = write(tmp_path, MADE)
    refusal("scores 50 senones and the acoustic model has 5126", onnx.load, path, senones=5126)
    refusal("39 features per frame and the front end makes 40", onnx.load, path, dimension=40)
    path.unlink()
    refusal(r"made\.onnx: there is no such file", onnx.load, path)
    path.with_suffix(".json").unlink()
    refusal("a net needs one beside its weights", onnx.load, path)


def test_bytes_that_are_changed_are_refused_or_read_and_never_crash(tmp_path):
    whole = of_net(net(card(Layer(2), senones=3, left=0, right=0)))
    path = write(tmp_path, net(card(senones=3, left=0, right=0)))
    rng = np.random.default_rng(7)
    refused = 0
    for turn in range(600):
        spoiled = refusing.flipped(whole, rng)
        path.write_bytes(spoiled[: rng.integers(1, len(whole))] if turn % 3 == 0 else spoiled)
        refused += refusing.refused(onnx.load, path) is not None
    assert 200 < refused < 600


def test_sizes_that_follow_from_the_number_of_frames_are_taken(tmp_path):
    """As exporters write `x.view(len(x), -1)`."""
    nodes = [node("MatMul", ["x", "w"], ["z"]), node("Shape", ["z"], ["shape"]), node("Reshape", ["z", "shape"], ["y"])]
    read = onnx.load(write(tmp_path, MADE, one_product(nodes=nodes)))
    assert [one.operator for one in read.nodes] == ["MatMul", "Shape", "Reshape"]


def test_without_the_package_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, MADE)
    monkeypatch.setitem(sys.modules, "onnx", None)
    refusal(r"needs the package onnx, .* `pip install onnx onnxruntime`", onnx.load, path)
