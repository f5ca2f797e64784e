"""Which devices this machine has, asked of a process of its own: torch would stall the window."""

from __future__ import annotations

import json
from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, Signal

from app.model.processes.child_process import child_process
from profiler.process import children

PROBE = tuple(children.python("-m", "pipelines.availability", "--json"))


class DeviceProbe(QObject):
    """Asks once. `found`: for each setting, its choices that cannot be made here and why not."""

    found = Signal(object)

    def __init__(self, command: Sequence[str] = PROBE, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = command
        self._process: QProcess | None = None
        self._asked = False

    def ask(self) -> None:
        """Start asking, the first time only."""
        if self._asked:
            return
        self._asked = True
        self._process = child_process(self)
        self._process.finished.connect(self._answered)
        self._process.errorOccurred.connect(self._failed)
        self._process.start(self._command[0], list(self._command[1:]))

    def stop(self) -> None:
        """End a question under way: the window closes."""
        if self._process is not None:
            self._process.blockSignals(True)
            self._process.kill()
            self._process.waitForFinished(1000)
            self._process = None

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None

    def _answered(self, *_: object) -> None:
        if self._process is None:
            return
        printed, self._process = bytes(self._process.readAllStandardOutput().data()), None
        try:
            obstacles = json.loads(printed)["obstacles"]
            self.found.emit(
                {str(k): {str(c): str(r) for c, r in v.items()} for k, v in obstacles.items()}
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            # Nothing is known then; a device that is not there is refused by the run itself.
            return
