"""The roofs of this machine, stored between sessions.

One file per machine and library build holds every roof with the time of its measurement. A run measures what of its
quick plan is missing; `calibrate` measures everything, torch's and the device's in a process of their own. A roof that
other programs disturbed is kept for BUSY_SECONDS and then measured again; the better of the two stays. The file is
replaced as a whole at the end: no partial result is ever stored.

The child is `python -m profiler.machine.roofs.torch`, so that this process never loads torch; it answers in JSON lines.
Whatever goes wrong there becomes a reason why a roof is unavailable, never a failure of the calibration.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from profiler.errors import Cancelled as Stopped
from profiler.files import cache
from profiler.machine.describe import describe, usable_cores
from profiler.machine.roofs import accesses, cpu
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.device import Missing
from profiler.machine.roofs.table import Cancelled, Key, Progress, Roof, RoofTable
from profiler.machine.roofs.timing import Effort, Work, better, is_steady
from profiler.process import children

MODULE: Final = "profiler.machine.roofs.torch"
DEVICE: Final = "device"

SILENCE_SECONDS: Final = 120.0  # Importing torch from a cold disk takes up to a minute; a step, seconds


@dataclass
class Answer:
    """What came back, by part of the calibration."""

    roofs: dict[str, list[Roof]] = field(default_factory=dict)
    missing: dict[str, list[Missing]] = field(default_factory=dict)


def part(threads: int) -> str:
    """Return the name of torch's part for this number of processor threads."""
    return f"torch on {threads}"


def measure(
    parts: Sequence[str],
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    command: Sequence[str] = tuple(children.python("-m", MODULE)),
) -> Answer:
    """Measure `parts` in a child process, always ended; profiler.errors.Cancelled as soon as `cancelled()`."""
    answer, whole = Answer(), False

    def hear(line: bytes) -> bool:
        nonlocal whole
        try:
            message = json.loads(line)
        except ValueError:
            return False  # a library's own remark on stdout
        if not isinstance(message, dict):
            return False
        if "progress" in message and progress is not None:
            progress(str(message["progress"]), float(message["fraction"]))
        if "part" in message:
            name = message["part"]
            answer.roofs[name] = [*RoofTable.from_rows(message["roofs"]).roofs]
            answer.missing[name] = [Missing(*pair) for pair in message["missing"]]
        whole = bool(message.get("done"))
        return whole

    try:
        listened = children.listen(
            [*command, *parts], hear, cancelled, extra={"PYTHONUNBUFFERED": "1"}, silence_s=SILENCE_SECONDS
        )
        reason = f"(status {listened[0]}): {children.last_words(listened[1], listened[0])}"
    except TimeoutError:
        reason = f"(silent for {SILENCE_SECONDS:.0f} s)"
    except Stopped:
        raise Stopped("The calibration was cancelled.") from None
    for name in [name for name in parts if name not in answer.missing and not whole]:
        answer.missing[name] = [Missing(name, f"the process that measures with torch ended early {reason}")]
    return answer


METHOD: Final = 34  # Counted up when a figure is measured differently, so that cached ones are taken again

BUSY_SECONDS: Final = 600.0

RUN: Final = "run"  # The part of the calibration that this process takes itself
EACH_UP_TO: Final = 4  # Every thread count is measured up to this one; from there the powers of two, and all cores
BUILD: Final = ("numpy", "numba", "torch")  # Libraries whose version decides what the roofs are


@dataclass
class Calibration:
    """Every roof that is known of this machine, when each was measured, and what has none and why."""

    roofs: dict[Key, Roof] = field(default_factory=dict)
    measured: dict[Key, float] = field(default_factory=dict)
    part: dict[Key, str] = field(default_factory=dict)
    unavailable: dict[str, list[Missing]] = field(default_factory=dict)

    @property
    def roof_table(self) -> RoofTable:
        return RoofTable(tuple(roof for roof in self.roofs.values() if roof.sound))

    @property
    def measured_at(self) -> float | None:
        """When the newest roof was measured, seconds since 1970."""
        return max(self.measured.values(), default=None)

    @property
    def missing(self) -> list[Missing]:
        return list({m.name: m for part in reversed(self.unavailable.values()) for m in part}.values())

    def is_fit(self, key: Key, now: float) -> bool:
        """Whether the roof is there and need not be measured again."""
        roof = self.roofs.get(key)
        return roof is not None and (is_steady(roof) or 0 <= now - self.measured[key] < BUSY_SECONDS)

    def is_part_fit(self, part: str, now: float) -> bool:
        """Whether that part of the calibration need not be measured again."""
        failed = any(missing.name == part for missing in self.unavailable.get(part, []))
        return (
            part in self.unavailable
            and not (failed and part != DEVICE)
            and all(self.is_fit(key, now) for key, of in self.part.items() if of == part)
        )

    def add(self, roofs: Iterable[Roof], part: str, now: float, *, replace: bool = False) -> None:
        """Put in newly measured roofs, which may `replace` what is known; else the better one stays."""
        for roof in roofs:
            key = roof.key
            known = None if replace else self.roofs.get(key)
            self.roofs[key] = roof if known is None else better(known, roof)
            self.measured[key], self.part[key] = now, part

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        rows = RoofTable(tuple(self.roofs.values())).rows()
        for row, (key, roof) in zip(rows, self.roofs.items(), strict=True):
            del row["phase"]
            row |= {"spread": roof.spread, "steady": is_steady(roof), "disturbed": roof.disturbed}
            row |= {"measured_at": self.measured[key], "part": self.part[key]}
        parts = {part: [m._asdict() for m in found] for part, found in self.unavailable.items()}
        return {"method": METHOD, "roofs": rows, "unavailable": parts}

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> "Calibration":
        """Read what `as_dict` gave; ValueError, TypeError or KeyError when it is something else."""
        made = cls()
        for row in tree["roofs"]:
            values = {name: row[name] for name in Roof.__slots__}
            for roof in RoofTable.from_rows([values]).roofs:
                made.add([roof], str(row["part"]), float(row["measured_at"]))
        for part, found in tree["unavailable"].items():
            made.unavailable[str(part)] = [Missing(str(m["name"]), str(m["reason"])) for m in found]
        return made


