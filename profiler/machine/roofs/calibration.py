"""The roofs of this machine, stored between sessions.

One file per machine and library build holds every roof with the time of its measurement. A run measures
what of its quick plan is not there; `calibrate` measures everything, torch's and the device's in a process
of their own. A roof that other programs disturbed is kept for BUSY_SECONDS, and then measured again; the
better of the two stays. What data take that only a cache which others share can hold, or memory, differs from moment
to moment, while the rounds of one moment agree: runs take such a roof at several moments, and their middle counts.
What a core does on data of its own takes longer while another program has the other half of that core, which may be for
the whole of a moment: that is taken at several moments too, and the best counts.
The file is replaced as a whole at the end: no partial result is ever stored.
"""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Final

from profiler.costs import Term
from profiler.files import cache
from profiler.machine.describe import describe, usable_cores
from profiler.machine.roofs import cpu, probe, terms, timing, torch_child
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import (
    KERNEL,
    OVERHEAD,
    PROBES,
    RATE,
    Cancelled,
    Key,
    Progress,
    Roof,
    RoofTable,
)
from profiler.machine.roofs.terms import WorkOf
from profiler.machine.roofs.timing import Work, better, beyond_moments, is_steady, middle
from profiler.machine.roofs.torch_child import Missing
from profiler.process import kernel_cache

METHOD: Final = 33
"""Counted up when a figure is measured differently, so that cached ones are taken again. What kernels do tells itself:
roofs belong to the sources of all of them, as compiled kernels do."""

BUSY_SECONDS: Final = 600.0

SHARED_BYTES: Final = 1 << 20
"""Over so much data a roof depends on what programs on other cores leave of a shared cache, or of memory, and so does a
call after so much was read; one of a kernel over less is timed for moments only, with pauses."""
MOMENTS: Final = 5
OWN_MOMENTS: Final = 3
"""The same of a rate, kernel or call that depends on nothing that is shared; the best counts."""
MOMENT_SECONDS: Final = 60.0
"""How often such a roof is taken, at least so far apart; where more are known, the latest count."""
KEPT_MOMENTS: Final = 25
"""So many of the latest moments are kept: their middle is what the machine usually is (`RoofTable.usual`)."""
AGED_SECONDS: Final = 600.0
"""After so long what is known of as many moments as it wants is taken once more, where there is time: what others leave
of a machine changes within the hour, and roofs of an hour ago may be slower than all that a run meets."""
SETTLING_SECONDS: Final = 0.5
"""For so long roofs that are known already are taken at a time: a run is waited for."""

RUN: Final = "run"
"""The part of the calibration that this process takes itself."""

EACH_UP_TO: Final = 4
"""Every thread count is measured up to this one; from there the powers of two, and all cores."""

BUILD: Final = ("numpy", "numba", "torch")
"""Libraries whose version decides what the roofs are."""


