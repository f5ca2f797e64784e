"""Data of a session as files for other programs, written by a process of its own: spans as text take seconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QProcess, Signal

from app.model.processes.child_process import child_process
from profiler.process import children

EXPORT: Final = tuple(children.python("-m", "app.cli.main", "export"))

BY_COMMAND: Final = "asrscope: "
"""Stands before what the command complains of: a terminal has many programs, the window does not."""

PATIENCE_MS: Final = 10_000
"""How long the end of the window waits for a file that is being written."""

ENDING_MS: Final = 3000
"""How long a process that is told to end may take to remove its draft."""


class DataExport(QObject):
    """Writes files as `asrscope export` does."""

    written = Signal(Path)
    failed = Signal(Path, str)
    """What was not written, and why."""

    def __init__(self, command: Sequence[str] = EXPORT, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._under_way: list[QProcess] = []

    @property
    def busy(self) -> bool:
        """A file is being written."""
        return bool(self._under_way)

    def write(self, session: Path, option: str, target: Path) -> None:
        """Begin to write what an option of the command names; one of the signals follows."""
        process = child_process(self)
        self._under_way.append(process)
        process.finished.connect(partial(self._ended, process, target))
        process.errorOccurred.connect(partial(self._broken, process, target))
        words = [str(session.absolute()), f"--{option}={target.absolute()}"]
        process.start(self._command[0], [*self._command[1:], *words])

    def finish(self) -> None:
        """Wait for what is being written: the window closes."""
        for process in self._under_way:
            process.blockSignals(True)
            if not process.waitForFinished(PATIENCE_MS):
                process.terminate()
                if not process.waitForFinished(ENDING_MS):
                    process.kill()
                    process.waitForFinished(ENDING_MS)
        self._under_way.clear()

    def _ended(
        self, process: QProcess, target: Path, code: int, status: QProcess.ExitStatus
    ) -> None:
        self._let_go(process)
        if code == 0 and status == QProcess.ExitStatus.NormalExit:
            self.written.emit(target)
            return
        errors = bytes(process.readAllStandardError().data()).decode("utf-8", "replace").strip()
        why = errors.rpartition(BY_COMMAND)[2] or self.tr("The command ended without saying why.")
        self.failed.emit(target, why)

    def _broken(self, process: QProcess, target: Path, error: QProcess.ProcessError) -> None:
        """One that could not even be started never ends."""
        if error == QProcess.ProcessError.FailedToStart:
            self._let_go(process)
            self.failed.emit(target, self.tr("The command could not be started."))

    def _let_go(self, process: QProcess) -> None:
        self._under_way.remove(process)
        # Its signals hold this object: were they the last to do so, it would go while the process, its child, goes.
        process.finished.disconnect()
        process.errorOccurred.disconnect()
        process.deleteLater()
