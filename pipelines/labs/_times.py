"""What the labs of scoring say of ratios: as shares, turned over, and as lines to draw. See `figures` for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipelines.labs import figures
from pipelines.labs.declaration import Line
from profiler.analysis.comparison.statistics import Ratio

Times = Mapping[str, Sequence[float]]
"""Seconds per call by arm, in order of the rounds, in turns (`Desk.turns`)."""


def ratio(times: Times, over: str, under: str) -> Ratio | None:
    """Time of the arm `over` / time of `under`."""
    return figures.ratio(times[over], times[under])


def inverse(found: Ratio | None) -> Ratio | None:
    """1 / ratio."""
    return _turned(found, lambda r: 1 / r)


def saved(found: Ratio | None) -> Ratio | None:
    """1 − ratio: the share of the time that the quicker one saves."""
    return _turned(found, lambda r: 1 - r)


def _turned(found: Ratio | None, figure: Callable[[float], float]) -> Ratio | None:
    """A falling function of a ratio, with its interval."""
    if found is None or found.low is None or found.high is None:
        return None if found is None else Ratio(figure(found.ratio))
    return Ratio(figure(found.ratio), figure(found.high), figure(found.low), found.p)


def percent(found: Ratio | None) -> str:
    """A share with its interval as sentences write it: 12 % (10 to 13)."""
    if found is None:
        return "an unknown share"
    if found.low is None or found.high is None:
        return f"{100 * found.ratio:.0f} %"
    return f"{100 * found.ratio:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def value(found: Ratio | None) -> float | None:
    """The ratio alone, for figures."""
    return None if found is None else found.ratio


def line(
    name: str,
    x: Sequence[float],
    rows: Sequence[Sequence[float]],
    figure: Callable[[int, float], float] = lambda place, s: s,
    dashed: bool = False,
) -> Line:
    """`figure` of the seconds of an arm over x, from the rounds at each place."""
    found = [figures.between(row, lambda s, i=i: figure(i, s)) for i, row in enumerate(rows)]  # type: ignore[misc]
    return Line(name, tuple(map(float, x)), *figures.columns(found), dashed=dashed)
