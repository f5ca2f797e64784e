"""Components of nnet3 (nnet3/nnet-simple-component and its neighbours): fields by name between `<Type>` and `</Type>`.

What a field holds follows from its name alone, so that one table reads all components; what only training needs is
skipped. Batch norm is in test mode: mean and variance of training as a scale and a shift.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pipelines.models.kaldi.binary import Reader
from pipelines.models.nnet3 import Affine, Component, Function, Scaling
from profiler.arrays import F32, I32, Array
from profiler.plain import one_line

REALS: Final = (
    *("LearningRateFactor", "MaxChange", "L2Regularize", "LearningRate", "OrthonormalConstraint", "Count", "Alpha"),
    *("NumSamplesHistory", "MaxChangePerSample", "MaxChangePerMinibatch", "UpdateCount", "OderivCount", "Epsilon"),
    *("ActiveScalingCount", "MaxChangeScaleStats", "NumDimsSelfRepaired", "NumDimsProcessed", "TargetRms"),
    *("SelfRepairLowerThreshold", "SelfRepairUpperThreshold", "SelfRepairScale", "BackpropScale", "LearningRateScale"),
    *("DropoutProportion", "SpecAugmentMaxProportion", "SpecAugmentZeroProportion"),
)
PAIRS: Final = {"RankInOut": "ii", "AlphaInOut": "rr"}
INTEGERS: Final = (
    *("Dim", "BlockDim", "RankIn", "RankOut", "Rank", "UpdatePeriod", "TimePeriod", "SpecAugmentMaxRegions"),
    "SpecAugmentTimeMaskMaxFrames",
)
FLAGS: Final = ("IsGradient", "TestMode", "Continuous", "UseNaturalGradient", "DropoutPerFrame")
"""Truth values; in some components the name alone says yes."""
ARRAYS: Final = (
    *("LinearParams", "BiasParams", "Params", "Scales", "Bias", "Offsets", "StatsMean", "StatsVar"),
    *("ValueAvg", "DerivAvg", "OderivRms"),
)
LARGEST_DIM: Final = 1 << 16
MOST_OFFSETS: Final = 64
FARTHEST: Final = 1000  # frames of an offset
RECURRENT: Final = ("Lstm", "Gru", "Recurrent")


@dataclass
class _Fields:
    """What stands in a component, by the names of its fields."""

    reader: Reader
    name: str
    numbers: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, F32] = field(default_factory=dict)
    offsets: I32 | None = None

    def wrong(self, sentence: str) -> Exception:
        self.reader.wrong(f"the component {one_line(self.name)} {sentence}")

    def number(self, name: str) -> float:
        if name not in self.numbers:
            raise self.wrong(f"has no <{name}>")
        return self.numbers[name]

    def dim(self) -> int:
        dim = int(self.number("Dim"))
        if not 0 < dim <= LARGEST_DIM:
            raise self.wrong(f"has {dim} values, expected 1 to {LARGEST_DIM:,}")
        return dim

    def array(self, name: str, axes: int) -> F32:
        found = self.arrays.get(name)
        if found is None or found.ndim != axes or not found.size or max(found.shape) > LARGEST_DIM * MOST_OFFSETS:
            shape = "none" if found is None else f"one of the shape {found.shape}"
            raise self.wrong(f"needs <{name}> with {axes} axes and at most {LARGEST_DIM:,} rows, it has {shape}")
        return found


def read(reader: Reader, name: str) -> Component:
    """Read the component `name` from its first token to its last; ModelError if it is unsound or none of `KINDS`."""
    mark = reader.token()
    kind = mark[1:-1]
    if not (mark.startswith("<") and mark.endswith(">")):
        reader.wrong(f"the component {one_line(name)} begins with {one_line(mark)}, which is no type")
    make = KINDS.get(kind.removesuffix("Component"))
    if make is None:
        why = "recurrent nets (LSTM, GRU) are" if kind.startswith(RECURRENT) else "that type is"
        reader.wrong(f"the component {one_line(name)} is a {one_line(kind)}; {why} not computed")
    fields = _Fields(reader, name)
    while (token := reader.token()) not in (f"</{kind}>", mark):
        _field(fields, token[1:-1])
    return make(fields)


def _field(fields: _Fields, name: str) -> None:
    reader = fields.reader
    if name in REALS:
        fields.numbers[name] = reader.real(name)
    elif name in INTEGERS:
        fields.numbers[name] = reader.integer(name, -1)
    elif name in PAIRS:
        for kind in PAIRS[name]:
            _ = reader.integer(name, -1) if kind == "i" else reader.real(name)
    elif name in FLAGS:
        if reader.data[reader.at : reader.at + 1] in (b"T", b"F"):
            reader.take(1, name)
    elif name == "TimeOffsets":
        fields.offsets = reader.integers("time offsets")
    elif name in ARRAYS:
        read_one = reader.matrix if reader.peek()[1:] == "M" else reader.vector
        fields.arrays[name] = read_one(f"{name} of {one_line(fields.name)}")
    else:
        raise fields.wrong(f"has the field {one_line(name)}, which is not known")


def _affine(fields: _Fields) -> Affine:
    return _of(fields, fields.array("LinearParams", 2), fields.array("BiasParams", 1))


def _linear(fields: _Fields) -> Affine:
    weight = fields.array("Params", 2)
    return _of(fields, weight, np.zeros(len(weight), np.float32))


def _tdnn(fields: _Fields) -> Affine:
    weight, offsets = fields.array("LinearParams", 2), fields.offsets
    if offsets is None or not 0 < len(offsets) <= MOST_OFFSETS or (np.diff(offsets) <= 0).any():
        raise fields.wrong(f"needs 1 to {MOST_OFFSETS} time offsets that ascend")
    if np.abs(offsets).max() > FARTHEST or weight.shape[1] % len(offsets):
        raise fields.wrong(f"has {weight.shape[1]} inputs at the time offsets {one_line(str(offsets), 60)}")
    # Without a bias the vector is empty.
    bias = fields.arrays.get("BiasParams")
    if bias is None or not bias.size:
        bias = np.zeros(len(weight), np.float32)
    return _of(fields, weight, bias, tuple(offsets.tolist()))


def _of(fields: _Fields, weight: F32, bias: F32, offsets: tuple[int, ...] = (0,)) -> Affine:
    if bias.shape != weight.shape[:1] or len(weight) > LARGEST_DIM or weight.shape[1] > LARGEST_DIM * len(offsets):
        raise fields.wrong(f"has weights {weight.shape} and a bias {bias.shape}")
    return Affine(weight, bias, offsets)


def _batch_norm(fields: _Fields) -> Scaling:
    dim, block = fields.dim(), int(fields.number("BlockDim"))
    mean, variance = fields.array("StatsMean", 1), fields.array("StatsVar", 1)
    if mean.shape != (block,) or variance.shape != (block,) or dim % block or not fields.number("Count") > 0:
        raise fields.wrong(
            f"has statistics {mean.shape} and {variance.shape} of {fields.number('Count'):g} frames for blocks of "
            f"{block} of {dim} values"
        )
    floored = np.maximum(variance.astype(np.float64), 0) + fields.number("Epsilon")
    if not (floored > 0).all():
        raise fields.wrong("has a variance of 0")
    scale = fields.number("TargetRms") / np.sqrt(floored)
    return _scaling(fields, scale, -mean * scale, dim // block)


def _scaling(fields: _Fields, scale: Array, shift: Array, times: int = 1) -> Scaling:
    made = Scaling(np.tile(scale, times).astype(np.float32), np.tile(shift, times).astype(np.float32))
    if made.scale.shape != made.shift.shape or not 0 < len(made.scale) <= LARGEST_DIM:
        raise fields.wrong(f"has scales {scale.shape} and offsets {shift.shape}")
    return made


def _scale(fields: _Fields) -> Scaling:
    scale = fields.array("Scales" if "Scales" in fields.arrays else "Params", 1)
    return _scaling(fields, scale, np.zeros_like(scale))


def _bias(fields: _Fields) -> Scaling:
    shift = fields.array("Bias" if "Bias" in fields.arrays else "Offsets", 1)
    return _scaling(fields, np.ones_like(shift), shift)


def _scale_and_offset(fields: _Fields) -> Scaling:
    scale, shift = fields.array("Scales", 1), fields.array("Offsets", 1)
    dim = fields.dim()
    if scale.shape != shift.shape or dim % len(scale):
        raise fields.wrong(f"has scales {scale.shape} and offsets {shift.shape} for {dim} values")
    return _scaling(fields, scale, shift, dim // len(scale))


KINDS: Final[dict[str, Callable[[_Fields], Component]]] = {
    **dict.fromkeys(("Affine", "NaturalGradientAffine", "FixedAffine"), _affine),
    "Linear": _linear,
    "Tdnn": _tdnn,
    "BatchNorm": _batch_norm,
    **dict.fromkeys(("FixedScale", "PerElementScale", "NaturalGradientPerElementScale"), _scale),
    **dict.fromkeys(("FixedBias", "PerElementOffset"), _bias),
    "ScaleAndOffset": _scale_and_offset,
    "RectifiedLinear": lambda fields: Function("relu", fields.dim()),
    "Softmax": lambda fields: Function("softmax", fields.dim()),
    "LogSoftmax": lambda fields: Function("log-softmax", fields.dim()),
    **dict.fromkeys(
        ("NoOp", "Dropout", "GeneralDropout", "SpecAugmentTimeMask"), lambda fields: Function("none", fields.dim())
    ),
}
"""What each type of component is."""
