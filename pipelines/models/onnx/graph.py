"""Acoustic nets as ONNX files: `NAME.onnx` with graph and weights, and `NAME.json`, its card.

The card (`pipelines.models.nets.Card`) says which frames go in and how they are scaled; the graph takes one f32 [n,
inputs], the scaled frames with their context, and gives one [n, senones] of log posteriors or logits (of probabilities
the logarithm is taken); n must be free. `docs/nets.md` says all of it to whoever exports a net.

Parsing alone may take all memory: a file that somebody names goes through `pipelines.models.foreign`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from pipelines.models import nets
from pipelines.models.errors import ModelError
from pipelines.models.nets import Card
from profiler.files.inputs import InputError, read_bytes
from profiler.plain import one_line

LARGEST_FILE = nets.LARGEST_FILE + (4 << 20)  # Bytes: the weights, and as much again as any graph of MAX_NODES takes
MAX_NODES = 10_000
MAX_AXES = 8
FLOAT = 1
ITEM_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
"""Bytes of a number by TensorProto.DataType: numbers and truth values, without strings and complex numbers."""
REAL = frozenset({1, 10, 11, 16})  # those that are no integers
LISTED = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
"""Where a TensorProto lists its values if they are not raw; else in `int32_data`."""
SIZED_BY_VALUES = {
    *("AffineGrid", "BlackmanWindow", "CenterCropPad", "Col2Im", "Compress", "ConstantOfShape", "DFT", "Expand"),
    *("EyeLike", "HammingWindow", "HannWindow", "MaxUnpool", "MelWeightMatrix", "NonMaxSuppression", "NonZero"),
    *("OneHot", "Pad", "RandomNormal", "RandomUniform", "Range", "Resize", "STFT", "Tile", "Unique", "Upsample"),
}
"""Operators whose result is as large as values say, not as what goes in: no bound is known."""
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
"""Operators whose result depends on all frames before: scores would depend on how frames come in blocks."""
RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})
SHAPED_BY = {"Slice": slice(1, 5), "Reshape": slice(1, 2), "Split": slice(1, 2), "TopK": slice(1, 2)}
"""Inputs that say how large a result is; they may follow from the number of frames, not from what is in them."""
SIZED = SHAPED_BY | dict.fromkeys(("CenterCropPad", "Expand", "OneHot", "Pad", "Tile"), slice(1, 2))
SIZED |= {"ConstantOfShape": slice(0, 1), "Range": slice(0, 3), "Resize": slice(1, 4)}
"""The same, with operators of SIZED_BY_VALUES that a net over whole utterances may have."""
MAX_DEPTH = 8  # of branches in branches
SIZES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class Node:
    """One operator of a graph, its single integers and floats by name."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        label = one_line(self.name or (self.outputs[0] if self.outputs else ""))
        return f"{one_line(self.operator)} {label!r}" if label else one_line(self.operator)


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
        content = read_bytes(path, "an ONNX file", LARGEST_FILE)
    except InputError as error:
        raise ModelError(str(error)) from error
    graph = _Graph(path, _model_of(path, content).graph)
    source, sink = graph.ends(card)
    graph.check_sizes(source)
    return OnnxModel(path, card, content, source, sink, tuple(graph.nodes), graph.constants)


def check(path: Path, content: bytes) -> dict[str, str]:
    """Check a net that takes whole utterances or keeps states, and return its metadata; ModelError.

    The first input takes the speech. Branches are read, loops are not.
    """
    model = _model_of(path, content)
    graph = _Graph(path, model.graph, whole=True)
    names = [name for name in graph.inputs if name not in graph.constants]
    if not names or not graph.outputs:
        raise ModelError(f"{path} has no input or no output.")
    for place, name in enumerate(names):
        if not place or graph.inputs[name].tensor_type.elem_type in REAL:
            graph.check_sizes(name)
    return {graph.text(one.key): graph.text(one.value) for one in model.metadata_props}


def _model_of(path: Path, content: bytes) -> Any:
    try:
        from google.protobuf.message import DecodeError
        from onnx import ModelProto
    except ImportError:
        raise ModelError(
            f"{path} needs the package onnx, which is not installed; `pip install onnx onnxruntime` brings it."
        ) from None
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{path} is not a whole ONNX file: {one_line(str(error))}.") from None
    if not model.HasField("graph"):
        raise ModelError(f"{path} is not a whole ONNX file: it holds no graph.")
    if model.training_info:
        raise ModelError(f"{path} holds training information; only a net to compute is read.")
    if model.functions:
        # A function may call others: a short file can unfold to any length.
        raise ModelError(f"{path} holds functions of its own; export it with them inlined.")
    return model


