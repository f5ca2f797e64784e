"""The tiers of evidence on this machine: each source of figures, whether it is available, and if not, why.

The figures of an absent tier stay blank; everything else works. Grades are those of the reports:
A counted by hardware or kernel, B time measured, D estimated; none if the tier is not evidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from profiler.machine.roofs.calibration import Calibration

COUNTED, MEASURED = "A", "B"
NOT_YET: Final = "not measured yet: run `asrscope calibrate`"


@dataclass(frozen=True)
class Tier:
    """A source of figures. `reason` says how it works, or in one sentence why it does not."""

    name: str
    available: bool
    grade: str | None
    reason: str


def _tier(name: str, available: bool, grade: str, reason: str) -> Tier:
    return Tier(name, available, grade if available else None, reason)


def evidence() -> list[Tier]:
    return [*spans(), *counters(), *samples(), *devices(), *roof_table()]


def spans() -> Iterator[Tier]:
    """Recording from Python and from compiled kernels, and the clock behind both."""
    from profiler.recording import kernel_spans
    from profiler.spans import measure_ns_per_span

    clock, cost = time.get_clock_info("perf_counter"), measure_ns_per_span()["ns_per_span"]
    readings = [time.perf_counter_ns() for _ in range(2000)]
    finest = min((after - before for before, after in pairwise(readings) if after > before), default=0)
    how = f"{clock.implementation}, steps of {finest} ns; a span costs {cost:.0f} ns"
    yield _tier("time spans", True, MEASURED, how)
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
            yield _tier(f"counter: {found.event.title}", found.available, COUNTED, found.reason)
    how = "no counter can be read here"
    if cost is not None:
        how = (
            f"a reading costs {cost:.0f} ns, and counting adds {added:.0f} ns to every span; "
            "`--set counters=true` turns it on"
        )
    yield _tier("counters per stage", cost is not None, COUNTED, how)


def samples() -> Iterator[Tier]:
    """What is sampled ten times per second during a run."""
    import psutil

    from profiler.machine import accelerator, energy
    from profiler.machine.sampler import Sampler
    from profiler.session.writer import NullWriter

    names = Sampler(NullWriter()).read().keys()
    no_psutil, none_here = "psutil cannot read it on this system", "this system does not report"
    no_frequency = "the kernel shows no clock frequency that varies (no cpufreq; most virtual machines)"
    for title, sample, otherwise in (
        ("CPU load", "process.cpu_percent", no_psutil),
        ("memory", "process.rss_bytes", no_psutil),
        ("page faults", "process.faults_minor", f"{none_here} them"),
        ("context switches", "process.switches_voluntary", f"{none_here} them"),
        ("CPU frequency", "system.cpu_mhz", no_frequency if psutil.LINUX else f"{none_here} it"),
    ):
        here = sample in names
        yield _tier(f"sampled: {title}", here, COUNTED, "sampled ten times per second" if here else otherwise)
    for title, (here, reason) in {"energy (RAPL)": energy.probe(), "NVIDIA device (NVML)": accelerator.probe()}.items():
        yield _tier(f"sampled: {title}", here, COUNTED, reason)


def devices() -> Iterator[Tier]:
    """What torch can compute on, and whether the time of a device can be measured."""
    from pipelines.availability import probe

    others = [found for found in probe() if found.name not in ("cpu", "torch-cpu")]
    for found in others:
        yield _tier(f"accelerator: {found.name}", found.available, MEASURED, found.reason)
    usable = [found.name for found in others if found.available]
    how = f"pairs of events on {', '.join(usable)}" if usable else "there is no device to take it from"
    yield _tier("device time", bool(usable), MEASURED, how)


def roof_table() -> Iterator[Tier]:
    """The roofs of the machine from the last calibration, and how old they are."""
    from profiler.machine.roofs import calibration

    known = calibration.load(calibration.file())
    at, reason = known.measured_at, "not measured yet: the first run or `asrscope calibrate` measures them"
    if at is not None:
        reason = f"{len(known.roofs)} roofs, the newest {_age(time.time() - at)} old"
    yield _tier("roofs", at is not None, MEASURED, reason)
    yield from kinds_of_roofs(known)


def kinds_of_roofs(known: Calibration) -> Iterator[Tier]:
    """Which kinds of roofs were measured and why others were not; nothing is measured, torch is not started."""
    from profiler.machine.roofs.table import BANDWIDTH, NOMINAL_DTYPE, OVERHEAD, RATE, size_text
    from profiler.machine.roofs.timing import is_steady

    roofs = list(known.roofs.values())

    def rate(title: str, family: str, dtype: str, otherwise: str = NOT_YET) -> Tier:
        """The best of the processor's rates of a class, through any library."""
        of_class = (roof for roof in roofs if roof.kind == RATE and roof.name.partition(".")[0] == family)
        mine = (roof for roof in of_class if "@" not in roof.name and roof.dtype in (dtype, ""))
        best = max(mine, key=lambda roof: roof.median, default=None)
        if best is not None:
            many = "s" if best.threads > 1 else ""
            otherwise = f"{best.median / 1e9:.4g} G{best.unit} with {best.threads} thread{many}"
        return _tier(f"roofs: {title}", best is not None, MEASURED, otherwise)

    yield rate("GEMM float32", "gemm", NOMINAL_DTYPE)
    for dtype in ("bfloat16", "float16", "int8"):
        yield rate(f"GEMM {dtype}", "gemm", dtype, _without_torch(known, dtype))
    yield rate("exp and log", "exp", NOMINAL_DTYPE)
    rungs = [roof.bytes for roof in roofs if (roof.kind, roof.name) == (BANDWIDTH, "read")]
    how = f"ladder from {size_text(min(rungs))} to {size_text(max(rungs))}" if rungs else NOT_YET
    yield _tier("roofs: bandwidth", bool(rungs), MEASURED, how)
    calls = [roof for roof in roofs if (roof.kind, roof.name) == (OVERHEAD, "numpy")]
    how = f"{min(roof.median for roof in calls):.0f} ns through {calls[0].name}" if calls else NOT_YET
    yield _tier("roofs: calls", bool(calls), MEASURED, how)
    there = [roof for roof in roofs if "@" in roof.name]
    how = next((missing.reason for missing in known.missing if missing.name == "device"), NOT_YET)
    if there:
        how = f"{len(there)} roofs of {there[0].name.partition('@')[2]}"
    yield _tier("roofs: device", bool(there), MEASURED, how)
    if roofs:
        shaky = [roof for roof in roofs if roof.kind != OVERHEAD and not is_steady(roof)]
        how = f"{len(shaky)} of {len(roofs)} roofs disturbed by other programs"
        yield _tier("roofs: steadiness", not shaky, MEASURED, how)
        refused = [*known.roof_table.refused.values(), "those of several threads fit those of one"]
        yield _tier("roofs: threads", len(refused) == 1, MEASURED, refused[0])


def _without_torch(known: Calibration, dtype: str) -> str:
    for missing in known.missing:
        if missing.name == f"gemm.torch {dtype}" or missing.name.startswith("torch on"):
            return missing.reason
    try:
        metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "torch is not installed"
    return NOT_YET


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"
