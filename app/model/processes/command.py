"""A command of ours in a process of its own: what it says meanwhile, what it printed, and why nothing came of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from profiler.plain import one_line
from profiler.process import children

BY_COMMAND: Final = "asrscope: "
"""Stands before what the command says: a terminal has many programs, the window does not."""

LONGEST: Final = 1000  # Characters of a line that are passed on

ENDING_MS: Final = 3000
"""Milliseconds that a terminated process may take to remove its partial files."""


def child_process(parent: QObject, **extra: str) -> QProcess:
    """Return a process to start with `children.python(…)`, its environment that of children with `extra` on top.

    It stands in the folder that this process stands in, so that relative paths mean the same.
    """
    process = QProcess(parent)
    wanted = children.environment(extra)
    # Only what differs: variables of other programs may hold bytes that are no text.
    environment = QProcessEnvironment.systemEnvironment()
    for name in os.environ.keys() - wanted.keys():
        environment.remove(name)
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            environment.insert(name, value)
    process.setProcessEnvironment(environment)
    return process


class Command(QObject):
    """Runs once, when it is started; `environment`: variables on top of those of every child."""

    said = Signal(str)  # A line of what it says meanwhile: its progress, or what is wrong
    ended = Signal(bytes, str)
    """What it printed, and why it failed: empty if it did not. Not after one of the ways to end it."""

    def __init__(self, words: Sequence[str], parent: QObject, **environment: str) -> None:
        super().__init__(parent)
        self._words, self._last = tuple(words), ""
        self.process = child_process(self, **environment)
        self._process: QProcess | None = self.process  # As long as somebody waits for its end
        self._process.readyReadStandardError.connect(self._hear)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)

    def start(self) -> None:
        if self._process is not None:
            self._process.start(self._words[0], self._words[1:])

    @property
    def running(self) -> bool:
        return self._process is not None

    def let_go(self) -> QProcess | None:
        """Hear no more of the process, which somebody else is to end; None where there is none."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.readyReadStandardError.disconnect(self._hear)
        process.finished.disconnect(self._finished)
        process.errorOccurred.disconnect(self._failed)
        return None if process.state() == QProcess.ProcessState.NotRunning else process

    def kill(self) -> None:
        """End the process at once."""
        process = self.let_go()
        if process is not None:
            process.kill()
            process.waitForFinished(ENDING_MS)

    def finish(self, patience_ms: int) -> None:
        """Wait for the process to do its work, or else to give it up."""
        process = self.let_go()
        if process is not None and not process.waitForFinished(patience_ms):
            process.terminate()
            if not process.waitForFinished(ENDING_MS):
                process.kill()
                process.waitForFinished(ENDING_MS)

    def _hear(self) -> None:
        if self._process is None:
            return
        heard = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        for line in heard.splitlines():
            if line.strip():
                self._last = one_line(line.removeprefix(BY_COMMAND), LONGEST)
                self.said.emit(self._last)

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._hear()
        process, self._process = self._process, None
        if process is None:
            return
        good = code == 0 and status == QProcess.ExitStatus.NormalExit
        why = self._last or self.tr("The command ended without saying why.")
        self.ended.emit(bytes(process.readAllStandardOutput().data()), "" if good else why)

    def _failed(self, error: QProcess.ProcessError) -> None:
        """A process that could not be started never finishes."""
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self.ended.emit(b"", self.tr("The command could not be started."))
