"""The menu bar, with its menus for exports and recent sessions."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow, QMenu, QWidget

from app.model.recent import Memory
from app.style.plain_text import add_entry, new_menu
from app.window.actions.actions import ALWAYS, SUBMENU, Registry

BEGIN_A_PART = frozenset(
    (
        *("file.open", "file.copy", "file.export", "file.quit"),
        *("view.previous", "view.zoom_in", "view.back", "view.pin", "bookmark.add", "view.window", "page.welcome"),
        *(
            "run.undo",
            "theme.toggle",
            "view.alone",
            "layout.save",
            "bookmarks.go.1",
            "help.terms",
            "help.about",
            "export.csv",
        ),
    )
)
"""Actions that stand below a line in their menu."""

GAP = 4  # Pixels between a button and the menu above it


class Menus(QObject):
    """Every action of the window, by group."""

    open_session = Signal(object)  # The path of the chosen session
    forgotten = Signal()  # The list of recent sessions was cleared

    def __init__(self, window: QMainWindow, actions: Registry, memory: Memory) -> None:
        super().__init__(window)
        self._window, self._actions, self._memory = window, actions, memory
        self._export = new_menu(self.tr("Export"), window)
        self._recent = new_menu(self.tr("Recent sessions"), window)
        self._recent.aboutToShow.connect(self._fill_recent)

    def fill(self) -> None:
        """Rebuild the menus from the current actions."""
        bar = self._window.menuBar()
        for old in bar.actions():
            old.menu().deleteLater()
        bar.clear()
        self._export.clear()
        self._export.setToolTipsVisible(True)
        groups = self._actions.groups()
        last = self.tr("Help")
        menus: dict[str, QMenu] = {}
        # A submenu comes after its menu, and stands above what else is in that; one in a submenu, below.
        for group in sorted(groups, key=lambda name: (name == last, name.count(SUBMENU))):
            members = groups[group]
            above, _, name = group.rpartition(SUBMENU)
            menu = menus[group] = new_menu(name, menus.get(above, self._window))
            if SUBMENU in above:
                menus[above].addMenu(menu)
            elif above:
                self._put_above(menu, menus[above])
            else:
                bar.addMenu(menu)
            menu.setToolTipsVisible(any(action.enabled is not ALWAYS for action in members))
            menu.aboutToShow.connect(self._actions.refresh)
            for action in members:
                made = self._actions[action.id]
                into = self._export if action.id.startswith("export.") else menu
                if action.id in BEGIN_A_PART:
                    into.addSeparator()
                if action.id == "file.export":
                    menu.addMenu(self._export)
                else:
                    into.addAction(made)
                if action.id == "file.open":
                    menu.addMenu(self._recent)

    @staticmethod
    def _put_above(menu: QMenu, parent: QMenu) -> None:
        """Add a submenu to a menu, after its other submenus and above its actions."""
        first = next((entry for entry in parent.actions() if entry.menu() is None), None)
        if first is None:
            parent.addMenu(menu)
            return
        if not first.isSeparator():
            first = parent.insertSeparator(first)
        parent.insertMenu(first, menu)

    def open_export(self, button: QWidget) -> None:
        """Show the export menu above `button`."""
        size = self._export.sizeHint()
        corner = button.mapToGlobal(button.rect().topRight())
        corner.setX(corner.x() - size.width())
        corner.setY(corner.y() - size.height() - GAP)
        self._export.popup(corner)

    def _fill_recent(self) -> None:
        menu = self._recent
        menu.clear()
        sessions = self._memory.sessions()
        for path in sessions:
            add_entry(menu, path.name, partial(self.open_session.emit, path))
        if sessions:
            menu.addSeparator()
            add_entry(menu, self.tr("Clear recent sessions"), self._forget_recent)
        else:
            add_entry(menu, self.tr("none yet"))

    def _forget_recent(self) -> None:
        self._memory.forget_sessions()
        self.forgotten.emit()
