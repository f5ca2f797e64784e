"""Writes folders with CTC nets in people's layouts: small nets with the same inputs, outputs and metadata."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

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
CHUNK, SHIFT = 45, 32


def tokens(symbols: Sequence[str] = SYMBOLS) -> str:
    return "".join(f"{symbol} {number}\n" for number, symbol in enumerate(symbols))


def write(folder: Path, layout: str, symbols: Sequence[str] = SYMBOLS, **metadata: str | None) -> Path:
    """The folder of a net of one of LAYOUTS; `metadata`: other entries than its own, None: one left out."""
    import onnx
    from onnx import numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    net, entries = LAYOUTS[layout]
    text, weights = net(len(symbols))
    graph = onnx.parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in weights.items())
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    for key, value in {**entries, **metadata}.items():
        if value is not None:
            made.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(made)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    (folder / "tokens.txt").write_text(tokens(symbols), encoding="utf-8")
    return folder


def _weights(*shape: int, seed: int = 3) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


Net = tuple[str, Mapping[str, Array]]  # The text of a graph, and its weights


def _all_at_once(units: int, x: str, length: str, *, bins_first: bool, softmax: bool) -> Net:
    """A numbered block over the frames, then a convolution that takes one of four of them, and the logarithms."""
    shape, order = (f"N,{BINS},T", "0,1,2") if bins_first else (f"N,T,{BINS}", "0,2,1")
    out = "log_probs" if softmax else "logits"
    logarithms = '["/output/LogSoftmax"] log_probs = LogSoftmax<axis=2>(logits)' if softmax else ""
    text = f"""
    net (float[{shape}] {x}, int64[N] {length}) => (float[N,T4,{units}] {out}, int64[N] log_probs_len)
    <int64 four = {{{EACH}}}>
    {{
        ["/Transpose"] turned = Transpose<perm=[{order}]>({x})
        ["/encoder/0/Conv"] h0 = Conv<pads=[1,1]>(turned, w0)
        ["/encoder/layers.0/act/Sigmoid"] h1 = Sigmoid(h0)
        ["/encoder/layers.0/conv/Conv"] h2 = Conv<pads=[1,1]>(h1, w1)
        ["/encoder/layers.1/act/Relu"] h3 = Relu(h2)
        ["/output/Conv"] h4 = Conv<strides=[{EACH}], pads=[0,3]>(h3, w2)
        ["/output/Transpose"] logits = Transpose<perm=[0,2,1]>(h4)
        {logarithms}
        ["/Div"] log_probs_len = Div({length}, four)
    }}"""
    return text, {"w0": _weights(8, BINS, 3), "w1": _weights(8, 8, 3, seed=4), "w2": _weights(units, 8, EACH, seed=5)}


def _streaming(units: int) -> Net:
    """Scores of four frames each, moved by the mean of all the chunks before, which the states hold."""
    rows, wide = SHIFT // EACH, EACH * BINS
    text = f"""
    net (float[N,{CHUNK},{BINS}] x, float[N,1,{units}] cached_0, int64[N] processed_lens)
    => (float[N,{rows},{units}] log_probs, float[N,1,{units}] new_cached_0, int64[N] new_processed_lens)
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] shift = {{{SHIFT}}}, int64[3] rows = {{1,{rows},{wide}}}>
    {{
        ["/Slice"] own = Slice(x, zero, shift, one)
        ["/Reshape"] quads = Reshape(own, rows)
        ["/encoders.0/linear/MatMul"] scores = MatMul(quads, w)
        ["/encoders.0/add/Add"] moved = Add(scores, cached_0)
        ["/output/LogSoftmax"] log_probs = LogSoftmax<axis=2>(moved)
        ["/ReduceMean"] mean = ReduceMean<axes=[1], keepdims=1>(scores)
        ["/Add"] new_cached_0 = Add(mean, cached_0)
        ["/Add_1"] new_processed_lens = Add(processed_lens, shift)
    }}"""
    return text, {"w": _weights(wide, units) * 5}


def _t_one(units: int) -> Net:
    text = f"""
    net (int32[N,2400,1] signal, float16[N,6] state) => (float[N,10,{units}] logprobs, float16[N,6] state_next)
    <int64[3] rows = {{1,10,240}}>
    {{
        ["/Cast"] floats = Cast<to=1>(signal)
        ["/Reshape"] frames = Reshape(floats, rows)
        ["/MatMul"] scores = MatMul(frames, w)
        ["/LogSoftmax"] logprobs = LogSoftmax<axis=2>(scores)
        ["/Add"] state_next = Add(state, one)
    }}"""
    return text, {"w": _weights(240, units) / 32768, "one": np.ones(1, np.float16)}


LAYOUTS: Mapping[str, tuple[Callable[[int], Net], Mapping[str, str]]] = {
    "zipformer2_ctc": (
        partial(_all_at_once, x="x", length="x_lens", bins_first=False, softmax=True),
        {"model_type": "zipformer2_ctc", "version": "1", "model_author": "k2-fsa"},
    ),
    "nemo_ctc": (
        partial(_all_at_once, x="audio_signal", length="length", bins_first=True, softmax=True),
        {"model_type": "EncDecCTCModelBPE", "normalize_type": "per_feature", "subsampling_factor": "4"},
    ),
    "wenet_ctc": (
        partial(_all_at_once, x="x", length="x_lens", bins_first=False, softmax=False),
        {"model_type": "wenet_ctc", "subsampling_factor": "4"},
    ),
    "streaming": (
        _streaming,
        {"model_type": "zipformer2", "comment": "streaming ctc zipformer2", "T": str(CHUNK), "decode_chunk_len": "32"},
    ),
    "t_one": (_t_one, {"model_type": "t-one", "sample_rate": "8000", "frame_length_ms": "300", "state_dim": "6"}),
}


UNITS = Units(("<blank>", "a", "b", "c", "<wb>"), 0, 4)
WORDS = {"ab": ["a b"], "a": ["a"], "aa": ["a a"], "cab": ["c a b", "c b"], "bc": ["b c"], "bee": ["b"], "be": ["b"]}
"""Homophones, words that begin others, one that doubles a unit, one with an alternative."""


def recipe(folder: Path, units: Units = UNITS, words: dict[str, list[str]] = WORDS, **changes) -> Recipe:
    """Files of a random bigram model over `words` in `folder`, and the recipe that compiles them."""
    drawn = random_model(7, len(words), 2)
    write_arpa(ngram.make(("<s>", "</s>", *words), drawn.ids, drawn.log_prob, drawn.log_backoff), folder / "toy.arpa")
    lines = [f"{word}{f'({n})' * (n > 1)} {way}\n" for word, ways in words.items() for n, way in enumerate(ways, 1)]
    (folder / "lexicon.txt").write_text("".join(lines))
    values = {"model": "", "vocabulary": 100, "order": 2, "bigrams": 1000, "alternative_cost": 0.5}
    values |= {"dictionary": str(folder / "lexicon.txt"), "language_model": str(folder / "toy.arpa")}
    values |= {"units": units.symbols, "blank": units.blank, "boundary": units.boundary}
    values |= {"parts": "HLG", "topology": "standard"}
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