@dataclass
class Calibration:
    """Every roof that is known of this machine, when each was measured, and what has none and why."""

    roofs: dict[Key, Roof] = field(default_factory=dict)
    measured: dict[Key, float] = field(default_factory=dict)
    part: dict[Key, str] = field(default_factory=dict)
    moments: dict[Key, list[Roof]] = field(default_factory=dict)
    unavailable: dict[str, list[Missing]] = field(default_factory=dict)

    @property
    def roof_table(self) -> RoofTable:
        """The table that attribution divides by."""
        found = (
            beyond_moments(roof, self.moments.get(key, ()), shared=is_shared(key))
            for key, roof in self.roofs.items()
            if roof.sound
        )
        lasting = (middle(every) for every in self.moments.values())
        return RoofTable(tuple(found), tuple(roof for roof in lasting if roof.sound))

    def latest(self, key: Key) -> list[Roof]:
        """The moments that a roof goes by now; `moments`, with those of long ago, says how far they differ."""
        return self.moments.get(key, [])[-MOMENTS:]

    @property
    def measured_at(self) -> float | None:
        """When the newest roof was measured, seconds since 1970."""
        return max(self.measured.values(), default=None)

    @property
    def missing(self) -> list[Missing]:
        """What has no roof here, and why; each name once."""
        found = {m.name: m for part in reversed(self.unavailable.values()) for m in part}
        return list(found.values())

    def fit(self, key: Key, now: float) -> bool:
        """Whether the roof is there and need not be measured again."""
        roof = self.roofs.get(key)
        if roof is None:
            return False
        # Of several moments the interval is as wide as they differ.
        several = is_shared(key) and key in self.moments
        steady = not roof.disturbed if several else is_steady(roof)
        return steady or 0 <= now - self.measured[key] < BUSY_SECONDS

    def settled(self, key: Key, now: float, apart: float, aged: float = math.inf) -> bool:
        """Whether a known roof was taken less than `apart` seconds ago.

        `aged` instead, if it was taken at as many moments as it wants.
        """
        if not self.moments.get(key):
            return True
        return 0 <= now - self.measured[key] < (aged if self.enough(key) else apart)

    def enough(self, key: Key) -> bool:
        """Whether a roof was taken at as many moments as it wants."""
        return len(self.moments.get(key, ())) >= _moments(key)

    def fit_part(self, part: str, now: float) -> bool:
        """Whether that part of the calibration was taken and need not be taken again."""
        failed = any(missing.name == part for missing in self.unavailable.get(part, []))
        return (
            part in self.unavailable
            and not (failed and part != torch_child.DEVICE)
            and all(self.fit(key, now) for key, of in self.part.items() if of == part)
        )

    def add(self, roofs: Iterable[Roof], part: str, now: float, *, replace: bool = False) -> None:
        """Put in newly measured roofs, which may `replace` what is known.

        Else the better one stays, or the middle one of several moments where others share what it depends on.
        """
        for roof in roofs:
            key = roof.key
            known = None if replace else self.roofs.get(key)
            if part == RUN and _moments(key):
                before = [] if known is None else self.moments.get(key, [])
                self._know(key, [*before, roof][-KEPT_MOMENTS:])
            else:
                self.roofs[key] = roof if known is None else better(known, roof)
            self.measured[key], self.part[key] = now, part

    def _know(self, key: Key, moments: list[Roof]) -> None:
        """Keep the moments of a roof, and what it is by the latest of them."""
        self.moments[key] = moments
        latest = self.latest(key)
        self.roofs[key] = middle(latest) if is_shared(key) else reduce(better, latest)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        rows = RoofTable(tuple(self.roofs.values())).rows()
        for row, (key, roof) in zip(rows, self.roofs.items(), strict=True):
            del row["phase"]
            row["spread"], row["steady"] = roof.spread, is_steady(roof)
            row["disturbed"] = roof.disturbed
            row["measured_at"], row["part"] = self.measured[key], self.part[key]
            row["moments"] = [
                [one.median, one.low, one.high, one.disturbed] for one in self.moments.get(key, ())
            ]
        parts = {
            part: [missing._asdict() for missing in found]
            for part, found in self.unavailable.items()
        }
        return {"method": METHOD, "roofs": rows, "unavailable": parts}

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> "Calibration":
        """Read what `as_dict` gave; ValueError, TypeError or KeyError when it is something else."""
        made = cls()
        for row in tree["roofs"]:
            values = {name: row[name] for name in Roof.__slots__}
            for roof in RoofTable.from_rows([values]).roofs:
                key = roof.key
                moments = [
                    Roof(*key, float(median), float(low), float(high), roof.unit, bool(disturbed))
                    for median, low, high, disturbed in row["moments"]
                ]
                made.add([roof], str(row["part"]), float(row["measured_at"]))
                if moments:
                    made._know(key, moments)
        for part, found in tree["unavailable"].items():
            made.unavailable[str(part)] = [Missing(str(m["name"]), str(m["reason"])) for m in found]
        return made


def is_shared(key: Key) -> bool:
    """Whether the roof depends on a cache or memory that other programs use as well."""
    return key.bytes >= SHARED_BYTES or (key.kind == KERNEL and key.bytes > 0)


def _moments(key: Key) -> int:
    """At how many moments a roof is taken; 0 where once will do."""
    if is_shared(key):
        return MOMENTS
    return OWN_MOMENTS if key.kind in (RATE, KERNEL, OVERHEAD) else 0


