"""Nets from files: what is written comes back, what cannot be is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pipelines.models import nets
from pipelines.models.errors import ModelError
from pipelines.models.nets import Layer
from tests.pipelines.net_files import card, forward, net, write

SHAPE = (Layer(16), Layer(8), Layer(4, relu=False))


@pytest.mark.parametrize(("dtype", "close"), [(np.float16, 1e-3), (np.float32, 0.0)])
def test_a_net_comes_back_as_it_was_written(tmp_path: Path, dtype: Any, close: float) -> None:
    made = net(card(*SHAPE, heads=2, about={"wer": 0.3}))
    read = nets.load(write(tmp_path, made, dtype), senones=50, dimension=39)
    assert read.card == made.card
    assert read.name == "made"
    assert set(read.tensors) == set(made.tensors)
    for name, values in made.tensors.items():
        np.testing.assert_allclose(read.tensors[name], values, rtol=close, atol=close)
    assert made.card.n_parameters == sum(values.size for values in made.tensors.values())


def test_input_statistics_fold_into_the_first_layer(tmp_path: Path) -> None:
    features = np.random.default_rng(3).normal(0, 3, (6, 39)).astype(np.float32)
    for layers in (SHAPE, ()):
        made = net(card(*layers, left=0, right=0))
        x = features.astype(np.float64)
        for weight, bias, relu in made.matrices():
            x = x @ weight.T + bias
            x = np.maximum(x, 0) if relu else x
        weight, bias = made.head(0)
        np.testing.assert_allclose(x @ weight.T + bias, forward(made, features), atol=1e-4)


def test_a_net_is_found_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, net(card(*SHAPE)))
    assert nets.find(str(path)) == path
    with pytest.raises(ModelError, match="There is no net 'nothing'"):
        nets.find("nothing")


def edited(key: str, value: Any) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        file = path.with_suffix(".json")
        file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))

    return spoil


def retyped(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        tensors = dict(load_file(path))
        change(tensors)
        save_file(tensors, path)

    return spoil


def without_bias(tensors: dict[str, Any]) -> None:
    del tensors["layers.1.bias"]


def with_convolution(tensors: dict[str, Any]) -> None:
    tensors["conv.weight"] = np.zeros(3, np.float32)


def with_nan(tensors: dict[str, Any]) -> None:
    tensors["layers.0.weight"][3, 4] = np.nan


def with_integers(tensors: dict[str, Any]) -> None:
    tensors["layers.0.bias"] = np.zeros(16, np.int64)


def too_wide(tensors: dict[str, Any]) -> None:
    tensors["layers.0.weight"] = np.zeros((16, 99), np.float32)


SPOILED: list[tuple[Callable[[Path], Any], str]] = [
    (lambda path: path.with_suffix(".json").unlink(), "cannot be read .* a net needs one beside"),
    (lambda path: path.with_suffix(".json").write_bytes(b"\xff{"), "does not describe a net"),
    (lambda path: path.with_suffix(".json").write_text("[1, 2]"), "does not describe a net"),
    (edited("format", "onnx"), "is in the format 'onnx'"),
    (edited("scale", [1.0]), "39 means and 1 scales"),
    (edited("mean", []), "0 means"),
    (edited("left", -1), "does not describe a net"),
    (edited("layers", [{"outputs": 0}]), "does not describe a net"),
    (edited("layers", [{"outputs": 5, "kind": "lstm"}]), "does not describe a net"),
    (edited("heads", 10**9), "does not describe a net"),
    (lambda path: path.unlink(), "does not exist"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "not a whole safetensors file"),
    (lambda path: path.write_bytes(b"\x80\x02]q"), "not a whole safetensors file"),
    (retyped(without_bias), r"lacks the tensor layers\.1\.bias"),
    (retyped(with_convolution), r"holds the tensor conv\.weight, which its card does not know"),
    (retyped(with_nan), r"layers\.0\.weight holds a value that is not a finite number"),
    (retyped(with_integers), r"layers\.0\.bias holds I64 numbers"),
    (retyped(too_wide), r"layers\.0\.weight has the shape \[16, 99\], its card asks for"),
]


@pytest.mark.parametrize(("spoil", "sentence"), SPOILED)
def test_what_is_wrong_with_a_net_is_said_in_a_sentence(
    tmp_path: Path, spoil: Callable[[Path], Any], sentence: str
) -> None:
    path = write(tmp_path, net(card(*SHAPE)))
    spoil(path)
    with pytest.raises(ModelError, match=sentence) as caught:
        nets.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert "made." in message


def test_a_net_must_fit_the_model_and_the_front_end(tmp_path: Path) -> None:
    path = write(tmp_path, net(card(*SHAPE)))
    with pytest.raises(ModelError, match="scores 50 senones and the acoustic model has 5126"):
        nets.load(path, senones=5126)
    with pytest.raises(ModelError, match="takes 39 features per frame and the front end makes 40"):
        nets.load(path, dimension=40)
