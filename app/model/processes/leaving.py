"""Measurements take turns; a terminated one may still remove its files, seconds later, which the next one waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, QProcess, Signal

from app.model.pace import single_shot

PATIENCE_MS: Final = 10_000  # How long a process may take to end before it is ended
AT_QUIT_MS: Final = 3000  # How long the end of the program waits for it
EXPLAINS: Final = "explain"  # The kind of a process that explains a stage: until it is gone, it computes
HAS_FINISHED: Final = "finished"  # The kind of a process that has done its work


def unavailable_reason() -> str | None:
    """Why no run may begin: something is being measured, or is still ending; else None."""
    text = "The measurement before is still ending, which a run would disturb; in a moment it can begin."
    if _turns:
        text = "Something is being measured, which a run would disturb; wait for it, or cancel it at the bottom."
    elif Leaving.find(EXPLAINS) is None:
        return None
    return QCoreApplication.translate("leaving", text)


_turns: Final[list[tuple[QObject, Callable[[], None]]]] = []  # Measurements, and what begins them


def take_turn(whose: QObject, begin: Callable[[], None]) -> None:
    """Call `begin` as soon as nothing else is measured; `leave_turn` or the end of `whose` lets the next one begin."""
    _turns.append((whose, begin))
    whose.destroyed.connect(lambda *_: leave_turn(whose))
    if len(_turns) == 1:
        _begin()


def leave_turn(whose: QObject) -> None:
    first = bool(_turns) and _turns[0][0] is whose
    _turns[:] = [turn for turn in _turns if turn[0] is not whose]
    if first:
        _begin()


def _begin() -> None:
    if (leaving := Leaving.find(EXPLAINS)) is not None:
        leaving.ended.connect(_begin)
    elif _turns:
        _turns[0][1]()


class Leaving(QObject):
    """Tells a process to end, unless it `knows`, and kills it after `PATIENCE_MS`; its signals must be disconnected."""

    ended = Signal()  # There is no process any more

    def __init__(self, process: QProcess, kind: str, knows: bool = False) -> None:
        super().__init__(process, objectName=kind)
        self._process = process
        application = QCoreApplication.instance()
        process.setParent(application)
        process.finished.connect(self._gone)
        process.errorOccurred.connect(self._failed)
        single_shot(self, PATIENCE_MS, process.kill).start()
        if application is not None:
            application.aboutToQuit.connect(self.wait)
        if not knows:
            process.terminate()

    @staticmethod
    def find(kind: str) -> Leaving | None:
        """One that is about to end and did this kind of thing, or None."""
        application = QCoreApplication.instance()
        return None if application is None else application.findChild(Leaving, kind)

    def wait(self) -> None:
        if not self._process.waitForFinished(AT_QUIT_MS):
            self._process.kill()
            self._process.waitForFinished(AT_QUIT_MS)

    def _failed(self, error: QProcess.ProcessError) -> None:
        """One that could not even be started never ends."""
        if error == QProcess.ProcessError.FailedToStart:
            self._gone()

    def _gone(self) -> None:
        self.setObjectName("")
        self.ended.emit()
        self._process.deleteLater()
