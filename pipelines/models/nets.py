"""Feed-forward acoustic nets: `NAME.safetensors` with the weights and `NAME.json`, the card that explains them.

The card says what goes in (frames of context, mean and scale of each feature), which layers follow, and what comes out;
whatever else it says (data, command, word errors) is kept as `about`. `docs/nets.md` explains it. A net of K heads
answers for K frames at once: the frame in the middle of its context and the K − 1 that follow (multi-frame DNN,
Vanhoucke 2013). Outputs are natural log posteriors under an even prior, which search takes as log likelihoods.

Tensors, all f16 or f32: `layers.0.weight` [outputs, inputs], `layers.0.bias` [outputs] and so on; `heads.0.weight`
[senones, outputs of the last layer], `heads.0.bias` and so on. Weights that are mostly zero may instead be two tensors:
`NAME.mask` u8 [outputs, ceil(inputs / 8)], a bit for each weight, the first in the highest, and `NAME.kept` [n], those
whose bit is set, row by row; others are zero. A mask of ceil(outputs / 16) rows says the same for 16 outputs at a time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open

import assets
from pipelines.models.errors import ModelError
from profiler.arrays import Array
from profiler.files.inputs import InputError, json_tree, open_input, read_bytes, regular
from profiler.plain import one_line

FORMAT = "asrscope feed-forward net 1"
MAX_WIDTH = 65_536
MAX_LAYERS = 64
MAX_PARAMETERS = 48 << 20
"""Weights and biases, 200 MB as they are computed with; the largest published feed-forward nets have 45 million."""
LARGEST_FILE = 4 * MAX_PARAMETERS + (1 << 20)  # bytes
LARGEST_TEXT = 1 << 20  # bytes of a card, and of a safetensors header; those that are shipped have some thousands
LARGEST_STATISTIC = 1e9
SUFFIXES = (".safetensors", ".onnx")
MASK, KEPT = ".mask", ".kept"
BLOCK = 16  # outputs whose weights of one input may share a bit of a mask: a 512-bit register of float32
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_WIDTH)]
Reach = Annotated[int, msgspec.Meta(ge=0, le=50)]  # frames; half a second is more than any published net looks at


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An affine layer; `relu`: whether max(0, ·) follows (a bottleneck or low-rank factor has none)."""

    outputs: Count
    relu: bool = True


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Description of the weights: all that is needed to compute with them, and their origin."""

    format: str
    left: Reach  # frames of context before the scored one; `right`: after it
    right: Reach
    mean: list[float]  # of each feature of a frame; (feature − mean) · scale goes in
    scale: list[float]
    senones: Count
    layers: Annotated[list[Layer], msgspec.Meta(max_length=MAX_LAYERS)] = []
    """Between the input and the heads; a graph (`pipelines.models.onnx.graph`) has its own, and none need be listed."""
    heads: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    about: dict[str, Any] = {}

    @property
    def dimension(self) -> int:
        return len(self.mean)

    @property
    def inputs(self) -> int:
        return (self.left + 1 + self.right) * self.dimension

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that belongs to the net, and its shape."""
        shapes: dict[str, tuple[int, ...]] = {}
        width = self.inputs
        for i, layer in enumerate(self.layers):
            shapes[f"layers.{i}.weight"] = (layer.outputs, width)
            shapes[f"layers.{i}.bias"] = (layer.outputs,)
            width = layer.outputs
        for i in range(self.heads):
            shapes[f"heads.{i}.weight"] = (self.senones, width)
            shapes[f"heads.{i}.bias"] = (self.senones,)
        return shapes

    @property
    def n_parameters(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes.values())


