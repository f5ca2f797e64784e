"""Small nets with random weights, in memory and as files; and what they compute, in float64."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors.numpy import save_file

from pipelines.models.nets import FORMAT, Card, Layer, Net
from pipelines.scoring.blocks import Meter
from profiler.arrays import Array

SHAPES = [(Layer(24), Layer(16), Layer(8, relu=False)), (Layer(20),), ()]
"""Hidden layers: some with a bottleneck, one, none."""


def utterance(frames: int = 23) -> Array:
    """Features f32 [frames, 39]."""
    return np.random.default_rng(5).normal(0, 3, (frames, 39)).astype(np.float32)


def padded(features: Array, arithmetic: Any) -> Array:
    """With the context that `arithmetic` wants around an utterance: its outermost frames repeated."""
    return np.pad(features, (arithmetic.context, (0, 0)), mode="edge")


def in_blocks(arithmetic: Any, features: Array, block: int) -> Array:
    """The scores f32 [frames, senones] of an utterance, computed block by block."""
    around, beyond = padded(features, arithmetic), sum(arithmetic.context)
    scores = np.empty((len(features), arithmetic.n_senones), np.float32)
    for at in range(0, len(features), block):
        n = min(block, len(features) - at)
        spliced = arithmetic.splice(around[at : at + n + beyond], Meter())
        arithmetic.score(spliced, scores[at : at + n], Meter())
    return scores


def card(*layers: Layer, senones: int = 50, left: int = 2, right: int = 3, **more: Any) -> Card:
    rng = np.random.default_rng(1)
    mean, scale = rng.normal(0, 3, 39).tolist(), rng.uniform(0.1, 1.0, 39).tolist()
    return Card(
        format=FORMAT, left=left, right=right, mean=mean, scale=scale, layers=[*layers], senones=senones, **more
    )


def net(made: Card, seed: int = 0) -> Net:
    rng = np.random.default_rng(seed)
    drawn = {name: rng.standard_normal(shape) * (2 / shape[-1]) ** 0.5 for name, shape in made.shapes.items()}
    return Net("made", made, {name: values.astype(np.float32) for name, values in drawn.items()})


def write(folder: Path, made: Net, dtype: Any = np.float16) -> Path:
    path = folder / f"{made.name}.safetensors"
    save_file({name: values.astype(dtype) for name, values in made.tensors.items()}, path)
    path.with_suffix(".json").write_bytes(msgspec.json.encode(made.card))
    return path


def forward(made: Net, features: Array, head: int = 0) -> Array:
    """Logits float64 [frames, senones] of a whole utterance f32 [frames, 39], edges repeated."""
    c = made.card
    rows = []
    stack = [(f"layers.{i}", layer.relu) for i, layer in enumerate(c.layers)] + [(f"heads.{head}", False)]
    for t in range(len(features)):
        context = [features[min(max(t + offset, 0), len(features) - 1)] for offset in range(-c.left, c.right + 1)]
        x = ((np.array(context, np.float64) - c.mean) * np.array(c.scale)).ravel()
        for name, relu in stack:
            x = made.tensors[f"{name}.weight"].astype(np.float64) @ x + made.tensors[f"{name}.bias"]
            x = np.maximum(x, 0) if relu else x
        rows.append(x)
    return np.array(rows)
