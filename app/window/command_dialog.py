"""A dialog that runs a command of the program on the session shown, and shows what it printed.

The command runs in a process of its own, since it decodes and loads what the window must not. It can be cancelled;
closing the dialog ends it, and waits for nothing. The next one begins when it has ended: they would disturb each other.
Its temporary files lie in a folder that the window makes and removes, however the command ends.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QDialog, QFrame, QHBoxLayout, QProgressBar, QTabWidget, QVBoxLayout, QWidget

from app.charts.still import StillPlot
from app.layout import REST, Scrolled, lay_out
from app.model.processes.command import Command
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.processes.own_folder import OwnFolder
from app.style.plain_text import LONGEST_LINE, Button, Wrapped, describe, literal, set_title
from app.views.chart_menu import chart_menu
from app.views.table_twin import Table, TableModel, TableTwin
from profiler.process import children

if TYPE_CHECKING:
    from pathlib import Path

    from app.model.desk_snapshot import StageLine
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "CommandDialog")

VERB: Final = tuple(children.python("-m", "app.cli.main"))
SIZE: Final = QSize(860, 620)
LINES: Final = {"ASRSCOPE_PROGRESS": "lines"}
"""The command is to say how much of a step is done although nobody reads it on a terminal."""

FOLDER: Final = "asrscope-explain-"
"""What the name of its folder for temporary files begins with."""

SHARE: Final = re.compile(r"(?P<step>.*?) +(?P<share>\d+) ?%$")
"""A line of progress that says how much of a step is done."""

LEAST_SHARE: Final = 0.05
"""Of a step: from this share on, the time left is shown."""

TALLEST: Final = 6
"""Lines of the sentences that speak against a result; more are scrolled to."""


class CommandDialog(QDialog):
    """Progress, then what `show_result` adds: a subclass overrides it. Without words nothing runs before `begin`."""

    def __init__(self, title: str, words: Sequence[str], begins: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, title)
        self.resize(SIZE)
        self._begins = begins
        self.state = Wrapped("")
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.copy = Button(self.tr("Copy"))
        self.copy.setEnabled(False)
        self.copy.clicked.connect(self._copy)
        self.end = Button(self.tr("Cancel"))
        self.end.clicked.connect(self.close)
        self.buttons = lay_out(QHBoxLayout(), REST, self.copy, self.end)
        self.column = lay_out(QVBoxLayout(self), self.state, self.bar)
        self.column.addStretch(0)  # takes the room as long as there are no tables
        self.column.addLayout(self.buttons)
        self.pages: QTabWidget | None = None
        self._page: QBoxLayout | None = None
        self.sentences: list[Wrapped] = []
        self.tables: list[TableTwin] = []
        self._shown: list[Wrapped | TableModel] = []
        self._step, self._since = "", time.monotonic()
        self.command = Command((), self)
        self.command.let_go()  # nothing runs yet
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self._program_ends)
        if words:
            self.begin(words)

    def begin(self, words: Sequence[str]) -> None:
        """Run a command, as soon as the one before it is gone."""
        self.command = _command_with_a_folder(words, self)
        self.command.said.connect(self._show_progress)
        self.command.ended.connect(self._ended)
        if (before := Leaving.find(EXPLAINS)) is None:
            self._start()
            return
        self.state.setText(self.tr("The measurement before is still ending …"))
        before.ended.connect(self._start)

    # -- for subclasses --------------------------------------------------------------------------

    def show_result(self, printed: bytes) -> None:
        """Show what the command printed (override).

        Raises `msgspec.MsgspecError`, `KeyError` or `IndexError` where it cannot be read.
        """
        raise NotImplementedError

    def add_sentence(self, text: str) -> None:
        """Show a sentence below what is there."""
        label = Wrapped(text)
        self.add_widget(label, 0)
        self.sentences.append(label)
        self._shown.append(label)

    def add_table(self, title: str, table: Table, stretch: int = 1, wraps: Sequence[int] = ()) -> None:
        """Show a table below what is there; `wraps`: the columns whose texts are sentences, −1 for the last."""
        model = TableModel(self)
        twin = TableTwin(model)
        describe(twin, title)
        if wraps:
            model.longest = LONGEST_LINE
            twin.wrap_columns(*wraps)
        model.replace(*table)
        self.add_widget(twin, stretch)
        twin.fit_columns()
        self.tables.append(twin)
        self._shown.append(model)

    def add_widget(self, widget: QWidget, stretch: int = 1) -> None:
        """Show a chart below what is there."""
        if self._page is not None:
            self._page.addWidget(widget, stretch)
        else:
            self.column.insertWidget(self.column.count() - 2, widget, stretch)

    def add_banner(self, sentences: Sequence[str]) -> None:
        """Show what speaks against the result, framed, below what is there."""
        if not sentences:
            return
        label = Wrapped("\n".join(sentences))
        self._shown.append(label)
        self.add_widget(Boxed(label), 0)

    def begin_page(self, title: str) -> None:
        """Show what is added from now on behind a tab."""
        if self.pages is None:
            self.pages = QTabWidget()
            self.pages.setDocumentMode(True)
            self.add_widget(self.pages, 1)
        page = QWidget()
        self._page = lay_out(QVBoxLayout(page), margins=(0, 8, 0, 0))
        self.pages.addTab(page, literal(title))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer the picture of the chart under the mouse."""
        chart = self.childAt(event.pos())
        while chart is not None and not isinstance(chart, StillPlot):
            chart = chart.parentWidget()
        if chart is not None:
            chart_menu(chart).popup(event.globalPos())

    # -- the command -----------------------------------------------------------------------------

    def _start(self) -> None:
        if self.working:
            self.state.setText(self._begins)
            self.command.start()

    @property
    def working(self) -> bool:
        return self.command.running

    def done(self, result: int) -> None:
        self._leave()
        super().done(result)

    def _leave(self) -> Leaving | None:
        """Have the command end, and hear no more of it; None where there is none any more."""
        process = self.command.let_go()
        return None if process is None else Leaving(process, EXPLAINS)

    def _program_ends(self) -> None:
        leaving = self._leave()
        if leaving is not None:
            leaving.wait()

    def _show_progress(self, line: str) -> None:
        """A step, how much of it is done, and how long the rest of it takes."""
        found = SHARE.match(line)
        step, share = (found["step"], int(found["share"]) / 100) if found else (line, 0.0)
        if found:
            step = step.partition(":")[0]  # what follows are names of kernels
        now = time.monotonic()
        if step != self._step:
            self._step, self._since = step, now
        self.bar.setRange(0, 100 if found else 0)
        self.bar.setValue(round(100 * share))
        if share >= LEAST_SHARE:
            left = (now - self._since) * (1 - share) / share
            step = self.tr("{0} · about {1} s left").format(step, max(round(left), 1))
        self.state.setText(step)

    def _ended(self, printed: bytes, why: str) -> None:
        self.bar.hide()
        self.end.setText(self.tr("Close"))
        if why:
            self.state.setText(why)
            return
        try:
            self.show_result(printed)
        except (msgspec.MsgspecError, KeyError, IndexError):
            self.state.setText(self.tr("What the command printed cannot be read."))
            return
        self.copy.setEnabled(True)

    def _copy(self) -> None:
        parts = ["\n".join([self.windowTitle(), self.state.text()])]
        for one in self._shown:
            if isinstance(one, TableModel):
                parts.append(one.text(range(one.rowCount())))
            else:
                parts.append(one.text())
        QGuiApplication.clipboard().setText("\n\n".join(parts))


