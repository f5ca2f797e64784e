"""The sentence at the playhead in a strip of its own: reference and hypothesis, word under word.

It is not on the time axis. Words that come after the playhead of a replay are dimmed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.time_plot import GUTTER, MARGIN
from app.style.plain_text import write
from app.style.theme import font, text_width, theme
from app.views.speech import paint_word
from app.views.words_model import Spoken
from pipelines.audio.word_errors import DELETED, SAME

ROW = 19
"""Height of a row in pixels."""

GAP = 4
"""Pixels left and right of a word."""

LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft

MISSING = "∗∗∗"
"""Shown where a word has no counterpart, as in the tables of scoring tools."""

LATER = 0.45
"""Opacity of words after the playhead."""


class Sentence(QWidget):
    """Two rows: what was said and what was recognised."""

    def __init__(self) -> None:
        super().__init__()
        self._spoken: Spoken | None = None
        self._cursor_s = 0.0
        self._looks: tuple[object, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * ROW + 2)

    def show_spoken(self, spoken: Spoken | None, cursor_s: float = 0.0) -> None:
        """Show an utterance (None: nothing) with the playhead at a second."""
        self._spoken, self._cursor_s = spoken, cursor_s
        # Painting it takes as long as the chart.
        looks: tuple[object, ...] = ()
        if spoken is not None:
            cells = written_columns(spoken)
            later = sum(cell[3] >= cursor_s for cell in cells)
            inside = spoken.first_s <= cursor_s <= spoken.last_s
            looks = cells, later, inside, spoken.partial, spoken.columns is None
        if looks != self._looks:
            self._looks = looks
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the names of the rows in the gutter, then as many words as fit around the playhead."""
        spoken = self._spoken
        if spoken is None:
            return
        room = self.width() - GUTTER - MARGIN
        with QPainter(self) as painter:
            painter.setFont(font(0.85))
            painter.setPen(theme().color("muted"))
            # Nothing is said of a reference that there is not.
            reference = "" if spoken.columns is None else self.tr("reference")
            for row, name in enumerate((reference, self.tr("hypothesis"))):
                area = QRectF(0, 2 + row * ROW, GUTTER - 4, ROW)
                flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
                write(painter, area, flags, name)
            self._paint_words(painter, spoken, float(room))

    def _paint_words(self, painter: QPainter, spoken: Spoken, room: float) -> None:
        cells = written_columns(spoken)
        if not cells:
            return

        def width_of(cell: int) -> float:
            above, below = cells[cell][:2]
            return max(text_width(above, 0.95), text_width(below, 0.95, strong=True)) + 2 * GAP

        dots = text_width("…", 0.95, strong=True) + 2 * GAP
        first, widths = _window(width_of, len(cells), self._current_cell(spoken, cells), room - 2 * dots)
        last = first + len(widths)
        x = float(GUTTER)
        if first > 0:
            self._paint_dots(painter, x)
            x += dots
        for (above, below, kind, second), width in zip(cells[first:last], widths, strict=True):
            painter.setOpacity(1.0 if second < self._cursor_s else LATER)
            for row, text in enumerate((above, below)):
                wide = text_width(text, 0.95, strong=row == 1)
                place = QRectF(round(x + GAP / 2), 2 + row * ROW, wide, ROW)
                self._paint_word(painter, text, kind, place, row)
            x += width
        painter.setOpacity(1.0)
        if last < len(cells) or spoken.partial:
            self._paint_dots(painter, x)

    def _paint_word(self, painter: QPainter, text: str, kind: str, place: QRectF, row: int) -> None:
        """The reference is quiet but for what was lost of it; the hypothesis shows its errors."""
        face = font(0.95, strong=row == 1)
        if text != MISSING and (row == 1 or kind == DELETED):
            paint_word(painter, text, kind, place, face)
            return
        painter.setFont(face)
        painter.setPen(theme().color("muted"))
        write(painter, place.adjusted(0, 0, 40, 0), LEFT | Qt.TextFlag.TextDontClip, text)

    def _paint_dots(self, painter: QPainter, x: float) -> None:
        painter.setFont(font(0.95, strong=True))
        painter.setPen(theme().color("muted"))
        write(painter, QRectF(x, 2 + ROW, 20, ROW), Qt.AlignmentFlag.AlignVCenter, "…")

    def _current_cell(self, spoken: Spoken, cells: list[tuple[str, str, str, float]]) -> int:
        """Return the index of the cell at the playhead."""
        if spoken.partial:
            return len(cells) - 1
        if not spoken.first_s <= self._cursor_s <= spoken.last_s:
            return 0
        return max((i for i, cell in enumerate(cells) if cell[3] < self._cursor_s), default=0)


def written_columns(spoken: Spoken) -> list[tuple[str, str, str, float]]:
    """Return the columns (reference word, hypothesis word, kind, second) of an utterance."""
    if spoken.columns is None:
        return [("", token.text, SAME, token.first_s) for token in spoken.heard]
    cells = []
    second = spoken.first_s
    for said, heard in spoken.columns:
        if heard is not None:
            second = heard.first_s
        kind = next(token.kind for token in (said, heard) if token is not None)
        above, below = (MISSING if token is None else token.text for token in (said, heard))
        cells.append((above, below, kind, second))
    return cells


def _window(width_of: Callable[[int], float], count: int, at: int, room: float) -> tuple[int, list[float]]:
    """Index of the first of those of `count` cells around `at` that fit into `room` pixels, and their widths."""
    first = at
    widths = deque([width_of(at)])
    used = widths[0]
    before, after = at > 0, at + 1 < count
    while before or after:
        if before:
            width = width_of(first - 1)
            if before := used + width <= room:
                first, used = first - 1, used + width
                widths.appendleft(width)
        if after:
            width = width_of(first + len(widths))
            if after := used + width <= room:
                used += width
                widths.append(width)
        before, after = before and first > 0, after and first + len(widths) < count
    return first, list(widths)
