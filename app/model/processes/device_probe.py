"""Finds the devices of this machine in a child process, because loading torch would stall the window."""

from __future__ import annotations

import json
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.model.processes.command import Command
from profiler.process import children

PROBE = tuple(children.python("-m", "pipelines.availability", "--json"))


class DeviceProbe(QObject):
    """Probes once. `found`: for each setting, its unavailable choices and the reason for each."""

    found = Signal(object)

    def __init__(self, command: Sequence[str] = PROBE, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words = command
        self._command: Command | None = None

    def ask(self) -> None:
        """Start asking, the first time only."""
        if self._command is None:
            self._command = Command(self._words, self)
            self._command.ended.connect(self._answered)
            self._command.start()

    def stop(self) -> None:
        if self._command is not None:
            self._command.kill()

    def _answered(self, printed: bytes, _why: str) -> None:
        try:
            obstacles = json.loads(printed)["obstacles"]
            self.found.emit({str(k): {str(c): str(r) for c, r in v.items()} for k, v in obstacles.items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            # Nothing is known then; a device that is not there is refused by the run itself.
            return
