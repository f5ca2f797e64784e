"""The key to the categories: one line below the cost plot, colours and hatches in stacking order."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import CATEGORY_TITLES, Tokens, font, theme
from app.views.frames import CATEGORIES
from app.views.overlay import paint_swatch
from app.views.plot import GUTTER, MARGIN


class Legend(QWidget):
    """One line: the categories in stacking order, and a remark at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens = theme()
        self.remark = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Return the height of one line."""
        return QSize(200, 20)

    def set_remark(self, text: str) -> None:
        """Show `text` at the right end."""
        if text != self.remark:
            self.remark = text
            self.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self._tokens = tokens
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw; the gap between the names shrinks before the remark gives way."""
        painter = QPainter(self)
        face = font(0.95)
        painter.setFont(face)
        metrics = QFontMetricsF(face)
        names = [self._short(name) for name in CATEGORIES]
        widths = [metrics.horizontalAdvance(name) + 15 for name in names]
        room = self.width() - GUTTER - MARGIN
        remark = metrics.horizontalAdvance(self.remark) + 16
        shows_remark = sum(widths) + 6 * len(widths) + remark <= room
        free = room - sum(widths) - (remark if shows_remark else 0)
        gap = max(4.0, min(18.0, free / len(widths)))
        x = float(GUTTER)
        middle = self.height() / 2
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        for name, title, width in zip(CATEGORIES, names, widths, strict=True):
            paint_swatch(painter, QRectF(x, middle - 5, 10, 10), self._tokens, name)
            painter.setPen(self._tokens.color("muted"))
            painter.drawText(QRectF(x + 15, 0, width, self.height()), flags, title)
            x += width + gap
        if shows_remark and self.remark:
            right = QRectF(x, 0, self.width() - MARGIN - x, self.height())
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(right, flags, self.remark)
        painter.end()

    def _short(self, category: str) -> str:
        return "memory" if category == "memory" else CATEGORY_TITLES[category]
