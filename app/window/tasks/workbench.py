"""What a task is given (the session and stage shown, the settings of the next run, places for what it shows), the tasks
of the menu, and the strip that shows what works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.layout import lay_out
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.recent import Memory
from app.style.plain_text import describe
from app.window.notices import WRITTEN_MS, Notices

if TYPE_CHECKING:
    from app.model.conditions import Conditions
    from app.model.pipeline import Pipeline
    from app.model.playhead import Playhead
    from app.model.runs import Runs
    from app.views.stage_tree import StageTree
    from app.window.actions.files import Files
    from app.window.tasks.page import TaskPage


def tr(text: str) -> str:
    return QCoreApplication.translate("Tasks", text)


@dataclass(frozen=True)
class Workbench:
    """Models and places. `stages`: the tree of the breakdown; `window`: the parent of what asks.

    `place` takes a page: a row of the strip while it works, and its place among the results when it is over, or with
    True at once; `show_page`, any widget. `show_desk` brings the desk to the front, where another page is.
    """

    window: QWidget
    playhead: Playhead
    pipeline: Pipeline
    runs: Runs
    when: Conditions
    files: Files
    memory: Memory
    notices: Notices
    stages: Callable[[], StageTree]
    place: Callable[[TaskPage, bool], None]
    show_page: Callable[[QWidget, bool], object]
    show_desk: Callable[[], None]

    def machine_reason(self) -> str | None:
        """Why the machine cannot be measured now, or None."""
        if not self.when.is_idle():
            return tr("A run is under way, which would disturb the measurement.")
        return self.runs.other_run()

    def audio_reason(self) -> str | None:
        """Why the audio of the next run cannot be decoded for a measurement now, or None."""
        return self.when.has_audio.unavailable_reason() or self.machine_reason()

    def session_reason(self) -> str | None:
        """Why no session can be decoded again now (explained, confirmed, audited), or None."""
        if not self.when.has_finished_session():
            return tr("That needs a finished session; stop the run or open one.")
        return self.machine_reason()

    def session(self) -> Path | None:
        """The session shown, if something can be measured with it now; else None, and the window says why."""
        why, session = self.session_reason(), self.playhead.session
        if why is None and session is not None:
            return session.path
        self.notices.info(why or "")
        return None

    def stage(self, name: str) -> str | None:
        """The name of a stage; of the one that the breakdown explains if `name` is empty.

        None where that is a group or nothing; the window then says what to choose.
        """
        tree = self.stages()
        if not name and (chosen := tree.explained()) is not None:
            name = next((line.name for line in tree.stages if line.name == chosen.name), "")
        if not name:
            self.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return name or None

    def arms_reason(self) -> str | None:
        """Why there are no two arms to compare, or None."""
        session = self.playhead.session
        if session is None or "ab" not in session.meta:
            return tr("No session of an A/B is shown.")
        return self.when.has_finished_session.unavailable_reason()

    def ask(self, kind: type[QWidget], make: Callable[[], QWidget]) -> None:
        """Show the form of a kind among the results: the one that is there, or a new one."""
        self.show_page(self.window.findChild(kind) or make(), True)

    def begin(self, task: str, *what: object) -> None:
        """Begin a task, `module.function` of this folder; what it needs is loaded when it is first wanted."""
        module, _, name = task.partition(".")
        getattr(import_module(f"app.window.tasks.{module}"), name or "begin")(self, *what)


class Task(NamedTuple):
    """How a task is offered: the id of its action, its `place` (`Workbench.begin`), what it needs (a `_reason` there),
    texts."""

    id: str
    place: str
    needs: str
    text: str
    help: str


TASKS: Final = (
    Task(
        "run.explain",
        "replays.explain",
        "session",
        "Explain the stage in the breakdown",
        "Scores some seconds of the session again, hot, cold and reshaped",
    ),
    Task(
        "run.confirm",
        "replays.confirm",
        "session",
        "Confirm the verdict of that stage",
        "Changes block, threads and parameters of the stage, and compares with what is predicted",
    ),
    Task(
        "run.audit",
        "replays.audit",
        "session",
        "Audit: what this configuration costs in scores and words",
        "Decodes the session's audio with its configuration and with exact scoring",
    ),
    Task(
        "run.calibrate",
        "replays.calibrate",
        "machine",
        "Measure the roofs of this machine",
        "Rates and bandwidth, which verdicts are judged by",
    ),
    Task(
        "run.compare_sessions",
        "compare",
        "finished",
        "Compare with another session…",
        "Ratio of each stage with its interval",
    ),
    Task(
        "run.compare_arms",
        "compare.arms",
        "arms",
        "Compare A and B of this session",
        "Ratio of each stage with its interval, over the turns that both settings had",
    ),
    Task(
        "run.sweep",
        "sweep",
        "audio",
        "Sweep…",
        "Tries settings on the audio of the next run, and finds those that no others beat",
    ),
    Task(
        "run.capacity",
        "replays.capacity",
        "audio",
        "How many streams?…",
        "Lets more and more streams share the cores until words are shown too late",
    ),
)
"""The tasks of the menu, in its order."""


TOOK = "tasks/"  # Keys of how long the last task of a kind took, s, begin so


class TaskStrip(QFrame):
    """Shows what tasks say of themselves, side by side; without one the status line is shown.

    It is as high as that: charts do not jump when a task begins.

    Args:
        memory: keeps how long tasks took.
        notices: say that a task is done while something else than the desk is shown.
        status: the status line.
        show: brings the page of a task to the front of the desk, with True also the desk; whether the page is there.
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
        page.row.setVisible(page.working)
        (self._working.add if page.working else self._working.discard)(page)
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
        button = banner.add_button(self.tr("Show"), partial(self._show, page, True))
        button.clicked.connect(banner.dismiss)
