"""Where a stage's time went, in the categories and words that the user sees.

The parts of scoring and search come from `parts`. Compute = arithmetic at peak, instructions beyond it and calls;
memory = bandwidth and latency; what neither law nor measurement accounts for is unexplained, and shown as not
attributed. See Williams et al. 2009 (roofline) and Treibig & Hager 2009 (execution-cache-memory).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from profiler.analysis.categories import (
    LAW_PARTS,
    NOT_ATTRIBUTED,
    OTHER_PROGRAMS,
    PART_NAMES,
    PARTS,
    UNEXPLAINED,
)
from profiler.analysis.parts import Parts, by_category, split
from profiler.analysis.per_frame import grains
from profiler.analysis.waiting import Waited
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable

COMPUTE_BOUND: Final = "compute-bound"
INSTRUCTION_BOUND: Final = "instruction-bound"
BANDWIDTH_BOUND: Final = "bandwidth-bound"
LATENCY_BOUND: Final = "latency-bound"
CALL_BOUND: Final = "call-bound"
LAUNCH_BOUND: Final = "launch-bound"
PREEMPTED: Final = "preempted"
UNDECIDED: Final = "undecided"

VERDICT_OF: Final = {
    "arithmetic": COMPUTE_BOUND,
    "instructions": INSTRUCTION_BOUND,
    "bandwidth": BANDWIDTH_BOUND,
    "latency": LATENCY_BOUND,
    "calls": CALL_BOUND,
    OTHER_PROGRAMS: PREEMPTED,
    NOT_ATTRIBUTED: UNDECIDED,
}
"""What is said of a stage whose largest part this is."""


def assign(
    group: str,
    spans: Array,
    cost: Cost | None,
    roof_table: RoofTable,
    other: Array | None = None,
    slowness: Array | None = None,
    waiting: Waited | None = None,
) -> dict[str, Array]:
    """Return the time of each span of a stage of `group` by category, float64 [n] in ns, multiples of GRAIN.

    Together they are the spans' whole time: scoring is `split`, any other group of leaves is a category by itself.
    """
    duration = spans["duration_ns"].astype(np.float64)
    if group != "scoring":
        return {group: duration}
    parts = split(spans, cost, roof_table, other, slowness, waiting).parts
    found = dict(
        zip(
            ("compute", "memory", OTHER_PROGRAMS),
            (grains(part) for part in by_category(parts)),
            strict=True,
        )
    )
    return {**found, UNEXPLAINED: duration - np.sum(list(found.values()), axis=0)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sums over a stage's spans that its verdict rests on; times in ns, None where not known.

    `least_ns`: the shortest time that its law allows at any repeat of the calibration. `missing`: roofs that its law
    names and that were not measured. `replayed`: whether its waiting for memory was measured by hot replay.
    `unknown`: whether its arithmetic is among them. `launches`: kernels that the host gave to a device.
    `unit`, `units`: what the stage counts its work in, and how many. `reason`: why it has no law.
    `by_law`: LAW_PARTS as the law alone has them at the machine's usual roofs, whatever the time and the replays were.
    """

    time_ns: float
    calls: float
    frames: float
    parts: Parts | None = None
    least_ns: float | None = None
    bytes_min: float | None = None
    missing: tuple[str, ...] = ()
    replayed: bool = False
    unit: str = ""
    units: float = 0.0
    reason: str = ""
    roofs: bool = True
    unknown: bool = False
    launches: float = 0.0
    by_law: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds a stage, how well that is known (A B C D –), in plain words, and what is wrong.

    `too_close`: the part of the sentence that says that the run alone did not decide, or None.
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
        return Verdict(
            None, "–", f"Takes {_time(e.time_ns / e.calls)} per {_call(e)}; {_lacking(e)}."
        )
    grade = "D" if e.missing else "B" if e.replayed or not e.bytes_min else "C"
    defect = None
    if e.least_ns is not None and e.least_ns > e.time_ns:
        defect = (
            f"It ran in {100 * e.time_ns / e.least_ns:.0f} % of the least time that the machine's measured roofs "
            "allow, so its cost law or a roof is wrong."
        )
    verdict, too_close = _verdict(e, e.parts)
    return Verdict(verdict, grade, _sentence(e, e.parts, too_close), defect, too_close)


LEAST_OF_LARGEST: Final = 0.5
"""A part that is less than this of the largest is not what bounds a stage, whatever its law says."""


