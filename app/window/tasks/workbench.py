"""What a task is given: the session and stage shown, the settings of the next run, and places for what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.model.conditions import Conditions
    from app.model.pipeline import Pipeline
    from app.model.playhead import Playhead
    from app.model.recent import Memory
    from app.model.runs import Runs
    from app.views.stage_tree import StageTree
    from app.window.actions.files import Files
    from app.window.notices import Notices
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
        "capacity",
        "audio",
        "How many streams?…",
        "Lets more and more streams share the cores until words are shown too late",
    ),
)
"""The tasks of the menu, in its order."""
