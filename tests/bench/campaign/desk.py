"""A session in the real window, offscreen, by a clumsy hand: every view shown, scrubbed, hovered, clicked, pictured.

`look_at` raises whatever any slot or event handler raised meanwhile; that it ends, and in how much memory, is for
the caller to watch (the campaign's driver calls it in a process of its own).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import shiboken6
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.application import application
from app.model.recent import Memory
from app.pictures.request import PictureRequest
from app.pictures.session import SessionPictures
from app.pictures.writers import SUFFIXES
from app.style.theme import set_theme
from app.views import PICTURES, VIEWS
from app.views.chart import ChartView
from app.views.view import View
from app.window.main_window import MainWindow

GRID: Final = (7, 5)
"""Points across and down that the mouse visits in every drawing."""

SEEKS: Final = 5
LONGEST_SENTENCE: Final = 1000

_NONE = Qt.MouseButton.NoButton
_LEFT = Qt.MouseButton.LeftButton


def look_at(path: Path, own: bool = False) -> str | None:
    """Open the session at `path` and use everything; the sentence of the notice where it is refused, else None.

    `own`: in a window that remembers what the user's own does, and only open it. Raises AssertionError with the traces
    of what no code caught, or when a refusal is no clear sentence.
    """
    with desk(own) as window:
        if not own:
            return use(window, path)
        opened = window.open_session(path)
        _settle(application())
        return None if opened else _refused(window)


@contextmanager
def desk(own: bool = False) -> Iterator[MainWindow]:
    """Show a window that remembers nothing, unless it is the user's own, and close it again."""
    qt = application()
    set_theme("dark")
    with tempfile.TemporaryDirectory() as name, slots_watched():
        window = MainWindow(memory=Memory() if own else Memory(Path(name) / "settings.ini"))
        try:
            window.show()
            yield window
        finally:
            window.close()
            window.deleteLater()
            qt.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            _settle(qt)


def use(window: MainWindow, path: Path) -> str | None:
    """Do as `look_at` says in a window that is there."""
    qt = application()
    window.notices.clear()
    with tempfile.TemporaryDirectory() as name, slots_watched():
        opened = window.open_session(path)
        _settle(qt)
        if not opened:
            return _refused(window)
        _views(qt, window)
        _transport(qt, window)
        _mouse(qt, window)
        _pictures(path, Path(name))
        window.refresh()
        window.open_palette()
        _settle(qt)
        window.show_welcome()
        _settle(qt)
    return None