def load_or_measure(
    threads: int = 1,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
    kernels: Mapping[str, Work] | None = None,
    device: bool = False,
) -> RoofTable:
    """Return what is known of this machine, after measuring what a run on `threads` threads lacks.

    `device`: the run uses an accelerator, whose roofs count too.
    """
    known = _known_with(plan([threads], kernels, whole=False), progress, cancelled, fresh=fresh)
    return device_measured(progress, cancelled, fresh=fresh) if device else known


def device_measured(
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
) -> RoofTable:
    """Return what is known of this machine, after measuring what is not known of its accelerator."""
    known = load(file())
    if fresh or not known.fit_part(torch_child.DEVICE, time.time()):
        _add_parts(known, [torch_child.DEVICE], progress, cancelled, fresh)
        _keep(known)
    return known.roof_table


def _add_parts(
    known: Calibration,
    parts: list[str],
    progress: Progress | None,
    cancelled: Cancelled | None,
    fresh: bool,
) -> None:
    answer = torch_child.measure(parts, progress, cancelled)
    for part in parts:
        known.add(answer.roofs.get(part, []), part, time.time(), replace=fresh)
        known.unavailable[part] = answer.missing.get(part, [])


def measure_terms(
    needed: Iterable[tuple[Term, int]],
    work_of: WorkOf,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    beside: Iterable[Step] = (),
    settle: bool = True,
    apart: float = MOMENT_SECONDS,
    aged: float = math.inf,
) -> RoofTable:
    """Return what is known of this machine, after measuring the roofs that these terms name and that it lacks.

    `beside`: other steps of a plan, treated alike. `settle`: there is time to take others at one more moment, at least
    `apart` seconds after the last; `aged` seconds, if they were taken at as many as they want.
    """
    steps = [*terms.steps(needed, work_of), *beside]
    return _known_with(steps, progress, cancelled, settle=settle, apart=apart, aged=aged)


def _known_with(
    steps: list[Step],
    progress: Progress | None,
    cancelled: Cancelled | None,
    *,
    fresh: bool = False,
    settle: bool = True,
    apart: float = MOMENT_SECONDS,
    aged: float = math.inf,
) -> RoofTable:
    known = load(file())
    lacking = _lacking(known, steps, fresh)
    unsettled = [] if fresh or not settle else _unsettled(known, steps, apart, aged)
    if lacking:
        known.add(cpu.take(lacking, progress, cancelled), RUN, time.time(), replace=fresh)
    until = timing.clock() + SETTLING_SECONDS
    for i, step in enumerate(unsettled):
        if timing.clock() > until:
            break
        told = _scaled(progress, i / len(unsettled), (i + 1) / len(unsettled))
        known.add(cpu.take([step], told, cancelled), RUN, time.time())
    if lacking or unsettled:
        _keep(known)
    return known.roof_table


def calibrate(
    threads: int | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
    kernels: Mapping[str, Work] | None = None,
    work_of: WorkOf | None = None,
) -> Calibration:
    """Measure every roof that is not known, up to `threads` threads (all usable cores), and keep them.

    `fresh` measures all again, with `work_of` also what cost laws have named so far. profiler.errors.Cancelled as
    soon as `cancelled()`; nothing is kept then.
    """
    known = load(file())
    counts = thread_counts(threads or usable_cores() or 1)
    now = time.time()
    planned = plan(counts, kernels, whole=True)
    if fresh and work_of is not None:
        planned += _named(known, {step.key for step in planned}, counts, work_of)
    steps = _lacking(known, planned, fresh)
    parts = [torch_child.DEVICE, *(torch_child.part(n) for n in counts)]
    parts = [part for part in parts if fresh or not known.fit_part(part, now)]
    # The shares of the bar are those of the time: a core's roofs some 20 s, torch's start alone 3 s.
    share = 0.75 if parts else 1.0
    if steps:
        found = cpu.take(steps, _scaled(progress, 0.0, share), cancelled, patient=True)
        known.add(found, RUN, time.time(), replace=fresh)
    if parts:
        _add_parts(known, parts, _scaled(progress, share, 1.0), cancelled, fresh)
    if steps or parts:
        _keep(known)
    return known