class Boxed(QFrame):
    """Sentences in a frame: as high as they are, up to TALLEST lines."""

    def __init__(self, label: Wrapped) -> None:
        super().__init__()
        self.setObjectName("banner")
        self._label, self._scrolled = label, Scrolled(label)
        lay_out(QVBoxLayout(self), self._scrolled, margins=(10, 6, 6, 6))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the height to the width."""
        super().resizeEvent(event)
        height = self._label.heightForWidth(self._scrolled.viewport().width())
        room = TALLEST * self._label.fontMetrics().lineSpacing()
        self._scrolled.setFixedHeight(min(height, room))
        policy = Qt.FocusPolicy.TabFocus if height > room else Qt.FocusPolicy.NoFocus  # keys scroll it
        self._scrolled.setFocusPolicy(policy)


def session_to_measure(window: MainWindow) -> Path | None:
    """The session shown, if something can be measured with it now; else None, and the window says why."""
    why, session = window.explain_unavailable_reason(), window.playhead.session
    if why is None and session is not None:
        return session.path
    window.notices.info(why or "")
    return None


def stage_to_measure(window: MainWindow, stage: str) -> tuple[str, StageLine | None] | None:
    """The name and, if the breakdown has it, the line of a stage: of the one that it explains if `stage` is empty.

    None where that is a group or nothing; the window then says what to choose.
    """
    tree = window.desk.breakdown.tree
    chosen = tree.explained()
    name = stage or (chosen.name if chosen is not None else "")
    line = next((line for line in tree.stages if line.name == name), None)
    if line is None and not stage:
        window.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return None
    return name, line


def open_over(window: MainWindow, dialog: CommandDialog) -> None:
    """Open a dialog over the window; a run may begin when its process has ended, which may be after it is closed."""

    def closed(*_: object) -> None:
        window.refresh()
        if (leaving := Leaving.find(EXPLAINS)) is not None:
            leaving.ended.connect(window.refresh)

    dialog.finished.connect(closed)
    dialog.open()


def _command_with_a_folder(words: Sequence[str], parent: QObject) -> Command:
    """A command whose temporary files are gone when its process is, even if that was killed."""
    try:
        folder = OwnFolder(FOLDER)
    except OSError:
        return Command(words, parent, **LINES)  # the command says itself what is wrong
    command = Command(words, parent, TMPDIR=str(folder.path), **LINES)

    def remove(*_: object) -> None:
        folder.remove()

    command.process.finished.connect(remove)
    command.process.destroyed.connect(remove)
    return command
