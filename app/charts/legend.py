"""The key to the layers of a stack: one line below the plot (more if it is narrow), in stacking order."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.swatch import paint_swatch
from app.charts.time_plot import GUTTER, MARGIN
from app.style.plain_text import write
from app.style.theme import CATEGORY_TITLES, font, theme
from profiler.analysis.categories import CATEGORIES, THROTTLED

LINE = 20
"""Height of a line in pixels."""

MIN_GAP = 6
"""Minimum pixels between two names."""


class Legend(QWidget):
    """One line: the layers in stacking order, and a note on the right."""

    def __init__(self, titles: Mapping[str, str] | None = None, gutter: int = GUTTER) -> None:
        """`titles` of the layers, by the categories whose colours they have; None: those of the categories.

        Throttled is among them where `set_titles` names it. `gutter`: pixels left of it, where it has room.
        """
        super().__init__()
        usual = (name for name in CATEGORIES if name != THROTTLED)
        plain = {name: CATEGORY_TITLES[name] for name in usual}
        self._plain: Mapping[str, str] = plain if titles is None else titles
        self._titles, self._gutter = self._plain, gutter
        self.remark = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, LINE * len(self._lines()))

    def set_titles(self, titles: Mapping[str, str]) -> None:
        """Show longer titles of the layers, such as with their figures, where two lines have room for them."""
        if titles != self._titles:
            self._titles = titles
            self.updateGeometry()
            self.update()

    def set_remark(self, text: str) -> None:
        """Show `text` at the right end."""
        if text != self.remark:
            self.remark = text
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use a second line if one is too short."""
        super().resizeEvent(event)
        if self.sizeHint().height() != self.height():
            self.updateGeometry()

    def _names(self) -> list[tuple[str, str, float]]:
        """Category, title and width of every name."""
        metrics = QFontMetricsF(font(0.95))
        rows = [(name, title, metrics.horizontalAdvance(title) + 15) for name, title in self._titles.items()]
        if self._titles is self._plain or sum(row[2] + MIN_GAP for row in rows) <= 1.8 * (self.width() - self._gutter):
            return rows
        plain = ((name, self._plain.get(name, title)) for name, title in self._titles.items())
        return [(name, title, metrics.horizontalAdvance(title) + 15) for name, title in plain]

    def _left(self) -> int:
        line = sum(width + MIN_GAP for _, _, width in self._names()) - MIN_GAP
        room = self.width() - MARGIN
        return 0 if room - self._gutter < line <= room else self._gutter

    def _lines(self) -> list[list[tuple[str, str, float]]]:
        """Names (category, title, width) by line."""
        room = self.width() - self._left() - MARGIN
        lines: list[list[tuple[str, str, float]]] = [[]]
        used = 0.0
        for name, title, width in self._names():
            if lines[-1] and used + width > room:
                lines.append([])
                used = 0.0
            lines[-1].append((name, title, width))
            used += width + MIN_GAP
        return lines

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw; the gaps between the names shrink before the note is dropped."""
        with QPainter(self) as painter:
            face = font(0.95)
            painter.setFont(face)
            remark = QFontMetricsF(face).horizontalAdvance(self.remark) + 16 if self.remark else 0.0
            left = self._left()
            room = self.width() - left - MARGIN
            middle = Qt.AlignmentFlag.AlignVCenter
            lines = self._lines()
            names = max(sum(width for _, _, width in line) for line in lines)
            most = max(1, *(len(line) for line in lines))
            shows_remark = names + MIN_GAP * most + remark <= room
            free = room - names - (remark if shows_remark else 0.0)
            gap = max(float(MIN_GAP), min(18.0, free / most))
            for row, line in enumerate(lines):
                x, top = float(left), row * LINE
                for name, title, width in line:
                    swatch = QRectF(x, top + LINE / 2 - 5, 10, 10)
                    paint_swatch(painter, swatch, name)
                    painter.setPen(theme().color("muted"))
                    place = QRectF(x + 15, top, width, LINE)
                    write(painter, place, middle | Qt.AlignmentFlag.AlignLeft, title)
                    x += width + gap
            if shows_remark:
                place = QRectF(x, (len(lines) - 1) * LINE, self.width() - MARGIN - x, LINE)
                write(painter, place, middle | Qt.AlignmentFlag.AlignRight, self.remark)
