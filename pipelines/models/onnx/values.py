"""Operations of ONNX operators that work value by value, for each value that comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PER_OUTPUT: Final[Mapping[str, Mapping[str, float]]] = {
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
UNCHANGED: Final = frozenset({"Identity", "Dropout", "Flatten", "Cast"})
EXPONENTIALS: Final = frozenset({"Erf", "Exp", "Gelu", "BiasGelu", "FastGelu", "QuickGelu", "Log", "Pow", "Softplus"})
MOVED: Final = UNCHANGED | {
    *("Concat", "ConstantOfShape", "DepthToSpace", "Expand", "Gather", "GatherElements", "Pad", "Range", "Reshape"),
    *("ReorderInput", "ReorderOutput", "Shape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
}
"""Operators that compute nothing."""


def per_output(operator: str) -> Mapping[str, float]:
    """Operations by class for a value that `operator` gives; one of any other operator counts as one."""
    usual: Mapping[str, float] = {"exp": 1, "fma": 4} if operator in EXPONENTIALS else {"fma": 1}
    return PER_OUTPUT.get(operator, usual)
