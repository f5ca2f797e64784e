"""The tiers of evidence on this machine: each source of figures, whether it is available, and if not, why.

The figures of an absent tier stay blank; everything else works. Grades are those of the reports:
A counted by hardware or kernel, B time measured, D estimated; none if the tier is not evidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from profiler.machine.roofs.calibration import Calibration
    from profiler.machine.roofs.table import Roof

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
    from profiler.session.writer import NullWriter

    names = set(Sampler(NullWriter()).read())
    for title, sample, otherwise in (
        ("sampled: CPU load", "process.cpu_percent", "psutil cannot read it on this system"),
        ("sampled: memory", "process.rss_bytes", "psutil cannot read it on this system"),
        ("sampled: page faults", "process.faults_minor", "this system does not report them"),
        ("sampled: context switches", "process.switches_voluntary", "this system does not report them"),
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
    from profiler.machine.roofs import calibration

    known = calibration.load(calibration.file())
    at = known.measured_at
    if at is None:
        reason = "not measured yet: the first run or `asrscope calibrate` measures them"
        yield Tier("roofs", False, None, reason)
    else:
        reason = f"{len(known.roofs)} roofs, the newest {_age(time.time() - at)} old"
        yield Tier("roofs", True, MEASURED, reason)
    yield from kinds_of_roofs(known)


def kinds_of_roofs(known: Calibration) -> Iterator[Tier]:
    """Which kinds of roofs were measured and why others were not; nothing is measured, torch is not started."""
    from profiler.machine.roofs.table import OVERHEAD
    from profiler.machine.roofs.timing import is_steady

    roofs = list(known.roofs.values())
    yield _best("roofs: GEMM float32", _rates(roofs, "gemm"))
    for dtype in ("bfloat16", "float16", "int8"):
        yield _best(f"roofs: GEMM {dtype}", _rates(roofs, "gemm", dtype), _without_torch(known, dtype))
    yield _best("roofs: exp and log", _rates(roofs, "exp"))
    yield _ladder(roofs)
    calls = [roof for roof in roofs if (roof.kind, roof.name) == (OVERHEAD, "numpy")]
    how = f"{min(roof.median for roof in calls):.0f} ns through {calls[0].name}" if calls else NOT_YET
    yield _tier("roofs: calls", bool(calls), MEASURED, how)
    yield _of_device(known, roofs)
    if roofs:
        shaky = [roof for roof in roofs if roof.kind != OVERHEAD and not is_steady(roof)]
        how = f"{len(shaky)} of {len(roofs)} roofs disturbed by other programs"
        yield _tier("roofs: steadiness", not shaky, MEASURED, how)
        refused = list(known.roof_table.refused.values())
        how = refused[0] if refused else "those of several threads fit those of one"
        yield _tier("roofs: threads", not refused, MEASURED, how)


def _rates(roofs: list[Roof], family: str, dtype: str = "") -> list[Roof]:
    """The processor's rates of a class, through any library."""
    from profiler.machine.roofs.table import NOMINAL_DTYPE, RATE

    kinds = (dtype or NOMINAL_DTYPE, "")
    mine = (roof for roof in roofs if roof.kind == RATE and "@" not in roof.name and roof.dtype in kinds)
    return [roof for roof in mine if roof.name.partition(".")[0] == family]


def _best(name: str, roofs: list[Roof], reason: str = NOT_YET) -> Tier:
    if not roofs:
        return Tier(name, False, None, reason)
    best = max(roofs, key=lambda roof: roof.median)
    count = f"{best.threads} thread{'s' if best.threads > 1 else ''}"
    return Tier(name, True, MEASURED, f"{best.median / 1e9:.4g} G{best.unit} with {count}")


def _without_torch(known: Calibration, dtype: str) -> str:
    """Why torch's products of that type have no roof."""
    for missing in known.missing:
        if missing.name == f"gemm.torch {dtype}" or missing.name.startswith("torch on"):
            return missing.reason
    try:
        metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "torch is not installed"
    return NOT_YET


def _ladder(roofs: list[Roof]) -> Tier:
    from profiler.machine.roofs.table import BANDWIDTH, size_text

    rungs = [roof.bytes for roof in roofs if (roof.kind, roof.name) == (BANDWIDTH, "read")]
    how = f"ladder from {size_text(min(rungs))} to {size_text(max(rungs))}" if rungs else NOT_YET
    return _tier("roofs: bandwidth", bool(rungs), MEASURED, how)


def _of_device(known: Calibration, roofs: list[Roof]) -> Tier:
    there = [roof for roof in roofs if "@" in roof.name]
    if there:
        kind = there[0].name.partition("@")[2]
        return Tier("roofs: device", True, MEASURED, f"{len(there)} roofs of {kind}")
    reasons = [missing.reason for missing in known.missing if missing.name == "device"]
    return Tier("roofs: device", False, None, reasons[0] if reasons else NOT_YET)


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
