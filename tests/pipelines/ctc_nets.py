"""Writes folders with CTC nets in people's layouts: small nets with the same inputs, outputs and metadata."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kaldifst
import numpy as np
import pytest

from pipelines.models.ctc.layouts import Units
from pipelines.models.language import ngram
from pipelines.search.graph.openfst import Fst, from_arcs, to_kaldifst
from pipelines.search.graph.recipe import Recipe
from profiler.arrays import Array
from tests.pipelines.language_models import random_model, write_arpa

needs_hama = pytest.mark.skipif(find_spec("hama") is None, reason="the package hama is not installed")

SYMBOLS = ("<blk>", "▁a", "b", "c", "▁d")
BINS, EACH = 80, 4
STATE = 6


def tokens(symbols: Sequence[str] = SYMBOLS) -> str:
    return "".join(f"{symbol} {number}\n" for number, symbol in enumerate(symbols))


def write(folder: Path, layout: str, symbols: Sequence[str] = SYMBOLS, **metadata: str | None) -> Path:
    """The folder of a net of one of LAYOUTS; `metadata`: other entries than its own, None: one left out."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, entries = LAYOUTS[layout]
    content = model(*graph(len(symbols)), {**entries, **metadata})
    (folder / "model.onnx").write_bytes(content)
    (folder / "tokens.txt").write_text(tokens(symbols), encoding="utf-8")
    return folder


def model(
    nodes: list[Any], constants: Mapping[str, Array], inputs: list[Any], outputs: list[Any], entries: Mapping[str, Any]
) -> bytes:
    import onnx
    from onnx import helper, numpy_helper

    weights = [numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in entries.items():
        if value is not None:
            made.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(made)
    content: bytes = made.SerializeToString()
    return content


def _value(name: str, kind: str, shape: Sequence[int | str]) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)


def _weights(*shape: int, seed: int = 3) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _whole(units: int, *, bins_first: bool, softmax: bool) -> tuple[Any, ...]:
    """A numbered block over the frames, then a convolution that takes one of four of them, and the logarithms."""
    from onnx import helper

    x, names = ("audio_signal", "length") if bins_first else ("x", "x_lens")
    nodes = [] if bins_first else [helper.make_node("Transpose", [x], ["turned"], perm=[0, 2, 1], name="/Transpose")]
    nodes += [
        helper.make_node("Conv", [x if bins_first else "turned", "w0"], ["h0"], pads=[1, 1], name="/encoder/0/Conv"),
        helper.make_node("Sigmoid", ["h0"], ["h1"], name="/encoder/layers.0/act/Sigmoid"),
        helper.make_node("Conv", ["h1", "w1"], ["h2"], pads=[1, 1], name="/encoder/layers.0/conv/Conv"),
        helper.make_node("Relu", ["h2"], ["h3"], name="/encoder/layers.1/act/Relu"),
        helper.make_node("Conv", ["h3", "w2"], ["h4"], strides=[EACH], pads=[0, 3], name="/output/Conv"),
        helper.make_node("Transpose", ["h4"], ["logits"], perm=[0, 2, 1], name="/output/Transpose"),
    ]
    if softmax:
        nodes.append(helper.make_node("LogSoftmax", ["logits"], ["log_probs"], axis=2, name="/output/LogSoftmax"))
    nodes.append(helper.make_node("Div", [names, "four"], ["log_probs_len"], name="/Div"))
    constants = {
        "w0": _weights(8, BINS, 3),
        "w1": _weights(8, 8, 3, seed=4),
        "w2": _weights(units, 8, EACH, seed=5),
        "four": np.array(EACH, np.int64),
    }
    shape = ["N", BINS, "T"] if bins_first else ["N", "T", BINS]
    out = "log_probs" if softmax else "logits"
    inputs = [_value(x, "FLOAT", shape), _value(names, "INT64", ["N"])]
    return nodes, constants, inputs, [_value(out, "FLOAT", ["N", "T4", units]), _value("log_probs_len", "INT64", ["N"])]


