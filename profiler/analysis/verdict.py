"""What bounds a stage, in the words that the user sees: from the parts of its time."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from profiler.analysis import categories
from profiler.analysis.categories import LAW_PARTS, NOT_ATTRIBUTED, NOT_OWN, PART_NAMES, PARTS

COMPUTE_PARTS: Final = ("arithmetic", "instructions", "calls")
MEMORY_PARTS: Final = ("bandwidth", "latency")

TOLD_FROM: Final = 0.02  # A part below this share of the time is left out of a sentence


@dataclass(frozen=True, slots=True)
class Parts:
    """Time by part in ns: the likely figures, which add up to the stage's time, and the ends of their intervals."""

    likely: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @property
    def time_ns(self) -> float:
        return sum(self.likely.values())

    @property
    def own(self) -> "Parts":
        return Parts(*({**ends, **dict.fromkeys(NOT_OWN, 0.0)} for ends in (self.likely, self.low, self.high)))

    def share(self, name: str) -> float:
        """The likely part of the time, 0…1."""
        return self.likely[name] / (self.time_ns or 1.0)

    def ends(self, name: str) -> tuple[float, float]:
        """The interval of `share`, 0…1."""
        time = self.time_ns or math.inf
        return self.low[name] / time, self.high[name] / time

    @property
    def notable(self) -> list[str]:
        order = sorted(PARTS, key=lambda name: -self.likely[name])
        return [name for name in order if self.share(name) >= TOLD_FROM]


def together(stages: Iterable[tuple[float, Parts | None]]) -> Parts | None:
    """Return the parts of stages given as (ns, parts), the time of those without not attributed; None without any."""
    rows = list(stages)
    if not any(parts is not None for _, parts in rows):
        return None
    sums = [dict.fromkeys(PARTS, 0.0) for _ in range(3)]
    for time, parts in rows:
        all_open = {NOT_ATTRIBUTED: time}
        three = (all_open,) * 3 if parts is None else (parts.likely, parts.low, parts.high)
        for each, values in zip(sums, three, strict=True):
            for name, ns in values.items():
                each[name] += ns
    return Parts(*sums)


COMPUTE_BOUND: Final = "compute-bound"
INSTRUCTION_BOUND: Final = "instruction-bound"
BANDWIDTH_BOUND: Final = "bandwidth-bound"
LATENCY_BOUND: Final = "latency-bound"
CALL_BOUND: Final = "call-bound"
LAUNCH_BOUND: Final = "launch-bound"
MIXED: Final = "mixed"
UNDECIDED: Final = "undecided"

VERDICT_OF: Final = {
    "arithmetic": COMPUTE_BOUND,
    "instructions": INSTRUCTION_BOUND,
    "bandwidth": BANDWIDTH_BOUND,
    "latency": LATENCY_BOUND,
    "calls": CALL_BOUND,
    NOT_ATTRIBUTED: UNDECIDED,
}
"""Verdict of a stage by its largest part. What was lost (NOT_OWN) is no verdict; see `Parts.share`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sums over a stage's spans that its verdict rests on; times in ns, None where not known.

    `frames`: that it worked on; `all_frames`: of the stretch, worked on or not (0: the same).

    `least_ns`: what arithmetic and calls take at least. `missing`: roofs that were not measured. `replayed`: whether
    all time was measured by hot replay; `device`: or is that of work on one. `unknown`: arithmetic without a roof.
    `launches`: kernels given to a device. `unit`, `units`: what the stage counts its work in. `reason`: why it has no
    law. `frame`: what a frame is called: a step where frames stand for no audio.
    """

    time_ns: float
    calls: float
    frames: float
    parts: Parts | None = None
    least_ns: float | None = None
    bytes_min: float | None = None
    missing: tuple[str, ...] = ()
    replayed: bool = False
    device: bool = False
    unit: str = ""
    units: float = 0.0
    reason: str = ""
    roofs: bool = True
    unknown: bool = False
    launches: float = 0.0
    frame: str = "frame"
    all_frames: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds a stage, how well that is known (A B C D –), in plain words, and what is wrong.

    `too_close`: the part of the sentence that says which parts are too close to tell which is more, or None.
    """

    verdict: str | None
    evidence: str
    sentence: str
    defect: str | None = None
    too_close: str | None = None


def judge(e: Evidence) -> Verdict:
    """Turn a stage's sums into a verdict, an evidence grade and a sentence."""
    if not e.calls or e.time_ns <= 0:
        return Verdict(None, "–", "Did not run.")
    if e.parts is None:
        count, call = _units(e)
        roofless = "what it computes is not modelled" if e.roofs else "the machine's roofs were not measured"
        return Verdict(None, "–", f"Takes {_time(e.time_ns / count)} per {call}; {e.reason or roofless}.")
    grade = "D" if e.missing else "B" if e.replayed else "C"
    defect = None
    if e.least_ns is not None and e.least_ns > e.time_ns:
        defect = (
            f"It ran in {100 * e.time_ns / e.least_ns:.0f} % of the least time that the machine's measured roofs "
            "allow, so its cost law or a roof is wrong."
        )
    verdict, too_close = _verdict(e, e.parts)
    return Verdict(verdict, grade, _sentence(e, e.parts, too_close), defect, too_close)


