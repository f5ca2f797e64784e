"""A net from an ONNX file, computed by onnxruntime (an optional dependency) as it is: bring your own model.

The graph is one stage, for nothing inside it can be timed from outside.
"""

from pathlib import Path

import numpy as np

from pipelines.config import Config
from pipelines.config.dnn import Dnn
from pipelines.models.errors import ModelError
from pipelines.models.onnx import graph as onnx
from pipelines.models.onnx import runtime as onnx_runtime
from pipelines.models.onnx.graph import OnnxModel
from pipelines.scoring.blocks import Meter
from pipelines.scoring.costs import graph, nets
from pipelines.scoring.dnn.dense import NET_STAGE, SPLICE_STAGE, Splicer
from profiler.arrays import Array
from profiler.spans import Cost

NEEDED = {"senones": "all", "dtype": "fp32", "product": Dnn().product, "shrink": "none"}
"""The settings of `dnn` that leave a net as it is; all others need its weights layer by layer."""

LEAST_PROBABILITY = np.float32(1e-37)
"""Above the smallest normal float32: what a graph gives as 0 has a logarithm that search can add up."""


def check(config: Config) -> None:
    """Raise ModelError when `config` needs what a net from an .onnx file cannot do."""
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
        raise ModelError(f"{config.dnn.net} is computed by onnxruntime on the CPU; an .onnx file needs device=cpu.")


class OnnxNet(Splicer):
    """One net in onnxruntime, for at most `max_frames` at a time."""

    can_choose = False

    def __init__(self, net: OnnxModel | Path | str, threads: int, max_frames: int) -> None:
        """Raises ModelError when onnxruntime is missing or cannot compute the net."""
        model = net if isinstance(net, OnnxModel) else onnx.load(net)
        super().__init__(model.card, max_frames)
        self._model, self._threads = model, threads
        self._mean = np.asarray(model.card.mean, np.float32)
        self._scale = np.asarray(model.card.scale, np.float32)
        self._input = np.zeros((max_frames, model.card.inputs), np.float32)
        self.stages = {SPLICE_STAGE: ("frames",), NET_STAGE: ("frames",)}
        self._session = onnx_runtime.session(model.path, model.content, threads)
        self._binding = self._session.io_binding()
        self.gives_probabilities = onnx_runtime.probe(self._session, model, (1, max_frames))
        if self.gives_probabilities:
            self.notes = (f"{model.path.name} gives probabilities; their logarithms are taken",)

    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each frame of `padded` f32 [left + n + right, features], scaled, with its context; valid until the next
        call."""
        scaled = np.ascontiguousarray((padded - self._mean) * self._scale, np.float32)
        spliced = self._input[: len(padded) - sum(self.context)]
        spliced[:] = self.windows(scaled)
        meter.close(SPLICE_STAGE, len(spliced))
        return spliced

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """Compute the graph of spliced frames into `scores` f32 [n, senones], in C order."""
        frames, bound, model = np.ascontiguousarray(spliced, np.float32), self._binding, self._model
        for bind, name, array in ((bound.bind_input, model.input, frames), (bound.bind_output, model.output, scores)):
            bind(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(bound)
        if self.gives_probabilities:
            np.log(np.maximum(scores, LEAST_PROBABILITY, out=scores), out=scores)
        meter.close(NET_STAGE, len(spliced))

    def costs(self, frames: int) -> dict[str, Cost]:
        logarithms = self.card.senones if self.gives_probabilities else 0
        return {
            SPLICE_STAGE: nets.splice(self.card, frames, scaled=True),
            NET_STAGE: graph.law(self._model, self._threads, logarithms),
        }
