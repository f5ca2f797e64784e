"""Entry point of the window: creates the application, catches errors, shows the first page; light of imports."""

import contextlib
import faulthandler
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from PySide6.QtCore import QObject, QSocketNotifier, QStandardPaths, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication

from app.application import application, in_sentences
from app.model.recent import Memory
from app.style.theme import SYSTEM, THEMES, set_theme
from app.window.first_window import AfterFirstPaint
from app.window.main_window import MainWindow
from app.window.notices import Notices

MAX_LOG_BYTES = 1 << 20  # A log longer than this is restarted
RARELY = 1000  # Looks at the younger objects per look at all of them: an hour of a live run has about as many
CLEAN_UP_MS = 2000  # After a session was closed: when the one that took its place has been drawn
MAX_FAULTS = 50  # Maximum number of distinct faults that are reported


class _Faults(QObject):
    """Passes uncaught exceptions of any thread to the window, once per place in the program."""

    happened = Signal(str, str)  # a sentence and a report
    qt_message = Signal(str)  # a sentence of Qt's

    def __init__(self, log: IO[str] | None = None) -> None:
        super().__init__()
        self._log = log
        self._known: set[tuple[str, str]] = set()

    def tell(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        """Write the trace to standard error and the log, and pass a sentence to the window."""
        import traceback

        from app import crash_report
        from profiler.plain import one_line, printable

        last = traceback.extract_tb(trace)[-1:]
        place = (kind.__name__, f"{last[0].filename}:{last[0].lineno}" if last else "")
        if place in self._known or len(self._known) >= MAX_FAULTS:
            return
        # Noted first: if reporting itself fails, that is also reported only once.
        self._known.add(place)
        details = "".join(traceback.format_exception(kind, value, trace))
        for stream in (sys.stderr, self._log):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or not there
                stream.write(printable(details, keep="\n"))  # type: ignore[union-attr]
                stream.flush()  # type: ignore[union-attr]
        if issubclass(kind, KeyboardInterrupt):
            return
        text = self.tr("A fault of the program: {0}. The session file is not affected.")
        sentence = text.format(one_line(f"{kind.__name__}: {value}"))
        if self._log is not None:
            sentence += " " + self.tr("Details: {0}").format(self._log.name)
        self.happened.emit(sentence, crash_report.compose(sentence, details=details))


@contextmanager
def caught(notices: Notices, log: IO[str] | None = None) -> Iterator[None]:
    """While the window is open, show uncaught exceptions and what Qt says to users as notices; traces go to `log`."""
    faults = _Faults(log)
    faults.happened.connect(notices.error, Qt.ConnectionType.QueuedConnection)
    faults.qt_message.connect(notices.info, Qt.ConnectionType.QueuedConnection)

    def tell_of_thread(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_value is not None:
            faults.tell(fault.exc_type, fault.exc_value, fault.exc_traceback)

    before, before_thread = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = faults.tell, tell_of_thread
    try:
        with in_sentences(faults.qt_message.emit):
            yield
    finally:
        sys.excepthook, threading.excepthook = before, before_thread


@contextmanager
def closed_by_signals(window: MainWindow) -> Iterator[None]:
    """While the window is open, a terminating signal closes it: what it writes into a socket wakes Qt if it is idle."""
    import socket

    reading, writing = socket.socketpair()
    handled: dict[int, Any] = {}
    notifier = QSocketNotifier(reading.fileno(), QSocketNotifier.Type.Read, window)

    def close() -> None:
        notifier.setEnabled(False)
        window.close()
        QApplication.quit()

    notifier.activated.connect(close)
    writing.setblocking(False)
    woken = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            number = getattr(signal, name, None)
            # If ignored from the start (nohup), it stays ignored.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                handled[number] = signal.signal(number, lambda *_: None)
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        notifier.setEnabled(False)
        notifier.deleteLater()
        reading.close()
        writing.close()


@contextmanager
def crash_log() -> Iterator[IO[str] | None]:
    """Let the interpreter write the stacks of a native crash to the log folder."""
    from profiler.files.inputs import regular

    try:
        folder = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.AppDataLocation))
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "crash.log"
        grown = regular(place) and place.stat().st_size > MAX_LOG_BYTES
        log = place.open("w" if grown else "a", encoding="utf-8")
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


def open_window(session_path: str | os.PathLike[str] | None, demo: bool, worker: Sequence[str] | None = None) -> int:
    """Show the window until it is closed: on a session, on the demo, or in its last state."""
    app = application()
    memory = Memory()
    # Before there is a widget: what Qt gave its own font or style first would keep it until the theme changes.
    set_theme(memory.text("theme", SYSTEM, known=(SYSTEM, *THEMES)))
    window = MainWindow(worker, memory, bare=True)
    with ExitStack() as until_closed:

        def complete() -> None:
            if window.isHidden():  # closed already
                return
            try:
                window.complete()
            except BaseException:  # whatever it was, Qt would go on without a window
                app.exit(1)
                raise
            log = until_closed.enter_context(crash_log())
            until_closed.enter_context(caught(window.notices, log))
            until_closed.enter_context(closed_by_signals(window))
            if session_path is not None or demo or memory.sessions():
                window.pages.setCurrentWidget(window.skeleton)
            clean_up = QTimer(window, singleShot=True, interval=CLEAN_UP_MS)
            clean_up.timeout.connect(gc.collect)
            window.playhead.closed.connect(clean_up.start)
            # Again after a painting: loading charts and reading a session take as long as all of this.
            AfterFirstPaint(window.top, lambda: _first_page(window, session_path, demo))

        desk = session_path is not None or demo or bool(memory.texts("recent"))
        AfterFirstPaint(window.show_first(desk), complete)
        return int(app.exec())


def _first_page(window: MainWindow, session_path: str | os.PathLike[str] | None, demo: bool) -> None:
    if session_path is not None:
        window.open_session(Path(session_path))
    elif demo:
        window.show_desk()
        window.runs.demo()
    else:
        last = window.memory.sessions()[:1]
        if not (last and window.open_session(last[0])):
            window.show_welcome()
            _ = window.desk  # made while the person reads the welcome page
    freeze_objects()


def freeze_objects() -> None:
    """Exclude existing objects from garbage collection, and look through all newer ones only `RARELY`."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, RARELY)
