"""The real window for the parts of `bench desk`, and what they watch: paintings, gaps of the event loop, cursors."""

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

GAP_S: Final = 0.05  # a longer stretch in which the event loop does not come round is felt
LOOK_MS: Final = 10
SETTLE_S: Final = 5.0
READY_S: Final = 120.0
SIZE: Final = (1600, 1000)
SHOWN_S: Final = 0.2  # until the docks know which of them are in sight
IN_SIGHT: Final = ("cost", "timeline", "words")  # charts that the default layout shows


class Paintings(QObject):
    """Which of some widgets were painted, by their numbers."""

    def __init__(self, widgets: Sequence[QWidget]) -> None:
        super().__init__()
        self.painted: set[int] = set()
        for number, widget in enumerate(widgets):
            widget.setProperty("bench", number)
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.painted.add(int(watched.property("bench")))
        return False


class Loop(QObject):
    """Looks every 10 ms whether the event loop comes round; a gap with the processor time of this thread in it."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[tuple[float, float]] = []
        self._last = (time.monotonic(), time.thread_time())
        self.timer = QTimer(self)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self._look)
        self.timer.start(LOOK_MS)

    def _look(self) -> None:
        now = (time.monotonic(), time.thread_time())
        if now[0] - self._last[0] > GAP_S:
            self.gaps.append((now[0] - self._last[0], now[1] - self._last[1]))
        self._last = now


class Updates(QObject):
    """When the cost chart was painted at another cursor, and at which frame."""

    def __init__(self, window: Any) -> None:
        super().__init__()
        self._playhead = window.playhead
        self.cursors: list[tuple[float, int]] = []
        charts(window)[0].installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        frame = self._playhead.cursor_frame
        if event.type() == QEvent.Type.Paint and (not self.cursors or self.cursors[-1][1] != frame):
            self.cursors.append((time.monotonic(), frame))
        return False


def qt() -> Any:
    """The application, which is there by now."""
    return QApplication.instance()


def until(ready: Callable[[], bool], seconds: float) -> None:
    """Serve events until `ready()`; TimeoutError after `seconds`."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"not ready after {seconds:g} s")
        qt().processEvents()
        time.sleep(0.001)


def serve(seconds: float) -> None:
    """Run the event loop for a while, as the application does."""
    app = qt()
    # Not `quit`, which closes the windows first.
    QTimer.singleShot(round(1000 * seconds), lambda: app.exit(0))
    app.exec()


def window_shown() -> Any:
    """The window at its first size."""
    from app.application import application
    from app.style.theme import set_theme
    from app.window.main_window import MainWindow

    if not application().styleSheet():
        set_theme("dark")
    window = MainWindow()
    window.show()
    window.resize(*SIZE)  # the screen of the platform `offscreen` is smaller
    return window


def desk_shown() -> Any:
    """The window with the desk in the layout that a new user has; RuntimeError where its charts are not in sight."""
    from app.gui import freeze_objects

    window = window_shown()
    window.show_desk()
    serve(SHOWN_S)
    if missing := set(IN_SIGHT) - set(seen := window.desk.docks.in_front()):
        raise RuntimeError(f"the default layout does not show {', '.join(missing)}, only {', '.join(seen)}")
    freeze_objects()  # as the application does at its start
    return window


def window_live() -> Any:
    """The window with the demo under way, in the default layout."""
    window = desk_shown()
    window.runs.demo("demo")
    until(lambda: window.playhead.live and window.playhead.n_frames > 0, READY_S)
    serve(SETTLE_S)
    return window


def chart_views(window: Any) -> list[Any]:
    """The views over time that are in sight: one behind another is not painted."""
    from app.views.chart import ChartView

    front = (window.desk.views[view_id] for view_id in window.desk.docks.in_front())
    return [view for view in front if isinstance(view, ChartView)]


def charts(window: Any) -> list[QWidget]:
    return [view.plot.viewport() for view in chart_views(window)]


def peak_bytes() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # getrusage counts what the parent had when it forked; this does not.
    return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
