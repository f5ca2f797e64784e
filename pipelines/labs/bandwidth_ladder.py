"""Lab `bandwidth-ladder`: what the cores could take in each second, and what each level of memory delivers.

The rungs are those of the instrument's own ladder (`profiler.machine.roofs.cpu`), in turns; they time themselves.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

from pipelines.labs.chart import Axis, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, setting
from pipelines.labs.desk import Desk, cache_bytes
from pipelines.labs.figures import ci, counted, figure, value
from pipelines.labs.sweep import SweepResult, Timings
from pipelines.labs.verdicts import Finding, at_most

if TYPE_CHECKING:
    from profiler.machine.roofs.cpu import Step

ONE, ALL = "one core", "all cores"
PROCESSOR, MEMORY = 1e12, 100e9
"""Bytes/s, as the note reckons: what a processor can take in (2·10⁹ Hz × 16 cores × 32 bytes), and what the main memory
of a mid-range server gives."""

LEAST_ROUNDS: Final = 5


class Params(Parameters, frozen=True, kw_only=True):
    threads: Annotated[
        int, setting("Threads", "Cores that read at once, each its share; 0: all.", ge=0, le=1024, words={0: "all"})
    ] = 0
    seconds: Seconds = 30.0


def rungs(threads: int) -> list[Step]:
    """The steps of the ladder of reading on `threads` threads, by size."""
    from profiler.machine.roofs import cpu
    from profiler.machine.roofs.table import BANDWIDTH

    planned = cpu.plan(threads, None, whole=False)
    reading = [step for step in planned if step.key.kind == BANDWIDTH and step.key.name == "read"]
    return sorted(reading, key=lambda step: step.key.bytes)


def measure(params: Params, desk: Desk) -> SweepResult:
    from profiler.machine.describe import usable_cores
    from profiler.machine.roofs.timing import Effort

    threads = params.threads or usable_cores() or 1
    steps = {n: rungs(n) for n in sorted({1, threads})}
    sizes = [step.key.bytes for step in steps[1]]
    times: dict[int, dict[int, list[float]]] = {n: {size: [] for size in sizes} for n in steps}
    begin, done = time.monotonic(), 0
    quick = Effort(rounds=3, seconds=0.0)
    while done < LEAST_ROUNDS or time.monotonic() - begin < params.seconds:
        for place, size in enumerate(sizes):
            # Which count of threads begins changes from rung to rung and from round to round.
            for n in steps if (place + done) % 2 else reversed(steps):
                desk.check()
                step = steps[n][place]
                with desk.span(f"{step.label} x{n}"):
                    roof = step.take(quick)
                times[n][size].append(1.0 / roof.median)
            spent = (time.monotonic() - begin) / max(params.seconds, 1e-3)
            at = (done + place / len(sizes)) / LEAST_ROUNDS
            desk.progress("reading data of every size", min(at, spent) if done else at)
        done += 1
    timings = Timings(seconds={ONE: times[1], ALL: times[threads]})
    return SweepResult(timings=timings, counts={"threads": threads}, cache_bytes=cache_bytes())


def judge(result: SweepResult) -> Finding:
    timings, threads = result.timings, round(result.counts["threads"])
    near, *_, far = timings.sizes()
    share = timings.ratio(ALL, ALL, near, far)
    first, memory = 1.0 / timings.time(ALL, near), 1.0 / timings.time(ALL, far)
    each = first / threads
    why = (
        f"{counted(threads, 'core reads', 'cores read')} {figure(first, 'B/s')} from the first cache and "
        f"{figure(memory, 'B/s')} from memory, "
        f"{ci(share)} of it. At {figure(each, 'B/s')} each, 16 cores could take {figure(16 * each, 'B/s')}."
    )
    figures: dict[str, float | None] = {
        "first_cache_bytes_per_s": first,
        "first_cache_bytes_per_s_of_16_cores": 16.0 * each,
        "memory_bytes_per_s": memory,
        "memory_bytes_per_s_of_one_core": 1.0 / timings.time(ONE, far),
        "memory_share_of_first_cache": value(share),
    }
    return Finding(at_most(share, 0.1), why, figures)


def picture(result: SweepResult) -> Chart:
    threads = round(result.counts["threads"])
    names = {ONE: "1 core"} | ({ALL: f"{threads} cores"} if threads > 1 else {})
    lines = (result.timings.line(v, name, lambda _, s: 1.0 / s) for v, name in names.items())
    note = (
        Mark("claimed: 16 cores can take 1 TB/s", PROCESSOR),
        Mark("claimed: a server's memory gives 100 GB/s", MEMORY),
    )
    return Chart(Axis("data", "B", log=True), Axis("read", "B/s", log=True), (*lines, *result.cache_marks(), *note))


LAB = Lab(
    claim="Memory delivers less than a tenth of the bytes that would keep the processor fed.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="Bytes per second read in order by one core and by all, over data from 16 KiB to four times the "
    "last cache, compared with what the first caches deliver. The claim assumes 16 cores; here that figure is "
    "the rate of one core times 16. Writing and copying are slower still (`asrscope calibrate`).",
    bound="It holds up to a tenth, the claim's own number: its 100 GB/s are exactly a tenth of its 10¹² bytes/s.",
    steps=(measure, judge, picture),
    follows={
        "holds here": "So: count bytes before operations; a model that is read once per frame runs at memory's speed, "
        "whatever the cores can do.",
        "does not hold here": "So: few cores are fed better than the claim's sixteen; each one more takes its share of "
        "the same memory, so measure the ladder with all that you use.",
    },
    published=(
        PublishedValue("what 16 cores can take", PROCESSOR, "B/s", "first_cache_bytes_per_s_of_16_cores"),
        PublishedValue("main memory", MEMORY, "B/s", "memory_bytes_per_s"),
    ),
    bytes_needed=lambda _: 1 << 30,
)
