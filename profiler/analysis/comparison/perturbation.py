"""Does a verdict survive? What each verdict predicts that a change does to a stage's time, compared with what it did.

Horace He's three regimes ("Making deep learning go brrrr from first principles", 2022) made into a test: a change is
made that compute-, bandwidth-, latency- and call-bound stages answer differently, and the measured ratio of times is
compared with those that cost laws and roofs give for each. A change that all answer alike says nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from profiler.analysis.breakdown import StageRow
from profiler.analysis.categories import OTHER_PROGRAMS, PARTS
from profiler.analysis.comparison.statistics import Ratio
from profiler.analysis.verdict import (
    BANDWIDTH_BOUND,
    CALL_BOUND,
    COMPUTE_BOUND,
    INSTRUCTION_BOUND,
    LATENCY_BOUND,
    MIXED,
    UNDECIDED,
)

OTHERWISE: Final = "none of these"

ANSWERED_BY: Final = {
    COMPUTE_BOUND: ("arithmetic", "instructions"),
    INSTRUCTION_BOUND: ("arithmetic", "instructions"),
    BANDWIDTH_BOUND: ("bandwidth",),
    LATENCY_BOUND: ("latency",),
    CALL_BOUND: ("calls",),
}
"""The parts of a cost law (LAW_PARTS) whose change a stage of that verdict follows."""

SAME: Final = 0.1
"""Ratios within 10 % are the same answer: roofs are measured to a few per cent, laws are models."""


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
        """Return it as JSON values."""
        m = self.measured
        return {
            "name": self.name,
            "change": self.change or None,
            "per": self.per,
            "predicted": self.predicted,
            "predicted_by_verdict": dict(self.by_verdict) if self.by_verdict else None,
            "measured_ratio": m.ratio if m is not None else None,
            "ci95": m.ci95 if m is not None else None,
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
    if CALL_BOUND not in ratios and call_ns and before.calls:
        ratios[CALL_BOUND] = after.calls / before.calls / units
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
    agrees: bool | None = None
    if measured is None or measured.low is None or measured.high is None:
        why = "too little was measured to say"
    elif predicted is None:
        fits = _fitting(by_verdict, measured)
        why = f"fits {_either(fits)}" if fits else "fits no verdict"
    else:
        others = {v: r for v, r in by_verdict.items() if abs(math.log(r / predicted)) > SAME}
        fits = _fitting(by_verdict, measured)
        if not others:
            why = "every verdict predicts the same, so it says nothing"
        elif verdict in fits:
            told_apart = not set(fits) & set(others)
            agrees = True if told_apart else None
            why = f"as predicted, and not {_either(list(others))}"
            if not told_apart:
                why = f"fits {_either(fits)} alike"
        else:
            nearest = min(by_verdict, key=lambda v: abs(math.log(by_verdict[v] / measured.ratio)))
            agrees = False if nearest in others else None
            found = f"fits {_either(fits)}" if fits else f"nearest to {nearest}"
            why = f"not as predicted, {found}" if agrees is False else "between the predictions"
    return Perturbation(name, change, per, by_verdict, predicted, measured, agrees, why)


def _fitting(by_verdict: Mapping[str, float], measured: Ratio) -> list[str]:
    """The verdicts whose prediction lies in the interval, widened by SAME."""
    assert measured.low is not None
    assert measured.high is not None
    low, high = measured.low * (1 - SAME), measured.high * (1 + SAME)
    return [name for name, ratio in by_verdict.items() if low <= ratio <= high]


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)


def conclude(verdict: str | None, done: Sequence[Perturbation]) -> tuple[bool | None, str]:
    """Return whether the verdict survives, and a sentence: yes when something that could have spoken
    against it speaks for it and nothing against it, no the other way round, None otherwise."""
    if verdict is None:
        return None, "The stage has no verdict that could be tested."
    tried = [p for p in done if p.measured is not None]
    if not tried:
        return None, "None of the changes can be made to this stage."
    text = "; ".join(_sentence(p) for p in tried)
    if verdict in (UNDECIDED, MIXED):
        return None, f"The verdict was {verdict}. {text}."
    speaking_for = [p for p in tried if p.agrees]
    against = [p for p in tried if p.agrees is False]
    if speaking_for and not against:
        return True, f"It survives: {text}."
    if against and not speaking_for:
        return False, f"It does not survive: {text}."
    if against:
        return None, f"The changes contradict each other: {text}."
    return None, f"No change tells this verdict from the others: {text}."


def _sentence(p: Perturbation) -> str:
    assert p.measured is not None
    m = p.measured
    took = f"took {m.ratio:.2f} of the time per {p.per.removesuffix('s')}"
    if m.low is not None and m.high is not None:
        took += f" ({m.low:.2f} to {m.high:.2f})"
    wanted = f", {p.predicted:.2f} was predicted" if p.predicted is not None else ""
    return f"{p.name} {took}{wanted}: {p.why}"
