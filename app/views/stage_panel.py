"""What the time of one stage consists of: a bar per part with its interval, and a sentence. It is always in sight."""

from __future__ import annotations

import math
from functools import lru_cache

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QTextLayout
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.model.desk_snapshot import StageLine
from app.style.plain_text import set_tip, unbroken, write
from app.style.theme import font, theme
from app.views.part_bars import PART_ROW, paint_rows, rows_of

HEAD = 24
"""Height of the line with the stage's name and verdict."""

BELOW = 8
"""Pixels between the parts and the sentence, and below it."""


class StagePanel(QWidget):
    """Name, verdict, parts and sentence of a stage."""

    def __init__(self) -> None:
        super().__init__()
        self._line: StageLine | None = None
        self._head = ""
        self._text = ""
        self.above = 0
        """Pixels of the card that it leaves to what is above; a sentence without room ends in dots."""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_line(self, line: StageLine | None, head: str, text: str) -> None:
        """Show another stage: name and verdict, and what is said of it; None shows nothing."""
        text = unbroken(text)
        if (line, head, text) != (self._line, self._head, self._text):
            height = self.sizeHint().height()
            self._line, self._head, self._text = line, head, text
            if self.sizeHint().height() != height:
                self.updateGeometry()
            self.update()

    @property
    def text(self) -> str:
        return self._text

    def needed(self, width: int) -> int:
        """Height of all of it at a width."""
        if self._line is None:
            return 0
        parts = len(rows_of(self._line.parts)) * PART_ROW
        return HEAD + parts + BELOW + len(wrapped(self._text, width)) * _line_height()

    def sizeHint(self) -> QSize:
        parent = self.parentWidget()
        most = parent.height() - self.above if parent is not None else 10_000
        return QSize(200, min(self.needed(self.width()), max(most, HEAD + 2 * PART_ROW)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw from the top down."""
        line = self._line
        if line is None:
            return
        with QPainter(self) as painter:
            painter.setPen(QPen(theme().color("border"), 1))
            painter.drawLine(0, 0, self.width(), 0)
            painter.setPen(theme().color("text"))
            painter.setFont(font(1.0, strong=True))
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
            write(painter, QRectF(0, 2, self.width(), HEAD - 2), flags, self._head)
            top = HEAD
            # Whole rows only; what has no room is in the tool tip.
            rows = rows_of(line.parts)[: max(0, (self.height() - HEAD) // PART_ROW)]
            paint_rows(painter, top, self.width(), rows)
            top += len(rows) * PART_ROW
            painter.setFont(font())
            painter.setPen(theme().color("text"))
            high = _line_height()
            room = max(0, (self.height() - top - 4) // high)
            lines = wrapped(self._text, self.width())
            set_tip(self, self._text if len(lines) > room else "")
            if not room:
                return
            if len(lines) > room:
                rest = " ".join(lines[room - 1 :])
                metrics = QFontMetricsF(font())
                last = metrics.elidedText(rest, Qt.TextElideMode.ElideRight, self.width())
                lines = (*lines[: room - 1], last)
            for number, text in enumerate(lines):
                write(painter, QRectF(0, top + 4 + number * high, self.width(), high), flags, text)


def _line_height() -> int:
    return math.ceil(QFontMetricsF(font()).lineSpacing())


@lru_cache(maxsize=8)
def wrapped(text: str, width: int) -> tuple[str, ...]:
    """The lines of a text at a width in pixels, broken between words."""
    layout = QTextLayout(text, font())
    layout.beginLayout()
    found = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(width, 60))
        found.append(text[line.textStart() : line.textStart() + line.textLength()].rstrip())
    layout.endLayout()
    return tuple(found)
