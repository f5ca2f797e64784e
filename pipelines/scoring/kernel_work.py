"""What the `roofs` modules of scoring share: how a kernel becomes work that can be timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

import numpy as np

from profiler.costs import CALL, KERNEL, WORK_COUNTS, Cost, Linear, Term
from profiler.machine.roofs.timing import Work

KERNEL_CALL = "kernel call"
"""Roof of a call of a compiled kernel and the close of its span, measured in `tied.roofs`: right after another one; or
after so many bytes of other data had the nearest caches."""

MOST_PASSED = 8 << 20
"""Bytes: what fills a second cache, of 2 MiB or more on some; of more there is no more of a call to be pushed out."""

FRAME_PASSED = 1 << 20
"""Bytes: about what scoring and search of one frame go through where they take turns, tokens and their arcs and the
rows of what is active (`python -m tests.bench.constants --only speech` counts them)."""

FIRST_CACHE = 16 << 10
"""Bytes that surely fit the first cache beside what else a kernel touches."""

COLD = 16 << 20
"""Bytes that a block goes through, scoring and search together, before it needs the same small table again: what level
of memory that comes from."""

SEARCHED, SEARCHED_PER_FRAME, MOST_SEARCHED = 7 << 20, 384 << 10, 12 << 20
"""Bytes: that every block meets again; what is new with each frame, about the least bytes of the search; and what more
of it would not push further out of the caches. Fitted so that the parts of scoring account for its time at blocks of 1,
16 and 64: `python -m tests.bench.attribution` prints how far they do, `python -m tests.bench.constants --only speech`
the bytes of the search itself. Of graph and tokens alone a block meets less again than SEARCHED."""

SEARCH_SECONDS = 1.5e-4
"""What the search and the rest of scoring take of a frame, about, before a kernel has its data again: so long are they
left to whoever shares the cache (`python -m tests.bench.constants --only speech` measures the search)."""

OWN, SCORING, FRAMES = "+", "of", "x"
"""In the name of a roof: before the KiB of the kernel's own data, before those that all of scoring goes through, and
before the frames that it reads them for."""

KEPT = 256 << 10
"""Bytes that a stage leaves in the nearest two caches of any processor for the one that follows it at once."""

AT_ONCE = 1 << 20
"""Bytes of data that a repeat goes through before the next goes on from there: so short that it is seldom disturbed."""

START: Final = cast(int, np.int64(0))
ONE: Final = cast(int, np.int64(1))
"""Integers as those who score pass them. For a number that a compiled caller writes out numba compiles the kernel anew,
with that number in it: another one than the one that scores, and twice the time to compile."""

Numbers = tuple[int, ...]
Family = Callable[[int, Numbers], Work]
"""Bytes of data (0: what fits the first cache), or read before a call, and the numbers of a name → the work."""


def power_of_two(size: float) -> int:
    """Return so many bytes to the nearest power of two, 1 KiB at least: for roofs of calls after so much was read."""
    return 1 << round(math.log2(max(1024.0, size)))


def searched(frames: int) -> float:
    """Return the bytes that the search of a block goes through before scoring reads its parameters again.

    They count to the size of what scoring reads block after block: a last level of cache keeps nothing that it
    does not meet again soon.
    """
    return float(min(SEARCHED + frames * SEARCHED_PER_FRAME, MOST_SEARCHED))


def calls(count: int, before: float = math.inf) -> tuple[Term, ...]:
    """Return the terms of so many calls of compiled kernels a span.

    The first one finds what Python needs for it pushed out by the data of the stage `before`, of so many bytes.
    """
    passed = power_of_two(min(before, MOST_PASSED))
    first = Term(CALL, KERNEL_CALL, Linear(fixed=1.0), passed)
    return (first, more_calls(count - 1)) if count > 1 else (first,)


def turns(roof: str, frames: int, before: float) -> tuple[Term, ...]:
    """Return the terms of one call for every frame of a block, where scoring and search take turns.

    The first of them comes after `before` bytes, the others after those of a frame.
    """
    passed = power_of_two(min(before, MOST_PASSED))
    first = Term(CALL, roof, Linear(per_frame=1.0 / frames), passed)
    if frames == 1:
        return (first,)
    return first, Term(CALL, roof, Linear(per_frame=1.0 - 1.0 / frames), FRAME_PASSED)


def more_calls(count: int) -> Term:
    """Return the term of so many calls of compiled kernels a span beside its first."""
    return Term(CALL, KERNEL_CALL, Linear(fixed=float(count)))


def numpy_calls(count: float) -> Term:
    """Return the term of so many calls of numpy's functions a span."""
    return Term(CALL, "numpy", Linear(fixed=count))


def named(
    kernel: str, *numbers: int, own: float = 0.0, scoring: float = 0.0, frames: int = 0
) -> str:
    """The name of a kernel's roof.

    `own`: bytes of its data, where what it goes through is not its own alone, read for `frames` at once; `scoring`: up
    to so many bytes are those of scoring alone, without the search (0: there is always a search).
    """
    name = "/".join((kernel, *map(str, numbers)))
    if not own:
        return name
    alone = f"{SCORING}{math.ceil(scoring / 1024)}" if scoring else ""
    return f"{name}{OWN}{math.ceil(own / 1024)}{alone}{FRAMES}{frames}"


def without_search(costs: Mapping[str, Cost]) -> dict[str, Cost]:
    """The laws of a scorer that nothing follows but its next block.

    Its data come from where scoring itself has pushed them, and what a call needs is pushed out by no more than that.
    """
    terms = [term for cost in costs.values() for term in cost.terms or ()]
    passed = power_of_two(max((term.nearest for term in terms), default=0.0))

    def alone(term: Term) -> Term:
        if term.nearest:
            return replace(term, bytes=term.nearest, nearest=0.0)
        if (term.kind, term.roof) == (CALL, KERNEL_CALL):
            return replace(term, bytes=min(term.bytes, passed))
        return term

    return {
        stage: replace(cost, terms=tuple(map(alone, cost.terms))) if cost.terms else cost
        for stage, cost in costs.items()
    }


def units(
    kernel: str,
    *numbers: int,
    size: float = 0.0,
    search: float = 0.0,
    own: float = 0.0,
    work: int = 0,
    each: float = 1.0,
) -> Term:
    """Return the term of `each` units of a kernel's loop for every one of a span's work counts `work`.

    `numbers`: those of the roof's name; `size`: bytes of data that scoring goes through until the same come again, of
    which `own` are the kernel's (0: all), whose first number then is that of the frames; `search`: those that the
    search may go through besides. How many of these push data of scoring out of a cache is not known.
    """
    alone = size if search else 0.0
    name = named(kernel, *numbers, own=own, scoring=alone, frames=numbers[0] if own else 0)
    factors = [0.0] * WORK_COUNTS
    factors[work] = each
    count = Linear(per_work=(factors[0], factors[1], factors[2]))
    return Term(KERNEL, name, count, size + search, nearest=alone)
