"""The button that shows the chosen preset and offers the others: those outside any group, and a submenu per group."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from app.model.pipeline import missing_file
from app.style.plain_text import add_entry, describe, new_menu, set_tip
from app.widgets import DropButton
from pipelines.config import presets

ARROW_ROOM = 34  # Pixels of the button for border, padding and arrow


class PresetButton(DropButton):
    """Emits `chosen` with the name of the preset."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._title = ""
        self._entries: dict[str, QAction] = {}
        self.choices = QMenu(self)
        self.choices.setToolTipsVisible(True)
        for name in presets.names(""):
            self._offer(self.choices, name)
        for group in presets.groups():
            members = presets.names(group)
            title = self.tr("{0} ({1})").format(self.tr(group), len(members))
            submenu = new_menu(title, self.choices)
            self.choices.addMenu(submenu)
            submenu.setToolTipsVisible(True)
            for name in members:
                self._offer(submenu, name)
        self.clicked.connect(self._open)

    def _offer(self, menu: QMenu, name: str) -> None:
        preset = presets.load(name)
        action = add_entry(menu, self.tr(preset.title), partial(self.chosen.emit, name))
        action.setCheckable(True)
        self._entries[name] = action
        why = missing_file(preset.config)
        action.setEnabled(why is None)
        set_tip(action, why or self.tr(preset.description))

    def _open(self) -> None:
        self.choices.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def show_preset(
        self, preset: presets.Preset, waiting: presets.Preset | None = None, modified: bool = False
    ) -> None:
        """Show which one is chosen, whether settings differ from it, and which waits for the next run."""
        for name, entry in self._entries.items():
            entry.setChecked(name == (preset if waiting is None else waiting).name)
        self._title = self.tr(preset.title)
        if modified:
            self._title = self.tr("{0} (modified)").format(self._title)
        tip = f"{self._title}: {self.tr(preset.description)}"
        if waiting is not None:
            tip = self.tr("{0}\nNext run: {1}").format(tip, self.tr(waiting.title))
            self._title = self.tr("next: {0}").format(self.tr(waiting.title))
        set_tip(self, tip)
        describe(self, self.tr("Preset: {0}").format(self._title))
        self._shorten()

    def _shorten(self) -> None:
        room = max(self.width() - ARROW_ROOM, 20)
        mode = Qt.TextElideMode.ElideMiddle  # its end says that it is modified
        self.setText(self.fontMetrics().elidedText(self._title, mode, room))
