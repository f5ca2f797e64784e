"""The worker process: started, given commands and listened to. It carries commands and news, no measurements.

One command or event is one JSON object on one line. A run ends with ``finished``, ``failed`` or ``died``; an error
that left a session behind may still be followed by its ``finished``. What arrives late from an abandoned process, or
of a run that is over, is dropped.
"""

import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from PySide6.QtCore import QObject, QProcess, Signal

from app import crash_report
from app.model.processes.command import child_process
from app.model.processes.leaving import HAS_FINISHED, Leaving
from profiler.process import children

WORKER = tuple(children.python("-m", "pipelines.worker"))
ON_HOST = tuple(children.python("-m", "pipelines.on_host"))  # Needs the name of the machine as well
STOP_TIMEOUT_MS = 5000  # How long the closing window waits for the worker to finish its session file
LONGEST_LINE = 1 << 20  # A line longer than this is no event of ours; it is dropped, and memory stays bounded
FAILED_TO_START = QProcess.ProcessError.FailedToStart
State = Literal["idle", "starting", "running", "stopping"]


@dataclass(frozen=True)
class RunRequest:
    """What a run needs; the fields are those of the worker's ``start`` command."""

    config: Mapping[str, Any]
    preset: str
    audio: Sequence[str]
    out: str
    transcripts: str | None = None
    chosen: bool = True

    def command(self) -> dict[str, Any]:
        return {"do": "start", **asdict(self)}


