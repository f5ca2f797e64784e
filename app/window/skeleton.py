"""What stands in the window until the desk is built: its cards, empty. Nothing here loads a chart."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.style.theme import theme
from app.window.desk import GAP, MARGIN, column_widths

ROWS = ((0.3, 0.3, 0.24, 0.16), (1.0,))
"""Shares of the height: the cards of the middle column and of the right one."""

RADIUS = 8.0


class Skeleton(QWidget):
    """The outlines of the desk."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the cards."""
        tokens = theme()
        form, middle, right = column_widths(self.width())
        height = self.height() - 2 * MARGIN
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), tokens.color("surface"))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(tokens.color("border"), 1))
            painter.setBrush(tokens.color("card"))
            x = float(MARGIN)
            for width, rows in ((form, (1.0,)), (middle, ROWS[0]), (right, ROWS[1])):
                y = float(MARGIN)
                for share in rows:
                    tall = height * share
                    card = QRectF(x, y, width, tall - (GAP if share < 1 else 0))
                    painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
                    y += tall
                x += width + GAP
            painter.setPen(Qt.PenStyle.NoPen)
