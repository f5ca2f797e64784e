"""Figures of times measured in turns, each with its interval: what verdict rules and pictures of labs share.

Also as people read them: three digits, units with their prefixes. `statistics` takes nanoseconds; labs keep seconds.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from pipelines.labs.chart import Values
from profiler.analysis.comparison import statistics
from profiler.analysis.comparison.statistics import Ratio as Ratio  # noqa: PLC0414 - labs take it from here
from profiler.arrays import F64, Array
from profiler.machine.roofs.table import size_text

NS = 1e9


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """Time `of` over time `to`, by rounds of both (`Desk.turns`); three give an interval. None where one took none."""
    return statistics.alternated(_ns(to), _ns(of)).ratio()


def ratio_apart(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """As `ratio`, of times that were not measured in turns; the shorter list limits how many are taken."""
    n = min(len(of), len(to))
    return statistics.apart(_ns(to[:n]), _ns(of[:n])).ratio()


def quotient(of: Sequence[float], to: Sequence[float]) -> Ratio:
    """Σ `of` / Σ `to`, with its interval by a bootstrap over the pairs, which are what chance draws.

    Without an interval where there are fewer than two, or where it has no end. 0 / 0 is 0.
    """
    rows = np.column_stack([of, to])

    def figure(some: F64) -> float:
        return float(some[:, 0].sum() / max(some[:, 1].sum(), 1e-300))

    ends = statistics.bootstrap_interval(rows, figure) if len(rows) > 1 else (math.nan, math.nan)
    return Ratio(figure(rows), *ends) if np.isfinite(ends).all() else Ratio(figure(rows))


def inverse(ratio: Ratio | None) -> Ratio | None:
    return _mapped(ratio, lambda r: 1 / r)


def saved(ratio: Ratio | None) -> Ratio | None:
    """1 − ratio: the share of the time that the quicker one saves."""
    return _mapped(ratio, lambda r: 1 - r)


def scaled(ratio: Ratio | None, factor: float) -> Ratio | None:
    """Multiply a ratio and its interval by `factor`: per frame where one of both does several at a time."""
    return _mapped(ratio, lambda r: factor * r)


def _mapped(ratio: Ratio | None, figure: Callable[[float], float]) -> Ratio | None:
    """`figure`, which rises or falls everywhere, of a ratio and the ends of its interval."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return None if ratio is None else Ratio(figure(ratio.ratio))
    low, high = sorted((figure(ratio.low), figure(ratio.high)))
    return Ratio(figure(ratio.ratio), low, high, ratio.p)


def value(ratio: Ratio | None) -> float | None:
    return None if ratio is None else ratio.ratio


def seconds(times: Sequence[float]) -> float:
    """Seconds that the work itself takes: the mean of the fastest 40 %."""
    return float(statistics.undisturbed(np.array(times)))


def between(times: Sequence[float], figure: Callable[[float], float] = lambda s: s) -> Interval:
    """`figure` of the seconds that the work itself takes, such as operations / s, with its interval."""
    values: F64 = np.array(times)
    middle = figure(float(statistics.undisturbed(values)))
    low, high = sorted(map(figure, statistics.undisturbed_interval(values))) if len(values) > 1 else (middle, middle)
    return Interval(middle, low, high)


def columns(intervals: Sequence[Interval]) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Values, lower and upper ends, as the layers of a chart take them."""
    return tuple(i.value for i in intervals), tuple(i.low for i in intervals), tuple(i.high for i in intervals)


def ratio_columns(ratios: Sequence[Ratio | None]) -> tuple[Values, Values, Values]:
    """Ratios, lower and upper ends, as the layers of a chart take them."""
    each = [r or Ratio(math.nan) for r in ratios]
    return tuple(value(r) for r in ratios), tuple(r.low for r in each), tuple(r.high for r in each)


def _ns(times: Sequence[float]) -> Array:
    return NS * np.array(times, np.float64)[:, None]


PLAIN: Final = ("s", "B/s", "FLOP/s", "op/s", "Hz", "W", "J", "frames/s", "/s")
"""Units that take a prefix; bytes (B) are written as KiB, MiB, GiB."""

PREFIXES: Final = (
    *((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")),
)
SHARE: Final = "share"  # A unit that is none: of shares of a whole, which are written in percent
SPACE: Final = "\N{NARROW NO-BREAK SPACE}"
_DECIMAL: Final = re.compile(r"-?\d{1,3}(\.\d+)?")  # What `format_number` writes without powers of ten or spaces
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(value: float) -> str:
    """Format with three figures: 0.042, 12.3, 4 100, 3·10¹²."""
    if not math.isfinite(value):
        return "unknown"
    value = float(f"{value:.3g}")
    if value and not 1e-4 <= abs(value) < 1e6:
        mantissa, _, power = f"{value:.2e}".partition("e")
        short = mantissa.rstrip("0").rstrip(".")
        raised = f"10{str(int(power)).translate(_RAISED)}"
        return raised if short == "1" else f"{short}·{raised}"
    return format_integer(value) if abs(value) >= 1000 else f"{value:.3g}"


def format_integer(value: float) -> str:
    """Format as a whole number with spaces between thousands: 65 536."""
    return f"{value:,.0f}".replace(",", SPACE)


def figure(value: float, unit: str) -> str:
    """A value with its unit: 1.5 MB/s, 32 KiB, 12 µs, 3.2 GFLOP/s, 70 %."""
    if unit == SHARE:
        return f"{format_number(100 * value)} %"
    if unit == "B":
        return size_text(round(value))
    if unit not in PLAIN or value == 0:
        return f"{format_number(value)} {unit}".rstrip()
    size, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= 0.9995 * s), PREFIXES[-1])
    if unit == "s" and value >= 1:
        size, prefix = 1.0, ""
    return f"{format_number(value / size)} {prefix}{unit}"


def ci(ratio: Ratio | None) -> str:
    """A ratio with its confidence interval, all with three figures: 2.71 (2.60 to 2.84)."""
    if ratio is None:
        return "unknown"
    if ratio.low is None or ratio.high is None:
        return format_number(ratio.ratio)
    return f"{_padded(ratio.ratio)} ({_padded(ratio.low)} to {_padded(ratio.high)})"


def _padded(value: float) -> str:
    """Format three figures with trailing zeros: next to 0.244, 0.24 would be read as less exact than 0.240."""
    text = format_number(value)
    return f"{value:#.3g}".rstrip(".") if _DECIMAL.fullmatch(text) and value else text


def without_code(text: str) -> str:
    return text.replace("`", "")


def counted(number: int, one: str, several: str) -> str:
    """A number of things: 1 word is, 27 words are."""
    return f"{format_integer(number)} {one if number == 1 else several}"


def percent(share: Ratio | float | None, digits: int = 0) -> str:
    """A share, with its interval where it has one, as sentences write it: 12 %, 12 % (10 to 13)."""
    if share is None:
        return "an unknown share"
    if isinstance(share, float):
        return f"{100 * share:.{digits}f} %"
    if share.low is None or share.high is None:
        return percent(share.ratio, digits)
    return f"{percent(share.ratio, digits)} ({100 * share.low:.{digits}f} to {100 * share.high:.{digits}f})"
