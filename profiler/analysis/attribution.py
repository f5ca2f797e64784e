"""Where a stage's time went: arithmetic, memory, calls, or nobody knows.

For a span of measured time T with W_k operations of class k and Q bytes, arithmetic at the machine's
measured roofs takes t_c = Σ W_k / P_k and its traffic t_m = Q / bandwidth(working set). Then compute =
min(T, t_c), memory = what the bytes need beyond that (max(0, t_m − t_c), within T), and the rest is
unexplained, and shown as such. Q is an interval, from compulsory traffic to that of the kernel's actual
tiling: the split uses the compulsory end (it never blames memory for more than must have moved), the
verdict looks at both. See Williams et al. 2009 (roofline) and Treibig & Hager (execution-cache-memory).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.machine.roofs.table import RoofTable
from profiler.spans import WORK_COUNTS, Cost, Linear

CATEGORIES: Final = (
    "compute",
    "memory",
    "unexplained",
    "transfer",
    "search",
    "frontend",
    "overhead",
)
"""What the user sees; `compute`, `memory` and `unexplained` are the scoring time."""

OVERHEAD: Final = "overhead"
"""The category of what leaves do not cover, and the group of stages that say what some of it was."""

GRAIN: Final = 1.0 / (1 << 16)
"""ns. A sum of multiples of it is exact in float64 up to 2^37 ns, 137 s for a single frame."""

COMPUTE_BOUND: Final = "compute-bound"
MEMORY_BOUND: Final = "memory-bound"
OVERHEAD_BOUND: Final = "overhead-bound"
UNDECIDED: Final = "undecided"
UNEXPLAINED: Final = "unexplained"

BOUND_SHARE: Final = 0.5
"""A roof that accounts for half of the time or more is what bounds the stage."""

NS: Final = 1e9


class Roofs(NamedTuple):
    """A cost law in ns at the machine's roofs: median roofs, and the best that any repeat reached.

    All are linear in a span's counts, so sums over spans follow from the sums of their counts.
    `complete` is false when an operation class or the bandwidth has no measured roof.
    """

    arithmetic: Linear
    traffic_min: Linear
    traffic_max: Linear
    min_arithmetic: Linear
    min_traffic: Linear
    complete: bool


def roofs(cost: Cost, roof_table: RoofTable) -> Roofs:
    """Return what `cost` takes at the roofs of as many threads as share its work."""
    arithmetic, best = [], []
    complete = True
    for name, law in cost.operations.items():
        roof = roof_table.rate(name, cost.threads)
        if roof is None:
            complete = False
            continue
        arithmetic.append((law, NS / roof.median))
        best.append((law, NS / roof.high))
    memory = roof_table.bandwidth(cost.working_set_bytes, cost.threads, device=cost.device)
    low = high = least = Linear()
    if memory is None:
        complete = False
    else:
        low = _sum([(cost.bytes_min, NS / memory.median)])
        high = _sum([(cost.bytes_max, NS / memory.median)])
        least = _sum([(cost.bytes_min, NS / memory.high)])
    return Roofs(_sum(arithmetic), low, high, _sum(best), least, complete)


def _sum(terms: Iterable[tuple[Linear, float]]) -> Linear:
    fixed = per_frame = 0.0
    work = [0.0] * WORK_COUNTS
    for law, factor in terms:
        fixed += law.fixed * factor
        per_frame += law.per_frame * factor
        work = [w + f * factor for w, f in zip(work, law.per_work, strict=True)]
    return Linear(fixed, per_frame, (work[0], work[1], work[2]))


def split(spans: Array, cost: Cost | None, roof_table: RoofTable) -> tuple[Array, Array]:
    """Return (compute ns, memory ns) of each span, float64 [n]; the rest of its time is unexplained.

    Without a cost law or without roofs both are zero. The arithmetic is done span by span, so the result
    does not depend on how many are given at once.
    """
    duration = spans["duration_ns"].astype(np.float64)
    if cost is None or not roof_table:
        return np.zeros(len(spans)), np.zeros(len(spans))
    law = roofs(cost, roof_table)
    arithmetic = law.arithmetic.of(spans)
    compute = np.clip(arithmetic, 0.0, duration)
    memory = np.clip(law.traffic_min.of(spans) - arithmetic, 0.0, duration - compute)
    return compute, memory


def assign(group: str, spans: Array, cost: Cost | None, roof_table: RoofTable) -> dict[str, Array]:
    """Return the time of each span of a stage of `group` by category, float64 [n] in ns, multiples of GRAIN.

    Together they are the spans' whole time: scoring is `split`, any other group of leaves is a category by itself.
    """
    duration = spans["duration_ns"].astype(np.float64)
    if group != "scoring":
        return {group: duration}
    compute, memory = (grains(part) for part in split(spans, cost, roof_table))
    return {"compute": compute, "memory": memory, UNEXPLAINED: duration - compute - memory}


def grains(amounts: Array) -> Array:
    """Return `amounts` rounded down to multiples of GRAIN, so that what is left of a whole is never negative."""
    whole: Array = np.floor(amounts / GRAIN) * GRAIN
    return whole


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sums over a stage's spans that its verdict rests on; times in ns, None where not known.

    `min_ns`: the shortest time that any repeat of the calibration would allow. `call_ns`: what one call
    costs. `complete`: every operation class has a measured roof. `unit`, `units`: what the stage counts
    its work in, and how many. `scattered`, `reason`: of the cost law (`Cost.scattered`, `.unmodelled`).
    """

    time_ns: float
    calls: float
    frames: float
    arithmetic_ns: float | None = None
    traffic_min_ns: float | None = None
    traffic_max_ns: float | None = None
    min_ns: float | None = None
    bytes_min: float | None = None
    bytes_max: float | None = None
    call_ns: float | None = None
    complete: bool = True
    working_set: float | None = None
    unit: str = ""
    units: float = 0.0
    scattered: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds a stage, how well that is known (A B C D –), in plain words, and what is wrong."""

    verdict: str | None
    evidence: str
    sentence: str
    defect: str | None = None


def judge(e: Evidence) -> Verdict:
    """Turn a stage's sums into a verdict, an evidence grade and a sentence."""
    if not e.calls or e.time_ns <= 0:
        return Verdict(None, "–", "Did not run.")
    if e.arithmetic_ns is None or e.traffic_min_ns is None or e.traffic_max_ns is None:
        return Verdict(
            None, "–", f"Takes {_time(e.time_ns / e.calls)} per {_call(e)}; {_missing(e)}."
        )
    grade = "D" if not e.complete else "C" if e.bytes_min else "B"
    high = max(e.traffic_min_ns, e.traffic_max_ns)
    verdict = _verdict(e, e.arithmetic_ns, e.traffic_min_ns, high)
    defect = None
    if e.min_ns is not None and e.min_ns > e.time_ns:
        defect = (
            f"It ran in {e.time_ns / e.min_ns:.0%} of the least time that the machine's measured roofs "
            "allow, so its cost law or a roof is wrong."
        )
    sentence = _sentence(e, verdict, e.arithmetic_ns, e.traffic_min_ns, high)
    return Verdict(verdict, grade, sentence, defect)


