"""Lab runs of the window: one at a time, never during another run; keeps the last one of each lab."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.model.processes import leaving
from app.model.processes.run_control import RunControl, RunRequest
from pipelines.config import Value
from pipelines.labs import record
from pipelines.labs.record import Record
from profiler.files.paths import new_session_path, sessions_dir
from profiler.process import children
from profiler.session.reader import Session

LABS = tuple(children.python("-m", "pipelines.labs"))
MARK = "-lab-"  # In the names of sessions of labs, before the lab's


@dataclass(frozen=True)
class Past:
    """A run that was recorded: its session, when it began (seconds since 1970), what it says."""

    path: Path
    when: float
    record: Record


class LabRuns(QObject):
    """Starts labs in a process of their own. `busy_elsewhere`: whether another run is under way."""

    changed = Signal()
    progress = Signal(str, object)
    ended = Signal(str)  # The name of the lab, when its session is complete
    failed = Signal(str)  # One sentence

    def __init__(
        self, busy_elsewhere: Callable[[], bool], command: Sequence[str] = LABS, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._busy_elsewhere = busy_elsewhere
        self._name = ""
        self.control = RunControl(command, self)
        self.control.state_changed.connect(lambda _: self.changed.emit())
        self.control.progress.connect(self.progress)
        self.control.finished.connect(lambda *_: self._over())
        self.control.failed.connect(self._failed)
        self.control.died.connect(self._died)

    @property
    def running(self) -> str:
        return self._name if self.control.busy else ""

    def unavailable_reason(self) -> str | None:
        """Why no lab can be started now, or None."""
        if self._busy_elsewhere():
            return self.tr("A run is under way, which a lab would disturb; stop it first.")
        if self.control.busy:
            return self.tr("{0} is under way; labs run one at a time.").format(self._name)
        return None

    def runs_unavailable_reason(self) -> str | None:
        text = self.tr("The lab {0} is under way, which a run would disturb; stop it first.")
        return text.format(self._name) if self.control.busy else None

    def start(self, name: str, changed: Mapping[str, Value]) -> None:
        """Run a lab with these of its parameters changed, if nothing prevents it."""
        try:
            if why := self.unavailable_reason() or leaving.unavailable_reason():
                raise OSError(why)
            out = new_session_path(f"lab-{name}")
        except OSError as problem:
            self.failed.emit(str(problem))
            return
        self._name = name
        self.control.start(RunRequest(config=dict(changed), preset=name, audio=(), out=str(out)))
        self.changed.emit()

    def stop(self) -> None:
        self.control.stop()

    def _over(self) -> None:
        name = self._name
        # A lab has imported what it needed; the next one begins afresh.
        self.control.release()
        self.changed.emit()
        self.ended.emit(name)

    def _failed(self, message: str, _session: object) -> None:
        self.control.release()
        self.changed.emit()
        self.failed.emit(message)

    def _died(self, reason: str, _session: object) -> None:
        self.changed.emit()
        self.failed.emit(self.tr("The process of the lab ended: {0}.").format(reason))


def sessions() -> dict[str, list[Path]]:
    """The sessions of labs in the user's folder by lab, the newest first; empty where it cannot be read."""
    try:
        files = sorted(sessions_dir().glob(f"*{MARK}*.asrs"), reverse=True)
    except OSError:
        return {}
    found: dict[str, list[Path]] = {}
    for file in files:
        # 2026-01-31-120000-lab-call-costs-2.asrs is of call-costs.
        stem = file.stem.partition(MARK)[2]
        head, _, tail = stem.rpartition("-")
        found.setdefault(head if head and tail.isdecimal() else stem, []).append(file)
    return found


def last_of(files: Sequence[Path], name: str) -> Past | None:
    """The newest of `files` that is a run of the lab `name` with a verdict; None where there is none."""
    for file in files:
        try:
            with Session.open(file) as session:
                found = record.read(session.meta)
                when = session.meta.get("created_wall") or 0.0
        except (OSError, ValueError):
            continue
        if found is not None and found.name == name and found.finding is not None:
            return Past(file, when, found)
    return None
