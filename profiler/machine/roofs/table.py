"""The roofs of the machine: its best rates of computation and transfer, with the libraries of the workload.

Attribution divides by a `RoofTable`; every session stores one, so that a replay elsewhere is judged by the machine that
ran. Operations are spelled `class[.library][:dtype][@device]`: "exp", "exp.numpy", "gemm:bfloat16",
"gemm:float16@cuda"; without a device the processor is meant, without a dtype float32.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, median_high
from typing import Any, Final, NamedTuple

RATE: Final = "rate"
BANDWIDTH: Final = "bandwidth"
OVERHEAD: Final = "overhead"
KERNEL: Final = "kernel"
LATENCY: Final = "latency"

START: Final = "start"
END: Final = "end"  # Phases of rows in a session: what its time is divided by, and what was measured again at its end
LADDERS: Final = ("chase", "gather")  # Names of the roofs of scattered accesses, each measured over a ladder of sizes

AFTER_BYTES: Final = 8 << 20
"""What is read before a call that comes after other data: it fills a second cache, of 2 MiB or more on some. Of more
there is no more of a call to be pushed out."""

NOMINAL_DTYPE: Final = "float32"

DRIFT_TOLD: Final = 0.05  # Roofs that moved by more than this part since they were measured are worth a warning

MOST_GAIN: Final = 1.25
LEAST_GAIN: Final = 0.5
"""Limits of the speed-up of n threads: at most MOST_GAIN × n (rising clock, shared caches), at least LEAST_GAIN. A roof
outside was disturbed, or its library ignored the number of threads."""

LEAST: Final = 1e-3
MOST: Final = 1e24  # Bounds of a sensible figure, in operations/s, bytes/s or ns; far beyond any machine's


class Key(NamedTuple):
    """What tells one roof from another."""

    kind: str
    name: str
    dtype: str = NOMINAL_DTYPE
    threads: int = 1
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Roof:
    """One measured figure: the median of repeats, with the fastest of them and the slower quartile.

    rate: operations/s; bandwidth: bytes/s over a working set of `bytes`; overhead: ns per call, each after `bytes` of
    other data were read; latency: ns per access scattered over `bytes`; kernel: units/s of a kernel, in older sessions.
    """

    kind: str
    name: str
    dtype: str
    threads: int
    bytes: int
    median: float
    low: float
    high: float
    unit: str
    disturbed: bool = False  # Whether other programs had part of the processors all the while; not kept in sessions

    @property
    def key(self) -> Key:
        return Key(self.kind, self.name, self.dtype, self.threads, self.bytes)

    @property
    def spread(self) -> float:
        return max(self.high / self.median - 1.0, 0.0) if self.median > 0 else 0.0

    @property
    def sound(self) -> bool:
        sized = self.kind not in (BANDWIDTH, LATENCY) or self.bytes > 0
        figures = (self.median, self.low, self.high)
        return sized and self.threads > 0 and all(LEAST < v < MOST for v in figures)


@dataclass(frozen=True)
class RoofTable:
    """All roofs of one machine; empty when nothing was measured (then nothing can be attributed)."""

    roofs: tuple[Roof, ...] = ()
    _rates: dict[tuple[str, int, str], Roof | None] = field(default_factory=dict, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.roofs)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Roof]]:
        by_name: dict[tuple[str, str], list[Roof]] = {}
        for roof in sorted(self.roofs, key=lambda roof: roof.bytes):
            by_name.setdefault((roof.kind, roof.name), []).append(roof)
        return by_name

    def _named(self, kind: str, name: str, device: str = "") -> list[Roof]:
        """The roofs of that kind and name, by growing size."""
        return self._by_name.get((kind, f"{name}@{device}" if device else name), [])

    @cached_property
    def refused(self) -> dict[Roof, str]:
        """Roofs of several threads that do not fit those of one, each with a sentence; none of them is given out."""
        singles = {roof.key: roof for roof in self.roofs if roof.threads == 1}
        reasons = {}
        for roof in self.roofs:
            single = singles.get(roof.key._replace(threads=1))
            if roof.threads == 1 or single is None or roof.kind not in (RATE, KERNEL):
                continue
            gain = roof.median / single.median
            if not LEAST_GAIN <= gain <= MOST_GAIN * roof.threads:
                reasons[roof] = (
                    f"{roof.name} {roof.dtype} on {roof.threads} threads is {gain:.3g} times what one thread does, "
                    "which cannot be; `asrscope calibrate --fresh` measures it again."
                )
        return reasons

    @property
    def threads(self) -> tuple[int, ...]:
        return tuple(sorted({roof.threads for roof in self.roofs if roof.kind not in (OVERHEAD, LATENCY)}))

    def rate(self, operation: str, threads: int = 1, dtype: str = NOMINAL_DTYPE) -> Roof | None:
        """Return the roof of an operation class (operations/s), or None when it was not measured.

        `operation` may spell a library, a dtype (which then counts instead of `dtype`) and a device.
        Of the measured thread counts the largest not above `threads` is taken; of several libraries
        the fastest, unless one is spelled and was measured. No other dtype is ever substituted.
        """
        key = (operation, threads, dtype)
        if key not in self._rates:
            head, _, device = operation.partition("@")
            head, _, spelled = head.partition(":")
            family: dict[str, list[Roof]] = {}
            for roof in self.roofs:
                name, _, where = roof.name.partition("@")
                same = name.partition(".")[0] == head.partition(".")[0] and where == device
                if roof.kind == RATE and roof.dtype == (spelled or dtype) and same:
                    family.setdefault(name, []).append(roof)
            chosen = [family[head]] if "." in head and head in family else family.values()
            best = (_at_threads(roofs, threads) for roofs in chosen)
            usable = [roof for roof in best if roof and roof not in self.refused]
            self._rates[key] = max(usable, key=lambda roof: roof.median, default=None)
        return self._rates[key]

    def ladder(self, name: str = "read", threads: int = 1, device: str = "") -> list[Roof]:
        """Return the bandwidth roofs (bytes/s) of read, write, triad or a device's copies, by growing working set."""
        rungs = [roof for roof in self._named(BANDWIDTH, name, device) if roof.dtype == NOMINAL_DTYPE]
        nearest = _at_threads(rungs, threads)
        return [roof for roof in rungs if nearest and roof.threads == nearest.threads]

    def bandwidth(
        self, working_set_bytes: float, threads: int = 1, name: str = "read", device: str = ""
    ) -> Roof | None:
        """Return the bandwidth for a working set of that size, or None when none was measured.

        Between two rungs the time per byte is interpolated over the logarithm of the size: part of the
        set is still in the faster level. Beyond the ends of the ladder, the end rung counts.
        """
        rungs = self.ladder(name, threads, device)
        return _interpolated(rungs, working_set_bytes, lambda a, b, part: 1.0 / ((1.0 - part) / a + part / b))

    def kernel(self, name: str, threads: int = 1) -> Roof | None:
        """Return the rate of a kernel of the workload (units/s) that an older session has, or None."""
        roof = _at_threads([roof for roof in self._named(KERNEL, name) if not roof.bytes], threads)
        return None if roof in self.refused else roof

    def latency(self, size_bytes: float, name: str = "chase", device: str = "") -> Roof | None:
        """Return what an access scattered over that many bytes takes, ns, or None when it was not measured.

        `name`: chase, where each access waits for the one before, or gather, where they overlap. Between two
        sizes the time is interpolated over the logarithm of the size.
        """
        rungs = self._named(LATENCY, name, device)
        return _interpolated(rungs, size_bytes, lambda a, b, part: (1.0 - part) * a + part * b)

    def call(self, name: str, after_bytes: int = 0) -> Roof | None:
        """Return what a call takes (ns) after so much was read, or None when it was not measured.

        `name`: numpy, numba, python, torch, "launch@cuda" …
        """
        return next((roof for roof in self._named(OVERHEAD, name) if roof.bytes == after_bytes), None)

    def rows(self, phase: str = START) -> list[dict[str, Any]]:
        """Return the roofs as rows for `SessionWriter.calibration`."""
        kept = [name for name in Roof.__slots__ if name != "disturbed"]
        return [{"phase": phase, **{name: getattr(roof, name) for name in kept}} for roof in self.roofs]

    @classmethod
    def from_rows(cls, rows: Iterable[dict[str, Any]]) -> "RoofTable":
        """Read what `rows` wrote, but for what is no sensible figure; of rows of the same roof the last counts."""
        roofs = (Roof(**{key: value for key, value in row.items() if key != "phase"}) for row in rows)
        return cls(tuple({roof.key: roof for roof in roofs if roof.sound}.values()))

    def merged(self, other: "RoofTable") -> "RoofTable":
        """Return these roofs with those of `other` added or put in their place."""
        return RoofTable.from_rows(self.rows() + other.rows())