def _verdict(e: Evidence, arithmetic: float, low: float, high: float) -> str:
    need = BOUND_SHARE * e.time_ns
    if max(arithmetic, low) >= need:
        # The compulsory traffic or the arithmetic is enough; does the answer hold over the interval?
        if low > arithmetic:
            return MEMORY_BOUND
        return UNDECIDED if high > arithmetic else COMPUTE_BOUND
    if high >= need:
        return UNDECIDED
    if e.call_ns is not None and e.calls * e.call_ns >= need:
        return OVERHEAD_BOUND
    return UNEXPLAINED


def _sentence(e: Evidence, verdict: str, arithmetic: float, low: float, high: float) -> str:
    calls, call = e.calls, _call(e)
    took = _time(e.time_ns / calls)
    parts = []
    if e.bytes_min:
        rate = e.bytes_min / e.time_ns
        parts.append(f"moves {_bytes(e.bytes_min / calls)} per {call} at {rate:.3g} GB/s")
    if arithmetic:
        parts.append(f"arithmetic alone would take {_time(arithmetic / calls)} of the {took}")
    else:
        parts.append(f"computes nothing in the {took}")
    if verdict == MEMORY_BOUND:
        parts.append(f"those bytes take {_time(low / calls)} at this machine's bandwidth")
    elif verdict == UNDECIDED:
        most = _bytes(max(e.bytes_min or 0.0, e.bytes_max or 0.0) / calls)
        parts.append(
            f"its traffic takes {_time(low / calls)} if every byte moves once and "
            f"{_time(high / calls)} for the {most} of its tiling, and the truth lies between"
        )
    elif verdict == OVERHEAD_BOUND:
        parts.append(f"starting a call costs {_time(e.call_ns or 0.0)}")
    elif verdict == UNEXPLAINED and not e.scattered:
        share = min(max(arithmetic, low) / e.time_ns, 1.0)
        parts.append(f"its roofs account for {share:.0%}, what the rest waits for was not measured")
    if e.scattered and verdict in {UNDECIDED, UNEXPLAINED}:
        each = f"each of its {e.unit} takes {_time(e.time_ns / e.units)}: " if e.units else ""
        where = f" over {_bytes(e.working_set)}" if e.working_set else ""
        parts.append(
            f"{each}its data lie scattered{where} and each step waits for the loads and branches "
            "before it, which is latency and under no roof"
        )
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _missing(e: Evidence) -> str:
    if e.bytes_min is None:
        return e.reason or "what it computes is not modelled"
    return "the machine's roofs were not measured"


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
