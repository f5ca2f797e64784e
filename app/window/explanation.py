"""Explain this stage: runs `asrscope explain` on the session shown and shows what it found.

The command runs in a process of its own, since it decodes and loads what the window must not. It can be cancelled;
closing the dialog ends it, and waits for nothing. The next one begins when it has ended: they would disturb each other.

Its temporary files lie in a folder that the window makes and removes, however the command ends.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QObject, QProcess, QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.model.processes.child_process import child_process
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.processes.own_folder import OwnFolder
from app.style.plain_text import Button, Wrapped, describe, set_title
from profiler.plain import one_line
from profiler.process import children

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

EXPLAIN: Final = tuple(children.python("-m", "app.cli.main", "explain"))
SIZE: Final = QSize(1060, 560)
LONGEST: Final = 200
"""Characters of a line of progress that are shown."""
BY_COMMAND: Final = "asrscope: "
"""Stands before what the command complains of: a terminal has many programs, the dialog does not."""

FOLDER: Final = "asrscope-explain-"
"""What the name of its folder for temporary files begins with."""

FEWEST_COLUMNS: Final = 40
"""Characters of a line to which sentences are wrapped at least."""

_CELLS: Final = re.compile(r"\S {2,}\S")
"""Within a row of a table; sentences have single spaces."""


class Explanation(QDialog):
    """What the time of one stage consists of, as soon as it has been found out."""

    def __init__(
        self, session: Path, stage: str, parent: QWidget, command: Sequence[str] = EXPLAIN
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Explain {0}").format(stage))
        self.resize(SIZE)
        self.state = Wrapped("")
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
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
        self._found = ""
        self._command = (*command, str(session), stage)
        self._process: QProcess | None = process_with_a_folder(self)
        self._process.readyReadStandardError.connect(self._told)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self._program_ends)
        if (before := Leaving.of(EXPLAINS)) is None:
            self._start()
            return
        self.state.setText(self.tr("The explanation before is still ending …"))
        before.ended.connect(self._start)

    def _start(self) -> None:
        if self._process is not None:
            self.state.setText(
                self.tr(
                    "Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …"
                )
            )
            self._process.start(self._command[0], list(self._command[1:]))

    @property
    def working(self) -> bool:
        """Whether the command still runs."""
        return self._process is not None

    def done(self, result: int) -> None:
        """However it is closed, by Escape too: end the command."""
        self._end()
        super().done(result)

    def _end(self) -> Leaving | None:
        """Have the command end, and hear no more of it; None where there is none any more."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.readyReadStandardError.disconnect(self._told)
        process.finished.disconnect(self._finished)
        process.errorOccurred.disconnect(self._failed)
        if process.state() == QProcess.ProcessState.NotRunning:
            return None
        return Leaving(process, EXPLAINS)

    def _program_ends(self) -> None:
        """The whole window is closed over it."""
        leaving = self._end()
        if leaving is not None:
            leaving.wait()

    def _told(self) -> None:
        if self._process is None:
            return
        told = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        lines = [line for line in told.splitlines() if line.strip()]
        if lines:
            self._last = one_line(lines[-1].removeprefix(BY_COMMAND), LONGEST)
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
            self._found = found
            self._lay_out()
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
        QGuiApplication.clipboard().setText(self._found)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the sentences again."""
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        """Sentences as wide as the dialog; the rows of tables stay whole, and are scrolled to."""
        room = self.text.viewport().width() - 2 * self.text.document().documentMargin()
        # A letter of some fonts is no whole number of pixels wide.
        columns = int(room / QFontMetricsF(self.text.font()).horizontalAdvance("0"))
        text = laid_out(self._found, columns)
        if text != self.text.toPlainText():
            self.text.setPlainText(text)


def process_with_a_folder(parent: QObject) -> QProcess:
    """A process whose temporary files are gone when it is, even if it was killed."""
    try:
        folder = OwnFolder(FOLDER)
    except OSError:
        return child_process(parent)  # the command says itself what is wrong
    process = child_process(parent, TMPDIR=str(folder.path))

    def remove(*_: object) -> None:
        folder.remove()

    process.finished.connect(remove)
    process.destroyed.connect(remove)
    return process


def laid_out(text: str, columns: int) -> str:
    """A text whose sentences are wrapped to so many columns, as far in as they are; tables stay as they are."""
    columns = max(columns, FEWEST_COLUMNS)
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= columns or _CELLS.search(line):
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        # What stands in it as a whole, a path or a name, is not taken apart.
        wrapped = textwrap.wrap(
            line,
            columns,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += wrapped
    return "\n".join(lines)


def explain(window: MainWindow, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    why, session = obstacle(window), window.playhead.session
    if why is not None or session is None:
        window.notices.info(why or "")
        return
    if not stage:
        line = window.desk.breakdown.tree.explained()
        known = window.desk.breakdown.tree.stages
        stage = line.name if line is not None and line in known else ""
    if not stage:
        window.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return
    dialog = Explanation(session.path, stage, window)
    dialog.finished.connect(partial(closed, window))
    dialog.open()


def closed(window: MainWindow, *_: object) -> None:
    """A run may begin when its process has ended, which is heard of later."""
    window.refresh()
    leaving = Leaving.of(EXPLAINS)
    if leaving is not None:
        leaving.ended.connect(window.refresh)


def obstacle(window: MainWindow) -> str | None:
    """Why no stage can be explained now, or None."""
    if not window.when.has_finished_session():
        return tr("A stage is explained from a finished session; stop the run or open one.")
    if not window.when.is_idle():
        return tr("A run is under way, which explaining a stage would disturb.")
    return window.runs.other_run()


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("Explanation", text)