@contextmanager
def slots_watched() -> Iterator[None]:
    """Raise AssertionError at the end for exceptions that Qt's event handling swallowed."""
    traces: list[str] = []

    def note(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        traces.append("".join(traceback.format_exception(kind, value, trace)))

    before, sys.excepthook = sys.excepthook, note
    try:
        yield
    finally:
        sys.excepthook = before
    assert not traces, f"{len(traces)} exceptions in slots, the first:\n{traces[0]}"


def _refused(window: MainWindow) -> str:
    errors = [banner.text for banner in window.notices.banners if banner.kind == "error"]
    assert len(errors) == 1, f"{len(errors)} notices for a session that does not open"
    assert errors[0].isprintable(), ascii(errors[0])
    assert len(errors[0]) <= LONGEST_SENTENCE, f"a sentence of {len(errors[0])} characters"
    return errors[0]


def _settle(qt: QApplication, seconds: float = 0.0) -> None:
    """Serve layouts, paintings and single-shot timers."""
    until = time.monotonic() + seconds
    while True:
        for _ in range(3):
            qt.sendPostedEvents()
            qt.processEvents()
        if time.monotonic() >= until:
            return
        time.sleep(0.01)


def _views(qt: QApplication, window: MainWindow) -> None:
    desk = window.desk
    for view_id in VIEWS:
        desk.docks.open(view_id, False)
        desk.docks.open(view_id)
        _settle(qt)
        view = desk.views[view_id]
        view.settle()
        for shown in (True, False):
            view.show_table(shown)
            _settle(qt)
        view.model()
        view.summary()
    window.resize(window.minimumSize())
    _settle(qt)


def _transport(qt: QApplication, window: MainWindow) -> None:
    playhead, axis = window.playhead, window.axis
    frames = playhead.n_frames
    for number in range(SEEKS):
        playhead.seek(number * frames / (SEEKS - 1))
        _settle(qt)
    for direction in (-1, -1, 1):
        playhead.step(direction)
    for first, last in ((0.0, 0.5), (0.25, 0.26), (1.0, 1.0)):
        axis.select(first * axis.end, last * axis.end)
        _settle(qt)
    axis.zoom(1e-3)
    axis.pan(0.5)
    _settle(qt)
    axis.fit()
    axis.clear()
    playhead.seek(0)
    playhead.toggle()
    _settle(qt, 0.1)
    playhead.go_live()
    _settle(qt)


def _mouse(qt: QApplication, window: MainWindow) -> None:
    for view in map(window.desk.views.__getitem__, VIEWS):
        for widget in _drawings(view):
            _visit(widget)
            _settle(qt)
    _visit(window.desk.transport.bar, (5, 1))
    for widget in window.findChildren(QWidget):
        # The label that showed the tip before is among them, and goes with the next one.
        if shiboken6.isValid(widget) and widget.isVisible() and widget.toolTip():
            _tip(widget, widget.rect().center())
    _settle(qt)


def _drawings(view: View) -> list[QWidget]:
    """What is painted by hand in a view and answers the mouse."""
    if isinstance(view, ChartView):
        return [view.plot.viewport()]
    return [
        child
        for child in view.findChildren(QWidget)
        if type(child).__module__.startswith("app.views") and not isinstance(child, QAbstractButton)
    ]


def _visit(widget: QWidget, grid: tuple[int, int] = GRID) -> None:
    """Hover, ask for the tip, click, double-click, drag and turn the wheel all over a widget."""
    across, down = grid
    for row in range(down):
        for column in range(across):
            at = QPoint(round((column + 0.5) / across * widget.width()), round((row + 0.5) / down * widget.height()))
            _send(widget, QEvent.Type.MouseMove, at, _NONE, _NONE)
            _tip(widget, at)
            _send(widget, QEvent.Type.MouseButtonPress, at, _LEFT, _LEFT)
            _send(widget, QEvent.Type.MouseMove, at + QPoint(25, 0), _NONE, _LEFT)
            _send(widget, QEvent.Type.MouseButtonRelease, at + QPoint(25, 0), _LEFT, _NONE)
        _wheel(widget, at, 120 if row % 2 else -120)
    _send(widget, QEvent.Type.MouseButtonDblClick, at, _LEFT, _LEFT)
    _send(widget, QEvent.Type.MouseButtonRelease, at, _LEFT, _NONE)


def _send(widget: QWidget, kind: QEvent.Type, at: QPoint, button: Qt.MouseButton, held: Qt.MouseButton) -> None:
    place = QPointF(at)
    everywhere = QPointF(widget.mapToGlobal(at))
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QMouseEvent(kind, place, everywhere, button, held, none))


def _tip(widget: QWidget, at: QPoint) -> None:
    event = QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at))
    QApplication.sendEvent(widget, event)


def _wheel(widget: QWidget, at: QPoint, angle: int) -> None:
    control, phase = Qt.KeyboardModifier.ControlModifier, Qt.ScrollPhase.NoScrollPhase
    place, everywhere = QPointF(at), QPointF(widget.mapToGlobal(at))
    turned = QWheelEvent(place, everywhere, QPoint(), QPoint(0, angle), _NONE, control, phase, False)
    QApplication.sendEvent(widget, turned)


def _pictures(path: Path, folder: Path) -> None:
    """One picture of all views, one of each view, in every kind of file."""
    pictures = SessionPictures(path)
    try:
        for number, views in enumerate([(), *((name,) for name in PICTURES)]):
            target = folder / f"picture{SUFFIXES[number % len(SUFFIXES)]}"
            pictures.write(PictureRequest(views, scale=1.0), target)
            assert target.stat().st_size > 0
    finally:
        pictures.close()
