"""Terminated processes that still remove their temporary files; only the end of the program waits for them.

A process that compiles a kernel reacts to the signal seconds later.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, QProcess, Signal

from app.model.pace import single_shot

PATIENCE_MS: Final = 10_000  # How long a process may take to end before it is ended
AT_QUIT_MS: Final = 3000  # How long the end of the program waits for it

EXPLAINS: Final = "explain"
"""The kind of a process that explains a stage: until it is gone, it computes."""

HAS_FINISHED: Final = "finished"  # The kind of a process that has done its work


def unavailable_reason() -> str | None:
    """Why nothing may be measured yet although everything was ended, or None."""
    if Leaving.find(EXPLAINS) is None:
        return None
    text = "The measurement before is still ending, which a run would disturb; in a moment it can begin."
    return QCoreApplication.translate("leaving", text)


class Leaving(QObject):
    """Tells a process to end, unless it `knows`, and kills it after `PATIENCE_MS`; `of` finds it by its `kind`.

    Disconnect its signals before from whoever may be gone by then.
    """

    ended = Signal()  # There is no process any more

    def __init__(self, process: QProcess, kind: str, knows: bool = False) -> None:
        super().__init__(process)
        self.setObjectName(kind)
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
