"""Text made fit to be shown: that of strangers on a terminal, in a sentence, in one line; numbers with their nouns.

A file name or a stage's name may hold escape sequences that move the cursor or set the clipboard, marks that
turn the direction of the rest of the line, or bytes that no encoding knows.
"""

import math
import unicodedata
from typing import Final

SHOWN_CHARACTERS: Final = 200  # A sentence that quotes more than this hides what it says

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories: control, format (direction marks too), surrogate, private, unassigned, separators."""


def printable(text: str, keep: str = "") -> str:
    """Return `text` with every character that does not show written as its escape, those in `keep` aside."""
    if text.isprintable():
        return text
    shown = (c if c in keep or unicodedata.category(c) not in _HIDDEN else ascii(c)[1:-1] for c in text)
    return "".join(shown)


def one_line(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """Return `text` printable, on one line and at most `limit` characters long: the middle is left out."""
    if len(text) > 4 * limit:
        text = f"{text[: 2 * limit]}…{text[-2 * limit :]}"  # an escape is longer than its character
    shown = printable(text)
    if len(shown) <= limit:
        return shown
    head = (limit - 1) * 2 // 3
    return f"{shown[:head]}…{shown[len(shown) - (limit - 1 - head) :]}"


def clock(second: float, digits: int = 0) -> str:
    """Seconds as m:ss (h:mm:ss from an hour on), with `digits` decimals."""
    whole = round(abs(second), digits)
    minutes, rest = divmod(whole, 60)
    width = 2 if digits == 0 else 3 + digits
    sign = "−" if second < 0 and whole else ""
    hours, minutes = divmod(int(minutes), 60)
    front = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{sign}{front}:{rest:0{width}.{digits}f}"


LEAST_MS = 0.0005  # What three decimals would round to nothing


def milliseconds(value: float | None) -> str:
    """Milliseconds with two to three significant figures: 0.61, 3.40, 21.7, 128; "<0.001" is not none."""
    if value is None or not math.isfinite(value):
        return "–"
    if 0 < value < LEAST_MS:
        return "<0.001"
    digits = 3 if value < 0.0995 else 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"


def duration_text(seconds: float) -> str:
    """Return a duration as "40 s", or "3 min" from 90 s on, rounded up."""
    return f"{math.ceil(seconds / 60)} min" if seconds >= 90 else f"{math.ceil(seconds)} s"


def counted(number: int, one: str, many: str) -> str:
    """Return "1 word" or "2 words"."""
    return f"{number} {one if number == 1 else many}"


def times(ratio: float) -> str:
    """A ratio as people say it: 2.4×, 14×."""
    return f"{ratio:.0f}×" if ratio >= 9.95 else f"{ratio:.1f}×"


def count(value: float | None) -> str:
    """A count with thin spaces between thousands: 135 634; below 10 with one decimal."""
    if value is None or not math.isfinite(value):
        return "–"
    if value >= 9.95 or value == int(value):
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.1f}"


def prefixed(value: float) -> str:
    """Three figures and the prefix of a unit, set off: 27 G, 1 T, 850 (with a space at the end)."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            return f"{value / limit:.3g} {prefix}"
    return f"{value:.3g} "


def speed(value: float | None) -> str:
    """Bytes per second: 35.9 GB/s; a dash where it is unknown."""
    return "–" if value is None else f"{prefixed(value)}B/s"


def percent(share: float | None) -> str:
    """A share 0…1 as a percentage: whole numbers, one decimal below ten."""
    if share is None or not math.isfinite(share):
        return "–"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


LEAST_RTF = 0.0005  # Smaller ones would be shown as 0.000


def rtf_text(rtf: float | None) -> str:
    """An RTF with three decimals, two from 1 on; "<0.001" is not none; an en dash where it is unknown."""
    if rtf is None or not math.isfinite(rtf) or rtf <= 0:
        return "–"
    if rtf < LEAST_RTF:
        return "<0.001"
    return f"{rtf:.3f}" if rtf < 1 else f"{rtf:.2f}"
