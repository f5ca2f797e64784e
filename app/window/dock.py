"""A view in a dock: its header is the title, and it sleeps while nobody sees it."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractButton, QDockWidget, QFrame, QHBoxLayout, QWidget

from app.layout import lay_out, named
from app.style.icons import ButtonIcon
from app.style.plain_text import Elided, Label, ToolButton, describe, set_tip, set_title
from app.style.stylesheet import restyle
from app.views.view import View

LEAST: Final = QSize(220, 130)  # Most views need at least this
NO_FOCUS: Final = Qt.FocusPolicy.NoFocus
Align = Qt.AlignmentFlag


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
        around.setContentsMargins(14, 2, 14, 8)
        self.float_button = self._button("float", self.tr("Float {0}"), self.tr("Float, or dock again"))
        self.close_button = self._button("close", self.tr("Close {0}"), self.tr("Close; the menu View has it"))
        view.header.addLayout(lay_out(QHBoxLayout(), self.float_button, self.close_button, spacing=0))
        view.header.setParent(None)
        view.header.setContentsMargins(14, 5, 7, 3)
        self.setLayout(view.header)
        self._note = self.findChild(Elided, "card-note")

    def _button(self, shape: str, name: str, tip: str) -> ToolButton:
        button = named(ToolButton(), "dock-button")
        button.setIconSize(QSize(13, 13))
        # As Qt's own: the actions Float and Close have keys or stand in a menu, and Tab has a long way without them.
        button.setFocusPolicy(NO_FOCUS)
        describe(button, name.format(self._name))
        set_tip(button, tip)
        ButtonIcon(button, shape, "muted", "border")
        return button

    def show_tabbed(self, tabbed: bool) -> None:
        if (label := self.findChild(Label, "card-title")) is not None:
            label.setVisible(not tabbed)
        if self._note is not None:
            self._note.setAlignment(Align.AlignVCenter | (Align.AlignLeft if tabbed else Align.AlignRight))
        if self.property("tabbed") != tabbed:
            self.setProperty("tabbed", tabbed)
            restyle(self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
        event.ignore()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.double_clicked.emit()
            event.accept()


class ViewDock(QDockWidget):
    """A view in a dock, made when it is first seen (or called up), and asleep while nobody sees it."""

    woken = Signal(View)  # It came to the front: its view is to be updated
    made = Signal()
    double_clicked = Signal()

    def __init__(self, view_id: str, title: str, make: Callable[[str], View], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(f"dock-{view_id}")
        set_title(self, title)
        describe(self, title)
        self._id, self._make = view_id, make
        self._view: View | None = None
        # Until there is a view: Qt would draw a title of its own, and give no room to a dock with nothing in it.
        self.setTitleBarWidget(QWidget(self))
        self.setWidget(QWidget(self, minimumSize=LEAST))
        self.visibilityChanged.connect(self._seen)

    @property
    def asleep(self) -> bool:
        return self._view is None or self._view.asleep

    @property
    def view(self) -> View:
        if self._view is None:
            self._view = view = self._make(self._id)
            view.setProperty("card", "docked")
            view.asleep = True
            view.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            title = DockTitle(view)
            title.pressed.connect(self.give_keys)
            title.double_clicked.connect(self.double_clicked)
            title.close_button.clicked.connect(lambda _=False: self.close())
            title.float_button.clicked.connect(lambda _=False: self.float_or_dock())
            for empty in (self.titleBarWidget(), self.widget()):
                empty.deleteLater()
            self.setTitleBarWidget(title)
            self.setWidget(view)
            for part in (title, view):
                policy = part.sizePolicy()
                policy.setRetainSizeWhenHidden(True)
                part.setSizePolicy(policy)
                part.hide()
            self.made.emit()
        return self._view

    @property
    def tab_stops(self) -> list[QWidget]:
        inside = (child for child in self.findChildren(QWidget) if child.window() is self.window())
        return [child for child in inside if child.focusPolicy() & Qt.FocusPolicy.TabFocus]

    @property
    def title(self) -> DockTitle:
        title = self.view.header.parentWidget()
        assert isinstance(title, DockTitle)
        return title

    def float_or_dock(self) -> None:
        self.setFloating(not self.isFloating())
        self.raise_()

    def give_keys(self) -> None:
        usable = (child for child in self.view.findChildren(QWidget) if child.isVisible() and child.isEnabled())
        inside = [one for one in usable if one.focusPolicy() != NO_FOCUS and not isinstance(one, QAbstractButton)]
        self.activateWindow()
        (inside or [self.view])[0].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _seen(self, seen: bool) -> None:
        # Qt says that it is seen also on a page that is not shown, and that it is not at the left of the first screen.
        seen = self.isVisible() and (seen or self.isFloating())
        if self._view is None and not seen:
            return
        slept, self.view.asleep = self.view.asleep, not seen
        # For Qt a dock behind another is visible, out of sight: Tab would go there.
        for part in (self.title, self.view):
            part.setVisible(seen)
        if seen and slept:
            self.woken.emit(self.view)
