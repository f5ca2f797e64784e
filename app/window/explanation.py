"""Explain this stage: runs `asrscope explain` on the session shown and shows what it found.

The command runs in a process of its own, since it decodes and loads what the window must not. It can be cancelled;
closing the dialog ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QProcess, QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.model.processes.child_process import child_process
from app.style.plain_text import Button, Wrapped, describe, set_title
from profiler.plain import one_line
from profiler.process import children

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

EXPLAIN: Final = tuple(children.python("-m", "app.cli.main", "explain"))
SIZE: Final = QSize(1060, 560)
LONGEST: Final = 200
"""Characters of a line of progress that are shown."""
PATIENCE_MS: Final = 3000


class Explanation(QDialog):
    """What the time of one stage consists of, as soon as it has been found out."""

    def __init__(
        self, session: Path, stage: str, parent: QWidget, command: Sequence[str] = EXPLAIN
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Explain {0}").format(stage))
        self.resize(SIZE)
        self.state = Wrapped(
            self.tr(
                "Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …"
            )
        )
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        fixed.setStyleHint(QFont.StyleHint.Monospace)
        self.text.setFont(fixed)
        describe(self.text, self.tr("What the stage's time consists of"))
        self.copy = Button(self.tr("Copy"))
        self.copy.setEnabled(False)
        self.copy.clicked.connect(self._copy)
        self.end = Button(self.tr("Cancel"))
        self.end.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.copy)
        buttons.addWidget(self.end)
        column = QVBoxLayout(self)
        column.addWidget(self.state)
        column.addWidget(self.bar)
        column.addWidget(self.text, 1)
        column.addLayout(buttons)
        self._last = ""
        self._process: QProcess | None = child_process(self)
        self._process.readyReadStandardError.connect(self._told)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        self._process.start(command[0], [*command[1:], str(session), stage])

    @property
    def working(self) -> bool:
        """Whether the command still runs."""
        return self._process is not None

    def done(self, result: int) -> None:
        """However it is closed, by Escape too: end the command."""
        if self._process is not None:
            self._process.blockSignals(True)
            self._process.terminate()
            if not self._process.waitForFinished(PATIENCE_MS):
                self._process.kill()
                self._process.waitForFinished(PATIENCE_MS)
            self._process = None
        super().done(result)

    def _told(self) -> None:
        if self._process is None:
            return
        told = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        lines = [line for line in told.splitlines() if line.strip()]
        if lines:
            self._last = one_line(lines[-1], LONGEST)
            self.state.setText(self._last)

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        if self._process is None:
            return
        self._told()
        found = bytes(self._process.readAllStandardOutput().data()).decode("utf-8", "replace")
        self._process = None
        self.bar.hide()
        self.end.setText(self.tr("Close"))
        if code == 0 and status == QProcess.ExitStatus.NormalExit:
            self.text.setPlainText(found)
            self.copy.setEnabled(True)
            self.state.setText(self.tr("Measured on this machine, now."))
        elif not self._last:
            self.state.setText(self.tr("The command ended without saying why."))

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self.bar.hide()
            self.state.setText(self.tr("The command could not be started."))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())


def explain(window: MainWindow, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    why, session = obstacle(window), window.playhead.session
    if why is not None or session is None:
        window.notices.info(why or "")
        return
    if not stage:
        line = window.desk.breakdown.bars.explained()
        known = window.desk.breakdown.bars.stages
        stage = line.name if line is not None and line in known else ""
    if not stage:
        window.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return
    Explanation(session.path, stage, window).open()


def obstacle(window: MainWindow) -> str | None:
    """Why no stage can be explained now, or None."""
    if not window.when.has_finished_session():
        return tr("A stage is explained from a finished session; stop the run or open one.")
    if not window.when.is_idle():
        return tr("A run is under way, which explaining a stage would disturb.")
    return window.runs.hindrance()


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("Explanation", text)
