"""Lab `access-orders`: what one access to memory takes in order, in strides, at random, and along a chain.

In order and in strides by a loop of the lab's own; at random (many at once) and along a chain (each address is found
in the access before) by the kernels with which the instrument takes its roofs. One thread, words of four bytes.
"""

from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart, Layer, Mark
from pipelines.labs.declaration import Lab, Parameters, Seconds, setting
from pipelines.labs.desk import Desk, cache_bytes
from pipelines.labs.figures import ci, figure, value
from pipelines.labs.sweep import Sweep, SweepResult, Work, run_all
from pipelines.labs.verdicts import Finding, all_of, at_least

WORD: Final = 4
STRIDES: Final = (1, 4, 16, 64, 256, 1024)  # In words: 4 bytes to a page
LINE: Final = 16  # Words of a cache line of 64 bytes
DEAR, OVERLAPPED = 5.0, 2.0  # Times an access in order, at least: along a chain, and at random
ACCESSES: Final = 1 << 14  # Of one call
IN_ORDER, STRIDED, RANDOM, CHAIN = "in order", "a line apart", "at random", "along a chain"


class Params(Parameters, frozen=True, kw_only=True):
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
    seconds: Seconds = 24.0


def accesses(size: int) -> dict[str, Work]:
    """The accesses over `size` bytes, ACCESSES a call, by variant; they go on where the last call ended."""
    from profiler.machine.roofs import accesses as roofs

    chained, drawn = roofs.scattered("chase", size), roofs.scattered("gather", size)
    repeats = ACCESSES // roofs.ACCESSES
    return {
        IN_ORDER: stride(size, 1),
        STRIDED: stride(size, LINE),
        RANDOM: lambda: drawn(repeats),
        CHAIN: lambda: chained(repeats),
    }


def stride(size: int, words: int) -> Work:
    """ACCESSES accesses a call, `words` apart, over `size` bytes."""
    from pipelines.labs._kernels import strided

    values = np.ones(size // WORD, np.uint32)
    state = np.zeros(2, np.int64)
    return lambda: strided(values, words, state, ACCESSES)


def measure(params: Params, desk: Desk) -> SweepResult:
    largest = params.largest_mib << 20
    sizes = [size for k in range(20) if (size := 16384 << 2 * k) < largest]
    by_size = Sweep(
        accesses, [*sizes, largest], "accesses over {size} B of data", label="{variant}, {size} B", share=0.75
    )
    by_stride = Sweep(
        lambda distance: {"strided": stride(largest, distance // WORD)},
        [words * WORD for words in STRIDES],
        "strides over the largest data",
        label="stride {size} B",
        together=True,
        share=0.25,
    )
    both = run_all(desk, params.seconds, [by_size, by_stride])
    orders, strides = (timings.per_unit(lambda size: ACCESSES) for timings in both)
    return SweepResult(timings=orders, more={"strides": strides}, cache_bytes=cache_bytes())


def judge(result: SweepResult) -> Finding:
    timings = result.timings
    first, *_, last = timings.sizes()
    dear = timings.ratio(CHAIN, IN_ORDER, last)
    far, near = (timings.ratio(RANDOM, IN_ORDER, size) for size in (last, first))
    in_order, chain = timings.time(IN_ORDER, last), timings.time(CHAIN, last)
    why = (
        f"Over {last >> 20} MiB an access in order takes {figure(in_order, 's')}; along a chain {figure(chain, 's')}, "
        f"{ci(dear)} times as long, and at random {ci(far)} times (within {first >> 10} KiB: {ci(near)} times)."
    )
    figures: dict[str, float | None] = {
        "in_order_s": in_order,
        "at_random_s": timings.time(RANDOM, last),
        "along_a_chain_s": chain,
        "along_a_chain_in_first_cache_s": timings.time(CHAIN, first),
        "chain_over_order": value(dear),
        "random_over_order": value(far),
        "random_over_order_in_first_cache": value(near),
    }
    return Finding(all_of(at_least(dear, DEAR), at_least(far, OVERLAPPED)), why, figures)


def picture(result: SweepResult) -> Chart:
    timings, strides = result.timings, result.more["strides"]
    time = Axis("time of an access", "s", log=True)
    by_stride = Chart(
        Axis("from one access to the next", "B", log=True),
        time,
        (strides.line("strided"), Mark("a cache line", 64.0, on="x")),
        title=f"In strides over {timings.sizes()[-1] >> 20} MiB",
    )
    by_size: tuple[Layer, ...] = (*map(timings.line, timings.variants), *result.cache_marks())
    return Chart(Axis("data", "B", log=True), time, by_size, title="By the size of the data", beside=(by_stride,))


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
    steps=(measure, judge, picture),
    follows={
        "holds here": "So: lay Gaussians out by cluster and go through them in runs; gathering scattered rows at 30 % "
        "kept is slower than computing all.",
        "does not hold here": "So: on this machine the order of the rows matters less than their number.",
    },
    bytes_needed=lambda params: 4 * (params.largest_mib << 20) + len(STRIDES) * (params.largest_mib << 20),
)