def _zipformer(units: int) -> tuple[Any, ...]:
    return _whole(units, bins_first=False, softmax=True)


def _nemo(units: int) -> tuple[Any, ...]:
    return _whole(units, bins_first=True, softmax=True)


def _wenet(units: int) -> tuple[Any, ...]:
    return _whole(units, bins_first=False, softmax=False)


CHUNK, SHIFT = 45, 32


def _streaming(units: int) -> tuple[Any, ...]:
    """Scores of four frames each, moved by the mean of all the chunks before, which the states hold."""
    from onnx import helper

    nodes = [
        helper.make_node("Slice", ["x", "zero", "shift", "one"], ["own"], name="/Slice"),
        helper.make_node("Reshape", ["own", "rows"], ["quads"], name="/Reshape"),
        helper.make_node("MatMul", ["quads", "w"], ["scores"], name="/encoders.0/linear/MatMul"),
        helper.make_node("Add", ["scores", "cached_0"], ["moved"], name="/encoders.0/add/Add"),
        helper.make_node("LogSoftmax", ["moved"], ["log_probs"], axis=2, name="/output/LogSoftmax"),
        helper.make_node("ReduceMean", ["scores"], ["mean"], axes=[1], keepdims=1, name="/ReduceMean"),
        helper.make_node("Add", ["mean", "cached_0"], ["new_cached_0"], name="/Add"),
        helper.make_node("Add", ["processed_lens", "shift"], ["new_processed_lens"], name="/Add_1"),
    ]
    constants = {
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "shift": np.array([SHIFT], np.int64),
        "rows": np.array([1, SHIFT // EACH, EACH * BINS], np.int64),
        "w": _weights(EACH * BINS, units) * 5,
    }
    inputs = [
        _value("x", "FLOAT", ["N", CHUNK, BINS]),
        _value("cached_0", "FLOAT", ["N", 1, units]),
        _value("processed_lens", "INT64", ["N"]),
    ]
    outputs = [
        _value("log_probs", "FLOAT", ["N", SHIFT // EACH, units]),
        _value("new_cached_0", "FLOAT", ["N", 1, units]),
        _value("new_processed_lens", "INT64", ["N"]),
    ]
    return nodes, constants, inputs, outputs


def _t_one(units: int) -> tuple[Any, ...]:
    from onnx import helper

    nodes = [
        helper.make_node("Cast", ["signal"], ["floats"], to=1, name="/Cast"),
        helper.make_node("Reshape", ["floats", "rows"], ["frames"], name="/Reshape"),
        helper.make_node("MatMul", ["frames", "w"], ["scores"], name="/MatMul"),
        helper.make_node("LogSoftmax", ["scores"], ["logprobs"], axis=2, name="/LogSoftmax"),
        helper.make_node("Add", ["state", "one"], ["state_next"], name="/Add"),
    ]
    constants = {
        "rows": np.array([1, 10, 240], np.int64),
        "w": _weights(240, units) / 32768,
        "one": np.ones(1, np.float16),
    }
    inputs = [_value("signal", "INT32", ["N", 2400, 1]), _value("state", "FLOAT16", ["N", STATE])]
    return (
        nodes,
        constants,
        inputs,
        [_value("logprobs", "FLOAT", ["N", 10, units]), _value("state_next", "FLOAT16", ["N", STATE])],
    )


LAYOUTS: Mapping[str, tuple[Callable[[int], tuple[Any, ...]], Mapping[str, str]]] = {
    "zipformer2_ctc": (_zipformer, {"model_type": "zipformer2_ctc", "version": "1", "model_author": "k2-fsa"}),
    "nemo_ctc": (
        _nemo,
        {
            "model_type": "EncDecCTCModelBPE",
            "vocab_size": "5",
            "normalize_type": "per_feature",
            "subsampling_factor": "4",
        },
    ),
    "wenet_ctc": (_wenet, {"model_type": "wenet_ctc", "vocab_size": "5", "subsampling_factor": "4"}),
    "streaming": (
        _streaming,
        {"model_type": "zipformer2", "comment": "streaming ctc zipformer2", "T": str(CHUNK), "decode_chunk_len": "32"},
    ),
    "t_one": (_t_one, {"model_type": "t-one", "sample_rate": "8000", "frame_length_ms": "300", "state_dim": "6"}),
}


# -- a small CTC net's units -----------------------------------------------------------------------


UNITS = Units(("<blank>", "a", "b", "c", "<wb>"), 0, 4)
WORDS = {"ab": ["a b"], "a": ["a"], "aa": ["a a"], "cab": ["c a b", "c b"], "bc": ["b c"], "bee": ["b"], "be": ["b"]}
"""Homophones, words that begin others, one that doubles a unit, one with an alternative."""


def recipe(folder: Path, units: Units = UNITS, words: dict[str, list[str]] = WORDS, **changes) -> Recipe:
    """Files of a random bigram model over `words` in `folder`, and the recipe that compiles them."""
    drawn = random_model(7, len(words), 2)
    write_arpa(ngram.make(("<s>", "</s>", *words), drawn.ids, drawn.log_prob, drawn.log_backoff), folder / "toy.arpa")
    lines = [f"{word}{f'({n})' * (n > 1)} {way}\n" for word, ways in words.items() for n, way in enumerate(ways, 1)]
    (folder / "lexicon.txt").write_text("".join(lines))
    values = {
        "model": "",
        "dictionary": str(folder / "lexicon.txt"),
        "language_model": str(folder / "toy.arpa"),
        "vocabulary": 100,
        "order": 2,
        "bigrams": 1000,
        "units": units.symbols,
        "blank": units.blank,
        "boundary": units.boundary,
        "parts": "HLG",
        "topology": "standard",
        "alternative_cost": 0.5,
    }
    return Recipe(**(values | changes))


def h(units: Units, topology: str) -> Fst:
    """H as the literature defines it: state 0 of the blank, and one for each unit, but in the minimal topology."""
    blank, labels = units.blank + 1, [n + 1 for n in range(len(units.symbols)) if n != units.blank]
    arcs = [(0, blank, 0, 0)]
    for state, label in enumerate(labels, 1):
        if topology == "minimal":
            arcs.append((0, label, label, 0))
            continue
        arcs += [(0, label, label, state), (state, label, 0, state)]
        if topology == "compact":
            arcs.append((state, 0, 0, 0))
        else:
            arcs.append((state, blank, 0, 0))
            arcs += [(state, other, other, at) for at, other in enumerate(labels, 1) if other != label]
    source, ilabel, olabel, target = (np.array(column) for column in zip(*arcs, strict=True))
    n = 1 if topology == "minimal" else len(labels) + 1
    return from_arcs(n, 0, np.zeros(n, np.float32), source, ilabel, olabel, 0.0 * source, target)


def composed(units: Units, topology: str, lg: Fst):
    """H composed with `lg` by OpenFst."""
    left, right = to_kaldifst(h(units, topology)), to_kaldifst(lg)
    kaldifst.arcsort(left, "olabel")
    kaldifst.arcsort(right, "ilabel")
    return kaldifst.StdConstFst(kaldifst.StdVectorFst(kaldifst.compose(left, right)))


def log_probabilities(seed: int, frames: int, units: Units = UNITS, blank: float = 3.0) -> np.ndarray:
    """What a net may put out, f32 [frames, units]: `blank` times as probable a blank, in runs of a few frames."""
    rng = np.random.default_rng(seed)
    held = np.repeat(rng.normal(scale=3.0, size=(frames, len(units.symbols))), 2, axis=0)[:frames]
    held += rng.normal(scale=0.3, size=held.shape)
    held[:, units.blank] += blank
    return (held - np.log(np.exp(held).sum(1, keepdims=True))).astype(np.float32)
