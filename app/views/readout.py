"""The box next to the mouse that shows what is under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.style.plain_text import write
from app.style.theme import font, theme
from app.views.swatch import paint_swatch

BESIDE = 12
"""Pixels between the mouse and the box."""


@dataclass(frozen=True)
class Line:
    """One line of the read-out: a swatch (category key) or none, a name, a value."""

    name: str
    value: str
    category: str | None = None
    strong: bool = False


class Readout(QWidget):
    """A child of the window, so that no plot is too small for it; transparent to the mouse."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._lines: Sequence[Line] = ()
        self._metrics = QFontMetricsF(font(0.92, strong=True))

    def show_lines(self, lines: Sequence[Line], at: QPoint) -> None:
        """Show `lines` to the right of a point of the window, or to the left if there is no room."""
        self._lines = lines
        names = max(self._metrics.horizontalAdvance(line.name) for line in lines)
        values = max(self._metrics.horizontalAdvance(line.value) for line in lines)
        size = QSize(round(names + values + 48), round(len(lines) * self._height() + 13))
        room = self._window.size()
        x = at.x() + BESIDE
        if x + size.width() > room.width():
            x = max(0, at.x() - BESIDE - size.width())
        y = max(0, min(at.y(), room.height() - size.height()))
        self.setGeometry(x, y, size.width(), size.height())
        self.raise_()
        self.show()
        self.update()

    def _height(self) -> float:
        return self._metrics.height() + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the box and its lines."""
        with QPainter(self) as painter:
            tokens = theme()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            painter.setPen(QPen(tokens.color("border"), 1))
            painter.setBrush(tokens.color("field"))
            box = QRectF(self.rect())
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
            plain, strong = font(0.92), font(0.92, strong=True)
            middle = Qt.AlignmentFlag.AlignVCenter
            height = self._height()
            for number, line in enumerate(self._lines):
                row = QRectF(10, 6 + number * height, box.width() - 20, height)
                if line.category is not None:
                    side = height * 0.55
                    swatch = QRectF(row.left(), row.top() + (height - side) / 2, side, side)
                    paint_swatch(painter, swatch, tokens, line.category)
                painter.setFont(strong if line.strong else plain)
                painter.setPen(tokens.color("text"))
                name = row.adjusted(16, 0, 0, 0)
                write(painter, name, middle | Qt.AlignmentFlag.AlignLeft, line.name)
                write(painter, row, middle | Qt.AlignmentFlag.AlignRight, line.value)
