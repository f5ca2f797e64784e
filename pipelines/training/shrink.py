"""Smaller nets from a trained one, to be trained on: low rank, sparse, several heads.

Low rank: W ≈ U_k (S_k V_kᵀ), two layers of k(m + n) weights for one of m·n (Xue, Li & Gong 2013). Sparse: the
smallest weights are cut and stay cut (Yu, Seide, Li & Deng 2012). Heads: the output layer once for each frame
that a multi-frame net answers for (Vanhoucke, Devin & Heigold 2013).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pipelines.models.nets import Layer, Net

Array = np.ndarray[Any, Any]


def low_rank(net: Net, share: float) -> Net:
    """`net` with each layer replaced by two that together have `share` of its weights.

    Layers that would not become smaller, such as a bottleneck and what follows it, stay.
    """
    layers: list[Layer] = []
    tensors: dict[str, Array] = {}

    def put(weight: Array, bias: Array, relu: bool) -> None:
        number = len(layers)
        tensors[f"layers.{number}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"layers.{number}.bias"] = bias
        layers.append(Layer(len(weight), relu))

    for i, layer in enumerate(net.card.layers):
        weight, bias = net.tensors[f"layers.{i}.weight"], net.tensors[f"layers.{i}.bias"]
        outputs, inputs = weight.shape
        rank = max(1, round(share * outputs * inputs / (outputs + inputs)))
        if layer.relu and rank < min(outputs, inputs):
            u, s, vt = np.linalg.svd(weight.astype(np.float64), full_matrices=False)
            root = np.sqrt(s[:rank])
            put(root[:, None] * vt[:rank], np.zeros(rank, np.float32), relu=False)
            put(u[:, :rank] * root, bias, layer.relu)
        else:
            put(weight, bias, layer.relu)
    heads = {name: values for name, values in net.tensors.items() if name.startswith("heads.")}
    card = msgspec.structs.replace(net.card, layers=layers)
    return Net(net.name, card, tensors | heads)


def sparse(net: Net, kept: float) -> Net:
    """`net` with the smallest weights of each layer set to zero, so that the share `kept` remains."""
    tensors = dict(net.tensors)
    for name, values in net.tensors.items():
        if name.endswith(".weight"):
            threshold = np.quantile(np.abs(values), 1.0 - kept)
            tensors[name] = np.where(np.abs(values) > threshold, values, np.float32(0))
    return Net(net.name, net.card, tensors)


def with_heads(net: Net, heads: int) -> Net:
    """`net` with so many copies of its first head."""
    tensors = {name: values for name, values in net.tensors.items() if name.startswith("layers.")}
    for head in range(heads):
        for part in ("weight", "bias"):
            tensors[f"heads.{head}.{part}"] = net.tensors[f"heads.0.{part}"]
    return Net(net.name, msgspec.structs.replace(net.card, heads=heads), tensors)