class RunControl(QObject):
    """Starts at most one run at a time and says what becomes of it."""

    state_changed = Signal(str)
    progress = Signal(str, object)
    running = Signal(str)
    finished = Signal(str, str)
    failed = Signal(str, object)
    refused = Signal(str, str)
    died = Signal(str, object)

    def __init__(self, command: Sequence[str] = WORKER, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._process: QProcess | None = None
        self._ready = False
        self.state: State = "idle"  # What the worker is doing for us
        self._buffer = b""
        self._printed = crash_report.LastWords()  # By the worker of the run under way or the last one
        self.request: RunRequest | None = None  # What the run under way, or the last one, was started with
        self.session: str | None = None  # Session file of the run under way or the last one, once the worker made it
        self._over = True
        self._leaving: list[Leaving] = []

    @property
    def busy(self) -> bool:
        return self.state != "idle"

    def report(self, message: str) -> str:
        """The crash report of the run that ended with this message."""
        return crash_report.compose(message, self.session, self._printed.text)

    def start(self, request: RunRequest, command: Sequence[str] = ()) -> None:
        """Start a run, in a worker that is still there or in a new one; `command` starts the workers from now on."""
        if self.busy:
            raise ValueError("a run is under way; stop it before starting another")
        if command and tuple(command) != self._command:
            self.release()
            self._command = tuple(command)
        self.request, self.session = request, None
        self._over = False
        self._printed.clear()
        self._set_state("starting")
        self.progress.emit(self.tr("starting the recogniser"), None)
        if self._process is not None:
            if self._ready:
                self._send(request.command())
            return
        self._process = process = child_process(self, PYTHONUNBUFFERED="1")
        process.readyReadStandardOutput.connect(lambda: self._read(process))
        process.readyReadStandardError.connect(lambda: self._read(process))
        process.finished.connect(lambda: self._ended(process))
        process.errorOccurred.connect(lambda error: self._ended(process) if error == FAILED_TO_START else None)
        self._ready, self._buffer = False, b""
        process.start(self._command[0], list(self._command[1:]))

    def set(self, key: str, value: object) -> None:
        if self.state == "running":
            self._send({"do": "set", "key": key, "value": value})

    def mark(self, text: str) -> None:
        if self.state == "running":
            self._send({"do": "mark", "text": text})

    def compare(self, other: Mapping[str, object] | None) -> None:
        """Decode an utterance in turn with `other` settings and with those in force; None: decode on."""
        if self.state == "running":
            self._send({"do": "compare", "with": None if other is None else dict(other)})

    def stop(self) -> None:
        """End the run; its session is closed properly. While starting: give up."""
        if self.state == "running" or (self.state == "starting" and self._ready):
            self._set_state("stopping")
            self._send({"do": "stop"})
        elif self.state == "starting":
            process, self._process = self._process, None
            if process is not None:
                process.finished.connect(process.deleteLater)
                process.kill()
            self._set_state("idle")
            self.finished.emit("", "stopped")

    def release(self) -> None:
        """Let the worker end, whose run is over; nobody waits for it, and the next run has another."""
        process, self._process = self._process, None
        if process is not None:
            process.write(b'{"do": "quit"}\n')
            process.closeWriteChannel()
            leaving = Leaving(process, HAS_FINISHED, knows=True)
            self._leaving.append(leaving)
            leaving.ended.connect(lambda: self._leaving.remove(leaving))

    def shutdown(self) -> None:
        """End the worker because the window closes; waits for the session file to be finished."""
        for leaving in list(self._leaving):
            leaving.wait()
        process = self._process
        if process is None:
            return
        self._process = None
        process.blockSignals(True)
        if self._ready:
            if self.busy:
                process.write(b'{"do": "stop"}\n')
            process.write(b'{"do": "quit"}\n')
            process.closeWriteChannel()
            process.waitForFinished(STOP_TIMEOUT_MS)
        if process.state() != QProcess.ProcessState.NotRunning:
            process.kill()
            process.waitForFinished(STOP_TIMEOUT_MS)
        # Deleting it lets go of what listens to it, this object perhaps, which must not delete it once more.
        process.setParent(None)
        process.deleteLater()
        self.state = "idle"

    def _send(self, command: Mapping[str, Any]) -> None:
        if self._process is not None:
            # Escaped, a file name that is no UTF-8 arrives as it is.
            line = json.dumps(command, allow_nan=False)
            self._process.write(line.encode("ascii") + b"\n")

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)

    def _read(self, process: QProcess) -> None:
        printed = bytes(process.readAllStandardError().data())
        data = bytes(process.readAllStandardOutput().data())
        if process is not self._process:
            return
        self._printed.add(printed)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > LONGEST_LINE:
            self._buffer = b""
        for line in lines:
            if process is not self._process:
                return  # a handler let go of this worker
            event = None
            with suppress(ValueError):
                event = json.loads(line)
            if isinstance(event, dict) and "event" in event:
                self._hear(event)
            else:  # a library may print to standard output; that is no event, but part of a report
                self._printed.add_line(line)

    def _hear(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "ready":
            self._ready = True
            if self.state == "starting" and self.request is not None:
                self._send(self.request.command())
        elif not self.busy and kind != "finished":
            return  # late news of a run that is over
        elif kind == "progress":
            fraction = event.get("fraction")
            share = float(fraction) if isinstance(fraction, (int, float)) else None
            if self.state in ("starting", "running"):
                self.progress.emit(str(event.get("stage", "")), share)
        elif kind == "running":
            self.session = str(event.get("session") or "") or None
            if self.state == "starting":
                self._set_state("running")
            self.running.emit(self.session or "")
        elif kind == "finished":
            session = str(event.get("session") or self.session or "")
            if self._over or (not self.busy and session != self.session):
                return
            self._over = True
            self._set_state("idle")
            self.finished.emit(session, str(event.get("state", "closed")))
        elif kind == "error":
            message = str(event.get("message") or self.tr("The worker reported an error."))
            kept = event.get("session") or self.session
            self._set_state("idle")
            self.failed.emit(message, kept)
        elif kind == "refused":
            self.refused.emit(str(event.get("key", "")), str(event.get("message", "")))

    def _ended(self, process: QProcess) -> None:
        """Say why the worker ended, if a run was under way, or why it could not be started."""
        if process is not self._process:
            return
        self._read(process)
        self._process = None
        process.deleteLater()
        if not self.busy:
            return
        self._set_state("idle")
        code = process.exitCode()
        if process.error() == FAILED_TO_START:
            message = self.tr("The worker {0} cannot be started: {1}.")
            self.failed.emit(message.format(self._command[0], process.errorString()), None)
        elif process.exitStatus() == QProcess.ExitStatus.CrashExit:
            name = f", {signal.Signals(code).name}" if code in {*signal.Signals} else ""
            self.died.emit(self.tr("killed by signal {0}").format(f"{code}{name}"), self.session)
        else:
            self.died.emit(self.tr("exit code {0}").format(code), self.session)
