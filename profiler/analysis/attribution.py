"""Where a stage's time went: arithmetic, memory, calls, or nobody knows.

For a span of measured time T with W_k operations of class k and Q bytes, arithmetic at the machine's
measured peaks takes t_c = Σ W_k / P_k and its traffic t_m = Q / bandwidth(working set). Then compute =
min(T, t_c), memory = what the bytes need beyond that (max(0, t_m − t_c), within T), and the rest is
unexplained, and shown as such. Q is an interval, from compulsory traffic to that of the kernel's actual
tiling: the split uses the compulsory end (it never blames memory for more than must have moved), the
verdict looks at both. See Williams et al. 2009 (roofline) and Treibig & Hager (execution-cache-memory).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from profiler.machine.peaks import Peaks
from profiler.spans import Cost

COMPUTE_BOUND: Final = "compute-bound"
MEMORY_BOUND: Final = "memory-bound"
OVERHEAD_BOUND: Final = "overhead-bound"
UNDECIDED: Final = "undecided"
UNEXPLAINED: Final = "unexplained"

BOUND_SHARE: Final = 0.5
"""A roof that accounts for half of the time or more is what bounds the stage."""

NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Times:
    """What the roofs say of some spans, ns each (float64 [n] or sums): median roofs and best roofs.

    `complete` is false when an operation class has no measured roof; `known` when there are any roofs.
    """

    arithmetic: np.ndarray
    traffic_min: np.ndarray
    traffic_max: np.ndarray
    least: np.ndarray
    known: bool
    complete: bool


def times(spans: np.ndarray, cost: Cost, peaks: Peaks, threads: int = 1) -> Times:
    """Return what arithmetic and traffic of `spans` (dtype SPAN [n]) take at the machine's roofs.

    `least` is the shortest time any repeat of the calibration would allow; a span below it is a defect.
    """
    arithmetic = np.zeros(len(spans))
    best = np.zeros(len(spans))
    complete = True
    for name, law in cost.operations.items():
        roof = peaks.rate(name, threads)
        if roof is None:
            complete = False
            continue
        amount = law.of(spans)
        arithmetic += amount * (NS / roof.median)
        best += amount * (NS / roof.high)
    low, high = cost.bytes_min.of(spans), cost.bytes_max.of(spans)
    memory = peaks.bandwidth(cost.working_set_bytes, threads)
    if memory is None:
        zeros = np.zeros(len(spans))
        return Times(arithmetic, zeros, zeros, best, bool(peaks), False)
    per_byte = NS / memory.median
    return Times(
        arithmetic,
        low * per_byte,
        np.maximum(low, high) * per_byte,
        np.maximum(best, low * (NS / memory.high)),
        bool(peaks),
        complete,
    )


def split(
    spans: np.ndarray, cost: Cost | None, peaks: Peaks, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return (compute ns, memory ns) of each span, float64 [n]; the rest of its time is unexplained.

    Without a cost law or without roofs both are zero. The arithmetic is done span by span, so the result
    does not depend on how many are given at once.
    """
    duration = spans["duration_ns"].astype(np.float64)
    if cost is None or not peaks:
        return np.zeros(len(spans)), np.zeros(len(spans))
    roof = times(spans, cost, peaks, threads)
    compute = np.clip(roof.arithmetic, 0.0, duration)
    memory = np.clip(roof.traffic_min - roof.arithmetic, 0.0, duration - compute)
    return compute, memory


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sums over a stage's spans that its verdict rests on; times in ns, None where not known."""

    time_ns: float
    calls: float
    frames: float
    arithmetic_ns: float | None
    traffic_min_ns: float | None
    traffic_max_ns: float | None
    least_ns: float | None
    bytes_min: float | None
    call_ns: float | None
    complete: bool


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
            None, "–", f"Takes {_time(e.time_ns / e.calls)} per {_unit(e)}; {_missing(e)}."
        )
    grade = "D" if not e.complete else "C" if e.bytes_min else "B"
    verdict = _verdict(e, e.arithmetic_ns, e.traffic_min_ns, e.traffic_max_ns)
    defect = None
    if e.least_ns is not None and e.least_ns > e.time_ns:
        defect = (
            f"It ran in {e.time_ns / e.least_ns:.0%} of the least time that the machine's measured peaks "
            "allow, so its cost law or a peak is wrong."
        )
    return Verdict(verdict, grade, _sentence(e, verdict), defect)


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


def _sentence(e: Evidence, verdict: str) -> str:
    calls, unit = e.calls, _unit(e)
    arithmetic, low, high = e.arithmetic_ns or 0.0, e.traffic_min_ns or 0.0, e.traffic_max_ns or 0.0
    parts = []
    if e.bytes_min:
        rate = e.bytes_min / e.time_ns
        parts.append(f"Reads {_bytes(e.bytes_min / calls)} per {unit} at {rate:.3g} GB/s")
    took = f"of the {_time(e.time_ns / calls)}"
    parts.append(f"arithmetic alone would take {_time(arithmetic / calls)} {took}")
    if verdict == MEMORY_BOUND:
        parts.append(f"those bytes take {_time(low / calls)} at this machine's bandwidth")
    elif verdict == UNDECIDED:
        parts.append(f"its traffic takes {_time(low / calls)} to {_time(high / calls)}")
    elif verdict == OVERHEAD_BOUND:
        parts.append(f"starting a call costs {_time(e.call_ns or 0.0)}")
    elif verdict == UNEXPLAINED:
        share = min(max(arithmetic, low) / e.time_ns, 1.0)
        parts.append(f"arithmetic and traffic account for {share:.0%}")
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _missing(e: Evidence) -> str:
    if e.bytes_min is None:
        return "what it computes is not modelled"
    return "the machine's peaks were not measured"


def _unit(e: Evidence) -> str:
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
