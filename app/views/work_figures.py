"""The quantities of the work view as people read them: each with its unit."""

from __future__ import annotations

import math

from app.charts.scale import count, percent, prefixed
from app.views.lanes_model import Curve
from app.views.work_model import BEAM, SCORING_TIME
from profiler.analysis.track import SCORING_BYTES
from profiler.plain import milliseconds

COLORS = {
    "search tokens": "search",
    "search beam": "search",
    "search.beam": "search",
    "search senones": "frontend",
    "scoring senones": "memory",
    "scoring gaussians": "compute",
    "scoring components": "frontend",
    SCORING_BYTES: "memory",
    SCORING_TIME: "text",
}
"""Category whose colour a quantity's curve takes: the part of the cost that it drives."""

TITLES = {
    "search tokens": "tokens",
    "search beam": "beam in use",
    "search.beam": "beam in use",
    "search senones": "active senones",
    "scoring senones": "senones scored",
    "scoring gaussians": "Gaussians",
    "scoring components": "components summed",
    SCORING_BYTES: "bytes (modelled)",
    SCORING_TIME: "scoring time",
}

SHORT = {"senones scored": "scored", "active senones": "active", "components summed": "summed"}
"""Where there is little room."""

DOTTED = frozenset({"scoring components"})
"""Quantities that share a lane with another, and have another line as well as another colour."""

UNITS = {"search beam": "nat", "search.beam": "nat", SCORING_BYTES: "B", SCORING_TIME: "ms"}
"""Of the table twin's columns; the others are counts."""

WHOLE_FROM = 100
"""Means from here on have no decimals in the table."""


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


def cell(name: str, value: float) -> str:
    if name == SCORING_TIME:
        return f"{value / 1e6:.4f}"
    return f"{value:.1f}" if value < WHOLE_FROM else count(value)
