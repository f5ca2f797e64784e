"""Cost laws of nnet3 nets, step by step, by the frames at which a step is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.costs import calls, per
from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from pipelines.scoring.dnn.nnet3.plan import Plan, Step

GATHERED = 2.0
"""Times that a value moves that is put into an input: read and written."""


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
    return Cost(
        operations={"fma": per(fma)} if fma else {},
        bytes_min=per(2.0 * width),
        bytes_max=per(2.0 * width * len(list(at.terms))),
        working_set_bytes=2.0 * width,
        calls=law.calls,
    )


def _width(plan: Plan, node: str) -> int:
    step = plan.by_node.get(node)
    return step.outputs if step is not None else plan.net.dims[node]
