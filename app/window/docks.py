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
    QApplication,
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

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Ask for all the room, in place of what Qt does (float)."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.double_clicked.emit()
            event.accept()


class ViewDock(QDockWidget):
    """A view in a dock; `awake` while somebody sees it."""

    woken = Signal()

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
        self.title.float_button.clicked.connect(
            lambda _=False: self.setFloating(not self.isFloating())
        )
        for part in (self.title, view):
            policy = part.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            part.setSizePolicy(policy)
        self.setTitleBarWidget(self.title)
        self.setWidget(view)
        view.windowTitleChanged.connect(self.setWindowTitle)
        self.visibilityChanged.connect(self._seen)

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
        self._current = next(iter(views), "")
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._show_titles)
        self.docks = {view_id: ViewDock(view, self) for view_id, view in views.items()}
        for view_id, dock in self.docks.items():
            dock.title.double_clicked.connect(partial(self.toggle_alone, view_id))
            for changed in (
                dock.visibilityChanged,
                dock.topLevelChanged,
                dock.dockLocationChanged,
            ):
                changed.connect(lambda *_: self._later.start())
        QApplication.instance().focusChanged.connect(self._focus_moved)

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
        """Resize docks that lie side by side; Qt enlarges all alike to fit, but does not make them smaller."""
        self.resizeDocks(list(docks), list(shares)[: len(docks)], along)

    def save(self) -> QByteArray:
        """What `restore` takes."""
        return self.saveState(VERSION) if self._before is None else self._before

    def restore(self, state: QByteArray) -> bool:
        """Put the docks where they were; whether `state` was of use."""
        self._before = None
        self._later.start()
        return self.restoreState(state, VERSION)

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
        self._give_keys(self.docks[view_id])

    @property
    def current(self) -> str:
        """The view that had the keyboard last, if it is in front; else the first that is."""
        front = self.in_front()
        return self._current if self._current in front or not front else front[0]

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
        dock.setFloating(not dock.isFloating())
        self._give_keys(dock)

    def _hide_others(self, view_id: str) -> None:
        self.open(view_id)
        for other, dock in self.docks.items():
            if other != view_id:
                dock.hide()

    # -- inner -------------------------------------------------------------------------

    @staticmethod
    def _give_keys(dock: ViewDock) -> None:
        inside = [child for child in dock.view.findChildren(QWidget) if _takes_keys(child)]
        target = inside[0] if inside else dock.title.close_button
        dock.activateWindow()
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _focus_moved(self, _old: QWidget | None, now: QWidget | None) -> None:
        while now is not None and not isinstance(now, ViewDock):
            now = now.parentWidget()
        if now is not None and now.view.id in self.docks:
            self._current = now.view.id

    def _show_titles(self) -> None:
        for dock in self.docks.values():
            tabbed = not dock.isFloating() and bool(self.tabifiedDockWidgets(dock))
            dock.title.show_tabbed(tabbed)
        self.rearranged.emit()

    def _tab_double_clicked(self, title: str) -> None:
        for view_id, dock in self.docks.items():
            if dock.windowTitle() == title:
                self.toggle_alone(view_id)

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
    return widget.isVisible() and widget.isEnabled() and widget.focusPolicy() != NO_FOCUS