@dataclass(frozen=True, eq=False)
class Net:
    """A card and the f32 tensors that it promises."""

    name: str
    card: Card
    tensors: Mapping[str, Array]

    def matrices(self) -> list[tuple[Array, Array, bool]]:
        """(weight [outputs, inputs], bias, relu) per layer; the first takes plain features.

        Mean and scale of the input are folded into the first layer (or, without one, into the heads).
        """
        card = self.card
        stack = [
            (self.tensors[f"layers.{i}.weight"], self.tensors[f"layers.{i}.bias"], layer.relu)
            for i, layer in enumerate(card.layers)
        ]
        if stack:
            weight, bias, relu = stack[0]
            stack[0] = (*self._folded(weight, bias), relu)
        return stack

    def head(self, number: int) -> tuple[Array, Array]:
        """Weight [senones, width of the last layer] and bias of a head."""
        weight, bias = self.tensors[f"heads.{number}.weight"], self.tensors[f"heads.{number}.bias"]
        return (weight, bias) if self.card.layers else self._folded(weight, bias)

    def _folded(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        times = self.card.left + 1 + self.card.right
        scale, mean = (np.tile(np.asarray(each, np.float64), times) for each in (self.card.scale, self.card.mean))
        folded = weight * scale
        return folded.astype(np.float32), (bias - folded @ mean).astype(np.float32)


def shipped() -> list[str]:
    return sorted(file.stem for file in assets.path("nets").glob("*.safetensors"))


def find(name: str) -> Path:
    """The weights of a shipped net by its name, or of any by its path; ModelError when there are none."""
    if name in shipped():
        return assets.path("nets", f"{name}.safetensors")
    path = Path(name)
    if path.suffix in SUFFIXES and regular(path):
        return path
    raise ModelError(
        f"There is no net {name!r}; {', '.join(shipped()) or 'none'} came with the program, and any "
        "other is named by the path of its .safetensors or .onnx file."
    )


def load(path: Path | str, senones: int | None = None, dimension: int | None = None) -> Net:
    """Read a net and check it; ModelError says in one sentence what does not fit.

    `senones` and `dimension`: what the acoustic model has and the front end makes, where that matters.
    """
    path = Path(path)
    card = read_card(path.with_suffix(".json"))
    check_fit(path, card, senones, dimension)
    tensors: dict[str, Array] = {}
    try:
        with open_input(path, "a net", LARGEST_FILE) as file:
            announced = int.from_bytes(file.read(8), "little")
        if announced > LARGEST_TEXT:
            raise ModelError(f"{path} is not a whole safetensors file: it announces a header of {announced:,} bytes.")
        with safe_open(path, framework="numpy") as content:
            names, shapes = set(content.keys()), card.shapes
            masked = {name for name in shapes if len(shapes[name]) == 2 and {name + MASK, name + KEPT} & names}
            wanted = (shapes.keys() - masked) | {name + part for name in masked for part in (MASK, KEPT)}
            if missing := sorted(wanted - names):
                raise ModelError(f"{path} lacks the tensor {missing[0]} that its card asks for.")
            if foreign := sorted(names - wanted):
                raise ModelError(
                    f"{path} holds the tensor {one_line(foreign[0])}, which its card does not know; only affine layers "
                    "and heads can be computed."
                )
            for name, shape in shapes.items():
                read = _unmasked if name in masked else _tensor
                tensors[name] = read(path, content, name, shape).astype(np.float32, copy=False)
    except InputError as error:
        raise ModelError(str(error)) from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from None
    except SafetensorError as error:
        raise ModelError(f"{path} is not a whole safetensors file: {one_line(str(error))}.") from None
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise ModelError(f"{path}: {name} holds a value that is not a finite number.")
    return Net(path.stem, card, tensors)


def check_fit(path: Path, card: Card, senones: int | None, dimension: int | None) -> None:
    """Raise ModelError if the net of `card` does not fit the acoustic model or the front end, if they are given."""
    if senones is not None and card.senones != senones:
        raise ModelError(f"{path} scores {card.senones} senones and the acoustic model has {senones}.")
    if dimension is not None and card.dimension != dimension:
        raise ModelError(f"{path} takes {card.dimension} features per frame and the front end makes {dimension}.")


def read_card(path: Path) -> Card:
    """The card of a net; ModelError when it is missing or says what cannot be."""
    try:
        text = read_bytes(path, "the card of a net", LARGEST_TEXT)
    except InputError as error:
        raise ModelError(
            f"The card {path} cannot be read ({str(error).rstrip('.')}); a net needs one beside its "
            "weights, with the same name: docs/nets.md says what stands in it."
        ) from error
    try:
        card = msgspec.convert(json_tree(text, "it"), Card)
    except (msgspec.ValidationError, InputError) as error:
        said = one_line(str(error)).rstrip(".")
        raise ModelError(f"The card {path} does not describe a net: {said}.") from error
    if card.format != FORMAT:
        raise ModelError(f"The card {path} is in the format {one_line(card.format)!r}; {FORMAT!r} is read.")
    if not card.mean or len(card.mean) != len(card.scale):
        raise ModelError(
            f"The card {path} has {len(card.mean)} means and {len(card.scale)} scales; one of each is "
            "needed for every feature of a frame."
        )
    if not (np.abs([*card.mean, *card.scale]) < LARGEST_STATISTIC).all():
        raise ModelError(f"The card {path} has a mean or scale beyond ±{LARGEST_STATISTIC:g}, as no feature has.")
    # Before anything is allocated: all-zero weights take next to no room in a file.
    if card.inputs > MAX_WIDTH:
        raise ModelError(f"The card {path} asks for {card.inputs:,} inputs; at most {MAX_WIDTH:,} are read.")
    if card.n_parameters > MAX_PARAMETERS:
        raise ModelError(
            f"The card {path} asks for {card.n_parameters:,} weights; at most {MAX_PARAMETERS:,} are read."
        )
    return card


def stored(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors as a file holds them, f16; of weights that are mostly zero mask and rest, where that is smaller."""
    found: dict[str, Array] = {}
    for name, values in tensors.items():
        whole = values.astype(np.float16)
        ways: list[dict[str, Array]] = [{name: whole}]
        for rows in (1, BLOCK) if whole.ndim == 2 else ():
            bits = np.logical_or.reduceat(whole != 0, np.arange(0, len(whole), rows))
            kept = np.repeat(bits, rows, axis=0)[: len(whole)]
            ways.append({name + MASK: np.packbits(bits, axis=1), name + KEPT: whole[kept]})
        sizes = [sum(part.nbytes for part in way.values()) for way in ways]
        found |= ways[int(np.argmin(sizes))]
    return found


def _tensor(path: Path, file: Any, name: str, shape: tuple[int, ...], *dtypes: str) -> Array:
    """The tensor of this shape, of one of `dtypes` (default: the floating ones); ModelError."""
    dtypes = dtypes or ("F16", "F32")
    part = file.get_slice(name)
    found = tuple(part.get_shape())
    if found != shape:
        raise ModelError(f"{path}: {name} has the shape {list(found)}, its card asks for {list(shape)}.")
    if part.get_dtype() not in dtypes:
        raise ModelError(f"{path}: {name} holds {part.get_dtype()} numbers; {' or '.join(dtypes)} are needed.")
    values: Array = file.get_tensor(name)
    return values


def _unmasked(path: Path, file: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Weights f32 of which the file holds mask and rest; ModelError."""
    outputs, width = shape
    blocks = -(-outputs // BLOCK)
    rows = BLOCK if file.get_slice(name + MASK).get_shape()[:1] == [blocks] else 1
    wanted = (-(-outputs // rows), -(-width // 8))
    bits = np.unpackbits(_tensor(path, file, name + MASK, wanted, "U8"), axis=1).astype(bool)
    if bits[:, width:].any():
        raise ModelError(f"{path}: {name}{MASK} has bits set beyond the {width} of a row.")
    kept = np.repeat(bits[:, :width], rows, axis=0)[:outputs]
    number = int(np.count_nonzero(kept))
    found = file.get_slice(name + KEPT).get_shape()
    if found != [number]:
        raise ModelError(f"{path}: {name}{KEPT} has the shape {found}, its mask asks for [{number}].")
    values = np.zeros(shape, np.float32)
    values[kept] = _tensor(path, file, name + KEPT, (number,))
    return values
