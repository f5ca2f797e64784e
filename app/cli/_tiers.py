"""The tiers of evidence on this machine: each source of figures, whether it is available, and if not, why.

The figures of an absent tier stay blank; everything else works. Grades are those of the reports:
A counted by hardware or kernel, B time measured, D estimated; none if the tier is not evidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

COUNTED, MEASURED = "A", "B"


@dataclass(frozen=True)
class Tier:
    """A source of figures. `reason` says how it works, or in one sentence why it does not."""

    name: str
    available: bool
    grade: str | None
    reason: str


def _tier(name: str, available: bool, grade: str, reason: str) -> Tier:
    return Tier(name, available, grade if available else None, reason)


def evidence() -> Iterator[Tier]:
    """Try every source of figures."""
    yield from spans()
    yield from counters()
    yield from samples()
    yield from devices()
    yield from roof_table()


def spans() -> Iterator[Tier]:
    """Recording from Python and from compiled kernels, and the clock behind both."""
    from profiler.spans import measure_ns_per_span

    clock = time.get_clock_info("perf_counter")
    cost = measure_ns_per_span()
    finest = _finest_step_ns()
    yield Tier(
        "time spans",
        True,
        MEASURED,
        f"{clock.implementation}, steps of {finest} ns; a span costs {cost['ns_per_span']:.0f} ns",
    )
    from profiler.recording import kernel_spans

    has_clock = kernel_spans.HAS_CLOCK
    how = "compiled kernels read the same clock" if has_clock else "kernels can read a clock only on Linux"
    yield _tier("time spans in kernels", has_clock, MEASURED, how)


def counters() -> Iterator[Tier]:
    """Each event of perf_event_open, and the cost of reading the available ones."""
    from profiler.counting import added_cost_ns
    from profiler.machine.counters import Group, read_cost_ns

    with Group() as group:
        cost, added = read_cost_ns(group), added_cost_ns(group)
        for found in group.availability:
            name = f"counter: {found.event.title}"
            yield _tier(name, found.available, COUNTED, found.reason)
    if cost is not None:
        how = (
            f"a reading costs {cost:.0f} ns, and counting adds {added:.0f} ns to every span; "
            "`--set counters=true` turns it on"
        )
        yield Tier("counters per stage", True, COUNTED, how)
    else:
        yield Tier("counters per stage", False, None, "no counter can be read here")


def samples() -> Iterator[Tier]:
    """What is sampled ten times per second during a run."""
    import psutil

    from profiler.machine import accelerator, energy
    from profiler.machine.sampler import Sampler

    class Nowhere:
        def sample(self, *_: object) -> None:
            pass

    names = set(Sampler(Nowhere()).read())
    for title, sample, otherwise in (
        ("sampled: CPU load", "process.cpu_percent", "psutil cannot read it on this system"),
        ("sampled: memory", "process.rss_bytes", "psutil cannot read it on this system"),
        ("sampled: page faults", "process.faults_minor", "this system does not report them"),
        (
            "sampled: context switches",
            "process.switches_voluntary",
            "this system does not report them",
        ),
        ("sampled: CPU frequency", "system.cpu_mhz", _no_frequency(psutil.LINUX)),
    ):
        here = sample in names
        reason = "sampled ten times per second" if here else otherwise
        yield _tier(title, here, COUNTED, reason)
    here, reason = energy.probe()
    yield _tier("sampled: energy (RAPL)", here, COUNTED, reason)
    here, reason = accelerator.probe()
    yield _tier("sampled: NVIDIA device (NVML)", here, COUNTED, reason)


def devices() -> Iterator[Tier]:
    """What torch can compute on, and whether the time of a device can be measured."""
    from pipelines.availability import probe

    others = [found for found in probe() if found.name not in ("cpu", "torch-cpu")]
    usable = [found.name for found in others if found.available]
    for found in others:
        yield _tier(f"accelerator: {found.name}", found.available, MEASURED, found.reason)
    absent = "there is no device to take it from"
    how = f"pairs of events on {', '.join(usable)}" if usable else absent
    yield _tier("device time", bool(usable), MEASURED, how)


def roof_table() -> Iterator[Tier]:
    """The roofs of the machine from the last calibration, and how old they are."""
    from profiler.machine.roofs import calibration, tiers

    known = calibration.load(calibration.file())
    at = known.measured_at
    if at is None:
        reason = "not measured yet: the first run or `asrscope calibrate` measures them"
        yield Tier("roofs", False, None, reason)
    else:
        reason = f"{len(known.roofs)} roofs, the newest {_age(time.time() - at)} old"
        yield Tier("roofs", True, MEASURED, reason)
    for tier in tiers.roof_tiers(known):
        yield _tier(tier.name, tier.available, MEASURED, tier.detail)


def _no_frequency(linux: bool) -> str:
    if linux:
        return "the kernel shows no clock frequency that varies (no cpufreq; most virtual machines)"
    return "this system does not report it"


def _finest_step_ns() -> int:
    """The smallest difference between two readings of the clock."""
    steps = []
    before = time.perf_counter_ns()
    for _ in range(2000):
        now = time.perf_counter_ns()
        if now > before:
            steps.append(now - before)
        before = now
    return min(steps, default=0)


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"
