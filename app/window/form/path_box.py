"""The field of a setting that names a file or a folder: type it, drop it, or choose it with "…".

While it is not being edited, only the last part of the path is shown; the tool tip has all of it. If the program ships
files that can be chosen by name, "…" offers these first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QFocusEvent, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QLineEdit, QMenu

from app.style.plain_text import ToolButton, add_entry, describe, set_tip
from profiler.files.inputs import regular

BUTTON = QSize(20, 19)


class PathBox(QLineEdit):
    """A path with a button that opens the dialog (`title`) for a file or, with `folder`, a folder.

    `names`: files that need no path, offered by the button. `suffixes`: of the files that the dialog shows.
    """

    chosen = Signal(str)

    def __init__(self, folder: bool, title: str, names: Sequence[str] = (), suffixes: Sequence[str] = ()) -> None:
        super().__init__()
        self._folder = folder
        self._title = title
        self._names, self._suffixes = tuple(names), tuple(suffixes)
        self._path = ""
        self.setAcceptDrops(True)
        self.setPlaceholderText(self.tr("not set"))
        self.button = ToolButton(self)
        self.button.setObjectName("path-button")
        self.button.setText("…")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        what = self.tr("Choose a folder…") if folder else self.tr("Choose a file…")
        set_tip(self.button, what)
        describe(self.button, f"{title}: {what}")
        self.button.clicked.connect(self._offer if names else self.choose)
        self.setTextMargins(0, 0, BUTTON.width() - 4, 0)
        self.editingFinished.connect(self._typed)

    @property
    def path(self) -> str:
        return self._path

    def set_path(self, path: str) -> None:
        self._path = path
        self._show()

    def _offer(self) -> None:
        menu = self.offered()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))

    def offered(self) -> QMenu:
        """The menu of the button."""
        menu = QMenu(self)
        for name in self._names:
            entry = add_entry(menu, name, partial(self._take, name))
            entry.setCheckable(True)
            entry.setChecked(name == self._path)
        menu.addSeparator()
        add_entry(menu, self.tr("A file…"), self.choose)
        return menu

    def choose(self) -> None:
        """Ask for a file or a folder, starting at the current one."""
        named = not self._path or self._path in self._names
        start = "" if named else str(Path(self._path).parent)
        if self._folder:
            found = QFileDialog.getExistingDirectory(self.window(), self._title, start)
        else:
            ends = " ".join(f"*{suffix}" for suffix in self._suffixes)
            wanted = self.tr("{0} ({1})").format(self._title, ends) if ends else ""
            found, _ = QFileDialog.getOpenFileName(self.window(), self._title, start, wanted)
        if found:
            self._take(found)

    def _typed(self) -> None:
        if self.hasFocus() or self.isModified():
            self._take(self.text().strip())

    def _take(self, path: str) -> None:
        changed = path != self._path
        self.set_path(path)
        if changed:
            self.chosen.emit(path)

    def _show(self) -> None:
        text = self._path
        if not self.hasFocus() and text:
            room = self.width() - BUTTON.width() - 18
            mode = Qt.TextElideMode.ElideMiddle
            text = self.fontMetrics().elidedText(Path(text).name, mode, max(room, 24))
        if text != self.text():
            self.setText(text)
        self.setCursorPosition(0)
        set_tip(self, self._path)

    def event(self, event: QEvent) -> bool:
        """Keys that its button leaves to others are the window's, and not typed into the path."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if event.type() in kinds and not self.hasFocus():
            event.ignore()
            return False
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show()
        self.selectAll()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the button on the right and the path within the field."""
        super().resizeEvent(event)
        y = (self.height() - BUTTON.height()) // 2
        place = QRect(self.width() - BUTTON.width() - 3, y, BUTTON.width(), BUTTON.height())
        self.button.setGeometry(place)
        self._show()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept one file or one folder, as `folder` says."""
        if self._dropped(event) is not None:
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
        else:
            event.ignore()

    def dropEvent(self, event: QDropEvent) -> None:
        """Take what was dropped."""
        path = self._dropped(event)
        if path is None:
            event.ignore()
            return
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self._take(path)

    def _dropped(self, event: QDropEvent) -> str | None:
        urls = event.mimeData().urls()
        path = urls[0].toLocalFile() if len(urls) == 1 else ""
        fits = os.path.isdir(path) if self._folder else regular(Path(path))
        return path if path and fits else None
