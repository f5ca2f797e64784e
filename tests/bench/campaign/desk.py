"""A session in the real window, offscreen, by a clumsy hand: every view shown, scrubbed, hovered, clicked, pictured.

`look_at` raises whatever any slot or event handler raised meanwhile; that it ends, and in how much memory, is for
the caller to watch (the campaign's driver calls it in a process of its own).
"""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final
from unittest import mock

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import shiboken6
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.application import application
from app.model.recent import Memory
from app.pictures.request import PictureRequest
from app.pictures.session import SessionPictures
from app.pictures.writers import SUFFIXES
from app.style.theme import set_theme
from app.views import PICTURES, VIEWS
from app.views.chart import ChartView
from app.window.main_window import MainWindow

GRID: Final = (7, 5)  # points across and down that the mouse visits in every drawing
LONGEST_SENTENCE: Final = 1000
_LEFT = Qt.MouseButton.LeftButton


def look_at(path: Path, own: bool = False) -> str | None:
    """Open the session at `path` and use everything; the sentence of the notice where it is refused, else None. `own`:
    in a window that remembers what the user's own does, and only open it. Raises AssertionError with the traces of what
    no code caught, or when a refusal is no clear sentence."""
    with desk(own) as window, tempfile.TemporaryDirectory() as folder:
        window.notices.clear()
        opened = window.open_session(path)
        _settle()
        if not opened:
            errors = [banner.text for banner in window.notices.banners if banner.kind == "error"]
            assert len(errors) == 1, f"{len(errors)} notices for a session that does not open"
            assert errors[0].isprintable(), ascii(errors[0])
            assert len(errors[0]) <= LONGEST_SENTENCE, f"a sentence of {len(errors[0])} characters"
            return errors[0]
        if not own:
            for use in (_views, _transport, _mouse):
                use(window)
            _pictures(path, Path(folder))
            for last in (window.refresh, window.open_palette, window.show_welcome):
                last()
                _settle()
    return None


@contextmanager
def desk(own: bool = False) -> Iterator[MainWindow]:
    """Show a window that remembers nothing, unless it is the user's own, and close it again. Raises AssertionError at
    the end for exceptions that Qt's event handling swallowed."""
    qt, traces = application(), []
    set_theme("dark")
    caught = mock.patch.object(
        sys, "excepthook", lambda *error: traces.append("".join(traceback.format_exception(*error)))
    )
    with tempfile.TemporaryDirectory() as name, caught:
        window = MainWindow(memory=Memory() if own else Memory(Path(name) / "settings.ini"))
        try:
            window.show()
            yield window
        finally:
            window.close()
            window.deleteLater()
            qt.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            _settle()
    assert not traces, f"{len(traces)} exceptions in slots, the first:\n{traces[0]}"


def _settle(seconds: float = 0.0) -> None:
    until = time.monotonic() + seconds
    while True:
        for _ in range(3):
            QApplication.sendPostedEvents()
            QApplication.processEvents()
        if time.monotonic() >= until:
            return
        time.sleep(0.01)


def _views(window: MainWindow) -> None:
    desk = window.desk
    for view_id in VIEWS:
        desk.docks.open(view_id, False)
        desk.docks.open(view_id)
        _settle()
        view = desk.views[view_id]
        view.settle()
        for shown in (True, False):
            view.show_table(shown)
            _settle()
        view.model()
        view.summary()
    window.resize(window.minimumSize())
    _settle()


def _transport(window: MainWindow) -> None:
    playhead, axis = window.playhead, window.axis
    steps: list[Callable[[], object]] = [
        *(partial(playhead.seek, share * playhead.n_frames) for share in (0.0, 0.5, 1.0)),
        *(partial(playhead.step, direction) for direction in (-1, -1, 1)),
        *(partial(axis.select, a * axis.end, b * axis.end) for a, b in ((0.0, 0.5), (0.25, 0.26), (1.0, 1.0))),
        *(partial(axis.zoom, 1e-3), partial(axis.pan, 0.5), axis.fit, axis.clear, partial(playhead.seek, 0)),
        *(playhead.toggle, partial(_settle, 0.1), playhead.go_live),
    ]
    for step in steps:
        step()
        _settle()


def _mouse(window: MainWindow) -> None:
    for view in map(window.desk.views.__getitem__, VIEWS):
        # What is painted by hand in a view and answers the mouse.
        children = (child for child in view.findChildren(QWidget) if not isinstance(child, QAbstractButton))
        drawn = [child for child in children if type(child).__module__.startswith("app.views")]
        for widget in [view.plot.viewport()] if isinstance(view, ChartView) else drawn:
            _visit(widget)
            _settle()
    _visit(window.desk.transport.bar, (5, 1))
    for widget in window.findChildren(QWidget):
        # The label that showed the tip before is among them, and goes with the next one.
        if shiboken6.isValid(widget) and widget.isVisible() and widget.toolTip():
            _tip(widget, widget.rect().center())
    _settle()


def _visit(widget: QWidget, grid: tuple[int, int] = GRID) -> None:
    """Hover, ask for the tip, click, double-click, drag and turn the wheel all over a widget."""
    across, down = grid
    for row, column in product(range(down), range(across)):
        at = QPoint(round((column + 0.5) / across * widget.width()), round((row + 0.5) / down * widget.height()))
        QTest.mouseMove(widget, at)
        _tip(widget, at)
        QTest.mousePress(widget, _LEFT, pos=at)
        QTest.mouseMove(widget, at + QPoint(25, 0))
        QTest.mouseRelease(widget, _LEFT, pos=at + QPoint(25, 0))
        if column == across - 1:
            angle, phase = QPoint(0, 120 if row % 2 else -120), Qt.ScrollPhase.NoScrollPhase
            held = Qt.MouseButton.NoButton, Qt.KeyboardModifier.ControlModifier
            where = QPointF(at), QPointF(widget.mapToGlobal(at))
            QApplication.sendEvent(widget, QWheelEvent(*where, QPoint(), angle, *held, phase, False))
    QTest.mouseDClick(widget, _LEFT, pos=at)


def _tip(widget: QWidget, at: QPoint) -> None:
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at)))


def _pictures(path: Path, folder: Path) -> None:
    with closing(SessionPictures(path)) as pictures:
        for number, views in enumerate([(), *((name,) for name in PICTURES)]):
            target = folder / f"picture{SUFFIXES[number % len(SUFFIXES)]}"
            pictures.write(PictureRequest(views, scale=1.0), target)
            assert target.stat().st_size > 0
