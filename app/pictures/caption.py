"""Captions of pictures: lines below a widget about what it shows and where its numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.style.plain_text import Wrapped, unbroken
from app.style.theme import font


class CaptionLine(Wrapped):
    """A line of the caption, wrapped where it is too long: in a name, too, as a picture has no wider place for it."""

    def __init__(self, text: str) -> None:
        super().__init__(unbroken(text))
        self.setObjectName("muted")
        self.setFont(font(0.86))
        self.setContentsMargins(4, 0, 4, 0)


def captioned(widget: QWidget, lines: Sequence[str], margin: int) -> QWidget:
    """A widget above the lines of a caption, which are `margin` from the sides."""
    sheet = QWidget()
    sheet.setObjectName("desk")
    column = QVBoxLayout(sheet)
    column.setContentsMargins(0, 0, 0, 8)
    column.setSpacing(3)
    column.addWidget(widget, 1)
    for line in lines:
        below = CaptionLine(line)
        below.setContentsMargins(margin, 0, margin, 0)
        column.addWidget(below)
    return sheet
