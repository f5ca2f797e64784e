"""Small signs that several views draw: a category's swatch, the mark of a value off the scale."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPolygonF

from app.style.theme import theme


def paint_swatch(painter: QPainter, rect: QRectF, category: str) -> None:
    """A small square in a category's colour and hatch."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme().color(category))
    painter.drawRoundedRect(rect, 2.5, 2.5)
    painter.setBrush(theme().hatch_brush(category))
    painter.drawRoundedRect(rect, 2.5, 2.5)
    painter.restore()


def paint_spike(painter: QPainter, x: float, y: float, color: QColor) -> None:
    """A small triangle whose tip says: it goes on upwards from here."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawPolygon(QPolygonF([QPointF(x, y), QPointF(x - 4, y + 6), QPointF(x + 4, y + 6)]))
    painter.restore()
