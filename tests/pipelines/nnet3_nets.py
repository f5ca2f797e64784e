"""Small nets of nnet3: written as Kaldi writes them, and computed node by node and frame by frame as they are defined.

The computation fuses nothing and keeps nothing: a node's value at a time is that of its component for its descriptor at
that time, whose nodes are computed in turn. It is what the reader and the scorer are held against.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.pipelines import kaldi_writer
from tests.pipelines.kaldi_writer import f32, i32, integers, matrix, token, vector

Descriptor = Any
"""The name of a node, or a tuple: ("Append", …), ("Sum", a, b), ("Scale", x, d), ("Offset", d, t), ("Round", d, m),
("ReplaceIndex", d, t), ("IfDefined", d)."""
Compute = Callable[[list[np.ndarray]], np.ndarray]


def text_of(descriptor: Descriptor) -> str:
    """As it stands in a config."""
    if isinstance(descriptor, str):
        return descriptor
    kind, *arguments = descriptor
    if kind == "ReplaceIndex":
        return f"ReplaceIndex({text_of(arguments[0])}, t, {arguments[1]})"
    shown = (text_of(a) if isinstance(a, str | tuple) else str(a) for a in arguments)
    return f"{kind}({', '.join(shown)})"


def tagged(kind: str, **fields: Any) -> bytes:
    """A component with these fields, each written as the type of its value; bytes as they are."""
    data = token(f"<{kind}Component>")
    for name, value in fields.items():
        write = {int: i32, float: f32, bytes: bytes}.get(type(value)) or (vector if np.ndim(value) == 1 else matrix)
        data += token(f"<{name}>") + write(value)
    return data + token(f"</{kind}Component>")


UPDATABLE: dict[str, Any] = {"LearningRateFactor": 1.0, "LearningRate": 0.001}
RANKS = i32(20) + i32(80)


@dataclass
class NetWriter:
    """Lines and components of a net, and what each component computes of its inputs at its offsets."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    components: list[tuple[str, bytes]] = field(default_factory=list)
    computes: dict[str, tuple[tuple[int, ...], Compute]] = field(default_factory=dict)
    inputs: dict[str, Descriptor] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    priors: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))

    def input(self, name: str, dim: int) -> str:
        self.lines.append(f"input-node name={name} dim={dim}")
        self.dims[name] = dim
        return name

    def node(
        self, name: str, source: Descriptor, data: bytes, dim: int, compute: Compute, offsets: tuple[int, ...] = (0,)
    ) -> str:
        self.lines.append(f"component-node name={name} component={name} input={text_of(source)}")
        self.components.append((name, data))
        self.computes[name], self.inputs[name], self.dims[name] = (offsets, compute), source, dim
        return name

    def width(self, descriptor: Descriptor) -> int:
        if isinstance(descriptor, str):
            return self.dims[descriptor]
        kind, *arguments = descriptor
        if kind == "Append":
            return sum(self.width(a) for a in arguments)
        return self.width(arguments[1] if kind == "Scale" else arguments[0])

    def weights(self, outputs: int, inputs: int) -> np.ndarray:
        return self.rng.normal(0, 1.2 / math.sqrt(inputs), (outputs, inputs)).astype(np.float32)

    def affine(self, name: str, source: Descriptor, outputs: int, kind: str = "NaturalGradientAffine") -> str:
        weight, bias = self.weights(outputs, self.width(source)), self.rng.normal(0, 0.5, outputs).astype(np.float32)
        more = {"RankIn": 20, "RankOut": 80, "UpdatePeriod": 4, "NumSamplesHistory": 2000.0, "Alpha": 4.0}
        fields = {} if kind == "FixedAffine" else UPDATABLE
        fields = {**fields, "LinearParams": weight, "BiasParams": bias}
        data = tagged(kind, **fields, **(more if kind == "NaturalGradientAffine" else {}))
        return self.node(name, source, data, outputs, lambda x: weight @ x[0] + bias)

    def linear(self, name: str, source: Descriptor, outputs: int) -> str:
        weight = self.weights(outputs, self.width(source))
        more = {"RankInOut": RANKS, "Alpha": 4.0, "NumSamplesHistory": 2000.0, "UpdatePeriod": 4}
        data = tagged("Linear", **UPDATABLE, Params=weight, OrthonormalConstraint=-1.0, UseNaturalGradient=b"T", **more)
        return self.node(name, source, data, outputs, lambda x: weight @ x[0])

    def tdnn(self, name: str, source: Descriptor, outputs: int, offsets: tuple[int, ...], bias: bool = True) -> str:
        weight = self.weights(outputs, self.width(source) * len(offsets))
        shift = self.rng.normal(0, 0.5, outputs).astype(np.float32) if bias else np.zeros(outputs, np.float32)
        fields = {"TimeOffsets": integers(offsets), "LinearParams": weight, "BiasParams": shift if bias else []}
        more = {"UseNaturalGradient": b"F", "NumSamplesHistory": 2000.0, "AlphaInOut": f32(4) + f32(4)}
        data = tagged("Tdnn", **UPDATABLE, **fields, OrthonormalConstraint=0.0, **more, RankInOut=RANKS)
        return self.node(name, source, data, outputs, lambda x: weight @ np.concatenate(x) + shift, offsets)

    def batch_norm(self, name: str, source: Descriptor, blocks: int = 1) -> str:
        dim = self.width(source)
        block, rms, epsilon = dim // blocks, float(self.rng.uniform(0.5, 1.5)), 0.001
        mean = self.rng.normal(0, 1, block).astype(np.float32)
        variance = self.rng.uniform(0.2, 2, block).astype(np.float32)
        fields = {"Dim": dim, "BlockDim": block, "Epsilon": epsilon, "TargetRms": rms, "TestMode": b"F"}
        data = tagged("BatchNorm", **fields, Count=1000.0, StatsMean=mean, StatsVar=variance)
        scale, means = np.tile(rms / np.sqrt(variance + epsilon), blocks), np.tile(mean, blocks)
        return self.node(name, source, data, dim, lambda x: scale * (x[0] - means))

    def plain(self, name: str, source: Descriptor, kind: str = "NoOp") -> str:
        """What has an output for each input."""
        dim = self.width(source)
        scale, shift = np.random.default_rng(len(self.lines)).uniform(0.5, 1.5, (2, dim)).astype(np.float32)
        averages = {"Dim": dim, "ValueAvg": [0.5] * dim, "DerivAvg": [0.5] * dim, "Count": 3.0}
        repair = {"OderivRms": [1.0] * dim, "OderivCount": b"\x08" + np.float64(12).tobytes()}
        repair |= {"NumDimsSelfRepaired": 0.0, "NumDimsProcessed": 0.0, "SelfRepairScale": 1e-5}
        dropout = {"Dim": dim, "DropoutProportion": 0.1, "DropoutPerFrame": b"T", "TestMode": b"F"}
        general = {"Dim": dim, "BlockDim": dim, "TimePeriod": 0, "DropoutProportion": 0.1}
        kinds: dict[str, tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = {
            "NoOp": ({"Dim": dim, "BackpropScale": 1.0}, lambda x: x),
            "Dropout": (dropout, lambda x: x),
            "GeneralDropout": (general | {"TestMode": b"", "Continuous": b""}, lambda x: x),
            "RectifiedLinear": (averages | repair, lambda x: np.maximum(x, 0)),
            "Softmax": (averages, softmax),
            "LogSoftmax": (averages, lambda x: np.log(softmax(x))),
            "FixedScale": ({"Scales": scale}, lambda x: x * scale),
            "FixedBias": ({"Bias": shift}, lambda x: x + shift),
            "PerElementScale": (UPDATABLE | {"Params": scale}, lambda x: x * scale),
            "PerElementOffset": (UPDATABLE | {"Offsets": shift}, lambda x: x + shift),
            "ScaleAndOffset": (
                UPDATABLE | {"Dim": dim, "Scales": scale, "Offsets": shift},
                lambda x: x * scale + shift,
            ),
        }
        fields, compute = kinds[kind]
        return self.node(name, source, tagged(kind, **fields), dim, lambda x: compute(x[0]))

    def output(self, source: Descriptor, name: str = "output") -> None:
        self.lines.append(f"output-node name={name} input={text_of(source)} objective=linear")
        self.inputs[name] = source

    def net(self) -> bytes:
        """What follows the transition model."""
        data = token("<Nnet3>") + b"\n" + "".join(f"{line}\n" for line in self.lines).encode() + b"\n"
        data += token("<NumComponents>") + i32(len(self.components))
        for name, content in self.components:
            data += token("<ComponentName>") + token(name) + content
        data += token("</Nnet3>") + token("<LeftContext>") + i32(0) + token("<RightContext>") + i32(0)
        return data + token("<Priors>") + vector(self.priors)

    def file(self) -> bytes:
        phones, tuples = kaldi_writer.PHONES, kaldi_writer.TUPLES
        return b"\0B" + kaldi_writer.transition_model(phones, tuples, own_loops=True) + self.net()

    def scores(self, features: np.ndarray, times: range) -> np.ndarray:
        """The output less log priors at `times`, of features [frames, input + i-vector].

        ReplaceIndex gives the i-vector of the last frame.
        """
        first = self.dims["input"]

        @cache
        def value(name: str, t: int) -> np.ndarray:
            if name in ("input", "ivector"):
                frame = features[min(max(t, 0), len(features) - 1)].astype(np.float64)
                return frame[:first] if name == "input" else frame[first:]
            offsets, compute = self.computes[name]
            return compute([described(self.inputs[name], t + o) for o in offsets])

        def described(descriptor: Descriptor, t: int) -> np.ndarray:
            if isinstance(descriptor, str):
                return value(descriptor, t)
            kind, *a = descriptor
            if kind in ("Append", "Sum"):
                parts = [described(each, t) for each in a]
                return np.concatenate(parts) if kind == "Append" else np.sum(parts, axis=0)
            if kind == "Scale":
                return a[0] * described(a[1], t)
            if kind == "Offset":
                t += a[1]
            elif kind == "Round":
                t = math.floor(t / a[1]) * a[1]
            elif kind == "ReplaceIndex":
                t = len(features) - 1
            return described(a[0], t)

        found = np.array([described(self.inputs["output"], t) for t in times])
        return found - np.log(self.priors.astype(np.float64)) if len(self.priors) else found


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def tdnnf(seed: int = 1, pdfs: int = 8, input_dim: int = 5, ivector_dim: int = 4) -> NetWriter:
    """A chain net of factored layers, as Kaldi's recipes build it, with a branch for training.

    `ivector_dim`: 0 for a net without i-vectors.
    """
    w = NetWriter(np.random.default_rng(seed))
    x = w.input("input", input_dim)
    around: Descriptor = ("Append", ("Offset", x, -1), x, ("Offset", x, 1))
    if ivector_dim:
        around = (*around, ("ReplaceIndex", w.input("ivector", ivector_dim), 0))
    x = w.affine("lda", around, w.width(around), "FixedAffine")
    x = w.affine("tdnn1.affine", x, 12)
    x = w.batch_norm("tdnn1.batchnorm", w.plain("tdnn1.relu", x, "RectifiedLinear"))
    x = w.plain("tdnn1.dropout", x)
    for number, stride in ((2, 1), (3, 0), (4, 3), (5, 3)):
        n, offsets = f"tdnnf{number}", ((-stride, 0), (0, stride)) if stride else ((0,), (0,))
        y = w.tdnn(f"{n}.linear", x, 4, offsets[0], bias=False)
        y = w.tdnn(f"{n}.affine", y, 12, offsets[1])
        y = w.batch_norm(f"{n}.batchnorm", w.plain(f"{n}.relu", y, "RectifiedLinear"))
        y = w.plain(f"{n}.dropout", y, "GeneralDropout")
        x = w.plain(f"{n}.noop", ("Sum", ("Scale", 0.66, x), y))
    x = w.linear("prefinal-l", x, 6)
    y = w.plain("prefinal-chain.relu", w.affine("prefinal-chain.affine", x, 10), "RectifiedLinear")
    y = w.linear("prefinal-chain.linear", w.batch_norm("prefinal-chain.batchnorm1", y), 6)
    w.output(w.affine("output.affine", w.batch_norm("prefinal-chain.batchnorm2", y), pdfs))
    y = w.affine("output-xent.affine", w.affine("prefinal-xent.affine", x, 10), pdfs)
    w.output(w.plain("output-xent.log-softmax", y, "LogSoftmax"), "output-xent")
    return w


def write_folder(folder: Path, **sizes: int) -> Path:
    """A folder as Vosk has it: a chain net of these sizes, without i-vectors by default, and a graph of three words."""
    for name in ("am", "conf"):
        (folder / name).mkdir(parents=True)
    data = tdnnf(**{"input_dim": 13, "ivector_dim": 0, **sizes}).file()
    (folder / "conf/mfcc.conf").write_text(kaldi_writer.MFCC_CONF)
    (folder / "conf/model.conf").write_text("--frame-subsampling-factor=3\n--acoustic-scale=1.0\n--beam=10\n")
    (folder / "final.mdl").write_bytes(data)
    kaldi_writer.put_graph(folder, {"ab": (2, 3), "ba": (3, 2), "aba": (2, 3, 2)}, silence=1)
    return (folder / "final.mdl").rename(folder / "am/final.mdl").parents[1]


def mixed(seed: int, pdfs: int = 8, input_dim: int = 3, ivector_dim: int = 2) -> NetWriter:
    """A net of all components and descriptors in an order at random, of which the output is as a recipe's."""
    rng = np.random.default_rng(seed)
    w = NetWriter(rng)
    w.input("input", input_dim)
    w.input("ivector", ivector_dim)
    ivector = [("ReplaceIndex", "ivector", 0), ("Round", "ivector", 10), ("Offset", "ivector", 2)][rng.integers(3)]
    around = ("Append", ("Offset", "input", int(rng.integers(-4, 1))), ("Scale", 0.5, "input"), ivector)
    nodes = [w.affine("first", around, 6, str(rng.choice(["Affine", "FixedAffine"])))]

    def near(name: str) -> Descriptor:
        """A node as it is or somewhere else in time."""
        moved = ("Offset", name, int(rng.integers(-3, 4)))
        return [name, moved, ("IfDefined", moved), ("Round", moved, 3)][rng.integers(4)]

    steps: list[Callable[[str, Descriptor], str]] = [
        lambda n, d: w.affine(n, d, int(rng.integers(3, 9))),
        lambda n, d: w.linear(n, d, int(rng.integers(3, 9))),
        lambda n, d: w.tdnn(n, d, int(rng.integers(3, 9)), (-2, 0, 1)),
        lambda n, d: w.batch_norm(n, d, 1 + (w.width(d) % 2 == 0)),
        lambda n, d: w.plain(n, d, str(rng.choice(["RectifiedLinear", "Softmax", "LogSoftmax"]))),
        lambda n, d: w.plain(n, d, str(rng.choice(["NoOp", "Dropout", "GeneralDropout"]))),
        lambda n, d: w.plain(n, d, str(rng.choice(SCALINGS))),
    ]
    for number in range(int(rng.integers(6, 14))):
        name, last = f"node{number}", str(rng.choice(nodes[-3:]))
        alike = [each for each in nodes if w.dims[each] == w.dims[last]]
        sources: list[Callable[[], Descriptor]] = [
            lambda last=last: near(last),
            lambda last=last: last,
            lambda last=last, alike=alike: ("Sum", near(last), ("Scale", 0.7, near(str(rng.choice(alike))))),
            lambda last=last: ("Append", near(last), ("Offset", ("Append", str(rng.choice(nodes)), "input"), -1)),
        ]
        nodes.append(steps[rng.integers(len(steps))](name, sources[rng.integers(4)]()))
    x = w.affine("output.affine", nodes[-1], pdfs)
    if rng.random() < 0.5:
        x = w.plain("output.scale", x, str(rng.choice(SCALINGS)))
    if rng.random() < 0.5:
        w.priors = rng.dirichlet(np.ones(pdfs)).astype(np.float32) + np.float32(1e-3)
    w.output(w.plain("output.log-softmax", x, "LogSoftmax") if rng.random() < 0.5 else x)
    return w


SCALINGS = ("FixedScale", "FixedBias", "PerElementScale", "PerElementOffset", "ScaleAndOffset")
