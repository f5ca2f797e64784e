"""Figures as people read them, in sentences and on axes: three digits, units with their prefixes, intervals."""

from __future__ import annotations

import math
import re
from typing import Final

from profiler.analysis.comparison.statistics import Ratio
from profiler.machine.roofs.table import size_text

PLAIN: Final = ("s", "B/s", "FLOP/s", "op/s", "Hz", "W", "J", "frames/s", "/s")
"""Units that take a prefix; bytes (B) are written as KiB, MiB, GiB."""

PREFIXES: Final = (
    *((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
    *((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")),
)
SHARE: Final = "share"
"""A unit that is none: of shares of a whole, which are written in percent."""

SPACE: Final = "\N{NARROW NO-BREAK SPACE}"
_DECIMAL: Final = re.compile(r"-?\d{1,3}(\.\d+)?")
"""What `format_number` writes without powers of ten or spaces."""

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
