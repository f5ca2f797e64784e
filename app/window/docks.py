"""The views as docks: they move, become tabs, float, close and come back, and one may have all the room for itself.

A dock that nobody sees costs nothing: its view sleeps, and is updated as soon as it comes to the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QTabBar,
    QTabWidget,
    QWidget,
)

from app.style.icons import icon
from app.style.keys import ToolButton
from app.style.plain_text import Label, describe, new_menu, set_tip, set_title
from app.style.theme import Tokens, theme, theme_changed
from app.views.view import View
from app.widgets import Elided
from app.window.layouts import WIDTHS, columns

VERSION: Final = 1
"""Of saved states: one of another version is not restored."""

AREA: Final = Qt.DockWidgetArea.LeftDockWidgetArea
"""All docks share one area, which takes all the room since there is nothing in the centre."""

NO_FOCUS: Final = Qt.FocusPolicy.NoFocus
LEFT, RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
V_CENTER: Final = Qt.AlignmentFlag.AlignVCenter

ICON: Final = QSize(13, 13)

TITLE_MARGINS: Final = (14, 5, 7, 3)
BODY_MARGINS: Final = (14, 2, 14, 8)


class DockTitle(QFrame):
    """The header of a view as the title of its dock: one drags it, and a double-click gives the view all the room."""

    pressed = Signal()
    double_clicked = Signal()

    def __init__(self, view: View) -> None:
        super().__init__()
        self.setObjectName("dock-title")
        self._name = view.tr(view.title)
        around = view.layout()
        assert around is not None
        around.removeItem(view.header)
        around.setContentsMargins(*BODY_MARGINS)
        buttons = QHBoxLayout()
        buttons.setSpacing(0)
        self.float_button = self._button(self.tr("Float {0}"), self.tr("Float, or dock again"))
        self.close_button = self._button(
            self.tr("Close {0}"), self.tr("Close; the menu View has it")
        )
        for button in (self.float_button, self.close_button):
            buttons.addWidget(button)
        view.header.addLayout(buttons)
        view.header.setParent(None)
        view.header.setContentsMargins(*TITLE_MARGINS)
        self.setLayout(view.header)
        self._note = self.findChild(Elided, "card-note")
        theme_changed.connect(self.apply_theme)
        self.apply_theme(theme())

    def _button(self, name: str, tip: str) -> ToolButton:
        button = ToolButton()
        button.setObjectName("dock-button")
        button.setIconSize(ICON)
        describe(button, name.format(self._name))
        set_tip(button, tip)
        return button

    def apply_theme(self, tokens: Tokens) -> None:
        """Draw the icons in its colours."""
        for button, name in ((self.float_button, "float"), (self.close_button, "close")):
            button.setIcon(icon(name, tokens.color("muted"), tokens.color("border")))

    def show_tabbed(self, tabbed: bool) -> None:
        """Leave the title to the tab, if there is one."""
        label = self.findChild(Label, "card-title")
        if label is not None:
            label.setVisible(not tabbed)
        if self._note is not None:
            self._note.setAlignment(V_CENTER | (LEFT if tabbed else RIGHT))
        if self.property("tabbed") != tabbed:
            self.setProperty("tabbed", tabbed)
            self.style().unpolish(self)
            self.style().polish(self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Say so; the dock takes the mouse and may be dragged."""
        self.pressed.emit()
        event.ignore()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Say so, in place of what Qt does (float)."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.double_clicked.emit()
            event.accept()


