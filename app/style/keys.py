"""What the keyboard does to buttons: Tab alone reaches them, Enter presses them, and Space is never theirs.

Space pauses and plays, wherever the focus is. Nor does a click give a button the focus: the next key would go to
whatever was clicked last.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QToolButton, QWidget

ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

REACHED = Qt.FocusPolicy.TabFocus  # How a button gets the focus


def pressed(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Press `button` on Enter and leave Space to the window; whether the key was one of these."""
    enter = event.key() in ENTER
    if not enter and event.key() != Qt.Key.Key_Space:
        return False
    if enter and not event.isAutoRepeat():
        button.click()
    event.setAccepted(enter)
    return True


class ToolButton(QToolButton):
    """A small button in a heading or a field."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(REACHED)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed(self, event):
            super().keyPressEvent(event)
