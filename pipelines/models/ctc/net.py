"""A CTC net and what computes it: onnxruntime, over whole utterances in windows, or chunk by chunk with states.

Attention takes memory by the square of an utterance's length: a longer one is computed in windows, which overlap.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pipelines.frontend.fbank import SILENCE
from pipelines.models.ctc.layouts import Input, Units
from pipelines.models.errors import ModelError
from pipelines.models.onnx import runtime
from profiler.arrays import F32, Array
from profiler.plain import one_line

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import NodeArg

WINDOW: Final = 2_000  # frames: as long as most of what CTC nets are trained on
AROUND: Final = 104
"""Frames on either side that a window hears and gives no scores of: a multiple of the frames for an output."""
LEAST: Final = 16  # frames that a net gets at least: the convolutions at its input take seven or nine
MOST_LACKING: Final = 8
"""Outputs that a net may give fewer than its frames say: convolutions without padding take some at both ends."""


@dataclass(frozen=True, eq=False)
class Ctc:
    """A net as its file has it, and how it is to be computed.

    `log_softmax`: whether its outputs still need one; `dtype` and `threads` as the settings `ctc.dtype`, `threads`.
    """

    path: Path
    content: bytes
    units: Units
    input: Input
    log_softmax: bool = False
    dtype: str = "stored"
    threads: int = 1

    @property
    def whole(self) -> bool:
        return not self.input.chunk


class Window(NamedTuple):
    """Frames begin … end − 1 go in; scores are kept from frame `first` on, up to `last`."""

    begin: int
    end: int
    first: int
    last: int


def windows(net: Input, frames: int) -> Iterator[Window]:
    """The calls that an utterance takes."""
    if net.chunk:
        for at in range(0, frames, net.shift):
            yield Window(at, at + net.chunk, at, at + net.shift)
        return
    number = max(-(-frames // WINDOW), 1)
    step = -(-frames // (number * net.each)) * net.each
    around = AROUND // net.each * net.each if number > 1 else 0
    for at in range(0, frames, step):
        last = min(frames, at + step)
        yield Window(max(at - around, 0), min(last + around, frames), at, last)


class Computing:
    """The net in onnxruntime: `begin` an utterance, then `scores` of one window after another."""

    def __init__(self, net: Ctc, profile: str = "") -> None:
        """`profile`: the beginning of the name of the file that onnxruntime writes its profile to; empty: none.

        ModelError if onnxruntime is missing or cannot compute the net.
        """
        self.net = net
        content = quantised(net) if net.dtype == "int8" else net.content
        self.session = runtime.session(net.path, content, net.threads, profile)
        inputs, outputs = self.session.get_inputs(), self.session.get_outputs()
        self._input, self._others = inputs[0], inputs[1:]
        self._outputs = [one.name for one in outputs]
        self._states: list[Array] = []
        if not net.whole and len(outputs) <= len(self._others):
            raise ModelError(f"{net.path} has {len(self._others)} states and gives back {len(outputs) - 1}.")
        self.begin()

    def begin(self) -> None:
        self._states = [_zeros(self.net.path, one) for one in self._others] if not self.net.whole else []

    def scores(self, x: Array) -> F32:
        """Natural log-probabilities f32 [outputs, units] of `x`, f32 [frames, bins] or [samples], of a window."""
        feeds: dict[str, Array] = {self._input.name: _arranged(self.net.input, x)}
        if self.net.whole:
            for one in self._others:
                feeds[one.name] = np.full(1, len(x), _dtype(self.net.path, one))
        else:
            feeds |= {one.name: state for one, state in zip(self._others, self._states, strict=True)}
        found = runtime.run(self.session, self.net.path, self._outputs[: 1 + len(self._states)], feeds)
        self._states = found[1:]
        made, units = np.asarray(found[0]), len(self.net.units.symbols)
        if made.ndim != 3 or made.shape[0] != 1 or not made.shape[1] or made.shape[2] != units:
            raise ModelError(
                f"{self.net.path} gives the shape {list(made.shape)}, and its symbols ask for [1, outputs, {units}]."
            )
        rows = made[0].astype(np.float32)
        if self.net.log_softmax:
            rows -= rows.max(axis=1, keepdims=True)
            rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
        return np.ascontiguousarray(rows, np.float32)


def silence(net: Input, frames: int) -> F32:
    """What goes in where nothing is said, f32 [frames, bins] or [samples]."""
    if net.fbank is None:
        return np.zeros(frames * net.hop, np.float32)
    return np.full((frames, net.fbank.bins), 0.0 if net.fbank.normalise else SILENCE, np.float32)


def part(net: Input, x: F32, begin: int, end: int) -> F32:
    """What goes in of the frames begin … end − 1 of `x`: filled up with silence where a net needs more of them."""
    hop, filled = 1 if net.fbank is not None else net.hop, silence(net, net.chunk or LEAST)
    inside = x[begin * hop : end * hop]
    if len(inside) >= len(filled):
        return inside
    filled[: len(inside)] = inside
    return filled


def _arranged(net: Input, x: Array) -> Array:
    if net.arrangement == "wave":
        return x[None]
    if net.arrangement == "samples":
        return (x.clip(-1, 1) * np.float32(32_767)).astype(np.int32)[None, :, None]
    return np.ascontiguousarray(x.T if net.arrangement == "bins" else x)[None]


_DTYPES: Final[Mapping[str, str]] = {"tensor(float)": "float32"} | {
    f"tensor({name})": name for name in ("float16", "int64", "int32")
}
LARGEST_STATE: Final = 1 << 24  # numbers


def _dtype(path: Path, end: NodeArg) -> str:
    if end.type not in _DTYPES:
        raise ModelError(f"{path}: its input {one_line(end.name)!r} is a {one_line(end.type)}, which no CTC net needs.")
    return _DTYPES[end.type]


def _zeros(path: Path, end: NodeArg) -> Array:
    """A state before the first chunk; free axes are that of the batch."""
    shape = [size if isinstance(size, int) else 1 for size in end.shape]
    if min(shape, default=0) < 0 or np.prod([float(size) for size in shape]) > LARGEST_STATE:
        raise ModelError(f"{path}: its state {one_line(end.name)!r} has the impossible shape {shape[:8]}.")
    return np.zeros(shape, _dtype(path, end))


def quantised(net: Ctc) -> bytes:
    """The net with its matrix products in 8-bit integers (onnxruntime.quantization.quantize_dynamic).

    As sherpa-onnx has them: with convolutions too, a third of the outputs of hama's net are others.
    """
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        raise ModelError("ctc.dtype=int8 needs the package onnx: pip install 'asrscope[ctc]'.") from None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "int8.onnx"
        logging.disable(logging.WARNING)  # advice on how to call it
        try:
            plain = _in_32_bits(onnx.load_from_string(net.content))
            # Products outside any part of the net are those of its features.
            outside = [node.name for node in plain.graph.node if node.name.count("/") <= 1]
            quantize_dynamic(
                plain, made, weight_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"], nodes_to_exclude=outside
            )
        except Exception as error:  # of onnx and of the quantiser, which share no other base
            raise ModelError(f"{net.path} cannot be put into 8-bit integers: {one_line(str(error), 200)}") from None
        finally:
            logging.disable(logging.NOTSET)
        return made.read_bytes()


def _in_32_bits(model: ModelProto) -> ModelProto:
    """The ModelProto with its 16-bit floats in 32 bits: what the quantiser takes."""
    from onnx import TensorProto, numpy_helper

    graph, half, whole = model.graph, TensorProto.FLOAT16, TensorProto.FLOAT
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    for tensor in (*graph.initializer, *(attribute.t for attribute in attributes)):
        if tensor.data_type == half:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    for attribute in attributes:
        if attribute.name == "to" and attribute.i == half:
            attribute.i = whole
    for end in (*graph.input, *graph.output, *graph.value_info):
        if end.type.tensor_type.elem_type == half:
            end.type.tensor_type.elem_type = whole
    return model
