"""Scales and figures as people read them: round axis tops, ticks, times, counts."""

import math
from dataclasses import dataclass

import numpy as np

from profiler.arrays import F64, Array
from profiler.plain import clock

_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)

ROBUST_SHARE = 0.98  # Share of the columns that decides the scale if a few are far above the rest
SPIKE_FACTOR = 1.8  # A maximum this many times above that share counts as a spike and does not set the scale
HEADROOM = 1.06  # A scale reaches this many times as high as its values
SHRINK_BELOW = 0.45  # A scale that holds is narrowed only when what is wanted falls below this share of it
PARTS_SHOWN = 0.3  # A logarithmic scale begins below this share of the least sum, so that its parts are seen
DECADES = 3  # Most powers of ten that a logarithmic scale shows
STEPS_S = (  # Distances between two time labels: round microseconds to minutes
    *(factor * 10.0**power for power in range(-6, 0) for factor in (1, 2, 5)),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600),
)
LABEL_APART = 90.0  # Minimum distance of two time labels in pixels


@dataclass(frozen=True)
class Scale:
    """Values from `bottom` (0 unless `log`) to `top` over the height of a plot."""

    bottom: float
    top: float
    log: bool = False

    def place(self, values: F64) -> F64:
        """Height 0…1 of values; those outside the scale are clipped."""
        if not self.log:
            return np.clip(values / self.top, 0.0, 1.0)
        span = math.log(self.top / self.bottom)
        return np.clip(np.log(np.maximum(values, self.bottom) / self.bottom) / span, 0.0, 1.0)

    def stacked(self, layers: F64) -> F64:
        """Heights 0…1 [columns, layers] of layers on top of each other; no data (NaN) has none."""
        return np.diff(self.place(np.cumsum(np.nan_to_num(layers), axis=1)), axis=1, prepend=0.0)

    def ticks(self) -> list[float]:
        """Round values to label: steps, or powers of ten with 2 and 5 between them where there are few."""
        if not self.log:
            return steps(0.0, self.top, 5)
        low, high = math.floor(math.log10(self.bottom)), math.ceil(math.log10(self.top))
        parts = (1.0, 2.0, 5.0) if self.top <= 30 * self.bottom else (1.0,)
        values = [part * 10.0**power for power in range(low, high + 1) for part in parts]
        return [value for value in values if self.bottom <= value * 1.001 <= self.top * 1.01]

    def labels(self) -> list[str]:
        """Texts of the ticks: with the digits of the step between them; on a logarithmic scale those of each."""
        values = self.ticks()
        if self.log:
            return [f"{value:.6g}" for value in values]
        step = values[1] - values[0] if len(values) > 1 else 1.0
        digits = next((d for d in range(6) if abs(round(step, d) - step) < step * 1e-6), 6)
        return [f"{value:.{digits}f}" for value in values]


@dataclass(frozen=True)
class Holding:
    """How a scale follows its data: what it was, whether it may move at all, whether it is logarithmic."""

    before: Scale | None = None
    locked: bool = False
    log: bool = False


def logarithmic(values: Array, top: float) -> Scale:
    """A logarithmic scale up to `top` that shows nearly all positive values, at most `DECADES` powers of ten."""
    there = values[np.isfinite(values) & (values > 0)]
    least = float(np.quantile(there, 0.02)) if len(there) else top / 10.0
    least = max(PARTS_SHOWN * least, top / 10.0**DECADES * 1.001)
    return Scale(10.0 ** math.floor(math.log10(min(least, top / 2.0))), top, log=True)


def held(wanted: Scale, holding: Holding) -> Scale:
    """The scale to draw: it opens when data leave it, and narrows only when they use less than `SHRINK_BELOW` of it."""
    before = holding.before
    if before is None or before.log != wanted.log:
        return wanted
    if holding.locked:
        return before
    fits = wanted.top <= before.top and wanted.bottom >= before.bottom
    if wanted.log:
        used = math.log(wanted.top / wanted.bottom) / math.log(before.top / before.bottom)
    else:
        used = wanted.top / before.top
    return before if fits and used >= SHRINK_BELOW else wanted


def round_up(value: float) -> float:
    """The next round number: 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    # The factor forgives the last bit, so that a round number is its own top.
    return next(r for r in _ROUND if r * power >= value * (1 - 1e-9)) * power


def quantile_of(ordered: Array, share: float) -> float:
    """The value below which `share` of the rising values [n > 0] lie, interpolated; much faster than numpy's."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (at - below))


def robust_top(values: Array) -> float:
    """A round upper end for values ≥ 0 but for a few spikes, quantised: it does not move while live data flicker."""
    return robust_top_of(np.sort(values[np.isfinite(values)]))


def robust_top_of(ordered: Array) -> float:
    """`robust_top` of rising finite values."""
    if not len(ordered):
        return 1.0
    most = float(ordered[-1])
    typical = quantile_of(ordered, ROBUST_SHARE)
    if typical > 0 and most > SPIKE_FACTOR * typical:
        return round_up(typical * 1.25)
    return round_up(most * HEADROOM)


def steps(low: float, high: float, at_most: int, binary: bool = False) -> list[float]:
    """Multiples within [low, high] of a round step: of a power of two if `binary`."""
    rough = (high - low) / max(1, at_most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= rough * (1 - 1e-9))
    if binary:
        step = 2.0 ** math.ceil(math.log2(rough))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def time_ticks(first: float, last: float, width: float) -> list[tuple[float, str]]:
    """Seconds within [first, last] with their labels, m:ss with the decimals that their distance needs."""
    wanted = (last - first) * LABEL_APART / max(width, LABEL_APART)
    step = next((s for s in STEPS_S if s >= wanted), 3600.0 * math.ceil(wanted / 3600.0))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)
    return [(n * step, clock(n * step, digits)) for n in numbers]
