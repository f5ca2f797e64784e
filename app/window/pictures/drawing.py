"""Starts the process that draws pictures, sends it jobs and receives the results. Only the newest preview is queued."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QProcess, Signal

from app.model.processes.command import child_process
from app.pictures.process import Answer, Job, line
from app.pictures.request import PictureRequest
from profiler.process import children

PROCESS: Final = tuple(children.python("-m", "app.pictures.process"))

PATIENCE_MS: Final = 3000  # How long a process may take to end after SIGTERM


class Drawing(QObject):
    """Draws pictures of one session."""

    drawn = Signal(int, bytes)  # Number of a job and the PNG
    written = Signal(Path)
    failed = Signal(str)  # Why a job, or all of them, came to nothing

    def __init__(self, session: Path, parent: QObject | None = None, command: Sequence[str] = PROCESS) -> None:
        super().__init__(parent)
        self._number = 0
        self._under_way: Job | None = None
        self._waiting: list[Job] = []
        self._heard = b""
        self._process: QProcess | None = child_process(self)
        self._process.readyReadStandardOutput.connect(self._listen)
        self._process.errorOccurred.connect(self._broken)
        self._process.finished.connect(self._ended)
        self._process.start(command[0], [*command[1:], str(session.absolute())])

    @property
    def busy(self) -> bool:
        return self._under_way is not None

    def preview(self, wanted: PictureRequest, scale: float) -> int:
        """Queue a preview at `scale` pixels per point, replacing any queued one; returns its job number."""
        self._waiting = [job for job in self._waiting if job.scale is None]
        return self._ask(wanted, None, scale)

    def draw(self, wanted: PictureRequest) -> int:
        return self._ask(wanted, None)

    def write(self, wanted: PictureRequest, target: Path) -> None:
        self._ask(wanted, str(target.absolute()))

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(PATIENCE_MS)
        self._under_way = None
        self._waiting.clear()

    def _ask(self, wanted: PictureRequest, out: str | None, scale: float | None = None) -> int:
        self._number += 1
        self._waiting.append(Job(self._number, wanted, out, scale))
        self._next()
        return self._number

    def _next(self) -> None:
        if self._process is None:
            self._waiting.clear()
        if self._under_way is None and self._waiting and self._process is not None:
            self._under_way = self._waiting.pop(0)
            self._process.write(line(self._under_way))

    def _listen(self) -> None:
        if self._process is None:
            return
        *whole, self._heard = (self._heard + bytes(self._process.readAllStandardOutput().data())).split(b"\n")
        for reported in whole:
            with contextlib.suppress(msgspec.DecodeError):  # some library's own words
                self._take(msgspec.json.decode(reported, type=Answer))

    def _take(self, answer: Answer) -> None:
        if self._under_way is not None and answer.number == self._under_way.number:
            self._under_way = None
        if answer.png is not None:
            self.drawn.emit(answer.number, base64.b64decode(answer.png))
        elif answer.written is not None:
            self.written.emit(Path(answer.written))
        elif answer.error is not None:
            self.failed.emit(answer.error)
        self._next()

    def _broken(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self._end(self.tr("The pictures cannot be drawn: their process could not be started."))

    def _ended(self) -> None:
        if self._process is None:
            return
        self._listen()
        self._process = None
        if self.busy:
            self._end(self.tr("The process that draws the pictures has ended."))

    def _end(self, why: str) -> None:
        self._under_way = None
        self._waiting.clear()
        self.failed.emit(why)
