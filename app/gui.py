"""The way into the window: makes the application, catches what goes wrong, shows the first page.

Imports Qt, pyqtgraph and numpy, and of the floors below only what is light; the recogniser lives in
the worker process.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO

from PySide6.QtCore import QObject, QStandardPaths, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication

from app.main_window import MainWindow
from app.recent import APPLICATION, ORGANISATION
from app.run_control import WORKER
from app.theme import set_theme

CRASH_LOG = "crash.log"


def application() -> QApplication:
    """Return the application, made on first use with name, font and theme."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    made = QApplication(sys.argv[:1])
    made.setOrganizationName(ORGANISATION)
    made.setApplicationName(APPLICATION)
    made.setApplicationDisplayName("asrscope")
    return made


def log_folder() -> Path:
    """Return the folder of the crash log."""
    where = QStandardPaths.StandardLocation.AppDataLocation
    return Path(QStandardPaths.writableLocation(where))


class _Faults(QObject):
    """Carries an exception from any thread to the window."""

    happened = Signal(str, str)


@contextmanager
def caught(window: MainWindow) -> Iterator[None]:
    """While the window is open, show what no code caught as a notice with a report to copy."""
    faults = _Faults()
    queued = Qt.ConnectionType.QueuedConnection
    faults.happened.connect(window.notices.error, queued)

    def tell(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        report = "".join(traceback.format_exception(kind, value, trace))
        sys.stderr.write(report)
        if not issubclass(kind, KeyboardInterrupt):
            text = window.tr("A fault of the program: {0}. The session file is not affected.")
            faults.happened.emit(text.format(f"{kind.__name__}: {value}"), report)

    def tell_of_thread(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_value is not None:
            tell(fault.exc_type, fault.exc_value, fault.exc_traceback)

    before, before_thread = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = tell, tell_of_thread
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook = before, before_thread


@contextmanager
def crash_log() -> Iterator[IO[str] | None]:
    """Let the interpreter write a native crash's stacks into the log folder."""
    try:
        folder = log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        log = (folder / CRASH_LOG).open("a", encoding="utf-8")
    except OSError:
        yield None
        return
    was_enabled = faulthandler.is_enabled()
    with log:
        faulthandler.enable(log)
        try:
            yield log
        finally:
            faulthandler.disable()
            if was_enabled:
                faulthandler.enable()


def open_window(
    session_path: str | os.PathLike[str] | None, demo: bool, worker: Sequence[str] = WORKER
) -> int:
    """Show the window until it is closed: on a session, on the demo, or where one left off."""
    app = application()
    window = MainWindow(worker)
    set_theme(window.memory.text("theme", "system"))
    with crash_log(), caught(window):
        window.show()
        # After the first paint: reading a long session must not keep the window from appearing.
        QTimer.singleShot(0, window, lambda: _first_page(window, session_path, demo))
        return int(app.exec())


def _first_page(
    window: MainWindow, session_path: str | os.PathLike[str] | None, demo: bool
) -> None:
    if session_path is not None:
        window.open_session(Path(session_path))
    elif demo:
        window.show_desk()
        window.runs.demo()
    else:
        last = window.memory.sessions()[:1]
        if not (last and window.open_session(last[0])):
            _ = window.desk  # made while the person reads the welcome page
