"""The menu bar, with its menus for exports and recent sessions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu, QWidget

from app.style.plain_text import add_entry, new_menu
from app.window.actions.actions import ALWAYS, SUBMENU

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

BEGIN_A_PART = {  # Actions that stand below a line in their menu
    *("file.open", "file.copy", "file.export", "file.quit", "export.csv"),
    *("view.previous", "view.zoom_in", "view.back", "view.pin", "bookmark.add", "view.window", "page.welcome"),
    *("run.undo", "theme.toggle", "view.alone", "layout.save", "bookmarks.go.1", "help.terms", "help.about"),
}
GAP = 4  # Pixels between a button and the menu above it


class Menus:
    """Every action of the main window `w`, by group."""

    def __init__(self, w: MainWindow) -> None:
        self._w, self._actions = w, w.actions_
        self._export, self._recent = new_menu(w.tr("Export"), w), new_menu(w.tr("Recent sessions"), w)
        self._recent.aboutToShow.connect(self._fill_recent)

    def fill(self) -> None:
        bar = self._w.menuBar()
        for old in bar.actions():
            old.menu().deleteLater()
        bar.clear()
        self._export.clear()
        self._export.setToolTipsVisible(True)
        groups = self._actions.groups()
        last = self._w.tr("Help")
        menus: dict[str, QMenu] = {}
        # A submenu comes after its menu, and stands above what else is in that; one in a submenu, below.
        for group in sorted(groups, key=lambda name: (name == last, name.count(SUBMENU))):
            members = groups[group]
            above, _, name = group.rpartition(SUBMENU)
            menu = menus[group] = new_menu(name, menus.get(above, self._w))
            if SUBMENU in above:
                menus[above].addMenu(menu)
            elif above:
                self._put_above(menu, menus[above])
            else:
                bar.addMenu(menu)
            menu.setToolTipsVisible(any(action.enabled is not ALWAYS for action in members))
            menu.aboutToShow.connect(self._actions.refresh)
            for action in members:
                into = self._export if action.id.startswith("export.") else menu
                if action.id in BEGIN_A_PART:
                    into.addSeparator()
                if action.id == "file.export":
                    menu.addMenu(self._export)
                else:
                    into.addAction(self._actions[action.id])
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
        size = self._export.sizeHint()
        corner = button.mapToGlobal(button.rect().topRight())
        corner.setX(corner.x() - size.width())
        corner.setY(corner.y() - size.height() - GAP)
        self._export.popup(corner)

    def _fill_recent(self) -> None:
        w, menu = self._w, self._recent
        menu.clear()
        sessions = w.memory.sessions()
        for path in sessions:
            add_entry(menu, path.name, partial(w.open_session, path))
        if not sessions:
            add_entry(menu, w.tr("none yet"))
            return

        def forget() -> None:
            w.memory.remember("recent", None)
            w.welcome.show_recent([])

        menu.addSeparator()
        add_entry(menu, w.tr("Clear recent sessions"), forget)