def _interpolated(rungs: list[Roof], size: float, between: Callable[[float, float, float], float]) -> Roof | None:
    """Return the roof at `size`: `between` the figures of two rungs by their part of the logarithm, an end's beyond."""
    if not rungs:
        return None
    above = bisect_left(rungs, size, key=lambda rung: rung.bytes)
    if above in (0, len(rungs)):
        return rungs[min(above, len(rungs) - 1)]
    low, high = rungs[above - 1], rungs[above]
    part = math.log(size / low.bytes) / math.log(high.bytes / low.bytes)
    median, least, most = (between(getattr(low, end), getattr(high, end), part) for end in ("median", "low", "high"))
    return replace(high, bytes=int(size), median=median, low=least, high=most)


def _at_threads(roofs: list[Roof], threads: int) -> Roof | None:
    fewest = min(roofs, key=lambda roof: roof.threads, default=None)
    return max((roof for roof in roofs if roof.threads <= threads), key=lambda roof: roof.threads, default=fewest)


Progress = Callable[[str, float], None]
Cancelled = Callable[[], bool]


def drift(before: RoofTable, after: RoofTable) -> dict[str, float]:
    """Return by how much each roof measured again has changed: gemm → -0.05 means 5 % slower."""
    old = {roof.key: roof.median for roof in before.roofs}
    return {
        f"{roof.name} {roof.bytes}" if roof.kind == BANDWIDTH else roof.name: roof.median / old[roof.key] - 1.0
        for roof in after.roofs
        if roof.key in old
    }


