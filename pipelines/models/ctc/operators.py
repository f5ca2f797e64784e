"""What a CTC net consists of: its blocks and operators, with their time, operations and bytes.

Before a run silence of three lengths is computed under onnxruntime's profile. From the shapes follow operations and
bytes, which grow with the outputs of a call and their square (attention); from the times, a call's share of each block.

A block is the outermost part of an operator's name that is numbered (`backbone.3`, `layers.0`), if it has parts itself.
What comes before the first is the stem (features, in a net that takes sound itself), what follows the last the output.
"""

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from pipelines.frontend.mfcc import Piece
from pipelines.models.ctc.net import Computing, Ctc, part, silence
from pipelines.models.onnx.graph import MOVED, per_output
from profiler.arrays import F64
from profiler.costs import Cost, Linear
from profiler.files.inputs import MIB, read_json
from profiler.plain import one_line

LENGTHS: Final = (100, 300, 900)  # frames: three points make a square
TURNS: Final = 5  # calls of each length; of each operator the fastest counts
LARGEST_PROFILE: Final = 64 * MIB
LONGEST_NAME: Final = 40
MOST_BLOCKS: Final = 64  # a net of more, or of one whose name is longer, is one block
KERNEL: Final = "_kernel_time"
NUMBERED: Final = re.compile(r"[A-Za-z_]\w*\.\d+")
INSERTED: Final = "Inserted"
PRODUCTS: Final = re.compile(r".*(MatMul|Gemm|Conv|Attention).*")
INT8: Final = re.compile(r".*(Integer|Quantize|QGemm|QLinear).*")


@dataclass(frozen=True)
class _Call:
    """One operator in one call: its `ns`, operations by class, and bytes of weights, of what goes in and comes out."""

    name: str
    kind: str
    ns: float
    operations: Mapping[str, float]
    bytes: tuple[float, float, float]


@dataclass(frozen=True)
class Operator:
    """A row of the table of operators: `ns` and `gflop` for a call of LENGTHS[-1] frames."""

    block: str
    kind: str
    calls: int
    ns: float
    gflop: float


@dataclass(frozen=True)
class Block:
    """A block of the net and its stage: `ns` f64 [lengths]; laws f64 [3] of operations by class, and of bytes."""

    stage: str
    group: Literal["frontend", "scoring"]
    ns: F64
    operations: Mapping[str, F64]
    least: F64
    most: F64
    weights: float


@dataclass(frozen=True)
class NetProfile:
    """`outputs` f64 [lengths]: of a call, for the times of the `blocks`."""

    outputs: F64
    blocks: tuple[Block, ...]
    operators: tuple[Operator, ...]

    def pieces(self, took_ns: int, outputs: int, first: int, frames: int) -> Iterator[Piece]:
        """A call that took `took_ns`, as one piece for each block, one after another."""
        ns = [float(np.interp(outputs, self.outputs, block.ns)) for block in self.blocks]
        ends = np.cumsum(ns) * (took_ns / sum(ns))
        for block, (begin, end) in zip(self.blocks, pairwise([0, *map(int, ends)]), strict=True):
            yield Piece(block.stage, first, frames, (outputs, outputs * outputs), max(end - begin, 1))

    def costs(self, threads: int) -> dict[str, Cost]:
        """Cost laws of the stages, by the outputs of a call and their square."""
        total = sum(block.weights for block in self.blocks)
        return {
            block.stage: Cost(
                operations={name: _linear(values) for name, values in block.operations.items()},
                bytes_min=_linear(block.least),
                bytes_max=_linear(block.most),
                working_set_bytes=total,
                threads=threads,
            )
            for block in self.blocks
        }


def _linear(values: F64) -> Linear:
    fixed, first, second = map(float, values)
    return Linear(fixed, 0.0, (first, second, 0.0))


def profiled(net: Ctc) -> NetProfile:
    """Compute silence under onnxruntime's profile; ModelError if it cannot be computed."""
    lengths = (net.input.chunk,) if net.input.chunk else LENGTHS
    outputs, calls = [], []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for frames in lengths:
            computing = Computing(net, str(Path(folder) / "profile"))
            x = part(net.input, silence(net.input, frames), 0, frames)
            for _ in range(TURNS):
                rows = len(computing.scores(x))
            outputs.append(rows)
            calls.append(_calls_of(Path(computing.session.end_profiling())))
    found: list[dict[str, list[_Call]]] = []
    for each in calls:
        of = blocks_of([call.name for call in each], net.input.fbank is None)
        own = [block for call, block in zip(each, of, strict=True) if not call.name.startswith(INSERTED)]
        found.append({block: [] for block in own + of})
        for call, block in zip(each, of, strict=True):
            found[-1][block].append(call)
    names = list(dict.fromkeys(name for of_length in found for name in of_length))
    n = np.array(outputs, np.float64)
    blocks = tuple(_block(name, [each.get(name, []) for each in found], n) for name in names)
    return NetProfile(n, blocks, tuple(_table(found[-1])))


def _calls_of(path: Path) -> list[_Call]:
    """The operators of the calls in a profile, in their order, each with its least time."""
    turns: list[list[_Call]] = [[]]
    least: dict[str, float] = {}
    profile = read_json(path, "a profile of onnxruntime", LARGEST_PROFILE)
    for event in msgspec.convert(profile, list[_Event]):
        if event.cat == "Session" and event.name == "model_run":
            turns.append([])
        elif event.cat == "Node" and event.name.endswith(KERNEL):
            turns[-1].append(_call(event.name.removesuffix(KERNEL), 1e3 * event.dur, event.args))
    for call in chain(*turns):
        least[call.name] = min(call.ns, least.get(call.name, call.ns))
    last = next(turn for turn in reversed(turns) if turn)
    return [replace(call, ns=least[call.name]) for call in last]