class _Graph:
    """The used parts of a GraphProto."""

    def __init__(self, path: Path, graph: Any, whole: bool = False) -> None:
        """`whole`: of a net that takes whole utterances or keeps states."""
        self.path, self._whole = path, whole
        self.nodes: list[Node] = []
        self.constants: dict[str, tuple[tuple[int, ...], int]] = {}
        self._read_nodes(graph, 0)
        self.inputs = {self.text(value.name): value.type for value in graph.input}
        self.outputs = {self.text(value.name): value.type for value in graph.output}

    def _read_nodes(self, graph: Any, depth: int) -> None:
        """Weights and operators of a graph, or of a branch in it."""
        if len(self.nodes) + len(graph.node) > MAX_NODES or depth > MAX_DEPTH:
            raise ModelError(f"{self.path} has more than {MAX_NODES} operators.")
        if graph.sparse_initializer:
            raise ModelError(f"{self.path} holds a sparse tensor; weights must be dense.")
        for tensor in graph.initializer:
            self._tensor(tensor, self.text(tensor.name))
        for node in graph.node if not self._whole else ():
            if node.op_type in RECURRENT:
                raise ModelError(
                    f"{self.path}: the operator {one_line(self.text(node.op_type))} carries what it heard from frame "
                    "to frame (a recurrent net); only feed-forward nets, which look at a fixed context, are computed."
                )
        for node in graph.node:
            self.nodes.append(self._node(node, depth))

    def text(self, name: Any) -> str:
        # What is not UTF-8 comes as bytes.
        if not isinstance(name, str):
            raise ModelError(f"{self.path} is not a whole ONNX file: a name in it is not UTF-8.")
        return name

    def _node(self, message: Any, depth: int) -> Node:
        numbers: dict[str, float] = {}
        text = self.text
        inputs, outputs = tuple(map(text, message.input)), tuple(map(text, message.output))
        node = Node(text(message.op_type), text(message.name), inputs, outputs, numbers)
        if node.operator in SIZED_BY_VALUES and not (self._whole and node.operator in SIZED):
            raise ModelError(
                f"{self.path}: the operator {node} makes a tensor of a size that only its values tell; "
                "a net to score with needs none."
            )
        if node.operator in RANDOM:
            raise ModelError(f"{self.path}: the operator {node} is random; a net to score with is not.")
        name = node.outputs[0] if node.operator == "Constant" and node.outputs else str(node)
        for attribute in message.attribute:
            if self._whole and node.operator == "If" and attribute.HasField("g"):
                self._read_nodes(attribute.g, depth + 1)
                ends = tuple(text(value.name) for value in attribute.g.output)
                node = replace(node, inputs=(*node.inputs, *ends))
            elif attribute.HasField("g") or attribute.graphs:
                raise ModelError(
                    f"{self.path}: the operator {node} holds a graph of its own (a branch or a loop); "
                    "a feed-forward net has none."
                )
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                raise ModelError(f"{self.path} holds a sparse tensor; weights must be dense.")
            for tensor in [attribute.t] * attribute.HasField("t") + list(attribute.tensors):
                self._tensor(tensor, name)
            if attribute.HasField("f"):
                numbers[text(attribute.name)] = attribute.f
            if attribute.HasField("i"):
                numbers[text(attribute.name)] = float(attribute.i)
        return node

    def _tensor(self, tensor: Any, name: str) -> None:
        from onnx import numpy_helper

        shown, kind, shape = one_line(name), tensor.data_type, list(tensor.dims)
        if tensor.external_data or tensor.data_location:
            raise ModelError(
                f"{self.path}: {shown or 'a tensor'} lies in another file; only weights inside the .onnx "
                "file are read (torch.onnx.export writes them there with external_data=False)."
            )
        if kind not in ITEM_BYTES:
            raise ModelError(f"{self.path}: {shown} is of the ONNX data type {kind}, which a net cannot have.")
        if min(shape, default=0) < 0 or len(shape) > MAX_AXES:
            raise ModelError(f"{self.path}: {shown} has the impossible shape {shape[: MAX_AXES + 1]}.")
        listed = len(getattr(tensor, LISTED.get(kind, "int32_data")))
        if tensor.HasField("raw_data") and listed:
            raise ModelError(f"{self.path}: {shown} has two lists of values.")
        count, found = math.prod(shape), len(tensor.raw_data) / ITEM_BYTES[kind] or listed
        if found != count:
            raise ModelError(
                f"{self.path}: {shown} has the shape {shape}, {count} numbers, and the file holds {found:g}."
            )
        if kind in REAL and not np.isfinite(numpy_helper.to_array(tensor).astype(np.float32)).all():
            raise ModelError(f"{self.path}: {shown} holds a value that is not a finite number.")
        if name in self.constants:
            raise ModelError(f"{self.path} has the tensor {shown!r} twice.")
        self.constants[name] = tuple(shape), count * ITEM_BYTES[kind]

    def ends(self, card: Card) -> tuple[str, str]:
        """Names of the one input and the one output, which must be what the card promises."""
        inputs = [name for name in self.inputs if name not in self.constants]
        outputs = list(self.outputs)
        for what, names in (("input", inputs), ("output", outputs)):
            if len(names) != 1:
                listed = f" ({one_line(', '.join(names[:8]))})" if names else ""
                raise ModelError(f"{self.path} has {len(names)} {what}s{listed}; a net to score with has one.")
        self._check_end("input", inputs[0], self.inputs[inputs[0]].tensor_type, card.inputs, exactly=True)
        self._check_end("output", outputs[0], self.outputs[outputs[0]].tensor_type, card.senones, exactly=False)
        return inputs[0], outputs[0]

    def _check_end(self, what: str, name: str, kind: Any, width: int, *, exactly: bool) -> None:
        """One end must be f32 [free, width]; an output's shape need not be known (`exactly` False)."""
        says = f"{self.path}: its {what} {one_line(name)!r}"
        if kind.elem_type != FLOAT:
            raise ModelError(f"{says} is no tensor of 32-bit floats.")
        if not kind.HasField("shape") and not exactly:
            return
        shape = [_axis(axis) for axis in kind.shape.dim]
        shown = one_line(f"[{', '.join(str(d) or '?' for d in shape)}]")
        wanted = f"[n, {width}]"
        if len(shape) != 2:
            raise ModelError(f"{says} has the shape {shown}; {wanted} is needed.")
        if isinstance(shape[0], int):
            raise ModelError(
                f"{says} has the shape {shown}, a fixed number of frames; {wanted} is needed, with a free "
                "(dynamic) first axis."
            )
        if shape[1] != width and (exactly or isinstance(shape[1], int)):
            origin = "frames of context × features" if what == "input" else "the senones"
            raise ModelError(f"{says} has the shape {shown}; its card asks for {wanted} ({origin}).")

    def check_sizes(self, source: str) -> None:
        """ModelError where a size depends on what is in the frames.

        Then memory depends on how many frames there are alone, and trying every number of them tells it.
        """
        spoken = _reached(source, self.nodes)
        for node in self.nodes:
            told_by = node.inputs[(SIZED if self._whole else SHAPED_BY).get(node.operator, slice(0))]
            if spoken.intersection(told_by):
                raise ModelError(
                    f"{self.path}: the operator {node} makes a tensor of a size that depends on the speech; "
                    "a net to score with needs none."
                )