def load_or_measure(
    threads: int = 1,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
    kernels: Mapping[str, Work] | None = None,
    device: bool = False,
) -> RoofTable:
    """Return the roofs, after measuring what a run on `threads` threads (`device`: and an accelerator) lacks."""
    steps, parts = plan([threads], kernels, whole=False), [DEVICE] if device else []
    return _measured(steps, parts, progress, cancelled, fresh=fresh).roof_table


def device_measured(*, fresh: bool = False) -> RoofTable:
    return _measured([], [DEVICE], None, None, fresh=fresh).roof_table


def calibrate(
    threads: int | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
    kernels: Mapping[str, Work] | None = None,
) -> Calibration:
    """Measure every roof that is not known, up to `threads` threads (all usable cores), and keep them.

    `fresh` measures all again. profiler.errors.Cancelled as soon as `cancelled()`; nothing is kept then.
    """
    counts = thread_counts(threads or usable_cores() or 1)
    parts = [DEVICE, *(part(n) for n in counts)]
    steps = plan(counts, kernels, whole=True)
    return _measured(steps, parts, progress, cancelled, fresh=fresh, patient=True)


def _measured(
    steps: list[Step],
    parts: list[str],
    progress: Progress | None,
    cancelled: Cancelled | None,
    *,
    fresh: bool,
    patient: bool = False,
) -> Calibration:
    """Return what is known after measuring what of these is not, or all of them if `fresh`."""
    known, now = load(file()), time.time()
    steps = [step for step in steps if fresh or not known.is_fit(step.key, now)]
    parts = [part for part in parts if fresh or not known.is_part_fit(part, now)]
    # The shares of the bar are those of the time: a core's roofs some 20 s, torch's start alone 3 s.
    share = (0.75 if parts else 1.0) if steps else 0.0
    if steps:
        found = cpu.take(steps, _scaled(progress, 0.0, share), cancelled, patient=patient)
        known.add(found, RUN, time.time(), replace=fresh)
    if parts:
        answer = measure(parts, _scaled(progress, share, 1.0), cancelled)
        for part in parts:
            known.add(answer.roofs.get(part, []), part, time.time(), replace=fresh)
            known.unavailable[part] = answer.missing.get(part, [])
    if steps or parts:
        # Two programs may calibrate at once; each puts a whole file in place.
        cache.keep(cache.ROOFS, _name(), {}, known.as_dict())
    return known


def plan(counts: Iterable[int], kernels: Mapping[str, Work] | None, *, whole: bool) -> list[Step]:
    """Return what to measure for these numbers of threads, but for what is torch's."""
    # Several plans share what does not depend on threads; by its key each roof is taken once.
    planned = [*(step for n in counts for step in cpu.plan(n, kernels, whole=whole)), *accesses.steps()]
    return list({step.key: step for step in planned}.values())


def warm_up(threads: int, kernels: Mapping[str, Work] | None) -> None:
    """Compile (or load) what a run's measuring calls: each kind of step is taken once, the smallest first."""
    steps = {step.key.name: step for step in reversed(plan([threads], kernels, whole=False))}
    for step in steps.values():
        step.take(Effort(1, 0.0, 0.0))


def thread_counts(most: int) -> list[int]:
    """Return the thread counts that are measured on this number of cores: 1 2 3 4 8 16 … and all of them."""
    counts = {n for n in range(1, most + 1) if n <= EACH_UP_TO or n & (n - 1) == 0}
    return sorted(counts | {most})


def file() -> Path:
    """Return where this machine's roofs are kept, for these versions of the libraries."""
    return cache.path_of(cache.ROOFS, _name())


def _name() -> str:
    machine = describe()
    same: list[Any] = [METHOD]
    same += [machine.get(key) for key in ("cpu", "vectors", "cores", "caches", "memory_bytes", "python", "blas")]
    same += [machine["versions"].get(name) for name in BUILD]
    if "gpus" in machine:
        # Another device, another driver, another of several devices: other roofs.
        same += [device_roofs.METHOD, machine["gpus"], machine.get("gpu_settings")]
    return hashlib.sha256(json.dumps(same, sort_keys=True, default=str).encode()).hexdigest()[:20]


def stored() -> RoofTable:
    return load(file()).roof_table


def load(path: Path) -> Calibration:
    with suppress(cache.CacheError, ValueError, TypeError, KeyError, AttributeError):
        return Calibration.from_dict(dict(cache.read(path).about))
    return Calibration()


def _scaled(progress: Progress | None, first: float, last: float) -> Progress | None:
    if progress is None:
        return None
    return lambda what, fraction: progress(what, first + (last - first) * fraction)