def _verdict(e: Evidence, parts: Parts) -> tuple[str, str | None]:
    """What bounds a stage: the first of two witnesses together, or a part of which the run had twice as much.

    These are its parts and its cost law alone at the machine's usual roofs: that a neighbour slows memory down for a
    while, or that a roof was lately measured at a lucky moment, is no reason to say otherwise. What the law has first
    is not named where the run had less than half as much of it as of another part. Where other programs,
    which no law knows, were the largest part, or where nothing accounts for it, that is said. Arithmetic without a
    roof may be all that is not attributed. Launches count only where the stage took longer than its work: twice any
    other part, they are what it waited for, although their interval begins at nothing.

    With it comes what is to be said where the run alone does not tell, or tells otherwise.
    """
    order = sorted(PARTS, key=lambda name: parts.likely[name], reverse=True)
    first, second = order[:2]
    if first in (NOT_ATTRIBUTED, OTHER_PROGRAMS):
        return VERDICT_OF[first], None
    if e.unknown and first != "arithmetic":
        arithmetic = parts.likely["arithmetic"] + parts.likely[NOT_ATTRIBUTED]
        if arithmetic >= parts.likely[first]:
            return UNDECIDED, None
    if e.launches and first == "calls":
        launched = parts.likely[first] >= 2 * parts.likely[second]
        return LAUNCH_BOUND if launched else UNDECIDED, None
    rival = next(name for name in order[1:] if name in LAW_PARTS)
    surely = _surely_larger(parts, first, rival)
    named = _by_both(e, parts)
    if named is None or parts.likely[named] < LEAST_OF_LARGEST * parts.likely[first]:
        return (VERDICT_OF[first] if surely else UNDECIDED), None
    if named != first:
        return VERDICT_OF[named], _not_the_runs(parts, named, first)
    return VERDICT_OF[first], None if surely else _not_the_runs(parts, first, rival)


def _by_both(e: Evidence, parts: Parts) -> str | None:
    """The part of which the run and the law have most together, each by its share of what the law knows.

    None where the law says nothing, or of launches, which are judged by what was measured.
    """
    by_run = sum(parts.likely[name] for name in LAW_PARTS)
    by_law = sum(e.by_law.values())
    if not by_law or not by_run:
        return None
    named = max(LAW_PARTS, key=lambda name: parts.likely[name] / by_run + e.by_law[name] / by_law)
    return None if e.launches and named == "calls" else named


def _surely_larger(parts: Parts, one: str, other: str) -> bool:
    """Whether a part is larger than another by more than both are off together: the root of the sum of squares."""
    off = math.hypot(parts.likely[one] - parts.low[one], parts.high[other] - parts.likely[other])
    return parts.likely[one] - parts.likely[other] > off


def _sentence(e: Evidence, parts: Parts, too_close: str | None) -> str:
    calls, call = e.calls, _call(e)
    text = []
    if e.bytes_min:
        rate = e.bytes_min / e.time_ns
        text.append(f"moves {_bytes(e.bytes_min / calls)} per {call} at {rate:.3g} GB/s")
    if e.units:
        # Some counts have no noun: how many were examined, or ranked.
        each = f"each of its {e.unit}" if e.unit.endswith("s") else f"each item {e.unit}"
        text.append(f"{each} takes {_time(e.time_ns / e.units)}")
    if e.launches:
        text.append(f"is given as {_count(e.launches / calls)} per {call}")
    shares = [f"{100 * parts.share(name):.0f} % {PART_NAMES[name]}" for name in parts.told]
    text.append(f"of its {_time(e.time_ns / calls)} per {call}, {_listed(shares)}")
    if too_close:
        text.append(too_close)
    if e.missing:
        text.append(f"not measured here: {', '.join(e.missing)}")
    whole = "; ".join(text)
    return whole[0].upper() + whole[1:] + "."


def _not_the_runs(parts: Parts, named: str, rival: str) -> str:
    """What is said where of two parts the run does not have the `named` one surely first."""
    larger, smaller = sorted((named, rival), key=lambda name: -parts.likely[name])
    if _surely_larger(parts, larger, smaller):
        of_run = f"{PART_NAMES[larger]} was more than {PART_NAMES[smaller]} in this run"
    else:
        both = f"{PART_NAMES[larger]} and {PART_NAMES[smaller]}"
        of_run = f"{both} are too close to tell which is more"
    return f"{of_run}; run and cost law together have {PART_NAMES[named]} first"


def _count(kernels: float) -> str:
    return "one kernel" if kernels == 1 else f"{kernels:.3g} kernels"


def _listed(shares: list[str]) -> str:
    if len(shares) == 1:
        return shares[0].replace(" % ", " % is ", 1)
    return f"{', '.join(shares[:-1]).replace(' % ', ' % are ', 1)} and {shares[-1]}"


def _lacking(e: Evidence) -> str:
    if e.reason:
        return e.reason
    return (
        "the machine's roofs were not measured"
        if not e.roofs
        else "what it computes is not modelled"
    )


def _call(e: Evidence) -> str:
    return "frame" if e.frames <= e.calls else "block"


def _scaled(value: float, steps: tuple[str, ...], factor: float) -> str:
    for step in steps[:-1]:
        if abs(value) < 0.9995 * factor:
            return f"{value:.3g} {step}"
        value /= factor
    return f"{value:.3g} {steps[-1]}"


def _time(value_ns: float) -> str:
    return _scaled(value_ns, ("ns", "µs", "ms", "s"), 1000.0)


def _bytes(value: float) -> str:
    return _scaled(value, ("B", "kB", "MB", "GB"), 1000.0)
