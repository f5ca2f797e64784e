"""What a stage's time consists of, as the breakdown draws it: a strip in each row, and a bar per part for one stage.

Every strip is the whole time of its stage, so that strips of stages large and small compare; parts lie in the same
order everywhere. The whisker on a bar is the interval of that part.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.charts.scale import percent
from app.model.desk_snapshot import PartLine
from app.style.plain_text import write
from app.style.theme import font, theme
from profiler.analysis.categories import PART_NAMES

PART_ROW = 18
"""Height of a part's row in pixels."""

NAMES = 162
"""Width of the column of the parts' names."""

FIGURES = 96
"""Width of the figures at the right: share and interval."""

WORTH_A_ROW = 0.005
"""A part that is smaller, and cannot be larger, has no row."""


def group_color(group: str) -> str:
    if group in ("frontend", "search", "transfer", "overhead"):
        return group
    return "accent" if group == "scoring" else "muted"


def rows_of(parts: Sequence[PartLine]) -> list[PartLine]:
    return [part for part in parts if part.high >= WORTH_A_ROW]


def interval(part: PartLine) -> str:
    low, high = (f"{100 * end:.0f}" for end in (part.low, part.high))
    return "" if low == high else f"{low}–{high}"


def share_text(part: PartLine) -> str:
    """The share of a part with its interval: "41 % (30–51 %)"."""
    ends = interval(part)
    return percent(part.share) + (f" ({ends} %)" if ends else "")


def part_text(part: PartLine) -> str:
    """One part in words: "memory bandwidth 41 % (30–51 %)"."""
    return f"{PART_NAMES[part.name]} {share_text(part)}"


def paint_strip(painter: QPainter, place: QRectF, parts: Sequence[PartLine]) -> None:
    """The parts side by side; a gap of a pixel keeps neighbours apart for any eye."""
    x = place.left()
    for part in parts:
        width = place.width() * part.share
        if width >= 1.0:
            bar = QRectF(x, place.top(), max(width - 1.0, 1.0), place.height())
            painter.fillRect(bar, QColor(theme().part[part.name]))
        x += width


def paint_rows(painter: QPainter, top: float, width: float, parts: Sequence[PartLine]) -> None:
    """A row per part from `top` down: its colour, name, bar with the interval, share."""
    tokens, middle = theme(), Qt.AlignmentFlag.AlignVCenter
    wide = width >= NAMES + FIGURES + 60
    figures = FIGURES if wide else 44
    room = max(20.0, width - NAMES - figures)
    painter.setFont(font(0.95))
    metrics = QFontMetricsF(painter.font())
    for index, part in enumerate(rows_of(parts)):
        row = QRectF(0, top + index * PART_ROW, width, PART_ROW)
        color = QColor(tokens.part[part.name])
        painter.fillRect(QRectF(0, row.center().y() - 4, 8, 8), color)
        painter.setPen(tokens.color("text"))
        name = PART_NAMES[part.name]
        name = metrics.elidedText(name, Qt.TextElideMode.ElideRight, NAMES - 18)
        write(painter, row.adjusted(14, 0, 0, 0), middle | Qt.AlignmentFlag.AlignLeft, name)
        bar = QRectF(NAMES, row.center().y() - 4, max(room * part.share, 1.0), 8)
        painter.fillRect(bar, color)
        if interval(part):
            y = row.center().y()
            painter.setPen(QPen(tokens.color("text"), 1))
            low, high = (NAMES + room * end for end in (part.low, part.high))
            painter.drawLine(QLineF(low, y, high, y))
            for end in (low, high):
                painter.drawLine(QLineF(end, y - 3, end, y + 3))
        painter.setPen(tokens.color("text"))
        right = middle | Qt.AlignmentFlag.AlignRight
        write(painter, row.adjusted(0, 0, -50 if wide else 0, 0), right, percent(part.share))
        if wide:
            painter.setPen(tokens.color("muted"))
            write(painter, row, right, interval(part))