def sound_drift(stored: Any) -> dict[str, float]:
    """Return the changes that a session's meta holds under "drift", without what is no number."""
    changes = stored.items() if isinstance(stored, dict) else ()
    return {str(label): float(v) for label, v in changes if isinstance(v, int | float) and math.isfinite(v)}


def drift_text(changes: Mapping[str, float]) -> str:
    """Return drift as people read it: "gemm −2 %, read 128 MiB +1 %"."""

    def displayed(label: str) -> str:
        name, _, size = label.partition(" ")
        return f"{name} {size_text(int(size))}" if size.isdecimal() else label

    return ", ".join(f"{displayed(label)} {'−' if v < 0 else '+'}{abs(v):.1%}" for label, v in changes.items())


def drift_warning(changes: Mapping[str, float]) -> str | None:
    """Return a sentence when the machine has changed too much for its roofs to be trusted, else None."""
    moved = {label: v for label, v in changes.items() if abs(v) > DRIFT_TOLD}
    if not moved:
        return None
    return (
        f"The roofs of the machine have changed by more than {DRIFT_TOLD:.0%} since they were measured "
        f"({drift_text(moved)}), so compute and memory may be off by as much; "
        "`asrscope calibrate --fresh` measures them again."
    )


def size_text(size: int) -> str:
    """Return a size as people read it: 16 KiB, 1.5 MiB, 2 GiB."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.3g} {unit}"
    return f"{size} B"


FLAT: Final = 0.12  # Rungs of one plateau are within this fraction of its mean; levels of a memory differ by more


class Plateau(NamedTuple):
    """Neighbouring rungs with the same bandwidth: smallest and largest working set, bytes/s."""

    first_bytes: int
    last_bytes: int
    rate: float

    @property
    def label(self) -> str:
        """The sizes it holds for: "16 KiB … 512 KiB"."""
        return f"{size_text(self.first_bytes)} … {size_text(self.last_bytes)}"


def plateaus(rungs: Sequence[Roof]) -> list[Plateau]:
    """Return the plateaus of a ladder (rungs by growing size); slopes between them belong to none."""
    groups: list[list[Roof]] = []
    for rung in rungs:
        if groups and abs(rung.median / fmean(each.median for each in groups[-1]) - 1.0) <= FLAT:
            groups[-1].append(rung)
        else:
            groups.append([rung])
    long = (group for group in groups if len(group) > 1)
    return [Plateau(group[0].bytes, group[-1].bytes, median_high(rung.median for rung in group)) for group in long]
