"""The quantities of the work view as people read them: each with its unit."""

from __future__ import annotations

import math

from app.charts.scale import count, milliseconds, percent, prefixed
from app.views.work_model import BEAM, SCORING_TIME, Curve
from profiler.analysis.track import SCORING_BYTES


def figure(name: str, value: float) -> str:
    """A quantity's value with its unit, as people read it."""
    if name == SCORING_TIME:
        return f"{milliseconds(value * 1e-6)} ms"
    if name == SCORING_BYTES:
        return axis_figure(name, value)
    return f"{value:.3g} nat" if name in BEAM else count(value)


def axis_figure(name: str, value: float) -> str:
    """A value with its unit for the gutter: 8k, 40 MB, 1.5 ms."""
    if name == SCORING_TIME:
        return f"{value * 1e-6:.3g} ms"
    if name == SCORING_BYTES:
        return f"{prefixed(value)}B"
    return f"{value:.3g} nat" if name in BEAM else prefixed(value).replace(" ", "")


def average(curve: Curve) -> str:
    """A curve's mean, and what part it is of the whole where there is one."""
    value = figure(curve.name, curve.average)
    if not curve.whole or math.isnan(curve.average):
        return value
    return f"{value} ({percent(curve.average / curve.whole)})"