def _verdict(e: Evidence, parts: Parts) -> tuple[str, str | None]:
    """Return what bounds a stage, and what is to be said of parts that are too close.

    It is the largest own part, or *mixed* where the interval of the second reaches into its; undecided where nothing
    accounts for most. The law alone is no verdict where another part may be as large. Launches count where they are
    twice any other part: their interval begins at nothing.
    """
    likely, low, high = parts.likely, parts.low, parts.high
    order = sorted(VERDICT_OF, key=lambda name: likely[name], reverse=True)
    first, second = order[:2]
    arithmetic = sum(likely[name] for name in ("arithmetic", "instructions", NOT_ATTRIBUTED))
    maybe_more = e.unknown and first != "arithmetic" and arithmetic >= likely[first]
    if first == NOT_ATTRIBUTED or likely[first] <= 0.0 or maybe_more:
        return UNDECIDED, None
    if e.launches and first == "calls" and likely[first] >= 2 * likely[second]:
        return LAUNCH_BOUND, None
    if not (e.replayed or e.device):
        rival = max(high[name] for name in LAW_PARTS if name != first)
        return (UNDECIDED if rival > low[first] else VERDICT_OF[first]), None
    second = next(name for name in order[1:] if name in LAW_PARTS)
    if likely[second] and high[second] > low[first]:
        return MIXED, f"{PART_NAMES[first]} and {PART_NAMES[second]} are too close to tell which is more"
    return VERDICT_OF[first], None


IN_SENTENCES: Final = {
    **PART_NAMES,
    "arithmetic": "arithmetic (at peak rate)",
    "instructions": "instructions (beyond the arithmetic)",
    "bandwidth": "waiting on memory bandwidth",
    "latency": "waiting on memory latency",
    categories.OTHER_PROGRAMS: "preempted by other programs",
    categories.THROTTLED: "throttled (CPU limit, host)",
}
"""How a sentence says what a part of the time is."""


def _sentence(e: Evidence, parts: Parts, too_close: str | None) -> str:
    calls, call = _units(e)
    text = []
    if e.bytes_min:
        rate = e.bytes_min / e.time_ns
        text.append(f"moves {_scaled(e.bytes_min / calls, 'B', 'kB', 'MB', 'GB')} per {call} at {rate:.3g} GB/s")
    if e.units:
        # Some counts have no noun: how many were examined, or ranked.
        each = e.unit[:-1] if e.unit.endswith("s") else f"item {e.unit}"
        text.append(f"{_time(e.time_ns / e.units)} per {each}")
    if e.launches:
        kernels = e.launches / calls
        text.append(f"launches {'one kernel' if kernels == 1 else f'{kernels:.3g} kernels'} per {call}")
    shares = [f"{100 * parts.share(name):.0f} % {IN_SENTENCES[name]}" for name in parts.notable]
    text.append(f"{_time(e.time_ns / calls)} per {call}: {', '.join(shares)}")
    if too_close:
        text.append(too_close)
    if e.missing:
        text.append(f"not measured here: {', '.join(e.missing)}")
    whole = "; ".join(text)
    return whole[0].upper() + whole[1:] + "."


def _units(e: Evidence) -> tuple[float, str]:
    if e.frames <= e.calls:
        return max(e.all_frames, e.calls), e.frame
    return e.calls, "block"


def _scaled(value: float, *units: str) -> str:
    """`value` with the first of `units`, each 1000 times the one before, in which it is below 1000."""
    for unit in units[:-1]:
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000.0
    return f"{value:.3g} {units[-1]}"


def _time(value_ns: float) -> str:
    return _scaled(value_ns, "ns", "µs", "ms", "s")
