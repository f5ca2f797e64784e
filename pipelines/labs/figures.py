"""Figures of times measured in turns, each with its interval: what verdict rules and pictures of labs share.

All by `profiler.analysis.comparison.statistics`, which takes times in nanoseconds; labs keep seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipelines.labs.chart import Values
from profiler.analysis.comparison.statistics import (
    Ratio,
    alternated,
    apart,
    bootstrap_interval,
    undisturbed,
    undisturbed_interval,
)
from profiler.arrays import F64, Array

NS = 1e9
TINY = 1e-300


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """Time `of` over time `to`, by rounds that both met (`Desk.turns`); None where one took no time.

    Without an interval where there are fewer than three rounds.
    """
    return alternated(_ns(to), _ns(of)).ratio()


def ratio_apart(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """As `ratio`, of times that were not measured in turns; the shorter list limits how many are taken."""
    n = min(len(of), len(to))
    return apart(_ns(to[:n]), _ns(of[:n])).ratio()


def quotient(of: Sequence[float], to: Sequence[float]) -> Ratio:
    """Σ `of` / Σ `to`, with its interval by a bootstrap over the pairs, which are what chance draws.

    Without an interval where there are fewer than two, or where it has no end. 0 / 0 is 0.
    """
    rows = np.column_stack([of, to])

    def figure(some: F64) -> float:
        return float(some[:, 0].sum() / max(some[:, 1].sum(), TINY))

    ends = bootstrap_interval(rows, figure) if len(rows) > 1 else (math.nan, math.nan)
    return Ratio(figure(rows), *ends) if np.isfinite(ends).all() else Ratio(figure(rows))


def inverse(ratio: Ratio | None) -> Ratio | None:
    """1 / ratio."""
    return _turned(ratio, lambda r: 1 / r)


def saved(ratio: Ratio | None) -> Ratio | None:
    """1 − ratio: the share of the time that the quicker one saves."""
    return _turned(ratio, lambda r: 1 - r)


def scaled(ratio: Ratio | None, factor: float) -> Ratio | None:
    """Multiply a ratio and its interval by `factor`: per frame where one of both does several at a time."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return None if ratio is None else Ratio(factor * ratio.ratio)
    return Ratio(factor * ratio.ratio, factor * ratio.low, factor * ratio.high, ratio.p)


def _turned(ratio: Ratio | None, figure: Callable[[float], float]) -> Ratio | None:
    if ratio is None or ratio.low is None or ratio.high is None:
        return None if ratio is None else Ratio(figure(ratio.ratio))
    return Ratio(figure(ratio.ratio), figure(ratio.high), figure(ratio.low), ratio.p)


def value(ratio: Ratio | None) -> float | None:
    return None if ratio is None else ratio.ratio


def seconds(times: Sequence[float]) -> float:
    """Seconds that the work itself takes: the mean of the fastest 40 %."""
    return float(undisturbed(np.array(times)))


def between(times: Sequence[float], figure: Callable[[float], float] = lambda s: s) -> Interval:
    """`figure` of the seconds that the work itself takes, such as operations / s, with its interval.

    With one round the interval is the estimate.
    """
    values: F64 = np.array(times)
    middle = figure(float(undisturbed(values)))
    if len(values) < 2:
        return Interval(middle, middle, middle)
    low, high = undisturbed_interval(values)
    ends = sorted((figure(low), figure(high)))
    return Interval(middle, ends[0], ends[1])


def columns(
    intervals: Sequence[Interval],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Values, lower and upper ends, as the layers of a chart take them."""
    return (
        tuple(i.value for i in intervals),
        tuple(i.low for i in intervals),
        tuple(i.high for i in intervals),
    )


def ratio_columns(ratios: Sequence[Ratio | None]) -> tuple[Values, Values, Values]:
    """Ratios, lower and upper ends, as the layers of a chart take them."""
    return (
        tuple(r.ratio if r else None for r in ratios),
        tuple(r.low if r else None for r in ratios),
        tuple(r.high if r else None for r in ratios),
    )


def _ns(times: Sequence[float]) -> Array:
    return NS * np.array(times, np.float64)[:, None]
