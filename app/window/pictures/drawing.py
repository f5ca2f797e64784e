"""Starts the process that draws pictures, sends it jobs and receives the results. Only the newest preview is queued."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QProcess, Signal

from app.model.processes.command import child_process
from app.pictures.process import Answer, Job, line
from profiler.process import children

PROCESS: Final = tuple(children.python("-m", "app.pictures.process"))
PATIENCE_MS: Final = 3000  # How long a process may take to end after it is killed


class Drawing(QObject):
    """Draws pictures of one session."""

    failed = Signal(str)  # Why a job, or all of them, came to nothing

    def __init__(self, session: Path, parent: QObject | None = None, command: Sequence[str] = PROCESS) -> None:
        super().__init__(parent)
        self._jobs: list[tuple[Job, Callable[[bytes], object]]] = []  # The first one is under way
        self._heard = b""
        self._process: QProcess | None = child_process(self)
        self._process.readyReadStandardOutput.connect(self._listen)
        self._process.errorOccurred.connect(self._broken)
        self._process.finished.connect(self._ended)
        self._process.start(command[0], [*command[1:], str(session.absolute())])

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def ask(self, job: Job, take: Callable[[bytes], object]) -> None:
        """Queue a job, a preview in place of one that waits; `take` gets the PNG, or nothing where it was written."""
        if job.scale is not None:
            self._jobs[1:] = [waiting for waiting in self._jobs[1:] if waiting[0].scale is None]
        self._jobs.append((job, take))
        if len(self._jobs) == 1:
            self._send()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(PATIENCE_MS)
        self._jobs.clear()

    def _send(self) -> None:
        if self._process is None:
            self._jobs.clear()
        elif self._jobs:
            self._process.write(line(self._jobs[0][0]))

    def _listen(self) -> None:
        if self._process is None:
            return
        *whole, self._heard = (self._heard + bytes(self._process.readAllStandardOutput().data())).split(b"\n")
        for reported in whole:
            with contextlib.suppress(msgspec.DecodeError):  # some library's own words
                self._take(msgspec.json.decode(reported, type=Answer))

    def _take(self, answer: Answer) -> None:
        take = self._jobs.pop(0)[1] if self._jobs else None
        self._send()
        if answer.error:
            self.failed.emit(answer.error)
        elif take is not None:
            take(answer.png)

    def _broken(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._end(self.tr("The pictures cannot be drawn: their process could not be started."))

    def _ended(self) -> None:
        self._listen()
        if self.busy:
            self._end(self.tr("The process that draws the pictures has ended."))
        self._process = None

    def _end(self, why: str) -> None:
        self._process = None
        self._jobs.clear()
        self.failed.emit(why)
