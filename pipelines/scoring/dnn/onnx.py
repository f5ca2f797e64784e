"""A net from an ONNX file, computed by onnxruntime as it is: bring your own model.

The graph is one stage, for nothing inside it can be timed from outside. What it costs follows from its operators
where they are affine layers and what commonly stands between them; otherwise the stage says why it has no law.
onnxruntime is an optional dependency.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.config.dnn import Dnn
from pipelines.models.errors import ModelError
from pipelines.models.onnx import graph as onnx
from pipelines.models.onnx import runtime as onnx_runtime
from pipelines.models.onnx.graph import Node, OnnxModel
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn.dense import NET_STAGE, SPLICE_STAGE, Splicer
from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.spans import Cost, Linear

if TYPE_CHECKING:
    from pipelines.config import Config

NEEDED = {"senones": "all", "dtype": "fp32", "product": Dnn().product, "shrink": "none"}
"""The settings of `dnn` that leave a net as it is; all others need its weights layer by layer."""

SLICE_COLUMNS, SLICE_DEPTH = 128, 256
"""Outputs and inputs that onnxruntime's matrix product takes at a time from weights packed at loading
(MLAS_SGEMM_PACKED_STRIDEN, MLAS_SGEMM_PACKED_STRIDEK)."""

PER_OUTPUT: Mapping[str, Mapping[str, float]] = {
    "Relu": {"fma": 1},
    "Add": {"fma": 1},
    "Sub": {"fma": 1},
    "Mul": {"fma": 1},
    "BatchNormalization": {"fma": 2},
    "LayerNormalization": {"fma": 7},
    "Sigmoid": {"exp": 1, "fma": 2},
    "Tanh": {"exp": 1, "fma": 4},
    "Softmax": {"exp": 1, "fma": 4},
    "LogSoftmax": {"exp": 1, "fma": 4},
}
"""Operations for each value that comes out of an operator that works value by value."""
LEAST_PROBABILITY = np.float32(1e-37)
"""Above the smallest normal float32: what a graph gives as 0 has a logarithm that search can add up."""
UNCHANGED = {"Identity", "Dropout", "Flatten", "Cast"}


def check(config: Config) -> None:
    """ModelError when `config` asks for what cannot be done to a net from an .onnx file."""
    for name, needed in NEEDED.items():
        if (asked := getattr(config.dnn, name)) != needed:
            raise ModelError(
                f"{config.dnn.net} is computed by onnxruntime as it is: dnn.{name}={asked} is for nets from "
                f".safetensors files, and an .onnx file needs dnn.{name}={needed}."
            )
    if config.frames.rule == "multi-frame" and config.frames.skip > 1:
        raise ModelError(
            f"{config.dnn.net} has one output; frames.rule=multi-frame is for nets from .safetensors files, and an "
            ".onnx file needs frames.rule=copy."
        )
    if config.device != "cpu":
        raise ModelError(
            f"{config.dnn.net} is computed by onnxruntime on the CPU; an .onnx file needs device=cpu."
        )


class OnnxNet(Splicer):
    """One net in onnxruntime, for at most `max_frames` at a time."""

    def __init__(self, net: OnnxModel | Path | str, threads: int, max_frames: int) -> None:
        """Raises ModelError when onnxruntime is missing or cannot compute the net."""
        model = net if isinstance(net, OnnxModel) else onnx.load(net)
        super().__init__(model.card, max_frames)
        self._model, self._threads = model, threads
        self._mean = np.asarray(model.card.mean, np.float32)
        self._scale = np.asarray(model.card.scale, np.float32)
        self._input = np.zeros((max_frames, model.card.inputs), np.float32)
        self.stages = {SPLICE_STAGE: ("frames",), NET_STAGE: ("frames",)}
        self._session = onnx_runtime.session(model, threads)
        self._binding = self._session.io_binding()
        self.gives_probabilities = onnx_runtime.probe(self._session, model, (1, max_frames))
        if self.gives_probabilities:
            self.notes = (f"{model.path.name} gives probabilities; their logarithms are taken",)

    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each scaled frame of a block with its context, f32 [n, inputs]; valid until the next call.

        `padded` f32 [left + n + right, features]: what lies before and after the block belongs to it.
        """
        scaled = np.ascontiguousarray((padded - self._mean) * self._scale, np.float32)
        spliced = self._input[: len(padded) - sum(self.context)]
        spliced[:] = self.windows(scaled)
        meter.done(SPLICE_STAGE, len(spliced))
        return spliced

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """What the graph gives for frames as `splice` gives them, into `scores` f32 [n, senones], C order."""
        frames = np.ascontiguousarray(spliced, np.float32)
        if not scores.flags.c_contiguous:
            raise ValueError("scores of which rows do not lie one behind the other")
        bound, model = self._binding, self._model
        for bind, name, array in (
            (bound.bind_input, model.input, frames),
            (bound.bind_output, model.output, scores),
        ):
            bind(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(bound)
        if self.gives_probabilities:
            np.log(np.maximum(scores, LEAST_PROBABILITY, out=scores), out=scores)
        meter.done(NET_STAGE, len(spliced))

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score` for calls of about `frames` frames."""
        logarithms = self.card.senones if self.gives_probabilities else 0
        return {
            SPLICE_STAGE: self._scaled_splice_cost(frames),
            NET_STAGE: law(self._model, self._threads, frames, logarithms),
        }

    def _scaled_splice_cost(self, frames: int) -> Cost:
        """As for any net, and each feature is scaled."""
        x, features = float(FLOAT * self.card.inputs), float(FLOAT * self.card.dimension)
        return Cost(
            operations={"fma": Linear(per_work=(2.0 * self.card.dimension, 0.0, 0.0))},
            bytes_min=Linear(per_work=(features + x, 0.0, 0.0)),
            bytes_max=Linear(per_work=(4.0 * features + 3.0 * x, 0.0, 0.0)),
            working_set_bytes=2.0 * x * frames,
        )


def law(model: OnnxModel, threads: int, frames: int = 1, logarithms: int = 0) -> Cost:
    """Cost law by frames, from the operators and the shapes of the weights; `unmodelled` where one has none.

    At least the weights are read once per call and a frame's input and scores go in and out. At most every
    operator reads and writes its own, and a product reads its input once for each slice of the outputs and adds
    to its outputs once for each slice of the inputs. `logarithms` a frame are taken behind the graph and count as
    exponentials.
    """
    shapes = {name: shape for name, (shape, _) in model.constants.items()}
    widths = {model.input: model.card.inputs}
    used: set[str] = set()
    operations: Counter[str] = Counter(exp=logarithms)
    moved = 0.0
    for node in model.nodes:
        if node.operator == "Constant":
            continue
        if node.inputs and all(name in shapes for name in node.inputs):
            # Weights turned or converted: done once, when the net is loaded.
            if node.operator not in ("Transpose", *UNCHANGED):
                return Cost(unmodelled=_without_law(node))
            turned = node.operator == "Transpose"
            shape = shapes[node.inputs[0]]
            shapes[node.outputs[0]] = shape[::-1] if turned else shape
            used.update(node.inputs[:1])
            continue
        found = _width(node, widths, shapes)
        if found is None:
            return Cost(unmodelled=_without_law(node))
        inputs, outputs = found
        if node.operator in ("Gemm", "MatMul"):
            operations["gemm"] += 2 * inputs * outputs
            operations["fma"] += outputs * (len(node.inputs) > 2)
            again = 2 * math.ceil(inputs / SLICE_DEPTH) - 1
            moved += FLOAT * (inputs * math.ceil(outputs / SLICE_COLUMNS) + outputs * again)
        elif node.operator not in UNCHANGED:
            for name, count in PER_OUTPUT[node.operator].items():
                operations[name] += int(count * outputs)
            moved += FLOAT * (inputs + outputs)
        used.update(name for name in node.inputs if name in model.constants)
        widths[node.outputs[0]] = outputs
    if widths.get(model.output) != model.card.senones:
        return Cost(unmodelled="The shapes in the graph do not lead from its input to its output.")
    weights = float(sum(model.constants[name][1] for name in used if name in model.constants))
    ends = float(FLOAT * (model.card.inputs + model.card.senones))
    return Cost(
        operations={n: Linear(per_work=(float(c), 0.0, 0.0)) for n, c in operations.items() if c},
        bytes_min=Linear(fixed=weights, per_work=(ends, 0.0, 0.0)),
        bytes_max=Linear(fixed=weights, per_work=(max(ends, moved), 0.0, 0.0)),
        working_set_bytes=weights,
        threads=threads,
    )


def _width(
    node: Node, widths: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, int] | None:
    """Values per frame into and out of an operator on [n, width]; None where that is not known."""
    if not node.inputs or not node.outputs:
        return None
    if node.operator in ("Gemm", "MatMul"):
        inputs, weight = widths.get(node.inputs[0]), shapes.get(node.inputs[1])
        if inputs is None or weight is None or len(weight) != 2 or node.attributes.get("transA"):
            return None
        if node.attributes.get("transB"):
            weight = weight[::-1]
        return (inputs, weight[1]) if weight[0] == inputs else None
    if node.operator not in PER_OUTPUT and node.operator not in UNCHANGED:
        return None
    frames = [widths[name] for name in node.inputs if name in widths]
    others = [
        shapes[name] for name in node.inputs if name and name not in widths and name in shapes
    ]
    if not frames or len(frames) + len(others) < sum(map(bool, node.inputs)):
        return None
    width = frames[0]
    # What is added to each frame must not make it another shape.
    if any(other != width for other in frames) or any(
        math.prod(shape) not in (1, width) or (shape and math.prod(shape[:-1]) != 1 and width != 1)
        for shape in others
        if node.operator != "BatchNormalization"
    ):
        return None
    return width, width


def _without_law(node: Node) -> str:
    return f"Only matrix products with fixed weights and what works value by value have a law, and not {node}."
