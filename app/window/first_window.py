"""What of the main window is there at its first painting: its place, its bars and the outlines of the desk.

Nothing here loads the parts of the window, which take twice as long to import as Qt itself.
"""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QByteArray, QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractSpinBox, QFrame, QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from app.layout import NONE, lay_out, named
from app.model.recent import Memory
from app.style.plain_text import ENTER, set_title
from app.views import VIEWS
from app.window import layouts
from app.window.layouts import EXPLORE

GAP = 8  # Pixels between cards; these gaps are also the handles that resize them
FORM_SHARE, FORM_BOUNDS = 0.166, (258, 340)  # Of the width that the form takes, within the bounds
MARGIN = 10  # Pixels around the columns
TRANSPORT = 102  # Pixels that the transport is high
BARS = {"menus": 23, "top-bar": 58, "status-line": 28}  # Heights, pixels


def form_width(width: int) -> int:
    """Width of the form in a desk of `width` pixels, until the user resizes it."""
    return round(min(max(width * FORM_SHARE, FORM_BOUNDS[0]), FORM_BOUNDS[1]))


class Skeleton(QWidget):
    """The outlines of the desk: form, views as in the layout that the program begins with, and transport."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("desk")
        columns = [
            lay_out(QVBoxLayout(), *((_frame("card"), row.share) for row in column), spacing=GAP)
            for column in layouts.columns(EXPLORE, VIEWS)
        ]
        views = lay_out(QHBoxLayout(), *zip(columns, layouts.WIDTHS[EXPLORE], strict=False), spacing=GAP)
        self._form, transport = _frame("card"), _frame("card")
        transport.setFixedHeight(TRANSPORT)
        right = lay_out(QVBoxLayout(), (views, 1), transport, spacing=GAP)
        margins = (MARGIN, MARGIN, MARGIN, MARGIN)
        lay_out(QHBoxLayout(self), self._form, (right, 1), spacing=GAP, margins=margins)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._form.setFixedWidth(form_width(self.width()))


class FirstPicture(QWidget):
    """The window before anything in it is made: its bars, and the outlines of the desk where that is to follow."""

    def __init__(self, desk: bool) -> None:
        super().__init__()
        self.setObjectName("desk")
        menus, top, status = (_frame("bar", name) for name in BARS)
        page = Skeleton() if desk else QWidget()
        lay_out(QVBoxLayout(self), menus, top, (page, 1), status, spacing=0, margins=NONE)


def _frame(kind: str, name: str = "") -> QFrame:
    """A card, or the bar of a name, as the style sheet draws them."""
    frame = named(QFrame(), name)
    frame.setProperty(kind, True)
    if name:
        frame.setFixedHeight(BARS[name])
    return frame


MINIMUM: Final = QSize(1000, 640)
FIRST_SIZE: Final = QSize(1600, 1000)

TITLE_BAR: Final = 32  # Pixels of the window manager's title bar, known only once the window is shown
UNSEEN_MS: Final = 1000  # A window that nobody can see (minimised, covered) is not painted: it goes on after this time


def place(window: QMainWindow, remembered: QByteArray | None) -> None:
    """Give the window its place and its least size; call it before the window is shown."""
    restored = remembered is not None and window.restoreGeometry(remembered)
    wanted = window.geometry()
    screen = QGuiApplication.screenAt(wanted.center()) if restored else None
    available = (screen or QGuiApplication.primaryScreen()).availableGeometry()
    room = available.adjusted(0, TITLE_BAR, 0, 0)
    window.setMinimumSize(MINIMUM.boundedTo(room.size()))
    if restored and (window.isMaximized() or window.isFullScreen()):
        return
    if not restored:
        wanted = QRect(QPoint(0, 0), FIRST_SIZE.boundedTo(room.size()))
        wanted.moveCenter(room.center())
    window.setGeometry(fitted(wanted, room))


def fitted(wanted: QRect, room: QRect) -> QRect:
    """Return `wanted` made no larger than `room` and moved into it as little as necessary."""
    size = wanted.size().boundedTo(room.size())
    x = min(max(wanted.x(), room.x()), room.x() + room.width() - size.width())
    y = min(max(wanted.y(), room.y()), room.y() + room.height() - size.height())
    return QRect(QPoint(x, y), size)


class AfterFirstPaint(QObject):
    """Calls once, as soon as `widget` has been painted for the first time and its picture is on the screen."""

    def __init__(self, widget: QWidget, call: Callable[[], object]) -> None:
        super().__init__(widget)
        self._widget, self._call = widget, call
        self._waiting = True
        widget.installEventFilter(self)
        QTimer.singleShot(UNSEEN_MS, self, self._go)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and self._waiting:
            QTimer.singleShot(0, self, self._go)
        return super().eventFilter(watched, event)

    def _go(self) -> None:
        if self._waiting:
            self._waiting = False
            self._widget.removeEventFilter(self)
            self._call()


class FirstWindow(QMainWindow):
    """A window at its place; `complete` makes what is in it."""

    def __init__(self, memory: Memory | None = None) -> None:
        super().__init__()
        self.setObjectName("main-window")
        set_title(self, "asrscope")
        self.memory = memory or Memory()
        self.is_complete = False
        self._left: QWidget | None = None
        place(self, self.memory.state("geometry"))

    def show_first(self, desk: bool) -> FirstPicture:
        """Show the bars, and the outlines of the desk where it is to follow."""
        picture = FirstPicture(desk)
        self.setCentralWidget(picture)
        self.show()
        return picture

    def complete(self) -> None:
        self.setAcceptDrops(True)
        self.is_complete = True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Escape leave a number: a comma or a point would go on being part of it, and is a command here."""
        field = self.focusWidget()
        if event.key() in (*ENTER, Qt.Key.Key_Escape) and isinstance(field, QAbstractSpinBox):
            self._left = field
            self.setFocus()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus by Tab, from a number that was left as if it still had it."""
        left, self._left = self._left, None
        if left is not None and self.focusWidget() is self and left.isVisible():
            left.setFocus()
        return super().focusNextPrevChild(forward)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
