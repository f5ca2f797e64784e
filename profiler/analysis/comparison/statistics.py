"""Statistics of times: warm-up, bootstrap, and the ratio of two arms with an interval.

Other programs and interrupts only ever add time, so the typical time of a piece of work is that of its fastest repeats.
Arms are measured alternately to meet the same conditions. Whole repeats are drawn at random: times within one repeat
share whatever went on and are no independent evidence. Everything random takes a seed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from profiler.arrays import Array

RESAMPLES: Final = 2000  # 1 000 or more (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, ch. 14)
DRAWS: Final = 400  # For a standard error alone: 200 are seldom too few (the same, § 6.4)

SEED: Final = 20010314
MIN_REPEATS: Final = 3  # Student's factor is 12.7 for two repeats, 4.3 for three
UNDISTURBED_SHARE: Final = 0.4  # Compared with 10, 20, 30 and 50 % on real decodes on a busy machine
_RESAMPLED_VALUES: Final = 1 << 22  # Values held at once while resampling: bounds the memory to some 100 MB

_NORMAL: Final = NormalDist()


def percentiles(values: Array, wanted: tuple[float, ...] = (50.0, 95.0)) -> tuple[float, ...]:
    """Return the wanted percentiles (0…100) by linear interpolation; NaN where there are no values."""
    if not len(values):
        return tuple(float("nan") for _ in wanted)
    return tuple(float(v) for v in np.percentile(values, wanted))


def undisturbed(values: Array, axis: int = 0) -> Array:
    """Return the mean of the fastest 40 % of `values` along `axis` (of at least two, where there are).

    Disturbances are one-sided, so the lower end says what the work itself takes (Chen & Revels, arXiv 1608.04295, 2016,
    argue for the minimum, which hangs on one value; medians move with the share of disturbed values).
    """
    n = values.shape[axis]
    count = _undisturbed_count(n)
    if count < n:
        values = np.partition(values, count - 1, axis=axis)
    return np.asarray(np.take(values, range(count), axis=axis).mean(axis=axis))


def _undisturbed_count(n: int) -> int:
    return max(min(2, n), math.ceil(UNDISTURBED_SHARE * n))


def warm_up(values: Sequence[float] | Array) -> int:
    """Return how many of the first `values` (times in order) belong to the warm-up.

    MSER: cut where the standard error of what remains is smallest, looking at cuts in the first half only (White, "An
    effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997). 0 when what was cut
    is not slower than the rest, or when cutting it takes away less than half of the squared deviations. A burst early
    on cannot be distinguished from a warm-up and is cut as one.
    """
    x = np.asarray(values, np.float64)
    n = len(x)
    if n < 4:
        return 0
    left = n - np.arange(n // 2 + 1)
    rest = np.cumsum(x[::-1])[::-1][: len(left)]
    squares = np.cumsum((x[::-1] - x.mean()) ** 2)[::-1][: len(left)]
    deviations = squares - left * (rest / left - x.mean()) ** 2
    error = np.maximum(deviations, 0.0) / left**2
    cut = int(np.argmin(error))
    if cut == 0 or x[:cut].mean() <= x[cut:].mean():
        return 0
    return cut if deviations[cut] < deviations[0] / 2 else 0


def bootstrap_interval(
    values: Array,
    statistic: Callable[[Array], float],
    level: float = 0.95,
    *,
    method: Literal["percentile", "bca"] = "bca",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float]:
    """Return the bootstrap interval of `statistic` over the rows of `values`; NaN for fewer than two.

    `bca` corrects for bias and skewness (Efron, "Better bootstrap confidence intervals", JASA 82, 1987).
    """
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    draw = np.random.default_rng(seed)
    drawn = np.array([statistic(values[draw.integers(0, n, n)]) for _ in range(resamples)])
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        below = (drawn < statistic(values)).mean() + (drawn == statistic(values)).mean() / 2
        if 0 < below < 1:
            bias = _NORMAL.inv_cdf(float(below))
            without = np.array([statistic(np.delete(values, i, axis=0)) for i in range(n)])
            off = without.mean() - without
            scale = float((off**2).sum()) ** 1.5
            skew = float((off**3).sum()) / (6 * scale) if scale else 0.0
            first, last = (bias + _NORMAL.inv_cdf(tail) for tail in tails)
            tails = _NORMAL.cdf(bias + first / (1 - skew * first)), _NORMAL.cdf(bias + last / (1 - skew * last))
    low, high = np.quantile(drawn, tails)
    return float(low), float(high)


def undisturbed_interval(
    values: Array, level: float = 0.95, resamples: int = DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """Return the vectorised percentile bootstrap interval of `undisturbed` over `values` [n]; NaN for n < 2."""
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    draws = np.random.default_rng(seed).integers(0, n, (resamples, n))
    low, high = np.quantile(undisturbed(values[draws], axis=1), ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time of B / time of A, 95 % interval, two-sided p of equality; None for too few repeats to know their noise."""

    ratio: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def ci95(self) -> list[float] | None:
        return None if self.low is None or self.high is None else [self.low, self.high]