def plan(counts: Iterable[int], kernels: Mapping[str, Work] | None, *, whole: bool) -> list[Step]:
    """Return what to measure for these numbers of threads, but for what cost laws name and what is torch's."""
    # Several plans share what does not depend on threads; by its key each roof is taken once.
    planned = {s.key: s for n in counts for s in cpu.plan(n, kernels, whole=whole)}
    planned |= {s.key: s for s in [*terms.access_steps(), *probe.steps()]}
    return list(planned.values())


def pace(kernels: Mapping[str, Work]) -> list[Step]:
    """Return what of a run's plan says how fast a core computes: the best rates, and the probes.

    Kernels' own loops are judged by them, and so they want to be of the same moments as these.
    """
    planned = plan([1], kernels, whole=False)
    return [step for step in planned if step.key.kind == RATE or step.key.name in PROBES]


def thread_counts(most: int) -> list[int]:
    """Return the thread counts that are measured on this number of cores: 1 2 3 4 8 16 … and all of them."""
    counts = {n for n in range(1, most + 1) if n <= EACH_UP_TO or n & (n - 1) == 0}
    return sorted(counts | {most})


def file() -> Path:
    """Return where this machine's roofs are kept, for these versions of the libraries."""
    return cache.path_of(cache.ROOFS, _name())


def _name() -> str:
    machine = describe()
    # A kernel that was made faster would else be judged by what it was before.
    same: list[Any] = [METHOD, kernel_cache.own()]
    same += [
        machine.get(key)
        for key in ("cpu", "vectors", "cores", "caches", "memory_bytes", "python", "blas")
    ]
    same += [machine["versions"].get(name) for name in BUILD]
    if "gpus" in machine:
        # Another device, another driver, another of several devices: other roofs.
        same += [device_roofs.METHOD, machine["gpus"], machine.get("gpu_settings")]
    digest = hashlib.sha256(json.dumps(same, sort_keys=True, default=str).encode()).hexdigest()
    return digest[:20]


def stored() -> RoofTable:
    """Return what is known of this machine without measuring anything; empty where nothing is kept."""
    return load(file()).roof_table


def load(path: Path) -> Calibration:
    """Return what the file holds; nothing where it is absent or damaged."""
    with suppress(cache.CacheError, ValueError, TypeError, KeyError, AttributeError):
        return Calibration.from_dict(dict(cache.read(path).about))
    return Calibration()


def _lacking(known: Calibration, steps: list[Step], fresh: bool) -> list[Step]:
    now = time.time()
    return [step for step in steps if fresh or not known.fit(step.key, now)]


def _unsettled(known: Calibration, steps: list[Step], apart: float, aged: float) -> list[Step]:
    """What was taken too few times of what is known, then what has aged; the longest ago first, each once."""
    now = time.time()
    found = {
        step.key: step
        for step in steps
        if known.fit(step.key, now) and not known.settled(step.key, now, apart, aged)
    }

    def turn(step: Step) -> tuple[bool, float]:
        return known.enough(step.key), known.measured[step.key]

    return sorted(found.values(), key=turn)


def _named(
    known: Calibration, planned: Set[Key], counts: Sequence[int], work_of: WorkOf
) -> list[Step]:
    """What measures again the kernels and calls known besides the plan; those that are no more are forgotten."""
    found = []
    for key in list(known.roofs):
        own = key.kind == KERNEL or (key.kind == OVERHEAD and key.name not in terms.GENERAL_CALLS)
        if not own or key in planned or key.threads not in counts or known.part[key] != RUN:
            continue
        try:
            work_of(key.name, key.bytes)
        except KeyError:
            del known.roofs[key], known.measured[key], known.part[key]
        else:
            found.append(key)
    return terms.steps_of(found, work_of)


def _scaled(progress: Progress | None, first: float, last: float) -> Progress | None:
    if progress is None:
        return None
    return lambda what, fraction: progress(what, first + (last - first) * fraction)


def _keep(known: Calibration) -> None:
    # Two programs may calibrate at once; each puts a whole file in place.
    cache.keep(cache.ROOFS, _name(), {}, known.as_dict())