class ViewDock(QDockWidget):
    """A view in a dock, asleep while nobody sees it."""

    woken = Signal()
    """It came to the front: its view is to be updated."""

    def __init__(self, view: View, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(f"dock-{view.id}")
        set_title(self, view.tr(view.title))
        describe(self, view.tr(view.title))
        self.view = view
        view.setProperty("card", "docked")
        view.asleep = True
        self.title = DockTitle(view)
        self.title.close_button.clicked.connect(lambda _=False: self.close())
        self.title.float_button.clicked.connect(lambda _=False: self.float_or_dock())
        for part in (self.title, view):
            policy = part.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            part.setSizePolicy(policy)
        self.setTitleBarWidget(self.title)
        self.setWidget(view)
        self.visibilityChanged.connect(self._seen)

    def float_or_dock(self) -> None:
        """Float, or go back among the others."""
        self.setFloating(not self.isFloating())
        self.raise_()

    def give_keys(self) -> None:
        """Give the view the keyboard: its chart or table, not a button."""
        inside = [child for child in self.view.findChildren(QWidget) if _takes_keys(child)]
        self.activateWindow()
        if inside:
            inside[0].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _seen(self, seen: bool) -> None:
        # Qt says that it is seen also on a page that is not shown, and that it is not at the left of the first screen.
        seen = self.isVisible() and (seen or self.isFloating())
        slept, self.view.asleep = self.view.asleep, not seen
        # For Qt a dock behind another is visible, out of sight: Tab would go there.
        for part in (self.title, self.view):
            part.setVisible(seen)
        if seen and slept:
            self.woken.emit()


class Docks(QMainWindow):
    """All views in their docks."""

    rearranged = Signal()
    """A dock was opened, closed, moved, floated or brought to the front."""

    def __init__(self, views: dict[str, View]) -> None:
        super().__init__()
        self.setObjectName("docks")
        self.setWindowFlags(Qt.WindowType.Widget)
        option = QMainWindow.DockOption
        self.setDockOptions(option.AllowNestedDocks | option.AllowTabbedDocks)
        self.setDocumentMode(True)
        everywhere = Qt.DockWidgetArea.AllDockWidgetAreas
        self.setTabPosition(everywhere, QTabWidget.TabPosition.North)
        self.offered: Sequence[QAction] = ()
        self._before: QByteArray | None = None
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._show_titles)
        self.docks = {view_id: ViewDock(view, self) for view_id, view in views.items()}
        for view_id, dock in self.docks.items():
            dock.title.pressed.connect(dock.give_keys)
            dock.title.double_clicked.connect(partial(self._double_clicked, view_id))
            for changed in (
                dock.visibilityChanged,
                dock.topLevelChanged,
                dock.dockLocationChanged,
            ):
                changed.connect(lambda *_: self._later.start())

    # -- layouts -----------------------------------------------------------------------

    def arrange(self, name: str) -> None:
        """Put every dock at its place in a layout that comes with the program."""
        self._before = None
        for dock in self.docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)
        found = columns(name, self.docks)
        heads = [[self.docks[row.views[0]] for row in column] for column in found]
        tops = [column[0] for column in heads]
        self.addDockWidget(AREA, tops[0])
        for left, right in pairwise(tops):
            self.splitDockWidget(left, right, Qt.Orientation.Horizontal)
        for upper, lower in (pair for column in heads for pair in pairwise(column)):
            self.splitDockWidget(upper, lower, Qt.Orientation.Vertical)
        for row in (row for column in found for row in column):
            first, *behind = (self.docks[view] for view in (*row.views, *row.closed))
            for dock in behind:
                self.tabifyDockWidget(first, dock)
            for view in row.views:
                self.docks[view].show()
            for view in row.closed:
                self.docks[view].hide()
            first.raise_()
        self._share(tops, WIDTHS[name], Qt.Orientation.Horizontal)
        for column, docks in zip(found, heads, strict=True):
            self._share(docks, [row.share for row in column], Qt.Orientation.Vertical)
        self._later.start()

    def _share(
        self, docks: Sequence[QDockWidget], shares: Sequence[int], along: Qt.Orientation
    ) -> None:
        """Divide the room among docks that lie side by side."""
        self.resizeDocks(list(docks), list(shares)[: len(docks)], along)

    def save(self) -> QByteArray:
        """What `restore` takes."""
        return self.saveState(VERSION) if self._before is None else self._before

    def restore(self, state: QByteArray) -> bool:
        """Put the docks where they were, and those that `state` does not know behind one; whether it was of use."""
        if not self.restoreState(state, VERSION):
            return False
        self._before = None
        self._later.start()
        known, new = [], []
        for dock in self.docks.values():
            (known if _is_named(state, dock) else new).append(dock)
        host = next((dock for dock in known if not (dock.isHidden() or dock.isFloating())), None)
        for dock in new if host is not None else ():
            self.tabifyDockWidget(host, dock)
            host.raise_()
        return True

    # -- single views ------------------------------------------------------------------

    def is_open(self, view_id: str) -> bool:
        """Whether a view is there, in front or behind another."""
        return not self.docks[view_id].isHidden()

    def is_in_front(self, view_id: str) -> bool:
        """Whether a view can be seen."""
        return not self.docks[view_id].view.asleep

    def in_front(self) -> tuple[str, ...]:
        """The views that can be seen."""
        return tuple(view_id for view_id in self.docks if self.is_in_front(view_id))

    def open(self, view_id: str, shown: bool = True) -> None:
        """Open a view, in front, or close it."""
        dock = self.docks[view_id]
        dock.setVisible(shown)
        if shown:
            dock.raise_()

    def go_to(self, view_id: str) -> None:
        """Open a view and give it the keyboard."""
        if self._before is not None:
            self._hide_others(view_id)
        self.open(view_id)
        self.docks[view_id].give_keys()

    @property
    def current(self) -> str:
        """The view that has the keyboard, if it is in front; else the first that is."""
        front = self.in_front()
        for view_id in front:
            dock = self.docks[view_id]
            focus = self.window().focusWidget()
            inside = focus is not None and dock.isAncestorOf(focus)
            if inside or (dock.isFloating() and dock.isActiveWindow()):
                return view_id
        return front[0] if front else next(iter(self.docks))

    @property
    def is_alone(self) -> bool:
        """Whether one view has all the room."""
        return self._before is not None

    def show_alone(self, view_id: str) -> None:
        """Give a view all the room, until `show_all`."""
        if self._before is None:
            self._before = self.saveState(VERSION)
        self._hide_others(view_id)

    def show_all(self) -> None:
        """Put the others back where they were."""
        if self._before is not None:
            self.restore(self._before)

    def toggle_alone(self, view_id: str = "") -> None:
        """Give a view all the room, or put the others back; without a name, the current one."""
        if self.is_alone:
            self.show_all()
        else:
            self.show_alone(view_id or self.current)

    def float_or_dock(self, view_id: str = "") -> None:
        """Let a view float, or dock it again; without a name, the current one."""
        view_id = view_id or self.current
        self.open(view_id)  # Qt would float what is behind another where nobody sees it
        dock = self.docks[view_id]
        dock.float_or_dock()
        dock.give_keys()

    def hide_floating(self) -> None:
        """Hide what would be there after the window; that is after `save`."""
        for dock in self.docks.values():
            if dock.isFloating():
                dock.hide()

    def _hide_others(self, view_id: str) -> None:
        self.open(view_id)
        for other, dock in self.docks.items():
            if other != view_id:
                dock.hide()

    # -- inner -------------------------------------------------------------------------

    def _double_clicked(self, view_id: str) -> None:
        dock = self.docks[view_id]
        if dock.isFloating():
            dock.float_or_dock()
        else:
            self.toggle_alone(view_id)

    def _tab_double_clicked(self, title: str) -> None:
        for view_id in self.in_front():
            if self.docks[view_id].windowTitle() == title:
                self.toggle_alone(view_id)

    def _show_titles(self) -> None:
        for dock in self.docks.values():
            tabbed = not dock.isFloating() and bool(self.tabifiedDockWidgets(dock))
            dock.title.show_tabbed(tabbed)
        self.rearranged.emit()

    def childEvent(self, event: QChildEvent) -> None:
        """Set up the tab bars, which Qt makes where docks lie on top of each other."""
        super().childEvent(event)
        bar = event.child()
        if event.type() == QEvent.Type.ChildPolished and isinstance(bar, QTabBar):
            bar.setExpanding(False)
            bar.setDrawBase(False)
            describe(bar, self.tr("Views in one place"))
            bar.tabBarDoubleClicked.connect(lambda n: self._tab_double_clicked(bar.tabText(n)))

    def createPopupMenu(self) -> QMenu:
        """What a right click on a title offers, in place of Qt's own list of docks."""
        menu = new_menu(self.tr("Views"), self)
        menu.addActions(list(self.offered))
        return menu


def _takes_keys(widget: QWidget) -> bool:
    shown = widget.isVisible() and widget.isEnabled()
    return shown and widget.focusPolicy() != NO_FOCUS and not isinstance(widget, QAbstractButton)


def _is_named(state: QByteArray, dock: QDockWidget) -> bool:
    """Whether a saved state knows of a dock: its name is in it as Qt writes texts."""
    return state.contains(dock.objectName().encode("utf-16-be"))
