"""The box next to the mouse that shows what is under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.charts.swatch import paint_swatch
from app.style.plain_text import write
from app.style.theme import font, theme

BESIDE = 12
"""Pixels between the mouse and the box."""

NOTICES = "notices"
"""Name of the widget of the window that has sentences to be read: no box lies over it."""


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
        self._at = QPoint()
        self._notices: QWidget | None = None
        self._metrics = QFontMetricsF(font(0.92, strong=True))

    def show_lines(self, lines: Sequence[Line], at: QPoint) -> None:
        """Show `lines` to the right of a point of the window, or to the left if there is no room."""
        self._lines = lines
        names = max(self._metrics.horizontalAdvance(line.name) for line in lines)
        values = max(self._metrics.horizontalAdvance(line.value) for line in lines)
        self.resize(round(names + values + 48), round(len(lines) * self._height() + 13))
        self._at = at
        self._place()
        self.raise_()
        self.show()
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Show, QEvent.Type.Move, QEvent.Type.Resize):
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        """Right of the mouse or left of it, below the notices or above them."""
        room = self._window.size()
        x = self._at.x() + BESIDE
        if x + self.width() > room.width():
            x = max(0, self._at.x() - BESIDE - self.width())
        y = max(0, min(self._at.y(), room.height() - self.height()))
        taken = self._taken()
        if taken.intersects(QRect(x, y, self.width(), self.height())):
            below, above = taken.bottom() + BESIDE, taken.top() - BESIDE - self.height()
            y = below if below + self.height() <= room.height() else max(0, above)
        self.move(x, y)

    def _taken(self) -> QRect:
        """Where the notices lie in the window; empty without one."""
        if self._notices is None:
            self._notices = self._window.findChild(QWidget, NOTICES)
            if self._notices is None:
                return QRect()
            self._notices.installEventFilter(self)
        if not self._notices.isVisible():
            return QRect()
        return QRect(self._notices.mapTo(self._window, QPoint()), self._notices.size())

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
                    paint_swatch(painter, swatch, line.category)
                painter.setFont(strong if line.strong else plain)
                painter.setPen(tokens.color("text"))
                name = row.adjusted(16, 0, 0, 0)
                write(painter, name, middle | Qt.AlignmentFlag.AlignLeft, line.name)
                write(painter, row, middle | Qt.AlignmentFlag.AlignRight, line.value)
