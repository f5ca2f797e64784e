"""Cost laws of nets on the processor, layer by layer.

A law counts frames in hidden layers and senones in output layers: `frame` is how many frames a work count stands for,
`times` how many products of this size share a call. Before a layer's turn comes again all others have been read, so
`net_bytes` is the working set of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.models.nets import Card
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls, frame_calls, per
from pipelines.scoring.simd.vector import VECTOR_BYTES
from profiler.arrays import Array
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines.scoring.dnn.nnet3.plan import Plan, Step
    from pipelines.scoring.dnn.products.base import Product
    from pipelines.scoring.dnn.quantised import Quantised

MOVED = 3.0  # Times that an operand moves that is laid out anew for each product: read, written, read
SPLICE_CALLS = 2  # Compiled calls that put frames side by side
LAYER_CALLS = 2  # Compiled calls of a layer: its product, and what comes before or after it
INTEGER_CALLS = 3
"""Compiled calls of a layer of integers: sums of its inputs, its product, and scaling and rounding what comes out."""


def splice(card: Card, frames: int, scaled: bool = False) -> Cost:
    """Law of putting frames side by side, in calls of `frames` frames; `scaled`: each feature is before, by numpy."""
    x, features = float(FLOAT * card.inputs), float(FLOAT * card.dimension)
    least, most = per(features + x), per(3.0 * x + 4.0 * features * scaled)
    operations = {"fma": per(2.0 * card.dimension)} if scaled else {}
    return Cost(operations, least, most, 2.0 * x * frames, calls={} if scaled else calls(SPLICE_CALLS))


def product(
    weights: Product,
    frame: float,
    times: float,
    most: float,
    *,
    multiplied: float | None = None,
    operation: str = "gemm",
    packed: float = 1.0,
    called: Mapping[str, Linear] | None = None,
) -> Cost:
    """Law of `times` products of `weights` [outputs, inputs]: these once a call, activations in and out.

    `multiplied`: weights that are multiplied, if not all. At most a frame moves `most` bytes, a call the weights
    `packed` times.
    """
    (outputs, inputs), nbytes = weights.shape, times * weights.nbytes
    number = outputs * inputs if multiplied is None else multiplied
    return Cost(
        operations={operation: per(2.0 * number * frame)},
        bytes_min=per(FLOAT * (inputs + outputs) * frame, fixed=nbytes),
        bytes_max=per(most * frame, fixed=packed * nbytes),
        calls=calls(LAYER_CALLS * times) if called is None else called,
    )


def dense_layer(
    layer: Product, frames: int, net_bytes: float, frame: float, times: float, moved: float, maxima: float
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
    operations = {operation: per(2.0 * weights.shape[1])} | ({"fma": per(scaling)} if scaling else {})
    least, most = per(float(FLOAT), row), per(float(VECTOR_BYTES + FLOAT), row + 2.0 * FLOAT)
    return Cost(operations, least, most, float(weights.nbytes), calls=frame_calls())


def integer_layer(
    layer: Quantised, operation: str, frames: int, net_bytes: float, frame: float, times: float, touched: int
) -> Cost:
    """Law of a layer of integers: weights once per call, 8 bits in, 32 out; then each sum is `touched` once or more."""
    outputs, inputs = layer.shape
    least = (inputs + (FLOAT if touched == 2 else 1) * outputs) * frame
    fixed, each = layer.moved
    most = (each + FLOAT * (1 + touched) * outputs) * frame
    return Cost(
        operations={operation: per(2.0 * inputs * outputs * frame), "fma": per(touched * outputs * frame)},
        bytes_min=per(least, fixed=times * layer.nbytes),
        bytes_max=per(most, fixed=fixed * times),
        working_set_bytes=net_bytes,
        threads=layer.threads(frames),
        calls=calls(INTEGER_CALLS * times),
    )


GATHERED = 2.0  # Times that a value moves that is put into an input: read and written


def step(plan: Plan, at: Step, product: Cost | None, net_bytes: float, *, gathers: bool, frame: float = 1.0) -> Cost:
    """Law of a step whose weights' law is `product` (None: no weights), for 1/`frame` work counts a frame.

    `gathers`: its input is put together here, which is one call for each term; a term that is scaled or added takes two
    operations a value. ReLU takes one, a scale with a shift two.
    """
    terms = [(_width(plan, term.node), i, term.scale) for part in at.parts for i, term in enumerate(part)]
    gathered = float(sum(width for width, _, _ in terms)) if gathers else 0.0
    touched = (at.relu + 2.0 * (at.scale is not None)) * at.outputs
    operations = dict(product.operations) if product is not None else {}
    if gathers:
        touched += sum(2.0 * width for width, i, scale in terms if i or scale != 1.0)
    if touched:
        operations["fma"] = operations.get("fma", Linear()).plus(per(touched * frame))
    if at.function:
        operations["exp"] = per(2.0 * at.outputs * frame)
    finishes = at.relu or at.scale is not None or bool(at.function)
    moved = GATHERED * gathered + 2.0 * at.outputs * finishes
    base = product or Cost(bytes_min=per(FLOAT * (gathered + at.outputs) * frame))
    called = dict(base.calls)
    for kind, law in calls(len(terms) * gathers + finishes).items():
        called[kind] = called.get(kind, Linear()).plus(law)
    return replace(
        base,
        operations=operations,
        bytes_max=(base.bytes_max if product is not None else base.bytes_min).plus(per(FLOAT * moved * frame)),
        working_set_bytes=net_bytes,
        calls=called,
    )


def joined(plan: Plan, at: Step) -> Cost:
    """Law of putting the input of `at` together, in a stage of its own."""
    law = step(plan, at, None, 0.0, gathers=True)
    width = float(FLOAT * at.inputs)
    fma = sum(2.0 * _width(plan, t.node) for part in at.parts for i, t in enumerate(part) if i or t.scale != 1.0)
    least, most = per(2.0 * width), per(2.0 * width * len(list(at.terms)))
    return Cost({"fma": per(fma)} if fma else {}, least, most, 2.0 * width, calls=law.calls)


def _width(plan: Plan, node: str) -> int:
    step = plan.by_node.get(node)
    return step.outputs if step is not None else plan.net.dims[node]
