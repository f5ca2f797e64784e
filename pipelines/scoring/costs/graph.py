"""Cost law of a net from an ONNX file, from its operators and the shapes of its weights."""

import math
from collections import Counter
from collections.abc import Mapping

from pipelines.models.onnx.graph import PER_OUTPUT, UNCHANGED, Node, OnnxModel
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import per
from profiler.costs import Cost

SLICE_COLUMNS, SLICE_DEPTH = 128, 256
"""Outputs and inputs that onnxruntime's matrix product takes at a time from weights packed at loading
(MLAS_SGEMM_PACKED_STRIDEN, MLAS_SGEMM_PACKED_STRIDEK)."""


def law(model: OnnxModel, threads: int, logarithms: int = 0) -> Cost:
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
        operations={name: per(float(count)) for name, count in operations.items() if count},
        bytes_min=per(ends, fixed=weights),
        bytes_max=per(max(ends, moved), fixed=weights),
        working_set_bytes=weights,
        threads=threads,
    )


def _width(node: Node, widths: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, int] | None:
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
    others = [shapes[name] for name in node.inputs if name and name not in widths and name in shapes]
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
