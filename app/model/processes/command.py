"""A command of ours in a process of its own: what it says meanwhile, what it printed, and why nothing came of it.

Its temporary files lie in a folder that is gone when the process is, however either ends: the window removes it when
the process has ended. A window that is killed cannot: it holds a lock in each folder, which ends with it, and the next
window that wants such a folder removes those that nobody holds.
"""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile, QObject, QProcess, QProcessEnvironment, Signal

from profiler.plain import one_line
from profiler.process import children

BY_COMMAND: Final = "asrscope: "  # Before what it says, for a terminal that has many programs
LONGEST: Final = 1000  # Characters of a line that are passed on
ENDING_MS: Final = 3000  # Milliseconds that a terminated process may take to remove its partial files


def child_process(parent: QObject, **extra: str) -> QProcess:
    """A process to start with `children.python(…)` in this folder: the environment of children, with `extra` on top."""
    process = QProcess(parent)
    wanted = children.environment(extra)
    # Only what differs: variables of other programs may hold bytes that are no text.
    environment = QProcessEnvironment.systemEnvironment()
    for name in os.environ.keys() - wanted.keys():
        environment.remove(name)
    for name, value in wanted.items() - os.environ.items():
        environment.insert(name, value)
    process.setProcessEnvironment(environment)
    return process


class Command(QObject):
    """Runs once, when it is started; `environment`: variables on top of those of every child."""

    said = Signal(str)  # A line of what it says meanwhile: its progress, or what is wrong
    ended = Signal(bytes, str)  # What it printed, and why it failed, if so; not after one of the ways to end it

    def __init__(self, words: Sequence[str], parent: QObject, **environment: str) -> None:
        super().__init__(parent)
        self._words, self._last = tuple(words), ""
        self.process = process = child_process(self, **environment)
        self._process: QProcess | None = process  # As long as somebody waits for its end
        process.readyReadStandardError.connect(self._hear)
        process.finished.connect(self._finished)
        process.errorOccurred.connect(self._failed)

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
        if (process := self.let_go()) is not None:
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


PROBE = tuple(children.python("-m", "pipelines.availability"))


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
        # Else nothing is known; a device that is not there is refused by the run itself.
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            obstacles = json.loads(printed)["obstacles"]
            self.found.emit({str(k): {str(c): str(r) for c, r in v.items()} for k, v in obstacles.items()})


LOCK: Final = "window.lock"  # File in the folder that its window has locked


class OwnFolder:
    """One folder, made at once; OSError where none can be. By the `prefix` of its name those left behind are found."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = _lock(self.path)
        # Not before it holds its own: another window that does the same at this moment leaves it alone then.
        if self._lock.tryLock(0):
            for other in self.path.parent.glob(f"{prefix}*"):
                if _is_ours(other) and (other / LOCK).is_file() and (lock := _lock(other)).tryLock(0):
                    lock.unlock()
                    shutil.rmtree(other, ignore_errors=True)

    def remove(self) -> None:
        self._lock.unlock()
        shutil.rmtree(self.path, ignore_errors=True)


def _lock(folder: Path) -> QLockFile:
    lock = QLockFile(str(folder / LOCK))
    lock.setStaleLockTime(0)  # however old it is, it is good as long as its window lives
    return lock


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder, no link to one, and this user's: others may write into the folder for temporary files."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    mine = os.name != "posix" or found.st_uid == os.geteuid()
    return mine and stat.S_ISDIR(found.st_mode)
