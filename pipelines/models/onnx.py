"""Acoustic nets as ONNX files: `NAME.onnx` with graph and weights, and `NAME.json`, the card beside it.

The card (`pipelines.models.nets.Card`) says which frames go in and how they are scaled; layers need not be
listed, for the graph has them. The graph takes one f32 [n, inputs], the scaled frames with their context, and
gives one [n, senones] of log posteriors or logits; n must be free.

A file is read by hand (onnx.proto of https://github.com/onnx/onnx, IR version 3 and later) before any runtime
sees it: what a stranger's file must not do is refused here, and cost laws need to know what the operators are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.models import nets
from pipelines.models.errors import ModelError
from pipelines.models.nets import Card
from pipelines.models.protobuf import Field, WireError, fields

LARGEST_FILE = (1 << 31) - 1  # bytes; the largest message that protocol buffers allow
MOST_NODES = 10_000
MOST_AXES = 8

FLOAT = 1
ITEM_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
"""Bytes of a number by TensorProto.DataType: numbers and truth values, without strings and complex numbers."""
REAL: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 10: np.dtype("<f2"), 11: np.dtype("<f8")}

SIZED_BY_VALUES = {
    "ConstantOfShape",
    "Expand",
    "EyeLike",
    "OneHot",
    "Pad",
    "RandomNormal",
    "RandomUniform",
    "Range",
    "Resize",
    "Tile",
    "Upsample",
}
"""Operators whose result is as large as a number in the file says, not as what goes in: no bound is known."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Node:
    """One operator of a graph, its single integers and floats by name."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        label = self.name or (self.outputs[0] if self.outputs else "")
        return f"{self.operator} {label!r}" if label else self.operator


@dataclass(frozen=True)
class OnnxModel:
    """A checked file: its card, the bytes as they are, and what its graph computes.

    `constants`: shape and bytes of every tensor that the file holds, by name.
    """

    path: Path
    card: Card
    content: bytes
    input: str
    output: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, tuple[tuple[int, ...], int]]


def load(path: Path | str, senones: int | None = None, dimension: int | None = None) -> OnnxModel:
    """Read a file and its card and check both; ModelError says in one sentence what does not fit.

    `senones` and `dimension`: what the acoustic model has and the front end makes, where that matters.
    """
    path = Path(path)
    card = nets.read_card(path.with_suffix(".json"))
    nets.check_fit(path, card, senones, dimension)
    if card.heads != 1:
        raise ModelError(f"{path}: the card says {card.heads} heads; an .onnx net can have one.")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ModelError(f"{path} is larger than an ONNX file can be (2 GiB).")
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist; its card does.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        graph = _Graph(path)
        graph.read(_graph_of(path, memoryview(content)))
        source, sink = graph.ends(card)
    except WireError as error:
        raise ModelError(f"{path} is not a whole ONNX file: {error}.") from None
    return OnnxModel(path, card, content, source, sink, tuple(graph.nodes), graph.constants)


def _graph_of(path: Path, model: memoryview) -> memoryview:
    """The one graph of a ModelProto."""
    graphs = []
    for entry in fields(model):
        if entry.number == 7:
            graphs.append(entry.part)
        elif entry.number == 20:
            raise ModelError(f"{path} holds training information; only a net to compute is read.")
        elif entry.number == 25:
            # A function may call others: a short file can unfold to any length.
            raise ModelError(f"{path} holds functions of its own; export it with them inlined.")
    if len(graphs) != 1:
        raise ModelError(f"{path} is not a whole ONNX file: it holds {len(graphs)} graphs.")
    return graphs[0]


class _Graph:
    """What is taken from a GraphProto."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: list[Node] = []
        self.constants: dict[str, tuple[tuple[int, ...], int]] = {}
        self.inputs: dict[str, memoryview] = {}
        self.outputs: dict[str, memoryview] = {}

    def read(self, graph: memoryview) -> None:
        for entry in fields(graph):
            if entry.number == 1:
                if len(self.nodes) == MOST_NODES:
                    raise ModelError(f"{self.path} has more than {MOST_NODES} operators.")
                self.nodes.append(self._node(entry.part))
            elif entry.number == 5:
                self._tensor(entry.part)
            elif entry.number in (11, 12):
                kept = self.inputs if entry.number == 11 else self.outputs
                kept[_name(entry.part)] = entry.part
            elif entry.number == 15:
                raise ModelError(f"{self.path} holds a sparse tensor; weights must be dense.")

    def _node(self, message: memoryview) -> Node:
        inputs, outputs, attributes, tensors = [], [], [], []
        operator = name = ""
        numbers: dict[str, float] = {}
        for entry in fields(message):
            if entry.number == 1:
                inputs.append(entry.text)
            elif entry.number == 2:
                outputs.append(entry.text)
            elif entry.number == 3:
                name = entry.text
            elif entry.number == 4:
                operator = entry.text
            elif entry.number == 5:
                attributes.append(entry.part)
        node = Node(operator, name, tuple(inputs), tuple(outputs), numbers)
        for attribute in attributes:
            tensors += self._attribute(node, attribute, numbers)
        if operator in SIZED_BY_VALUES:
            raise ModelError(
                f"{self.path}: the operator {node} makes a tensor of a size that only its values tell; "
                "a feed-forward net needs none."
            )
        for tensor in tensors:
            self._tensor(tensor, outputs[0] if operator == "Constant" and outputs else str(node))
        return node

    def _attribute(
        self, node: Node, message: memoryview, numbers: dict[str, float]
    ) -> list[memoryview]:
        """The tensors of an attribute; a single number goes to `numbers`."""
        tensors, name, number = [], "", None
        for entry in fields(message):
            if entry.number == 1:
                name = entry.text
            elif entry.number == 2:
                number = entry.float32
            elif entry.number == 3:
                number = float(entry.integer)
            elif entry.number in (5, 10):
                tensors.append(entry.part)
            elif entry.number in (6, 11):
                raise ModelError(
                    f"{self.path}: the operator {node} holds a graph of its own (a branch or a loop); "
                    "a feed-forward net has none."
                )
            elif entry.number in (22, 23):
                raise ModelError(f"{self.path} holds a sparse tensor; weights must be dense.")
        if number is not None:
            numbers[name] = number
        return tensors

    def _tensor(self, message: memoryview, name: str = "") -> None:
        """Check a TensorProto and keep its shape; `name`: what it is called where it has no name."""
        shape: list[int] = []
        kind, raw, listed = 0, None, []
        for entry in fields(message):
            if entry.number == 1:
                shape += entry.integers()
            elif entry.number == 2:
                kind = entry.integer
            elif entry.number in (4, 5, 7, 10, 11):
                listed.append(entry)
            elif entry.number == 8:
                name = name or entry.text
            elif entry.number == 9:
                raw = entry.part
            elif entry.number == 13 or (entry.number == 14 and entry.integer):
                raise ModelError(
                    f"{self.path}: {name or 'a tensor'} lies in another file; only weights inside the .onnx "
                    "file are read (torch.onnx.export writes them there with external_data=False)."
                )
        if kind not in ITEM_BYTES:
            raise ModelError(
                f"{self.path}: {name} is of the ONNX data type {kind}, which a net cannot have."
            )
        if min(shape, default=0) < 0 or len(shape) > MOST_AXES:
            raise ModelError(
                f"{self.path}: {name} has the impossible shape {shape[: MOST_AXES + 1]}."
            )
        count = math.prod(shape)
        values = _values(kind, raw, listed)
        if values.size != count:
            raise ModelError(
                f"{self.path}: {name} has the shape {shape}, {count} numbers, and the file holds {values.size}."
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ModelError(f"{self.path}: {name} holds a value that is not a finite number.")
        self.constants[name] = tuple(shape), count * ITEM_BYTES[kind]

    def ends(self, card: Card) -> tuple[str, str]:
        """Names of the one input and the one output, which must be what the card promises."""
        inputs = [name for name in self.inputs if name not in self.constants]
        outputs = list(self.outputs)
        for what, names in (("input", inputs), ("output", outputs)):
            if len(names) != 1:
                listed = f" ({', '.join(names[:8])})" if names else ""
                raise ModelError(
                    f"{self.path} has {len(names)} {what}s{listed}; a net to score with has one."
                )
        self._check_end("input", inputs[0], self.inputs[inputs[0]], card.inputs, exactly=True)
        self._check_end("output", outputs[0], self.outputs[outputs[0]], card.senones, exactly=False)
        return inputs[0], outputs[0]

    def _check_end(
        self, what: str, name: str, message: memoryview, width: int, *, exactly: bool
    ) -> None:
        """One end must be f32 [free, width]; an output's shape need not be told (`exactly` False)."""
        kind, shape = _type_of(message)
        says = f"{self.path}: its {what} {name!r}"
        if kind != FLOAT:
            raise ModelError(f"{says} is no tensor of 32-bit floats.")
        if shape is None and not exactly:
            return
        shown = (
            "[" + ", ".join(str(d) if isinstance(d, int) else d or "?" for d in shape or ()) + "]"
        )
        wanted = f"[n, {width}]"
        if shape is None or len(shape) != 2:
            raise ModelError(f"{says} has the shape {shown}; {wanted} is needed.")
        if isinstance(shape[0], int):
            raise ModelError(
                f"{says} has the shape {shown}, a fixed number of frames; {wanted} is needed, with a free "
                "(dynamic) first axis."
            )
        if shape[1] != width and (exactly or isinstance(shape[1], int)):
            origin = "frames of context × features" if what == "input" else "the senones"
            raise ModelError(
                f"{says} has the shape {shown}; its card asks for {wanted} ({origin})."
            )


def _name(message: memoryview) -> str:
    return next((entry.text for entry in fields(message) if entry.number == 1), "")


def _type_of(message: memoryview) -> tuple[int, list[int | str] | None]:
    """Element type (0: no tensor) and shape of a ValueInfoProto; a free axis is its name, or empty."""
    kind, shape = 0, None
    for value in _inside(message, 2):
        for tensor in _inside(value, 1):
            for entry in fields(tensor):
                if entry.number == 1:
                    kind = entry.integer
                elif entry.number == 2:
                    shape = [_axis(axis) for axis in _inside(entry.part, 1)]
    return kind, shape


def _inside(message: memoryview, number: int) -> list[memoryview]:
    return [entry.part for entry in fields(message) if entry.number == number]


def _axis(message: memoryview) -> int | str:
    axis: int | str = ""
    for entry in fields(message):
        if entry.number == 1:
            axis = entry.integer
        elif entry.number == 2:
            axis = entry.text
    # Some exporters write 0 or less where an axis is free.
    return "" if isinstance(axis, int) and axis <= 0 else axis


def _values(kind: int, raw: memoryview | None, listed: list[Field]) -> Array:
    """The numbers of a tensor, flat; integers and 16-bit numbers only as far as their count goes."""
    plain = np.dtype(f"V{ITEM_BYTES[kind]}")
    if raw is not None and listed:
        raise WireError("a tensor with two lists of values")
    if raw is not None:
        return _flat(raw, REAL.get(kind, plain))
    if kind in (1, 11):
        return np.concatenate([np.empty(0), *(_flat(entry.part, REAL[kind]) for entry in listed)])
    integers = [value for entry in listed for value in entry.integers()]
    if kind == 10:
        # 16-bit floats are listed as integers that hold their bits.
        return np.array([value & 0xFFFF for value in integers], np.uint16).view(REAL[kind])
    return np.zeros(len(integers), plain)


def _flat(values: memoryview, kind: np.dtype[Any]) -> Array:
    if len(values) % kind.itemsize:
        raise WireError(f"{len(values)} bytes hold no whole number of values")
    return np.frombuffer(values, kind)
