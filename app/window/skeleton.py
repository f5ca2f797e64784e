"""What stands in the window until the desk is built: bars and cards, empty, where the desk will have its own.

Nothing here loads a chart, the form or the desk: all of that comes after the first painting.
"""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.layout import NONE, lay_out
from app.views import VIEWS
from app.window import layouts
from app.window.layouts import EXPLORE

GAP = 8  # Pixels between cards; these gaps are also the handles that resize them

FORM_SHARE, FORM_BOUNDS = 0.166, (258, 340)
"""Share of the width that the form takes, within the bounds, until the user resizes it."""

MARGIN = 10  # Pixels around the columns
TRANSPORT = 102  # Pixels that the transport is high

BARS = {"menus": 23, "top-bar": 58, "status-line": 28}
"""Pixels that the bars are high, in the font that comes with the program."""


def form_width(width: int) -> int:
    """Width of the form in a desk of `width` pixels, until the user resizes it."""
    return round(min(max(width * FORM_SHARE, FORM_BOUNDS[0]), FORM_BOUNDS[1]))


class Skeleton(QWidget):
    """The outlines of the desk: form, views as in the layout that the program begins with, and transport."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("desk")
        columns = [
            lay_out(QVBoxLayout(), *((_frame("card"), row.share) for row in column), spacing=GAP)
            for column in layouts.columns(EXPLORE, VIEWS)
        ]
        views = lay_out(
            QHBoxLayout(), *zip(columns, layouts.WIDTHS[EXPLORE], strict=False), spacing=GAP
        )
        self._form, transport = _frame("card"), _frame("card")
        transport.setFixedHeight(TRANSPORT)
        right = lay_out(QVBoxLayout(), (views, 1), transport, spacing=GAP)
        margins = (MARGIN, MARGIN, MARGIN, MARGIN)
        lay_out(QHBoxLayout(self), self._form, (right, 1), spacing=GAP, margins=margins)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the form its width."""
        super().resizeEvent(event)
        self._form.setFixedWidth(form_width(self.width()))


class FirstPicture(QWidget):
    """The window before anything in it is made: its bars, and the outlines of the desk where that is to follow."""

    def __init__(self, desk: bool) -> None:
        super().__init__()
        self.setObjectName("desk")
        menus, top, status = (_frame("bar", name) for name in BARS)
        page = Skeleton() if desk else QWidget()
        lay_out(QVBoxLayout(self), menus, top, (page, 1), status, spacing=0, margins=NONE)


def _frame(kind: str, name: str = "") -> QFrame:
    """A card, or the bar of a name, as the style sheet draws them."""
    frame = QFrame()
    frame.setObjectName(name)
    frame.setProperty(kind, True)
    if name:
        frame.setFixedHeight(BARS[name])
    return frame
