"""Writes ONNX files by hand: nets as a graph of Gemm and Relu, and whatever else a test wants to be read.

Field numbers are those of onnx.proto; that they are right is what onnxruntime shows by computing the files.
"""

import struct
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.models.nets import Net
from profiler.arrays import Array

needs_onnx, needs_onnxruntime = (
    pytest.mark.skipif(find_spec(name) is None, reason=f"the package {name} is not installed")
    for name in ("onnx", "onnxruntime")
)
IR_VERSION, OPSET = 8, 17
KINDS = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "float16": 10, "float64": 11}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def part(number: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name: str, values: Array, *more: bytes, shape: Sequence[int] | None = None) -> bytes:
    """TensorProto; `shape`: another one than that of `values`."""
    dims = values.shape if shape is None else shape
    head = [integer(1, size) for size in dims] + [integer(2, KINDS[values.dtype.name])]
    return b"".join([*head, part(8, name), part(9, values.tobytes()), *more])


def attribute(name: str, value: int | float | bytes) -> bytes:
    """AttributeProto of an integer, a float or a tensor."""
    if isinstance(value, bytes):
        return part(1, name) + part(5, value) + integer(20, 4)
    if isinstance(value, float):
        return part(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
    return part(1, name) + integer(3, value) + integer(20, 2)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], *more: bytes, **attributes: Any) -> bytes:
    """NodeProto, called by the name of its first output."""
    fields = [part(1, name) for name in inputs] + [part(2, name) for name in outputs]
    fields += [part(3, outputs[0]), part(4, operator), *more]
    fields += [part(5, attribute(name, value)) for name, value in attributes.items()]
    return b"".join(fields)


def ends(name: str, shape: Sequence[int | str] | None, kind: int = 1) -> bytes:
    """ValueInfoProto of an input or output."""
    axes = [part(1, part(2, axis) if isinstance(axis, str) else integer(1, axis)) for axis in shape or ()]
    reported = b"" if shape is None else part(2, b"".join(axes))
    return part(1, name) + part(2, part(1, integer(1, kind) + reported))


X, Y = [ends("x", ["n", 234])], [ends("y", ["n", 50])]


def model(
    nodes: Sequence[bytes],
    constants: Sequence[bytes] = (),
    inputs: Sequence[bytes] = X,
    outputs: Sequence[bytes] = Y,
    more: bytes = b"",
) -> bytes:
    """ModelProto; `more` goes into the graph."""
    fields = {1: nodes, 2: ["net"], 5: constants, 11: inputs, 12: outputs}
    graph = b"".join([*(part(number, each) for number, listed in fields.items() for each in listed), more])
    return integer(1, IR_VERSION) + part(7, graph) + part(8, part(1, "") + integer(2, OPSET))


def of_net(made: Net) -> bytes:
    """The first head of a net, of scaled input, as Gemm and Relu."""
    card, nodes, constants, x = made.card, [], [], "frames"
    stack = [(f"layers.{i}", layer.relu) for i, layer in enumerate(card.layers)]
    for name, relu in [*stack, ("heads.0", False)]:
        for kind in ("weight", "bias"):
            constants.append(tensor(f"{name}.{kind}", made.tensors[f"{name}.{kind}"].astype("<f4")))
        out = "scores" if name == "heads.0" else f"{name}.out"
        nodes.append(node("Gemm", [x, f"{name}.weight", f"{name}.bias"], [out], transB=1))
        x = f"{name}.relu" if relu else out
        nodes += [node("Relu", [out], [x])] if relu else []
    return model(nodes, constants, [ends("frames", ["n", card.inputs])], [ends("scores", ["n", card.senones])])


def write(folder: Path, made: Net, content: bytes | None = None) -> Path:
    """A file and its card, without layers; `content`: other than the net's own graph."""
    path = folder / f"{made.name}.onnx"
    path.write_bytes(of_net(made) if content is None else content)
    path.with_suffix(".json").write_bytes(msgspec.json.encode(msgspec.structs.replace(made.card, layers=[])))
    return path
