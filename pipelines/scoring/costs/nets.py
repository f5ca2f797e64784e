"""Cost laws of nets on the processor, layer by layer.

A law counts frames in hidden layers and senones in output layers: `frame` is how many frames a work count stands for,
`times` how many products of this size share a call. Before a layer's turn comes again all others have been read, so
`net_bytes` is the working set of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.models.nets import Card
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls, frame_calls, per
from pipelines.scoring.simd.vector import VECTOR_BYTES
from profiler.arrays import Array
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines.scoring.dnn.bf16 import Rounded
    from pipelines.scoring.dnn.products import Product
    from pipelines.scoring.dnn.quantised import Quantised

BF16 = 2
"""Bytes of a number of 16 bits."""
MOVED = 3.0
"""Times that an operand moves that is laid out anew for each product: read, written, read."""
SPLICE_CALLS = 2
"""Compiled calls that put frames side by side."""
LAYER_CALLS = 2
"""Compiled calls of a layer: its product, and what comes before or after it."""
INTEGER_CALLS = 3
"""Compiled calls of a layer of integers: sums of its inputs, its product, and scaling and rounding what comes out."""


def splice(card: Card, frames: int) -> Cost:
    """Law of putting frames side by side, in calls of `frames` frames."""
    x, features = float(FLOAT * card.inputs), float(FLOAT * card.dimension)
    return Cost(
        bytes_min=per(features + x),
        bytes_max=per(3.0 * x),
        working_set_bytes=2.0 * x * frames,
        calls=calls(SPLICE_CALLS),
    )


def scaled_splice(card: Card, frames: int) -> Cost:
    """The same where each feature is centred and scaled before."""
    features = float(FLOAT * card.dimension)
    law = splice(card, frames)
    return replace(
        law,
        operations={"fma": per(2.0 * card.dimension)},
        bytes_max=law.bytes_max.plus(per(4.0 * features)),
        calls={},
    )


def product(
    shape: tuple[int, int],
    nbytes: float,
    frame: float,
    times: float,
    most: float,
    *,
    multiplied: float,
    operation: str = "gemm",
    packed: float = 1.0,
    called: Mapping[str, Linear] | None = None,
) -> Cost:
    """Law of `times` products of weights [outputs, inputs], `nbytes` each: these once a call, activations in and out.

    `multiplied`: weights that are multiplied. At most a frame moves `most` bytes, a call the weights `packed` times.
    """
    outputs, inputs = shape
    return Cost(
        operations={operation: per(2.0 * multiplied * frame)},
        bytes_min=per(FLOAT * (inputs + outputs) * frame, fixed=times * nbytes),
        bytes_max=per(most * frame, fixed=packed * times * nbytes),
        calls=calls(LAYER_CALLS * times) if called is None else called,
    )


def dense_layer(
    layer: Product,
    frames: int,
    net_bytes: float,
    frame: float,
    times: float,
    moved: float,
    maxima: float,
) -> Cost:
    """Law of a product in a net, in calls of `frames` frames.

    `moved`: floats per work count that are read again and written; `maxima`: those of ReLU.
    """
    law = layer.cost(frame, times)
    operations = dict(law.operations)
    if maxima:
        operations["fma"] = operations.get("fma", Linear()).plus(per(maxima))
    return replace(
        law,
        operations=operations,
        bytes_max=law.bytes_max.plus(per(2.0 * FLOAT * moved)),
        working_set_bytes=net_bytes,
        threads=layer.threads(frames),
    )


def chosen_rows(weights: Array, operation: str, scaling: float) -> Cost:
    """Law of rows of an output layer, by scores computed and rows read; `scaling`: more operations for each score.

    At least a row read and a score written; at most with the bias and the scale of the row, and a line of scores read
    before one of them is written.
    """
    row = float(weights.strides[0])
    scaled = {"fma": per(scaling)} if scaling else {}
    return Cost(
        operations={operation: per(2.0 * weights.shape[1])} | scaled,
        bytes_min=per(float(FLOAT), row),
        bytes_max=per(float(VECTOR_BYTES + FLOAT), row + 2.0 * FLOAT),
        working_set_bytes=float(weights.nbytes),
        calls=frame_calls(),
    )


def integer_layer(
    layer: Quantised,
    operation: str,
    frames: int,
    net_bytes: float,
    frame: float,
    times: float,
    touched: int,
) -> Cost:
    """Law of a layer of integers: weights once per call, 8 bits in, 32 out; then each sum is `touched` once or more."""
    outputs, inputs = layer.shape
    least = (inputs + (FLOAT if touched == 2 else 1) * outputs) * frame
    fixed, each = layer.moved
    most = (each + FLOAT * (1 + touched) * outputs) * frame
    return Cost(
        operations={
            operation: per(2.0 * inputs * outputs * frame),
            "fma": per(touched * outputs * frame),
        },
        bytes_min=per(least, fixed=times * layer.nbytes),
        bytes_max=per(most, fixed=fixed * times),
        working_set_bytes=net_bytes,
        threads=layer.threads(frames),
        calls=calls(INTEGER_CALLS * times),
    )


def bf16_layer(layer: Rounded, operation: str, net_bytes: float, threads: int, *, first: bool, heads: int = 0) -> Cost:
    """Law of a layer in bfloat16: weights once per call, activations in and out.

    `first`: features are centred, scaled and rounded before, each in a pass of its own. `heads`: those of an output
    layer that share a call; what comes out is read once more and written as float32, and senones are counted.
    """
    outputs, inputs = layer.shape
    frame, times = (1.0 / outputs, float(heads)) if heads else (1.0, 1.0)
    least = (FLOAT if first else BF16) * inputs + (FLOAT if heads else BF16) * outputs
    most = MOVED * BF16 * inputs + BF16 * outputs
    fma = 0.0
    if first:
        fma, most = 2.0 * inputs, most + (5.0 * FLOAT + BF16) * inputs
    if heads:
        most += (BF16 + FLOAT) * outputs
    if layer.relu:
        fma += outputs
        most += 0.0 if layer.laid_out else 2.0 * BF16 * outputs
    moved = 1.0 if layer.laid_out else MOVED
    vector = {"fma": per(fma * frame)} if fma else {}
    return Cost(
        operations={operation: per(2.0 * inputs * outputs * frame)} | vector,
        bytes_min=per(least * frame, fixed=times * layer.nbytes),
        bytes_max=per(most * frame, fixed=moved * times * layer.nbytes),
        working_set_bytes=net_bytes,
        threads=threads,
    )


def bf16_rows(head: Rounded, operation: str, frames: int, threads: int) -> Cost:
    """Law of chosen rows in bfloat16, which are gathered and then multiplied."""
    inputs = head.shape[1]
    row = float(BF16 * inputs)
    return Cost(
        operations={operation: per(2.0 * inputs)},
        bytes_min=per(row / max(1, frames) + FLOAT, fixed=row),
        bytes_max=per(MOVED * row + 3.0 * FLOAT, fixed=row),
        working_set_bytes=float(head.nbytes),
        threads=threads,
    )


def compiled(card: Card, layers: Sequence[tuple[tuple[int, int], bool]], threads: int) -> Cost:
    """Law of all `layers` (shape, ReLU) of a net as one function.

    Features are read and written; each product reads its input and writes; scores are copied out.
    """
    weights = float(FLOAT * sum(outputs * (inputs + 1) for (outputs, inputs), _ in layers))
    maxima = sum(outputs for (outputs, _), relu in layers if relu)
    passes = sum(MOVED * inputs + outputs for (outputs, inputs), _ in layers)
    most = FLOAT * (2.0 * card.inputs + passes + 2.0 * card.senones)
    return Cost(
        operations={
            "gemm": per(sum(2.0 * outputs * inputs for (outputs, inputs), _ in layers)),
            "fma": per(2.0 * card.inputs + maxima),
        },
        bytes_min=per(float(FLOAT * (card.inputs + card.senones)), fixed=weights),
        bytes_max=per(most, fixed=weights),
        working_set_bytes=weights,
        threads=threads,
    )
