"""Scoring by a feed-forward net in torch: what one block of frames takes on a device.

The frames' features go up once, and each frame is joined with its context there. Every layer is one product with frames
as rows; features are centred and scaled before, since products in 16 bits lose less on numbers about 1. Inputs and
outputs of each layer are padded with zeros. The softmax is left out, as on the processor.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.nets import Net
from pipelines.scoring import dnn
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import per
from pipelines.scoring.device.arithmetic import NAMES, SIZES, Arithmetic, Give, Placed
from pipelines.scoring.dnn.dense import OUTPUT_STAGE, SPLICE_STAGE, layer_stage
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.config import Config

ALIGNED = 8  # Inputs and outputs of a layer are a multiple: so tensor cores want numbers of 16 bits


class Layers(Arithmetic):
    """The layers of a net and its first head."""

    def __init__(self, net: Net) -> None:
        card = net.card
        self.n_senones, self.dim = card.senones, card.dimension
        self.context = card.left, card.right
        self._inputs, self._relus = card.inputs, [layer.relu for layer in card.layers]
        frames = card.left + 1 + card.right
        self.arrays = {
            "mean": np.tile(np.asarray(card.mean, np.float32), frames),
            "scale": np.tile(np.asarray(card.scale, np.float32), frames),
        }
        names = [*(f"layers.{i}" for i in range(len(card.layers))), "heads.0"]
        outputs = [*(layer_stage(i + 1) for i in range(len(card.layers))), OUTPUT_STAGE]
        for stage, name in zip(outputs, names, strict=True):
            self.arrays[f"{stage} weight"] = _padded(net.tensors[f"{name}.weight"])
            # A matrix of one row: of the products' number type.
            self.arrays[f"{stage} bias"] = _padded(net.tensors[f"{name}.bias"])[None]
        self._wide = self.arrays[f"{outputs[0]} weight"].shape[1]
        self.stages = {**dict.fromkeys((SPLICE_STAGE, *outputs[:-1]), ("frames",)), OUTPUT_STAGE: ("senones",)}

    def score(self, p: dict[str, Tensor], x: Tensor, out: Tensor, on: Placed, give: Give) -> None:
        import torch

        n, number = len(x), getattr(torch, NAMES[on.dtype])
        made: dict[str, Tensor] = {}

        def splice() -> None:
            made["x"] = torch.zeros((n, self._wide), dtype=number, device=x.device)
            torch.mul(x - p["mean"], p["scale"], out=made["x"][:, : self._inputs])

        def product(stage: str) -> Tensor:
            weight, bias = p[f"{stage} weight"], p[f"{stage} bias"]
            return torch.nn.functional.linear(made["x"], weight, bias[0])

        def layer(stage: str, relu: bool) -> None:
            y = product(stage)
            made["x"] = y.relu_() if relu else y

        def output() -> None:
            out.copy_(product(OUTPUT_STAGE)[:, : self.n_senones])
            made.clear()

        give(SPLICE_STAGE, splice, n, (n, 0, 0))
        for i, relu in enumerate(self._relus):
            give(layer_stage(i + 1), partial(layer, layer_stage(i + 1), relu), n, (n, 0, 0))
        give(OUTPUT_STAGE, output, n, (n * self.n_senones, 0, 0))

    def costs(self, frames: int, on: Placed) -> dict[str, Cost]:
        """Weights once per call, activations in and out; each pass over them reads and writes."""
        size = float(SIZES[on.dtype])
        net_bytes = size * sum(array.size for array in self.arrays.values() if array.ndim == 2)
        # Zeros, the difference written and read, the product; frames overlap but for the first's context.
        read = float(FLOAT * self.dim)
        passes = size * self._wide + (2.0 * FLOAT + size) * self._inputs
        if on.where == "cpu" and on.dtype != "fp32":
            passes += 2.0 * FLOAT * self._inputs  # the processor makes 16 bits in a pass of its own
        splice = per(read + passes, fixed=read * sum(self.context))
        costs = {SPLICE_STAGE: on.cost({"fma": per(2.0 * self._inputs)}, splice, 2.0 * FLOAT * self._inputs * frames)}
        for i, relu in enumerate(self._relus):
            stage = layer_stage(i + 1)
            outputs, inputs = self.arrays[f"{stage} weight"].shape
            moved = size * (inputs + outputs * (3.0 if relu else 1.0))
            maxima = {"fma": per(float(outputs))} if relu else {}
            traffic = per(moved, fixed=size * outputs * (inputs + 1.0))
            costs[stage] = on.cost({on.gemm: per(2.0 * inputs * outputs), **maxima}, traffic, net_bytes)
        outputs, inputs = self.arrays[f"{OUTPUT_STAGE} weight"].shape
        padding = outputs / self.n_senones
        # The product is read once more and written as float32.
        moved = size * inputs / self.n_senones + (1.0 + padding) * size + FLOAT
        traffic = per(moved, fixed=size * outputs * (inputs + 1.0))
        return costs | {OUTPUT_STAGE: on.cost({on.gemm: per(2.0 * inputs * padding)}, traffic, net_bytes)}


def _padded(array: Array) -> Array:
    """`array` with zeros behind, up to a multiple of ALIGNED along each axis."""
    return np.pad(array, [(0, -size % ALIGNED) for size in array.shape])


def layers_of(config: Config, senones: int, features: int) -> Layers:
    """The net that the settings name, made as small as they say; ModelError, one sentence, where it cannot be."""
    net = dnn.read(config.dnn, senones, features)
    if not isinstance(net, Net):
        raise ModelError(
            f"device = {config.device} computes a net layer by layer, and {config.dnn.net} is a graph; choose "
            "device = cpu or a .safetensors net."
        )
    return Layers(net)
