"""The views as docks: they move, become tabs, float, close and come back, and one may have all the room for itself.

A dock that nobody sees costs nothing: its view sleeps, and is updated as soon as it comes to the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu, QTabBar, QTabWidget, QWidget

from app.style.plain_text import describe, new_menu
from app.views import VIEWS, title_of
from app.views.view import View
from app.window.dock import NO_FOCUS, ViewDock
from app.window.layouts import WIDTHS, columns

if TYPE_CHECKING:
    from profiler.session.reader import Session

VERSION: Final = 1  # Of saved states: one of another version is not restored
AREA: Final = Qt.DockWidgetArea.LeftDockWidgetArea  # One for all docks: nothing is in the centre
LOW: Final = 560  # Height in pixels below which a column has two rows at most: three need 555


class Docks(QMainWindow):
    """All views in their docks."""

    rearranged = Signal()  # A dock was opened, closed, moved, floated or brought to the front

    def __init__(
        self, make: Callable[[str], View], parent: QWidget | None = None, views: Iterable[str] = VIEWS
    ) -> None:
        super().__init__(parent)
        self.setObjectName("docks")
        self.setWindowFlags(Qt.WindowType.Widget)
        option = QMainWindow.DockOption
        self.setDockOptions(option.AllowNestedDocks | option.AllowTabbedDocks)
        self.setDocumentMode(True)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.resize(1000, 560)  # what is divided before it is shown is divided alike in any other size
        self.offered: Sequence[QAction] = ()
        self.begun_with = ""  # The layout that this began as, of those that come with the program
        self._before: QByteArray | None = None
        self._concerned: tuple[Path, dict[str, bool | None]] | None = None
        self._hidden: list[ViewDock] = []  # Floating docks that are hidden with the desk
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._arranged)
        self.docks = {view_id: ViewDock(view_id, self.tr(title_of(view_id)), make, self) for view_id in views}
        for view_id, dock in self.docks.items():
            dock.double_clicked.connect(partial(self._double_clicked, view_id))
            dock.made.connect(self._order_tabs)
            for changed in (dock.visibilityChanged, dock.topLevelChanged, dock.dockLocationChanged):
                changed.connect(lambda *_: self._later.start())

    def arrange(self, name: str) -> None:
        """Put every dock at its place in a layout that comes with the program."""
        self._before = None
        self.begun_with = name
        for dock in self.docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)
        layout = columns(name, self.docks, self.height() < LOW)
        heads = [[self.docks[row.views[0]] for row in column] for column in layout]
        tops = [column[0] for column in heads]
        self.addDockWidget(AREA, tops[0])
        for left, right in pairwise(tops):
            self.splitDockWidget(left, right, Qt.Orientation.Horizontal)
        for upper, lower in (pair for column in heads for pair in pairwise(column)):
            self.splitDockWidget(upper, lower, Qt.Orientation.Vertical)
        for row in (row for column in layout for row in column):
            first, *behind = (self.docks[view] for view in (*row.views, *row.closed))
            for dock in behind:
                self.tabifyDockWidget(first, dock)
            for view in (*row.views, *row.closed):
                self.docks[view].setVisible(view in row.views)
            first.raise_()
        self._share(tops, WIDTHS[name], Qt.Orientation.Horizontal)
        for column, docks in zip(layout, heads, strict=True):
            self._share(docks, [row.share for row in column], Qt.Orientation.Vertical)
        self._later.start()

    def _share(self, docks: Sequence[QDockWidget], shares: Sequence[int], along: Qt.Orientation) -> None:
        """Divide the room among docks that lie side by side."""
        shares = shares[: len(docks)]
        room = self.width() if along == Qt.Orientation.Horizontal else self.height()
        sizes = [round(room * share / sum(shares)) for share in shares]
        self.resizeDocks(list(docks), sizes, along)

    def _fit_rows(self) -> None:
        """Take on the layout again, with as many rows as there is room for, if nobody has rearranged it."""
        if self.begun_with and not self.is_alone:
            low = self.height() < LOW
            layouts = (columns(self.begun_with, self.docks, which) for which in (low, not low))
            fit, other = ([set(row.views) for column in layout for row in column] for layout in layouts)
            if fit != other and self._groups() == other:
                self.arrange(self.begun_with)

    def _groups(self) -> list[set[str]]:
        """The views in each place, by column and row; not those that float."""
        ids = {dock: view_id for view_id, dock in self.docks.items()}
        shown = [dock for dock in self.docks.values() if not (dock.asleep or dock.isFloating())]
        shown.sort(key=lambda dock: (dock.x(), dock.y()))
        return [{ids[dock], *(ids[mate] for mate in self.tabifiedDockWidgets(dock) if mate in ids)} for dock in shown]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._later.start()

    def save(self) -> QByteArray:
        return self.saveState(VERSION) if self._before is None else self._before

    def restore(self, state: QByteArray, begun_with: str = "") -> bool:
        """Put the docks where they were, and those that `state` lacks behind one of them; False if it is of no use."""
        if not self.restoreState(state, VERSION):
            return False
        self._before, self.begun_with = None, begun_with
        self._later.start()
        saved = [dock for dock in self.docks.values() if state.contains(dock.objectName().encode("utf-16-be"))]
        open_ = [dock for dock in saved if not (dock.isHidden() or dock.isFloating())]
        for dock in self.docks.values():
            if dock not in saved and open_:
                self.tabifyDockWidget(open_[0], dock)
                open_[0].raise_()
        return True

    def show_concerned(self, session: Session) -> None:
        """Show views that only some sessions have something for, behind others; what is in front or floats stays."""
        there = {view_id: VIEWS[view_id].load().concerns(session) for view_id in self.docks}
        if (session.path, there) == self._concerned:
            return
        self._concerned = session.path, there
        front = self.in_front()
        for view_id, dock in self.docks.items():
            if not (there[view_id] is None or self.is_alone or view_id in front or dock.isFloating()):
                dock.setVisible(bool(there[view_id]))
        for view_id in front:
            self.docks[view_id].raise_()

    def is_open(self, view_id: str) -> bool:
        return not self.docks[view_id].isHidden()

    def in_front(self) -> tuple[str, ...]:
        return tuple(view_id for view_id, dock in self.docks.items() if not dock.asleep)

    def open(self, view_id: str, shown: bool = True) -> None:
        dock = self.docks[view_id]
        dock.setVisible(shown)
        if shown:
            dock.raise_()

    def go_to(self, view_id: str) -> None:
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
        return self._before is not None

    def toggle_alone(self, view_id: str = "") -> None:
        """Give a view all the room, or put the others back; without a name, the current one."""
        if self._before is not None:
            self.restore(self._before, self.begun_with)
        else:
            self._before = self.saveState(VERSION)
            self._hide_others(view_id or self.current)

    def float_or_dock(self, view_id: str = "") -> None:
        """Let a view float, or dock it again; without a name, the current one."""
        view_id = view_id or self.current
        self.open(view_id)  # Qt would float what is behind another where nobody sees it
        dock = self.docks[view_id]
        dock.float_or_dock()
        dock.give_keys()

    def hide_floating(self, hidden: bool = True) -> None:
        """Hide floating docks where the desk is not seen; of a window that closes, after `save`."""
        if hidden:
            self._hidden += [dock for dock in self.docks.values() if dock.isFloating() and dock.isVisible()]
        for dock in self._hidden:
            dock.setVisible(not hidden)
        if not hidden:
            self._hidden.clear()

    def _hide_others(self, view_id: str) -> None:
        self.open(view_id)
        for other, dock in self.docks.items():
            if other != view_id:
                dock.hide()

    def _order_tabs(self) -> None:
        """Let Tab go through the views in their order, whenever each was made."""
        for before, stop in pairwise(stop for dock in self.docks.values() for stop in dock.tab_stops):
            self.setTabOrder(before, stop)

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

    def _arranged(self) -> None:
        self._fit_rows()
        for dock in (dock for dock in self.docks.values() if not dock.asleep):
            tabbed = not dock.isFloating() and bool(self.tabifiedDockWidgets(dock))
            dock.title.show_tabbed(tabbed)
        for bar in self.findChildren(QTabBar):
            # Qt keeps one that it does not need, out of sight and yet in the order of Tab.
            bar.setFocusPolicy(Qt.FocusPolicy.TabFocus if bar.count() > 1 else NO_FOCUS)
        self.rearranged.emit()

    def childEvent(self, event: QChildEvent) -> None:
        """Set up the tab bars, which Qt makes where docks lie on top of each other."""
        super().childEvent(event)
        bar = event.child()
        if event.type() == QEvent.Type.ChildPolished and isinstance(bar, QTabBar):
            bar.setExpanding(False)
            bar.setDrawBase(False)
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)
            describe(bar, self.tr("Views in one place"))
            bar.tabBarDoubleClicked.connect(lambda n: self._tab_double_clicked(bar.tabText(n)))

    def createPopupMenu(self) -> QMenu:
        """What a right click on a title offers, in place of Qt's own list of docks."""
        menu = new_menu(self.tr("Views"), self)
        menu.addActions(list(self.offered))
        return menu
