"""Products that torch computes, and what lies around them. Torch is imported where one is timed: it computes anyway."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn import bf16, compiled, terms
from pipelines.scoring.kernel_work import Family, Numbers
from pipelines.scoring.roofs_tasks import filled, outputs_of
from profiler.machine.roofs.timing import Task, Work, repeated

BF16_AT_BEST = (64, 256, 256)
"""Frames, inputs and outputs of a product large enough that the library's preparations hardly count."""


def bf16_layers(size: int, numbers: Numbers) -> Work:
    """Layers in 16 bits; units are multiply-adds. Without a size as much of one as the nearest caches keep."""
    n, inputs, outputs, relu = numbers
    outputs = outputs_of(size, outputs, bf16.BF16 * inputs)
    count = max(1, size // (bf16.BF16 * inputs * outputs))

    def make() -> Task:
        import torch

        weight, bias = filled((outputs, inputs)), filled((outputs,))
        layers = [bf16.Rounded(weight, bias, bool(relu)) for _ in range(count)]
        x = torch.ones((n, inputs), dtype=torch.bfloat16)

        def once() -> None:
            for layer in layers:
                layer.multiply(x)

        return repeated(once)

    return Work(float(count * n * inputs * outputs), make)


def bf16_best(size: int, numbers: Numbers) -> Work:
    """The product in 16 bits at its best; units are operations."""
    work = bf16_layers(0, (*BF16_AT_BEST, 0))
    return Work(2.0 * work.operations, work.make)


def bf16_input(size: int, numbers: Numbers) -> Work:
    """Features centred, scaled and rounded; units are features."""
    n, inputs = numbers

    def make() -> Task:
        import torch

        spliced, mean, scale = filled((n, inputs + 1)), torch.zeros(inputs), torch.ones(inputs)
        return repeated(lambda: bf16.rounded(spliced, mean, scale))

    return Work(float(n * inputs), make)


def bf16_scores(size: int, numbers: Numbers) -> Work:
    """Outputs in 16 bits as scores; units are scores."""
    n, outputs = numbers

    def make() -> Task:
        import torch

        y, scores = torch.ones((n, outputs), dtype=torch.bfloat16), filled((n, outputs))
        return repeated(lambda: torch.from_numpy(scores).copy_(y))

    return Work(float(n * outputs), make)


def copied(size: int, numbers: Numbers) -> Work:
    """Outputs of torch as scores; units are scores."""
    n, outputs = numbers

    def make() -> Task:
        import torch

        y, scores = torch.ones((n, outputs)), filled((n, outputs))
        return repeated(lambda: torch.from_numpy(scores).copy_(y))

    return Work(float(n * outputs), make)


def bf16_rows(size: int, numbers: Numbers) -> Work:
    """A third of the rows of an output layer gathered and multiplied by one frame; units are rows."""
    inputs, outputs = numbers
    chosen = np.arange(0, outputs, 3)

    def make() -> Task:
        import torch

        layer = bf16.Rounded(filled((outputs, inputs)), filled((outputs,)), False)
        x, which = torch.ones((1, inputs), dtype=torch.bfloat16), torch.from_numpy(chosen)
        scores = filled((1, outputs))

        def once() -> None:
            scores[0:1, chosen] = layer.rows(x, which).float().numpy()

        return repeated(once)

    return Work(float(len(chosen)), make)


def compiled_layers(size: int, numbers: Numbers) -> Work:
    """Torch's float32 layers with frozen weights, of which a compiled net consists; units are multiply-adds.

    Without a size as much of one as the nearest caches keep.
    """
    n, inputs, outputs = numbers
    outputs = outputs_of(size, outputs, FLOAT * inputs)
    count = max(1, size // (FLOAT * inputs * outputs))

    def make() -> Task:
        import torch

        layers = [
            compiled.frozen(filled((outputs, inputs)), filled((outputs,))) for _ in range(count)
        ]
        x = torch.ones((n, inputs))

        def once() -> None:
            for layer in layers:
                layer(x)

        return repeated(once)

    return Work(float(count * n * inputs * outputs), make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        bf16.OPERATION: bf16_best,
        terms.BF16: bf16_layers,
        terms.BF16_INPUT: bf16_input,
        terms.BF16_SCORES: bf16_scores,
        terms.BF16_ROWS: bf16_rows,
        terms.FROZEN: compiled_layers,
        terms.COPIED: copied,
    }
)
