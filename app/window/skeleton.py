"""What stands in the window until the desk is built: bars and cards, empty, where the desk will have its own.

Nothing here loads a chart, the form or the desk: all of that comes after the first painting.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.style.theme import theme
from app.views import VIEWS
from app.window import layouts
from app.window.layouts import EXPLORE

GAP = 8
"""Pixels between cards; these gaps are also the handles that resize them."""

FORM_SHARE, FORM_BOUNDS = 0.166, (258, 340)
"""Share of the width that the form takes, within the bounds, until the user resizes it."""

MARGIN = 10
"""Pixels around the columns."""

TRANSPORT = 102
"""Pixels that the transport is high."""

RADIUS = 8.0

BARS = {"menus": 23, "top-bar": 58, "status-line": 28}
"""Pixels that the bars are high, in the font that comes with the program."""


def form_width(width: int) -> int:
    """Width of the form in a desk of `width` pixels, until the user resizes it."""
    return round(min(max(width * FORM_SHARE, FORM_BOUNDS[0]), FORM_BOUNDS[1]))


def cards(area: QRectF) -> list[QRectF]:
    """Form, views as in the layout that the program begins with, and transport, in a desk that fills `area`."""
    inside = area.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
    form = QRectF(inside.topLeft(), QSizeF(form_width(round(area.width())), inside.height()))
    right = inside.adjusted(form.width() + GAP, 0, 0, 0)
    transport = right.adjusted(0, right.height() - TRANSPORT, 0, 0)
    found = [form, transport]
    room = right.adjusted(0, 0, 0, -TRANSPORT - GAP)
    columns = layouts.columns(EXPLORE, VIEWS)
    shares = layouts.WIDTHS[EXPLORE][: len(columns)]
    for (x, width), column in zip(_divided(room.width(), shares), columns, strict=True):
        rows = _divided(room.height(), [row.share for row in column])
        found += [QRectF(room.x() + x, room.y() + y, width, high) for y, high in rows]
    return found


def _divided(length: float, shares: Sequence[int]) -> list[tuple[float, float]]:
    """Begin and length of each part, with gaps between them."""
    room = length - GAP * (len(shares) - 1)
    lengths = [room * share / sum(shares) for share in shares]
    starts = accumulate(lengths[:-1], lambda at, part: at + part + GAP, initial=0.0)
    return list(zip(starts, lengths, strict=True))


class Skeleton(QWidget):
    """The outlines of the desk."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the cards."""
        tokens = theme()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), tokens.color("surface"))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(tokens.color("border"), 1))
            painter.setBrush(tokens.color("card"))
            for card in cards(QRectF(self.rect())):
                painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)


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
