"""The audio of the next run as a list: files and folders in the order in which they are decoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QDialog, QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout

from app.layout import REST, lay_out, wrapped
from app.model import audio_choice
from app.style.plain_text import Button, describe, displayable, set_tip, set_title
from app.window.tasks.workbench import Workbench

SIZE = QSize(560, 420)
PATH = Qt.ItemDataRole.UserRole


class PlaylistDialog(QDialog):
    """A list that can be reordered, added to and removed from."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Audio of the next run"))
        self.resize(SIZE)
        self._files, self._before = bench.files, bench.runs.next.audio
        self.list = QListWidget()
        describe(self.list, self.tr("Audio of the next run"))
        self.list.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSpacing(2)
        files, folder = Button(self.tr("Add files…")), Button(self.tr("Add a folder…"))
        self.up, self.down = Button(self.tr("Up")), Button(self.tr("Down"))
        self.remove = Button(self.tr("Remove"))
        self.use, cancel = Button(self.tr("Use this list")), Button(self.tr("Cancel"))
        self.use.setProperty("primary", True)
        pressed: dict[Button, Callable[[], object]] = {
            files: lambda: self.add(self._files.pick_audio()),
            folder: lambda: self.add(self._files.pick_folder()),
            self.up: lambda: self._move(-1),
            self.down: lambda: self._move(1),
            self.remove: self._remove,
            self.use: self._take,
            cancel: self.reject,
        }
        for button, do in pressed.items():
            button.clicked.connect(lambda _=False, do=do: do())
        for button, key in ((self.up, "Alt+Up"), (self.down, "Alt+Down"), (self.remove, "Del")):
            sequence = QKeySequence(key)
            QShortcut(sequence, self.list, button.click, context=Qt.ShortcutContext.WidgetShortcut)
            set_tip(button, sequence.toString(QKeySequence.SequenceFormat.NativeText))
        beside = lay_out(QVBoxLayout(), files, folder, 8, self.up, self.down, self.remove, REST)
        self.about = wrapped(self.tr("Files are decoded in this order; those of a folder by name."))
        lay_out(
            QVBoxLayout(self),
            (lay_out(QHBoxLayout(), (self.list, 1), beside), 1),
            self.about,
            lay_out(QHBoxLayout(), REST, cancel, self.use),
        )
        self.list.itemSelectionChanged.connect(self._refresh)
        self.list.model().rowsMoved.connect(self._refresh)
        self.add(() if self._before is None else self._before.paths)
        self.list.setCurrentRow(0)

    def paths(self) -> list[str]:
        return [self.list.item(row).data(PATH) for row in range(self.list.count())]

    def add(self, paths: Sequence[str | Path]) -> None:
        """Append files and folders that are not there yet."""
        known = set(self.paths())
        for path in dict.fromkeys(map(str, paths)):
            if path in known:
                continue
            name = os.path.basename(path.rstrip(os.sep)) or path
            item = QListWidgetItem(displayable(f"{name}{os.sep}" if os.path.isdir(path) else name))
            item.setData(PATH, path)
            set_tip(item, path)
            self.list.addItem(item)
        self._refresh()

    def _rows(self) -> list[int]:
        return sorted(index.row() for index in self.list.selectedIndexes())

    def _move(self, step: int) -> None:
        """Move what is selected up (−1) or down (1) by one place."""
        rows = self._rows()
        for row in rows if step < 0 else reversed(rows):
            item = self.list.takeItem(row)
            self.list.insertItem(row + step, item)
        for row in rows:
            self.list.item(row + step).setSelected(True)
        self.list.scrollToItem(self.list.item(rows[0] + step))
        self._refresh()

    def _remove(self) -> None:
        for row in reversed(self._rows()):
            self.list.takeItem(row)
        self._refresh()

    def _refresh(self, *_: object) -> None:
        rows, last = self._rows(), self.list.count() - 1
        self.up.setEnabled(bool(rows) and rows[0] > 0)
        self.down.setEnabled(bool(rows) and rows[-1] < last)
        self.remove.setEnabled(bool(rows))
        self.use.setEnabled(last >= 0)

    def _take(self) -> None:
        """Choose the list for the next run; if it cannot be decoded, say why."""
        paths, before = self.paths(), self._before
        try:
            choice = audio_choice.chosen(paths)
        except ValueError as error:
            self.about.setText(str(error))
            return
        if before is not None and before.transcripts is not None and not set(paths).isdisjoint(before.paths):
            choice = replace(choice, transcripts=before.transcripts, found=before.found)
        self._files.audio_chosen.emit(choice)
        self.accept()


def begin(bench: Workbench) -> None:
    PlaylistDialog(bench).open()
