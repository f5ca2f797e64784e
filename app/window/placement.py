"""Where the window opens: at its remembered place, or else as large as is useful, and always within the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QByteArray, QEvent, QObject, QPoint, QRect, QSize, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow, QWidget

MINIMUM: Final = QSize(1000, 640)
FIRST_SIZE: Final = QSize(1600, 1000)

TITLE_BAR: Final = 32
"""Pixels that the window manager's title bar takes of the screen; how many is known only once the window is shown."""

UNSEEN_MS: Final = 1000
"""A window that nobody can see (minimised, covered) is not painted: it goes on after this time."""


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
        """Painting is over, and the picture shown, when the event loop comes round again."""
        if event.type() == QEvent.Type.Paint and self._waiting:
            QTimer.singleShot(0, self, self._go)
        return super().eventFilter(watched, event)

    def _go(self) -> None:
        if self._waiting:
            self._waiting = False
            self._widget.removeEventFilter(self)
            self._call()
