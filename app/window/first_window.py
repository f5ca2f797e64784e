"""What of the main window is there at its first painting: its place, its bars and the outlines of the desk.

Nothing here loads the parts of the window, which take twice as long to import as Qt itself.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QDragEnterEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractSpinBox, QMainWindow, QWidget

from app.model.recent import Memory
from app.style.keys import ENTER
from app.style.plain_text import set_title
from app.window.placement import place
from app.window.skeleton import FirstPicture


class FirstWindow(QMainWindow):
    """A window at its place; `complete` makes what is in it."""

    def __init__(self, memory: Memory | None = None) -> None:
        super().__init__()
        self.setObjectName("main-window")
        set_title(self, "asrscope")
        self.memory = memory or Memory()
        self.is_complete = False
        self._left: QWidget | None = None
        place(self, self.memory.state("geometry"))

    def show_first(self, desk: bool) -> FirstPicture:
        """Show the bars, and the outlines of the desk where it is to follow."""
        picture = FirstPicture(desk)
        self.setCentralWidget(picture)
        self.show()
        return picture

    def complete(self) -> None:
        """Make all the rest."""
        self.setAcceptDrops(True)
        self.is_complete = True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Escape leave a number: a comma or a point would go on being part of it, and is a command here."""
        field = self.focusWidget()
        if event.key() in (*ENTER, Qt.Key.Key_Escape) and isinstance(field, QAbstractSpinBox):
            self._left = field
            self.setFocus()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus by Tab, from a number that was left as if it still had it."""
        left, self._left = self._left, None
        if left is not None and self.focusWidget() is self and left.isVisible():
            left.setFocus()
        return super().focusNextPrevChild(forward)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files, as copies: whoever offers them keeps them."""
        if event.mimeData().hasUrls():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
