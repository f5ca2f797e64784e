"""Does a verdict survive? What each verdict predicts that a change does to a stage's time, compared with what it did.

Horace He's three regimes ("Making deep learning go brrrr from first principles", 2022) made into a test: a change is
made that compute-, bandwidth-, latency- and call-bound stages answer differently, and the measured ratio of times is
compared with those that cost laws and roofs give for each. A change that all answer alike says nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from profiler.analysis import verdict as bounds
from profiler.analysis.breakdown import StageRow
from profiler.analysis.categories import OTHER_PROGRAMS, PARTS
from profiler.analysis.comparison.statistics import Ratio

OTHERWISE: Final = "none of these"

ANSWERED_BY: Final = {
    bounds.COMPUTE_BOUND: ("arithmetic", "instructions"),
    bounds.INSTRUCTION_BOUND: ("arithmetic", "instructions"),
    bounds.BANDWIDTH_BOUND: ("bandwidth",),
    bounds.LATENCY_BOUND: ("latency",),
    bounds.CALL_BOUND: ("calls",),
}
"""The parts of a cost law (LAW_PARTS) whose change a stage of that verdict follows."""

SAME: Final = 0.1  # Ratios within 10 % are the same answer: roofs are measured to a few per cent, laws are models


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One change to a stage and its effect; `unavailable`: why it could not be made.

    Ratios are of the time per `per` (a frame, or a unit of work), changed / unchanged. `by_verdict`: what each verdict
    predicts. `agrees`: None where the change says nothing about the verdict.
    """

    name: str
    change: str = ""
    per: str = "frame"
    by_verdict: Mapping[str, float] | None = None
    predicted: float | None = None
    measured: Ratio | None = None
    agrees: bool | None = None
    why: str = ""
    unavailable: str | None = None

    def as_dict(self) -> dict[str, Any]:
        m = self.measured
        return {
            "name": self.name,
            "change": self.change or None,
            "per": self.per,
            "predicted": self.predicted,
            "predicted_by_verdict": dict(self.by_verdict) if self.by_verdict else None,
            "measured_ratio": m and m.ratio,
            "ci95": m and m.ci95,
            "agrees": self.agrees,
            "why": self.why or None,
            "unavailable": self.unavailable,
        }


def expected(
    before: StageRow,
    after: StageRow,
    call_ns: float | None,
    per: str = "frame",
    otherwise: float = 1.0,
    judged: StageRow | None = None,
) -> dict[str, float]:
    """Return by verdict the ratio of times per unit that the laws give for the change before → after.

    Each verdict follows its part of the law: compute- and instruction-bound the instructions, bandwidth-bound data in
    order, latency-bound scattered accesses, call-bound calls (their number, where the law names none and `call_ns` is
    known). "none of these": `otherwise`, 1 where nothing that changed should matter. The verdict of `judged` follows
    all parts of its own time, and what is not attributed changes as `otherwise`.
    """
    units = _units(after, per) / _units(before, per)
    ratios = {OTHERWISE: otherwise}
    for verdict, parts in ANSWERED_BY.items():
        there, then = (sum(row.law.get(part, 0.0) for part in parts) for row in (before, after))
        if there and after.law:
            ratios[verdict] = then / there / units
    if bounds.CALL_BOUND not in ratios and call_ns and before.calls:
        ratios[bounds.CALL_BOUND] = after.calls / before.calls / units
    if judged is not None and judged.parts is not None and judged.verdict in ratios:
        follows = {part: verdict for verdict, parts in ANSWERED_BY.items() for part in parts}
        shares = {part: judged.parts.share(part) for part in PARTS if part != OTHER_PROGRAMS}
        own = sum(shares.values()) or 1.0
        ratios[judged.verdict] = sum(
            share / own * ratios.get(follows.get(part, OTHERWISE), otherwise) for part, share in shares.items()
        )
    return {name: ratio for name, ratio in ratios.items() if ratio > 0}


def _units(row: StageRow, per: str) -> float:
    return row.work["frames" if per == "frame" else per] or 1.0


def per_unit(measured: Ratio, before: StageRow, after: StageRow, per: str) -> Ratio:
    """Turn a ratio of times into one of times per unit."""
    units = _units(after, per) / _units(before, per)
    low = measured.low / units if measured.low is not None else None
    high = measured.high / units if measured.high is not None else None
    return Ratio(measured.ratio / units, low, high, measured.p)


def weigh(
    name: str,
    change: str,
    verdict: str | None,
    by_verdict: Mapping[str, float],
    measured: Ratio | None,
    per: str = "frame",
) -> Perturbation:
    """Compare what was measured with what `verdict` predicts, and with what the others would."""
    predicted = by_verdict.get(verdict) if verdict else None
    agrees, why = None, "too little was measured to say"
    if measured is not None and measured.low is not None and measured.high is not None:
        # The verdicts whose prediction lies in the interval, widened by SAME.
        low, high = measured.low * (1 - SAME), measured.high * (1 + SAME)
        fits = [v for v, ratio in by_verdict.items() if low <= ratio <= high]
        agrees, why = _agreement(verdict, predicted, by_verdict, fits, measured.ratio)
    return Perturbation(name, change, per, by_verdict, predicted, measured, agrees, why)


def _agreement(
    verdict: str | None, predicted: float | None, by_verdict: Mapping[str, float], fits: Sequence[str], ratio: float
) -> tuple[bool | None, str]:
    fitting = " or ".join(fits)
    if predicted is None:
        return None, f"fits {fitting}" if fits else "fits no verdict"
    others = {v: r for v, r in by_verdict.items() if abs(math.log(r / predicted)) > SAME}
    if not others:
        return None, "every verdict predicts the same, so it says nothing"
    if verdict in fits:
        if set(fits) & set(others):
            return None, f"fits {fitting} alike"
        return True, f"as predicted, and not {' or '.join(others)}"
    nearest = min(by_verdict, key=lambda v: abs(math.log(by_verdict[v] / ratio)))
    if nearest not in others:
        return None, "between the predictions"
    return False, f"not as predicted, {f'fits {fitting}' if fits else f'nearest to {nearest}'}"


def conclude(verdict: str | None, done: Sequence[Perturbation]) -> tuple[bool | None, str]:
    """Return whether the verdict survives, and a sentence: yes when something that could have spoken
    against it speaks for it and nothing against it, no the other way round, None otherwise."""
    if verdict is None:
        return None, "The stage has no verdict that could be tested."
    tried = [p for p in done if p.measured is not None]
    if not tried:
        return None, "None of the changes can be made to this stage."
    text = "; ".join(_sentence(p) for p in tried)
    if verdict in (bounds.UNDECIDED, bounds.MIXED):
        return None, f"The verdict was {verdict}. {text}."
    answers = {p.agrees for p in tried} - {None}
    if len(answers) == 2:
        return None, f"The changes contradict each other: {text}."
    if not answers:
        return None, f"No change tells this verdict from the others: {text}."
    return (True, f"It survives: {text}.") if True in answers else (False, f"It does not survive: {text}.")


def _sentence(p: Perturbation) -> str:
    assert p.measured is not None
    m = p.measured
    ends = "" if m.low is None or m.high is None else f" ({m.low:.2f} to {m.high:.2f})"
    wanted = "" if p.predicted is None else f", {p.predicted:.2f} was predicted"
    return f"{p.name} took {m.ratio:.2f} of the time per {p.per.removesuffix('s')}{ends}{wanted}: {p.why}"
