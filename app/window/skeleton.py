"""What stands in the window until the desk is built: bars and cards, empty, and how wide both make their columns.

Nothing here loads a chart, the form or the desk: all of that comes after the first painting.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.style.theme import theme

GAP = 8
"""Pixels between cards; these gaps are also the handles that resize them."""

FORM_SHARE, RIGHT_SHARE = 0.166, 0.25
"""Shares of the width that the outer columns take, within the bounds below, until the user resizes them."""

FORM_BOUNDS, RIGHT_BOUNDS = (258, 340), (250, 960)
"""Minimum and maximum widths that the desk itself gives the outer columns."""

MARGIN = 10
"""Pixels around the columns."""

ROWS = ((0.3, 0.3, 0.24, 0.16), (1.0,))
"""Shares of the height: the cards of the middle column and of the right one."""

RADIUS = 8.0

BARS = {"menus": 23, "top-bar": 58, "status-line": 28}
"""Pixels that the bars are high, in the font that comes with the program."""


def column_widths(width: int) -> tuple[int, int, int]:
    """Widths of form, middle and right column in a desk of `width` pixels, until the user resizes them."""
    form = round(min(max(width * FORM_SHARE, FORM_BOUNDS[0]), FORM_BOUNDS[1]))
    right = round(min(max(width * RIGHT_SHARE, RIGHT_BOUNDS[0]), RIGHT_BOUNDS[1]))
    return form, max(1, width - 2 * (MARGIN + GAP) - form - right), right


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


class FirstPicture(QWidget):
    """The window before anything in it is made: its bars, and the outlines of the desk where that is to follow."""

    def __init__(self, desk: bool) -> None:
        super().__init__()
        self.setObjectName("desk")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for name in ("menus", "top-bar"):
            column.addWidget(_bar(name))
        column.addWidget(Skeleton() if desk else QWidget(), 1)
        column.addWidget(_bar("status-line"))


def _bar(name: str) -> QFrame:
    bar = QFrame()
    bar.setObjectName(name)
    bar.setProperty("bar", True)
    bar.setFixedHeight(BARS[name])
    return bar