class _Event(msgspec.Struct):
    name: str = ""
    cat: str = ""
    dur: float = 0.0
    args: dict[str, object] = {}


def _call(name: str, ns: float, arguments: Mapping[str, object]) -> _Call:
    kind = one_line(str(arguments.get("op_name", "")), LONGEST_NAME)
    inputs, outputs = (_shapes(arguments.get(f"{end}_type_shape")) for end in ("input", "output"))
    sizes = [float(str(arguments.get(key) or 0)) for key in ("parameter_size", "activation_size", "output_size")]
    done = operations(kind, inputs, outputs)
    if PRODUCTS.fullmatch(kind) and len(inputs) == 1 and outputs:  # its weights are packed
        sizes[0] = 2.0 * sum(done.values()) * outputs[0][-1] / max(math.prod(outputs[0]), 1)
    return _Call(name, kind, ns, done, (sizes[0], sizes[1], sizes[2]))


def _shapes(listed: object) -> list[tuple[int, ...]]:
    """Shapes as a profile lists them, each with its type: [{"float": [1, 80, 400]}]."""
    found = listed if isinstance(listed, list) else []
    return [tuple(map(int, shape)) for each in found if isinstance(each, dict) for shape in each.values()]


def operations(kind: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> dict[str, float]:
    """Operations of an operator by class, from the shapes of its inputs and outputs; a multiply and an add are two."""
    if not inputs or not outputs or kind in MOVED:
        return {}
    count = float(math.prod(outputs[0]))
    if PRODUCTS.fullmatch(kind) and outputs[0]:
        # Weights that were packed when the net was loaded are not among the inputs.
        depth = math.prod(inputs[0]) * outputs[0][-1] / max(count, 1.0)
        if "Conv" in kind:
            depth = float(math.prod(inputs[1][1:])) if len(inputs) > 1 else 0.0
        return {"gemm:int8" if INT8.fullmatch(kind) else "gemm": 2.0 * count * depth}
    return {name: each * count for name, each in per_output(kind).items()}


def blocks_of(names: Sequence[str], takes_sound: bool) -> list[str]:
    """The block of each operator, of operators in their order; `takes_sound`: features are among them."""
    # A name that ends with a stroke has that of a fusion behind it.
    paths = [[part for part in name.split("/") if part][: -1 if name.endswith("/") else None] for name in names]
    at = [next((i for i, place in enumerate(path) if NUMBERED.fullmatch(place)), None) for path in paths]
    blocks = {path[i] for path, i in zip(paths, at, strict=True) if i is not None and len(path) > i + 2}
    own = [path[i] if i is not None and path[i] in blocks else "" for path, i in zip(paths, at, strict=True)]
    # Casts that onnxruntime puts in are computed at any time.
    placed = [not name.startswith(INSERTED) for name in names]
    if len(blocks) > MOST_BLOCKS or any(len(name) > LONGEST_NAME for name in blocks):
        own = [""] * len(names)
    last = max((n for n, name in enumerate(own) if name and placed[n]), default=-1)
    scoped = next((n for n, path in enumerate(paths) if len(path) > 1 and placed[n]), 0)
    found, before = [], "stem" if last >= 0 else "net"
    for n, name in enumerate(own):
        if n > last >= 0:
            before = "output"
        elif name and placed[n]:
            before = name
        found.append("features" if takes_sound and n < scoped and not name else name or before)
    return found


def _block(name: str, calls: Sequence[Sequence[_Call]], outputs: F64) -> Block:
    ns = np.array([sum(call.ns for call in each) for each in calls]) + 1.0
    law = {
        key: _fit(outputs, np.array([sum(call.operations.get(key, 0.0) for call in each) for each in calls]))
        for key in sorted({key for each in calls for call in each for key in call.operations})
    }
    weights = np.array([sum(call.bytes[0] for call in each) for each in calls])
    ends = np.array([each[0].bytes[1] + each[-1].bytes[2] if each else 0.0 for each in calls])
    moved = np.array([sum(sum(call.bytes[1:]) for call in each) for each in calls])
    least, most = _fit(outputs, weights + ends), _fit(outputs, weights + np.maximum(moved, ends))
    group: Literal["frontend", "scoring"] = "frontend" if name == "features" else "scoring"
    stage = f"{'frontend' if group == 'frontend' else 'score'}.{name.replace('.', ' ')}"
    return Block(stage, group, ns, law, least, most, float(weights.max()))


def _fit(outputs: F64, values: F64) -> F64:
    """Coefficients of 1, n and n² that give `values` for n `outputs`; of a single length all is fixed."""
    if len(set(outputs.tolist())) < 3:
        return np.array([values[-1], 0.0, 0.0])
    exact = np.linalg.solve(np.vander(outputs, 3, increasing=True), values)
    # What is left of rounding, and of layers that pad.
    exact[np.abs(exact * outputs[-1] ** np.arange(3)) < 1e-6 * max(values[-1], 1.0)] = 0.0
    found: F64 = np.maximum(exact, 0.0)
    return found


def _table(blocks: Mapping[str, Sequence[_Call]]) -> Iterator[Operator]:
    for block, calls in blocks.items():
        by_kind: dict[str, list[_Call]] = {}
        for call in calls:
            by_kind.setdefault(call.kind, []).append(call)
        for kind, each in by_kind.items():
            flops = sum(sum(call.operations.values()) for call in each)
            yield Operator(block, kind, len(each), sum(call.ns for call in each), flops / 1e9)