@dataclass(frozen=True)
class Pair:
    """Two arms' times and what chance alone makes of them; those of several stages may be added.

    `a`, `b`: sums over cells of `undisturbed` times. `drawn_a`, `drawn_b` [draws]: the same of random draws, with one
    seed for all stages. `effective`: from how many repeats the times come.
    """

    a: float
    b: float
    drawn_a: Array
    drawn_b: Array
    repeats: int
    effective: float
    interleaved: bool

    def __add__(self, other: "Pair") -> "Pair":
        mine, others = self.a + self.b, other.a + other.b
        effective = (self.effective * mine + other.effective * others) / max(mine + others, 1e-9)
        drawn_a, drawn_b = self.drawn_a + other.drawn_a, self.drawn_b + other.drawn_b
        a, b = self.a + other.a, self.b + other.b
        return Pair(a, b, drawn_a, drawn_b, self.repeats, effective, self.interleaved)

    def ratio(self) -> Ratio | None:
        """Time of B / time of A with interval and p, by Student's t; None where an arm took no time."""
        n = self.repeats
        if min(self.a, self.b) <= 0:
            return None
        estimate = math.log(self.b / self.a)
        if n < MIN_REPEATS:
            return Ratio(math.exp(estimate))
        drawn_a, drawn_b = (np.log(np.maximum(x, 1e-3)) for x in (self.drawn_a, self.drawn_b))
        if self.interleaved:
            # What was drawn from lies about its own middle, hence n − 1 as below any variance.
            n_effective = max(self.effective, 1.5)
            error = float(np.mean((drawn_b - drawn_a) ** 2)) * n_effective / (n_effective - 1)
            return _with_interval(estimate, math.sqrt(error), max(int(n_effective + 0.5) - 1, 1))
        of_a, of_b = (float(x.var()) * n / (n - 1) for x in (drawn_a, drawn_b))
        both = of_a + of_b
        # Degrees of freedom after Welch and Satterthwaite.
        freedom = int(both**2 / (of_a**2 + of_b**2) * (n - 1)) if both else n - 1
        return _with_interval(estimate, math.sqrt(both), freedom)


def alternated(a: Array, b: Array, seed: int = SEED) -> Pair:
    """Return the arms of `a` and `b` [repeats, cells], measured in turn: row r of both in one repeat.

    Chance is what remains when a coin decides in each repeat which row is A's, once the found ratio has been taken off
    B (Fisher's randomisation test over whole repeats; Good, Permutation, Parametric and Bootstrap Tests, 2005, ch. 3).
    A bootstrap would give too wide intervals: a resample lacks most of the fastest times that `undisturbed` goes by.
    """
    n, draw = len(a), np.random.default_rng(seed)
    time_a, time_b = float(undisturbed(a).sum()), float(undisturbed(b).sum())
    swaps = draw.random((DRAWS, n)) < 0.5
    if min(time_a, time_b) <= 0:
        # On one side alone: for the sum with other stages, noise of its size on both.
        times = a if time_a > 0 else b
        drawn = [_sums(times, draw.integers(0, n, (DRAWS, n))) for _ in range(2)]
        return Pair(time_a, time_b, drawn[0], drawn[1], n, _effective(times), True)
    both = np.concatenate([a, b * (time_a / time_b)])
    rows = np.arange(n) + n * swaps
    drawn = [_sums(both, rows), _sums(both, (rows + n) % (2 * n))]
    effective = (_effective(a) + _effective(b)) / 2
    return Pair(time_a, time_b, drawn[0], drawn[1], n, effective, True)


def apart(a: Array, b: Array, seed: int = SEED) -> Pair:
    """Return arms [repeats, cells] measured one after the other; chance by a bootstrap over repeats of each alone."""
    n, draw = len(a), np.random.default_rng(seed)
    drawn_a, drawn_b = (_sums(x, draw.integers(0, n, (DRAWS, n))) for x in (a, b))
    return Pair(float(undisturbed(a).sum()), float(undisturbed(b).sum()), drawn_a, drawn_b, n, n, False)


def _effective(times: Array) -> float:
    """Return from how many repeats `undisturbed` takes its times (Kish's effective sample size)."""
    n = len(times)
    count = _undisturbed_count(n)
    fastest = np.argpartition(times, count - 1, axis=0)[:count]
    taken = np.bincount(fastest.ravel(), minlength=n)
    return float(taken.sum() ** 2 / (taken**2).sum())


def _sums(times: Array, rows: Array) -> Array:
    """Return the sum over cells of undisturbed times for each draw of `rows` [draws, n]."""
    at_once = max(1, _RESAMPLED_VALUES // max(rows.shape[1] * times.shape[1], 1))
    parts = (rows[begin : begin + at_once] for begin in range(0, len(rows), at_once))
    return np.concatenate([undisturbed(times[part], axis=1).sum(axis=1) for part in parts])


def _with_interval(estimate: float, error: float, freedom: int) -> Ratio:
    # Beyond a factor of e²⁰ nothing is known, and infinity is no number for JSON.
    half = min(student_quantile(0.975, freedom) * error, 20.0)
    p = float(estimate == 0.0)
    if error:
        p = 2.0 * (1.0 - student_cdf(abs(estimate) / error, freedom))
    return Ratio(math.exp(estimate), math.exp(estimate - half), math.exp(estimate + half), p)


def student_cdf(t: float, freedom: int) -> float:
    """Return P(T ≤ t) of Student's distribution (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    if freedom > 1000:
        return _NORMAL.cdf(t)
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cos2, odd = math.cos(angle) ** 2, freedom % 2
    term = total = 0.0 if freedom == 1 else math.cos(angle) if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cos2 * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    if odd:
        inside = 2 / math.pi * (angle + inside)
    return 0.5 + math.copysign(min(inside, 1.0) / 2, t)


def student_quantile(probability: float, freedom: int) -> float:
    """Return t with P(T ≤ t) = probability, by bisection."""
    low, high = -1e6, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted for any false finding (Holm 1979, step-down Bonferroni); None stays None, uncounted."""
    tested = sorted((value, i) for i, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, i) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * value))
        adjusted[i] = highest
    return adjusted
