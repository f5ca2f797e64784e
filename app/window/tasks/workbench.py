"""How tasks begin, what they need of the window (a session, a machine at rest), and the strip of those that work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.layout import lay_out
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.recent import Memory
from app.style.plain_text import describe
from app.window.notices import WRITTEN_MS, Notices

if TYPE_CHECKING:
    from app.window.main_window import MainWindow
    from app.window.tasks.page import TaskPage


def tr(text: str) -> str:
    return QCoreApplication.translate("Tasks", text)


class Workbench:
    """Begins the tasks of the main window `w`, and says why one cannot begin."""

    def __init__(self, w: MainWindow) -> None:
        self._w = w

    def machine_reason(self) -> str | None:
        if not self._w.when.is_idle():
            return tr("A run is under way, which would disturb the measurement.")
        return self._w.runs.other_run()

    def audio_reason(self) -> str | None:
        return self._w.when.has_audio.unavailable_reason() or self.machine_reason()

    def session_reason(self) -> str | None:
        if not self._w.when.has_finished_session():
            return tr("That needs a finished session; stop the run or open one.")
        return self.machine_reason()

    def arms_reason(self) -> str | None:
        session = self._w.playhead.session
        if session is None or "ab" not in session.meta:
            return tr("No session of an A/B is shown.")
        return self._w.when.has_finished_session.unavailable_reason()

    def session(self) -> Path | None:
        """The session shown, if something can be measured with it now; else None, and the window says why."""
        why, session = self.session_reason(), self._w.playhead.session
        if why is None and session is not None:
            return session.path
        self._w.notices.info(why or "")
        return None

    def stage(self, name: str) -> str | None:
        """The stage named, else the one that the breakdown explains; None: there is none, and the window says so."""
        tree = self._w.desk.breakdown.tree
        if not name and (chosen := tree.explained()) is not None:
            name = next((line.name for line in tree.stages if line.name == chosen.name), "")
        if not name:
            self._w.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return name or None

    def ask(self, kind: type[QWidget], make: Callable[[], QWidget]) -> None:
        """Show the form of a kind among the results: the one that is there, or a new one."""
        self._w.show_result(self._w.findChild(kind) or make(), True)

    def begin(self, task: str, *what: object) -> None:
        """Begin a task, `module.function` of this folder; what it needs is loaded when it is first wanted."""
        module, _, name = task.partition(".")
        getattr(import_module(f"app.window.tasks.{module}"), name or "begin")(self._w, *what)


TOOK = "tasks/"  # Keys of how long the last task of a kind took, s, begin so


class TaskStrip(QFrame):
    """Shows what tasks say of themselves, side by side; without one the status line is shown.

    It is as high as that: charts do not jump when a task begins.

    `memory` keeps how long tasks took; `show` brings the page of a task to the front of the desk, with True also the
    desk, and says whether the page is there; where it is not, `notices` say that the task is done.
    """

    changed = Signal()  # A task began or ended

    def __init__(
        self, memory: Memory, notices: Notices, status: QWidget, show: Callable[[TaskPage, bool], bool]
    ) -> None:
        super().__init__()
        self.setObjectName("task-strip")
        describe(self, self.tr("Tasks"))
        self._memory, self._notices, self._status, self._show = memory, notices, status, show
        self._working: set[TaskPage] = set()
        self._row = lay_out(QHBoxLayout(self), spacing=24, margins=(14, 0, 14, 0))
        self.hide()

    def place(self, page: TaskPage, at_once: bool) -> None:
        """Show the row of a page while it works, and the page when that is over, or `at_once`."""
        known = self._memory.text(f"{TOOK}{page.kind}")
        page.expected_s = float(known) if known.isdecimal() else 0.0
        self._row.addWidget(page.row, 1)
        page.changed.connect(partial(self._follow, page))
        page.over.connect(partial(self._over, page))
        self._follow(page)
        if at_once:
            self._show(page, True)

    def _follow(self, page: TaskPage) -> None:
        page.row.setVisible(page.command.running)
        (self._working.add if page.command.running else self._working.discard)(page)
        self.setFixedHeight(self._status.sizeHint().height())
        self._status.setVisible(not self._working)
        self.setVisible(bool(self._working))
        self.changed.emit()
        if (leaving := Leaving.find(EXPLAINS)) is not None:
            leaving.ended.connect(self.changed)

    def _over(self, page: TaskPage) -> None:
        """Remember how long it took, and show the page, or say that it is there."""
        if page.copy.isEnabled():
            self._memory.remember(f"{TOOK}{page.kind}", str(max(round(page.expected_s), 1)))
        if self._show(page, False):
            return
        banner = self._notices.info(self.tr("{0}: done.").format(page.windowTitle()), WRITTEN_MS)
        banner.add_button(self.tr("Show"), partial(self._show, page, True)).clicked.connect(banner.dismiss)
