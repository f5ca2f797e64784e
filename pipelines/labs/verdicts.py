"""What comes of a claim: the five verdicts, and how an interval decides between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from profiler.analysis.comparison.statistics import Ratio

Verdict = Literal["holds here", "holds in part", "does not hold here", "undecided", "cannot be tried here"]

HOLDS: Final = "holds here"
PART: Final = "holds in part"  # What could be tried holds, and the rest of the claim cannot be tried here
FAILS: Final = "does not hold here"
UNDECIDED: Final = "undecided"
IMPOSSIBLE: Final = "cannot be tried here"


@dataclass(frozen=True)
class Finding:
    """The result: the verdict, one sentence with the numbers and their intervals, and figures by name.

    Names of figures carry their units (`exp_over_add`, `dram_bytes_per_s`); None where there is none.
    """

    verdict: Verdict
    why: str
    figures: Mapping[str, float | None] = field(default_factory=dict)


def at_least(ratio: Ratio | None, bound: float) -> Verdict:
    """Whether a ratio is `bound` or more: holds if its interval lies above, does not if it lies below."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return UNDECIDED
    return HOLDS if ratio.low >= bound else FAILS if ratio.high < bound else UNDECIDED


def at_most(ratio: Ratio | None, bound: float) -> Verdict:
    """Whether a ratio is `bound` or less: holds if its interval lies below, does not if it lies above."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return UNDECIDED
    return HOLDS if ratio.high <= bound else FAILS if ratio.low > bound else UNDECIDED


def all_of(*verdicts: Verdict) -> Verdict:
    """Whether all of a claim holds: the worst part decides, and what cannot be tried leaves it to hold in part."""
    if FAILS in verdicts or UNDECIDED in verdicts:
        return FAILS if FAILS in verdicts else UNDECIDED
    return verdicts[0] if len(set(verdicts)) == 1 else PART