def _reached(source: str, nodes: Iterable[Node]) -> set[str]:
    """Names of the tensors whose values follow from those of `source`; sizes alone do not count."""
    users: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        for name in node.inputs if node.operator not in SIZES else ():
            users[name].append(node)
    found, left = {source}, [source]
    while left:
        for node in users.pop(left.pop(), ()):
            new = set(node.outputs) - found
            found |= new
            left += new
    return found


def _axis(axis: Any) -> int | str:
    # Some exporters write 0 or less where an axis is free; a name that is not UTF-8 comes as bytes.
    name = axis.dim_param
    return axis.dim_value if axis.dim_value > 0 else name if isinstance(name, str) else repr(name)


PER_OUTPUT: Final[Mapping[str, Mapping[str, float]]] = {
    **{name: {"fma": 1} for name in ("Relu", "Add", "Sub", "Mul")},
    "BatchNormalization": {"fma": 2},
    "LayerNormalization": {"fma": 7},
    "Sigmoid": {"exp": 1, "fma": 2},
    **{name: {"exp": 1, "fma": 4} for name in ("Tanh", "Softmax", "LogSoftmax")},
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
    return PER_OUTPUT.get(operator, {"exp": 1, "fma": 4} if operator in EXPONENTIALS else {"fma": 1})
