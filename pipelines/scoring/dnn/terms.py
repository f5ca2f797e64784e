"""What bounds the kernels of nets, for their cost laws: names of roofs and how the terms of a product are put together.

`roofs` and `library_roofs` measure what is named here. A name is a family and its numbers; `frames` are always those
of a call.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.kernel_work import (
    COLD,
    MOST_PASSED,
    SEARCHED_PER_FRAME,
    named,
    power_of_two,
    turns,
)
from profiler.costs import CALL, KERNEL, STREAM, Linear, Term

SPLICE = "net splice"
"""A call: the input of a net, but for its copying."""
AFTER_SEARCH = COLD
"""Bytes: what a block goes through before it calls the same again, search among it; the last cache keeps little."""
WINDOWS = "net windows"
"""Floats of windows copied; inputs, features."""
RELU = "net relu"
"""Values."""
SCORES = "net scores turned"
"""Floats of products [outputs, frames] put into rows; frames, outputs."""
HEADS = "net heads"
"""A call: what Python does to score by several heads, beside their products; heads, frames."""
MOVED, TURNED = "net frames moved", "net frames turned"
"""Floats put side by side by sixteens, from columns and from rows; frames, inputs."""
HANDED_OVER = "net handed over"
"""A call: nothing, shared by so many threads."""
ROWS_CALL = "net rows call"
"""A call: what Python does for the active outputs of a frame; bytes of a weight."""
ROWS = "net rows"
"""Chosen rows; bytes of a weight, frames, width."""
INT8_CALL = "net int8 layer"
"""A call: what Python does for a layer in 8 bits; FIRST, MIDDLE or LAST."""
FIRST, MIDDLE, LAST = 1, 2, 3
INT8, INT8_LIBRARY = "net int8", "net int8 library"
"""Multiply-adds of integers; frames, groups of inputs; or of a library, which has frames, inputs, outputs."""
EXCESS, QUANTISED, REQUANTISED, RESTORED = (
    "net int8 excess",
    "net int8 quantised",
    "net int8 requantised",
    "net int8 restored",
)
"""Values of frames; how many a frame has."""

BF16 = "net bf16"
"""Multiply-adds in 16 bits; frames, inputs, outputs, whether ReLU follows."""
BF16_INPUT, BF16_SCORES = "net bf16 input", "net bf16 scores"
"""Features or scores; frames, how many a frame has."""
BF16_ROWS = "net bf16 rows"
"""Chosen rows of one frame; inputs, outputs."""
FROZEN = "net frozen"
"""Multiply-adds of torch with weights laid out beforehand; frames, inputs, outputs."""
COPIED = "net scores copied"
"""Scores; frames, how many a frame has."""


@dataclass(frozen=True, slots=True)
class Call:
    """A product as a net calls it, of so many frames.

    `per_count`: frames per work count of its stage; `times`: products of this size that share a call; `net_bytes`,
    `search_bytes`: what net and search go through until it reads its weights again; `in_rows`: whether frames come as
    rows.
    """

    frames: int
    per_count: float
    times: float
    net_bytes: float
    search_bytes: float
    in_rows: bool
    passed: int
    """Bytes of memory that what comes before goes through (`passed`)."""

    def units(self, per_frame: float) -> Linear:
        """So many for each frame."""
        return Linear(per_work=(per_frame * self.per_count, 0.0, 0.0))

    def kernel(
        self,
        family: str,
        numbers: tuple[int, ...],
        per_frame: float,
        size: float,
        search: float = 0.0,
    ) -> Term:
        """Units of a kernel for each frame, over `size` bytes of data (0: in the first cache) and those of a search."""
        nearest = size if search else 0.0
        name = named(family, *numbers)
        return Term(KERNEL, name, self.units(per_frame), size + search, nearest=nearest)

    def weights(self, family: str, numbers: tuple[int, ...], per_frame: float, own: float) -> Term:
        """Units of a kernel for each frame, over its `own` bytes of weights, which come once a cycle."""
        alone = self.net_bytes if self.search_bytes else 0.0
        return Term(
            KERNEL,
            named(family, *numbers, own=own, scoring=alone, frames=self.frames),
            self.units(per_frame),
            self.net_bytes + self.search_bytes,
            nearest=alone,
        )

    def calls(self, family: str) -> tuple[Term, ...]:
        """One call for each product, by frames and what was read before."""
        return calls(family, (self.frames,), self.passed, self.times)

    def handed_over(self, threads: int) -> tuple[Term, ...]:
        """Waking the other threads for each product, and waiting for them."""
        return calls(HANDED_OVER, (threads,), self.passed, self.times) if threads > 1 else ()


def passed(before: float | None) -> int:
    """Bytes that go through the caches before a layer is called: a power of two.

    `before`: bytes of the layer before, of which at most MOST_PASSED count; None for a first layer, AFTER_SEARCH.
    A second cache may hold the layer before and what Python needs, and not twice as much: so no mean of all layers.
    """
    if before is None:
        return AFTER_SEARCH
    return power_of_two(min(before, MOST_PASSED))


def calls(
    family: str, numbers: tuple[int, ...], passed: int, times: float = 1.0
) -> tuple[Term, ...]:
    """So many calls, each made after reading `passed` bytes.

    Weights push what Python needs for a call out of the nearest caches. So it is timed after as much was read.
    """
    return (Term(CALL, named(family, *numbers), Linear(fixed=times), passed),)


def splice(inputs: int, features: int) -> tuple[Term, ...]:
    """What bounds putting frames side by side, by frames; before it the net and the search had the caches."""
    copied = Linear(per_work=(float(inputs), 0.0, 0.0))
    return Term(KERNEL, named(WINDOWS, inputs, features), copied), *calls(SPLICE, (), MOST_PASSED)


def relu(call: Call, outputs: int) -> tuple[Term, ...]:
    """What bounds the ReLU of a layer: each value is read and written once more."""
    size = float(FLOAT * (outputs + 1) * call.frames)
    values = call.units(outputs + 1.0)
    return (
        Term(KERNEL, RELU, values),
        Term(STREAM, "read", call.units(FLOAT * (outputs + 1.0)), size),
    )


def rows(
    weight_bytes: int, width: int, size: float, most: int, frames: int, hidden: float
) -> tuple[Term, ...]:
    """What bounds chosen rows, by (scores, rows), where a row is computed for up to `most` frames at once.

    `frames`: of a block, each of which is a call. The first comes after the hidden layers, of `hidden` bytes. The rows
    of all senones are `size` bytes, and between two calls the search of a frame goes through its own; where a block is
    one frame, so do the hidden layers.
    The time of a row grows with its frames along the line between one frame and `most`, of which both are measured.
    """
    between = SEARCHED_PER_FRAME + (hidden if frames == 1 else 0.0)

    def of(frames: int, scores: float, rows: float) -> Term:
        name = named(ROWS, weight_bytes, frames, width, own=size, frames=1)
        return Term(KERNEL, name, Linear(per_work=(scores, rows, 0.0)), size + between)

    call = turns(named(ROWS_CALL, weight_bytes), frames, MOST_PASSED)
    if most == 1:
        return of(1, 0.0, 1.0), *call
    part = 1.0 / (most - 1)
    return of(1, -part, most * part), of(most, part, -part), *call
