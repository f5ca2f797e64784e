"""Scoring by feed-forward nets: the kernels, their stages and cost laws.

Reading a net belongs to `pipelines.models.nets`, making one to `pipelines.training`; which frames and senones
are asked for is decided above (`scoring.frames`, `scoring.senones`). An arithmetic computes a whole net; one in
float32 multiplies each layer by a product (`products`). To add an arithmetic: a module here, a line below, a test.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable
from typing import Any

from pipelines.models import foreign, nets, shrink
from pipelines.models.nets import Net
from pipelines.models.onnx import OnnxModel
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.dnn.dense import DenseNet
from pipelines.scoring.dnn.quantised import QuantisedNet

__all__ = ["DenseNet", "QuantisedNet", "create", "origin", "read"]

ARITHMETICS = {
    "fp32": ("dense", "DenseNet"),
    "int8": ("quantised", "QuantisedNet"),
    "bf16": ("bf16", "Bf16Net"),
    "compiled": ("compiled", "CompiledNet"),
    "onnx": ("onnx", "OnnxNet"),
}
"""Module of this package and class."""
SHRINKING = {"low-rank": shrink.low_rank, "sparse": shrink.sparse, "blocks": shrink.blocks}


def read(
    dnn: Any, senones: int, features: int, cancelled: Callable[[], bool] = lambda: False
) -> Net | OnnxModel:
    """The net that the settings `dnn` (pipelines.config.Dnn) name, made as small as they say.

    For a model of so many senones and a front end of so many features; ModelError when it cannot be used, or
    Cancelled. What did not come with the program is opened by a process with bounds.
    """
    path = nets.find(dnn.net)
    net: Net | OnnxModel
    if dnn.net in nets.shipped():
        net = nets.load(path, senones, features)
    else:
        net = foreign.load(path, senones, features, MAX_FRAMES, cancelled)
    if isinstance(net, OnnxModel):
        return net
    return SHRINKING[dnn.shrink](net, dnn.share) if dnn.shrink in SHRINKING else net


def origin(dnn: Any) -> Hashable:
    """What of the settings `dnn` decides what `read` gives, as a key."""
    return dnn.net, dnn.shrink, dnn.share if dnn.shrink in SHRINKING else None


def create(dnn: Any, net: Net | OnnxModel, threads: int, max_frames: int) -> Any:
    """What computes `net` under the settings `dnn`, at most `max_frames` at a time."""
    kind = dnn.dtype
    if isinstance(net, OnnxModel):
        kind = "onnx"
    elif kind == "fp32" and dnn.product == "compiled":
        kind = "compiled"
    module, name = ARITHMETICS[kind]
    made = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    if kind == "fp32":
        return made(net, threads, max_frames, dnn.product)
    return made(net, threads, max_frames)
