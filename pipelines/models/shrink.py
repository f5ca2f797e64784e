"""Smaller nets from a trained one: low rank, sparse, sparse by blocks; and one with more heads.

Low rank: W ≈ U_k (S_k V_kᵀ), two layers of k(m + n) weights for one of m·n (Xue, Li & Gong 2013). Sparse: the
smallest weights are cut (Yu, Seide, Li & Deng 2012), singly or in blocks that a vector register holds. Heads: the
output layer once for each frame that a multi-frame net answers for (Vanhoucke, Devin & Heigold 2013).
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from pipelines.models.nets import BLOCK, Layer, Net
from profiler.arrays import Array


@dataclass(frozen=True)
class _Stretch:
    """What lies between one ReLU and the next: affine layers, which together are one matrix.

    `factors`: their weights in order, `relu` after the last, or all heads on top of each other. `bias` f64: of all.
    """

    factors: list[Array]
    bias: Array
    relu: bool


def low_rank(net: Net, share: float, only: int | None = None) -> Net:
    """`net` with `share` of its weights: what lies between two ReLUs becomes two layers of low rank.

    `only`: the number of the one stretch between two ReLUs that is factored, 0 at the input and −1 at the outputs.

    A bottleneck and the output layer behind it are one matrix here, of the rank of the bottleneck, and get a lower rank
    together. Every such matrix is left the same share; those whose rank is no higher than that allows stay as they are.
    """
    layers: list[Layer] = []
    tensors: dict[str, Array] = {}

    def put(weight: Array, bias: Array, relu: bool) -> None:
        number = len(layers)
        tensors[f"layers.{number}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"layers.{number}.bias"] = bias.astype(np.float32)
        layers.append(Layer(len(weight), relu))

    stretches = _stretches(net)
    for i, stretch in enumerate(stretches):
        *before, last = _factored(stretch, share if only in {None, i, i - len(stretches)} else 1.0)
        for weight in before:
            put(weight, np.zeros(len(weight)), relu=False)
        if stretch is not stretches[-1]:
            put(last, stretch.bias, stretch.relu)
    n = net.card.senones
    for head in range(net.card.heads):
        rows = slice(head * n, (head + 1) * n)
        tensors[f"heads.{head}.weight"] = np.ascontiguousarray(last[rows], np.float32)
        tensors[f"heads.{head}.bias"] = stretches[-1].bias[rows].astype(np.float32)
    return Net(net.name, msgspec.structs.replace(net.card, layers=layers), tensors)


def _stretches(net: Net) -> list[_Stretch]:
    card, tensors = net.card, net.tensors
    found: list[_Stretch] = []
    factors: list[Array] = []
    bias = np.zeros(card.inputs)

    def add(weight: Array, own: Array) -> None:
        nonlocal bias
        # What the layers before add passes through this one.
        bias = own + (weight @ bias if factors else 0.0)
        factors.append(weight.astype(np.float64))

    for i, layer in enumerate(card.layers):
        add(tensors[f"layers.{i}.weight"], tensors[f"layers.{i}.bias"])
        if layer.relu:
            found.append(_Stretch(factors, bias, relu=True))
            factors = []
    every = range(card.heads)
    add(
        np.concatenate([tensors[f"heads.{head}.weight"] for head in every]),
        np.concatenate([tensors[f"heads.{head}.bias"] for head in every]),
    )
    return [*found, _Stretch(factors, bias, relu=False)]


def _factored(stretch: _Stretch, share: float) -> list[Array]:
    factors = stretch.factors
    outputs, inputs = len(factors[-1]), factors[0].shape[1]
    rank = max(1, round(share * sum(factor.size for factor in factors) / (outputs + inputs)))
    if share >= 1 or rank >= min(min(factor.shape) for factor in factors):
        return factors
    # The singular vectors of a product, of which the first factor is tall, from a small matrix: Q R = last.
    q, r = np.linalg.qr(factors[-1])
    for factor in reversed(factors[:-1]):
        r = r @ factor
    u, s, vt = np.linalg.svd(r, full_matrices=False)
    root = np.sqrt(s[:rank])
    return [root[:, None] * vt[:rank], q @ u[:, :rank] * root]


def sparse(net: Net, kept: float) -> Net:
    """`net` with the smallest weights of each layer set to zero, so that the share `kept` remains."""
    return _cut(net, lambda weight: _largest(np.abs(weight), kept))


def blocks(net: Net, kept: float) -> Net:
    """`net` with the smallest blocks of each layer set to zero, so that the share `kept` of them remains.

    A block is the weights of one input in BLOCK outputs that follow each other, and as large as its Euclidean norm.
    """

    def mask(weight: Array) -> Array:
        starts = np.arange(0, len(weight), BLOCK)
        norms = np.sqrt(np.add.reduceat(np.square(weight, dtype=np.float64), starts, axis=0))
        return np.repeat(_largest(norms, kept), BLOCK, axis=0)[: len(weight)]

    return _cut(net, mask)


def _cut(net: Net, mask: Callable[[Array], Array]) -> Net:
    tensors = {
        name: np.where(mask(values), values, np.float32(0)) if name.endswith(".weight") else values
        for name, values in net.tensors.items()
    }
    return Net(net.name, net.card, tensors)


def _largest(values: Array, kept: float) -> Array:
    """Where the share `kept` of `values` that is largest lies; of equals all."""
    wanted = min(max(round(kept * values.size), 1), values.size)
    threshold = np.partition(values, values.size - wanted, axis=None)[values.size - wanted]
    found: Array = values >= threshold
    return found


def with_heads(net: Net, heads: int) -> Net:
    """Return `net` with `heads` copies of its first head."""
    tensors = {name: values for name, values in net.tensors.items() if name.startswith("layers.")}
    for head in range(heads):
        for part in ("weight", "bias"):
            tensors[f"heads.{head}.{part}"] = net.tensors[f"heads.0.{part}"]
    return Net(net.name, msgspec.structs.replace(net.card, heads=heads), tensors)
