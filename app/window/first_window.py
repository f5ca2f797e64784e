"""What of the main window is there at its first painting: its place, its bars and the outlines of the desk.

Nothing here loads the parts of the window, which take twice as long to import as Qt itself.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QDragEnterEvent
from PySide6.QtWidgets import QMainWindow

from app.model.recent import Memory
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

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files, as copies: whoever offers them keeps them."""
        if event.mimeData().hasUrls():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
