"""Lab `access-orders`: what one access to memory takes in order, in strides, at random, and along a chain.

In order and in strides by a loop of the lab's own; at random (many at once) and along a chain (each address is found
in the access before) by the kernels with which the instrument takes its roofs. One thread, words of four bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs.chart import Axis, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import between, columns, ratio, seconds
from pipelines.labs.texts import figure, told
from pipelines.labs.verdicts import Finding, all_of, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

WORD: Final = 4
STRIDES: Final = (1, 4, 16, 64, 256, 1024)
"""In words: 4 bytes to a page."""

DEAR: Final = 5.0
"""A first access counts as dear from five times one in order on: the note gives no number, and a line of 64 bytes has
16 words, of which the first alone is dear."""

OVERLAPPED: Final = 2.0
"""The same for accesses at random that do not wait for each other: many lines are on their way at once."""

KIB: Final = 1024
ACCESSES: Final = 1 << 14
"""Of one call."""


class Sizes(Parameters, frozen=True, kw_only=True):
    """What may be changed."""

    largest_mib: Annotated[
        int,
        setting(
            "Largest data",
            "Data go from 16 KiB in steps of four times up to this size; it should be beyond the last cache.",
            unit="MiB",
            ge=1,
            le=16384,
        ),
    ] = 256
    seconds: Annotated[
        float, setting("Time", "What the measurement may take.", unit="s", ge=0.0, le=600.0)
    ] = 24.0


class Accesses(Measured, frozen=True, kw_only=True):
    """Seconds per access by round: `by_size` by way and size, `by_stride` by stride over the largest data."""

    sizes: list[int]
    by_size: dict[str, list[list[float]]]
    strides: list[int]
    by_stride: list[list[float]]
    cache_bytes: dict[int, int]


IN_ORDER, STRIDED, RANDOM, CHAIN = "in order", "a line apart", "at random", "along a chain"
LINE: Final = 16
"""Words of a cache line of 64 bytes."""


def sizes_of(largest_mib: int) -> list[int]:
    """Bytes of data: 16 KiB, then four times as many each, and the largest."""
    most = largest_mib << 20
    found = [16 * KIB << 2 * k for k in range(20) if 16 * KIB << 2 * k < most]
    return [*found, most]


def ways(size: int) -> dict[str, Callable[[], object]]:
    """The accesses over `size` bytes, ACCESSES a call, by way; they go on where the last call ended."""
    from profiler.machine.roofs.terms import scattered

    chained, drawn = scattered("chase", size), scattered("gather", size)
    repeats = ACCESSES // ACCESSES_A_REPEAT
    return {
        IN_ORDER: stride(size, 1),
        STRIDED: stride(size, LINE),
        RANDOM: lambda: drawn(repeats),
        CHAIN: lambda: chained(repeats),
    }


ACCESSES_A_REPEAT: Final = 1 << 12
"""As `profiler.machine.roofs.terms.ACCESSES` says, which is not imported here: its module is no light one."""


def stride(size: int, words: int) -> Callable[[], object]:
    """ACCESSES accesses a call, `words` apart, over `size` bytes."""
    from pipelines.labs._access_kernels import strided

    values = np.ones(size // WORD, np.uint32)
    state = np.zeros(2, np.int64)
    return lambda: strided(values, words, state, ACCESSES)


def measure(sizes: Sizes, desk: Desk) -> Accesses:
    """Every way over data of every size, then every stride over the largest."""
    steps = sizes_of(sizes.largest_mib)
    by_size: dict[str, list[list[float]]] = {}
    share = 0.75 * sizes.seconds / len(steps)
    for place, size in enumerate(steps):
        with desk.part(0.75 * place / len(steps), 0.75 * (place + 1) / len(steps)):
            arms = {f"{way}, {size} B": call for way, call in ways(size).items()}
            found = desk.turns(arms, seconds=share, what=f"accesses over {size >> 10} KiB")
        for name, times in found.items():
            each = [t / ACCESSES for t in times]
            by_size.setdefault(name.partition(", ")[0], []).append(each)
    with desk.part(0.75, 1.0):
        arms = {f"stride {words * WORD} B": stride(steps[-1], words) for words in STRIDES}
        found = desk.turns(arms, seconds=0.25 * sizes.seconds, what="strides over the largest data")
    return Accesses(
        sizes=steps,
        by_size=by_size,
        strides=[words * WORD for words in STRIDES],
        by_stride=[[t / ACCESSES for t in times] for times in found.values()],
        cache_bytes=desk.cache_bytes,
    )


def judge(found: Accesses) -> Finding:
    """Over the largest data a chain takes DEAR times as long as the order, what overlaps OVERLAPPED times."""
    chain, order = found.by_size[CHAIN], found.by_size[IN_ORDER]
    far = ratio(found.by_size[RANDOM][-1], order[-1])
    dear = ratio(chain[-1], order[-1])
    near = ratio(found.by_size[RANDOM][0], order[0])
    verdict = all_of(at_least(dear, DEAR), at_least(far, OVERLAPPED))
    why = (
        f"Over {found.sizes[-1] >> 20} MiB an access in order takes {figure(seconds(order[-1]), 's')}; along a "
        f"chain {figure(seconds(chain[-1]), 's')}, {told(dear)} times as long, and at random {told(far)} times (within "
        f"{found.sizes[0] >> 10} KiB: {told(near)} times)."
    )
    figures: dict[str, float | None] = {
        "in_order_s": seconds(order[-1]),
        "at_random_s": seconds(found.by_size[RANDOM][-1]),
        "along_a_chain_s": seconds(chain[-1]),
        "along_a_chain_in_first_cache_s": seconds(chain[0]),
        "chain_over_order": dear.ratio if dear else None,
        "random_over_order": far.ratio if far else None,
        "random_over_order_in_first_cache": near.ratio if near else None,
    }
    return Finding(verdict, why, figures)


def picture(found: Accesses) -> Chart:
    """Time per access over the size of the data, by way; beside it over the stride."""
    x = tuple(float(size) for size in found.sizes)
    lines = tuple(
        Line(way, x, *columns([between(times) for times in each]))
        for way, each in found.by_size.items()
    )
    caches = tuple(
        Mark(f"L{level}", float(size), on="x") for level, size in found.cache_bytes.items()
    )
    strides = tuple(float(each) for each in found.strides)
    by_stride = Line("strided", strides, *columns([between(times) for times in found.by_stride]))
    time = Axis("time of an access", "s", log=True)
    return Chart(
        Axis("data", "B", log=True),
        time,
        (*lines, *caches),
        title="By the size of the data",
        beside=(
            Chart(
                Axis("from one access to the next", "B", log=True),
                time,
                (by_stride, Mark("a cache line", 64.0, on="x")),
                title=f"In strides over {found.sizes[-1] >> 20} MiB",
            ),
        ),
    )


LAB = Lab(
    claim="The first access to memory is dear, and what follows in sequence is cheap.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="The time of an access to four bytes: in order, a cache line apart, at random, and along a chain of "
    "addresses; data from 16 KiB to beyond the last cache, and strides of 4 bytes to a page. At random the "
    "processor overlaps many accesses; along a chain each waits for the one before. Pages have the usual size, "
    "so far strides and random accesses also pay for finding the page.",
    bound="It holds if an access along a chain takes at least five times as long as in order, and at random at "
    "least twice. The claim gives no number; both bounds are ours: a cache line has sixteen words, of which only "
    "the first can be expensive, and random accesses overlap.",
    parameters=Sizes(),
    stored=Accesses,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        "holds here": "So: lay Gaussians out by cluster and go through them in runs; gathering scattered rows at 30 % "
        "kept is slower than computing all.",
        "does not hold here": "So: on this machine the order of the rows matters less than their number.",
        "undecided": "So: give it more time (--set seconds=120), with nothing else running.",
    },
    bytes_needed=lambda sizes: (
        4 * (sizes.largest_mib << 20) + len(STRIDES) * (sizes.largest_mib << 20)
    ),
)
