"""A task: it runs a command of the program and shows the document that it printed, as a page among the results.

The command runs in a process of its own, since it decodes and loads what the window must not. While it runs, a row in
the strip of tasks has its progress and cancels it. Tasks take turns: they would disturb each other. Closing a page ends
its command and waits for nothing. Temporary files lie in a folder that the window makes and removes, however the
command ends.
"""

import re
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from PySide6 import QtWidgets
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QProcess, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QContextMenuEvent, QGuiApplication, QKeyEvent, QResizeEvent

from app.charts.still import StillPlot
from app.layout import NONE, REST, Scrolled, lay_out, named, styled
from app.model import document
from app.model.document import Document, Drawing, Notes, Part, Section, Table
from app.model.processes.command import Command, OwnFolder
from app.model.processes.leaving import EXPLAINS, Leaving, leave_turn, take_turn
from app.style.plain_text import ENTER, LONGEST_LINE, Button, Elided, Label, Wrapped, describe, literal, set_title
from app.views.labs.panel import panel_of
from app.views.ratios import Ratios
from app.views.table_twin import TableModel, TableTwin, chart_menu
from profiler.process import children

VERB: Final = tuple(children.python("-m", "app.cli.main"))
JSON: Final = ("--json", "--document")
LINES: Final = {"ASRSCOPE_PROGRESS": "lines"}  # The command says how much of a step is done
FOLDER: Final = "asrscope-explain-"  # What the name of its folder for temporary files begins with
SHARE: Final = re.compile(r"(?P<step>.*?) +(?P<share>\d+) ?%$")  # A line of progress with a share
BUTTONS: Final = 3  # In a row below the results, which may be narrow
TABLE, CHART, NAME = 130, 170, 11  # Least heights of a table, of a chart, and of the name of a bar in pixels
TALLEST_CHART: Final = 300  # Unless the names of its bars take more
TALLEST: Final = 6  # Lines of the sentences that speak against a result; more are scrolled to


class Page(Scrolled):
    """What is shown among the results, until it is closed."""

    def __init__(self, title: str, parent: QtWidgets.QWidget) -> None:
        body = named(QtWidgets.QWidget(), "scrolled")
        super().__init__(body, parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        set_title(self, title)
        describe(self, title)
        self.column = lay_out(QtWidgets.QVBoxLayout(body))


class FormPage(Page):
    """Asks for what a run needs, while the desk can be used: a button, or Enter, takes it; Esc closes it."""

    def __init__(self, title: str, take: str, parent: QtWidgets.QWidget) -> None:
        super().__init__(title, parent)
        self.take, self.end = Button(take, self.accept), Button(self.tr("Cancel"), self.close)
        self.take.setProperty("primary", True)
        self.buttons = lay_out(QtWidgets.QHBoxLayout(), self.take, self.end, REST)

    def accept(self) -> None:
        """Take what was entered (override)."""
        raise NotImplementedError

    def event(self, event: QEvent) -> bool:
        """Keep Esc from the action of the window."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            event.setAccepted(event.key() == Qt.Key.Key_Escape)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in ENTER:
            self.take.click()
        elif event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)


class DocumentColumn(QtWidgets.QWidget):
    """Sentences, tables and charts of a document, below each other; from `begin_page` on behind tabs."""

    def __init__(self) -> None:
        super().__init__()
        self._column = lay_out(QtWidgets.QVBoxLayout(self), margins=NONE)
        self._column.addStretch(0)  # takes the room as long as there are no tables
        self.pages: QtWidgets.QTabWidget | None = None
        self._page: QtWidgets.QBoxLayout | None = None
        self.sentences: list[Wrapped] = []
        self.tables: list[TableTwin] = []
        self.charts: list[StillPlot] = []
        self._shown: list[Wrapped | TableModel] = []

    def add_parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, str):
                self.add_sentence(part)
            elif isinstance(part, Section):
                self.begin_page(part.title)
            elif isinstance(part, Notes):
                self.add_banner(part.sentences)
            elif isinstance(part, Table):
                self.add_table(part)
            elif isinstance(part, Drawing) or part.rows:
                self._add_chart(part)

    def _add_chart(self, part: Drawing | document.Ratios) -> None:
        chart = panel_of(part) if isinstance(part, Drawing) else Ratios(part.rows)
        describe(chart, part.title, part.text)
        names = 0 if isinstance(part, document.Ratios) else len(part.chart.x.categories)
        least = max(CHART, NAME * names, chart.minimumHeight())
        chart.setMinimumHeight(least)
        chart.setMaximumHeight(max(TALLEST_CHART, least))
        self.add_widget(chart, 3)
        self.charts.append(chart)
        if isinstance(chart, Ratios) and any(row.predicted is not None for row in chart.rows):
            self.add_sentence(self.tr("A blue bar is what was predicted; left of 1× it takes less."))

    def add_sentence(self, text: str) -> None:
        """Show a sentence below what is there."""
        label = Wrapped(text)
        self.add_widget(label, 0)
        self.sentences.append(label)
        self._shown.append(label)

    def add_table(self, table: Table) -> None:
        """Show a table below what is there, unless it has no rows."""
        if not table.rows:
            return
        twin = TableTwin(table.title)
        if table.sentences:
            twin.cells.longest = LONGEST_LINE
            twin.wrap_columns(*table.sentences)
        twin.cells.replace(table.headers, table.rows)
        twin.setMinimumHeight(TABLE)
        self.add_widget(twin, 2)
        twin.fit_columns()
        self.tables.append(twin)
        self._shown.append(twin.cells)

    def add_widget(self, widget: QtWidgets.QWidget, stretch: int = 1) -> None:
        """Show a widget below what is there."""
        if self._page is not None:
            self._page.addWidget(widget, stretch)
        else:
            self._column.insertWidget(self._column.count() - 1, widget, stretch)

    def add_banner(self, sentences: Sequence[str]) -> None:
        """Show what speaks against the result, framed, below what is there."""
        if sentences:
            label = Wrapped("\n".join(sentences))
            self._shown.append(label)
            self.add_widget(Boxed(label), 0)

    def begin_page(self, title: str) -> None:
        """Show what is added from now on behind a tab."""
        if self.pages is None:
            self.pages = QtWidgets.QTabWidget(documentMode=True)
            self.add_widget(self.pages, 1)
        page = QtWidgets.QWidget()
        self._page = lay_out(QtWidgets.QVBoxLayout(page), margins=(0, 8, 0, 0))
        self.pages.addTab(page, literal(title))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer the picture of the chart under the mouse."""
        chart = self.childAt(event.pos())
        while chart is not None and not isinstance(chart, StillPlot):
            chart = chart.parentWidget()
        if chart is not None:
            chart_menu(chart).popup(event.globalPos())

    def copy(self, *heading: str) -> None:
        """Copy what is shown as text, below the lines of a heading."""
        shown = (p.text(range(p.rowCount())) if isinstance(p, TableModel) else p.text() for p in self._shown)
        QGuiApplication.clipboard().setText("\n\n".join(["\n".join(heading), *shown]))


class TaskPage(Page):
    """Runs a command and shows what it printed; without words it waits for `begin`. `kind`: those that take as long."""

    changed = Signal()  # It began, got on, or ended
    over = Signal()  # The command has ended, with a result or with the sentence that says why there is none

    def __init__(
        self, title: str, words: Sequence[str], begins: str, parent: QtWidgets.QWidget, kind: str = ""
    ) -> None:
        super().__init__(title, parent)
        self._begins, self.kind = begins, kind or type(self).__name__
        self.expected_s = 0.0  # What the last one of its kind took; 0 where that is not known
        self.stopping = False  # Whether the command was asked to end with what it has
        self.state, self.body = Wrapped(""), DocumentColumn()
        self.copy = Button(self.tr("Copy"), lambda: self.body.copy(self.windowTitle(), self.state.text()))
        self.copy.setEnabled(False)
        self._buttons = QtWidgets.QGridLayout()
        self._buttons.setColumnStretch(BUTTONS, 1)
        lay_out(self.column, self.state, (self.body, 1), self._buttons)
        self.row = QtWidgets.QWidget(self)
        name, self.progress = styled(Label(title), strong=True), styled(Elided(), muted=True)
        self.bar = QtWidgets.QProgressBar(minimum=0, maximum=0, textVisible=False)
        self.bar.setFixedSize(120, 8)
        describe(self.bar, self.tr("Progress of {0}").format(title))
        self.end = Button(self.tr("Cancel"), self.cancel)
        lay_out(QtWidgets.QHBoxLayout(self.row), name, self.bar, (self.progress, 1), self.end, margins=NONE)
        self.row.hide()
        self.destroyed.connect(self.row.deleteLater)
        self._step, self._since = "", 0.0
        self._tick = QTimer(self, interval=500)
        self._tick.timeout.connect(self._show_time)
        self.command = Command((), self)
        self.command.let_go()  # nothing runs yet
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self._at_quit)
        self.add_buttons(self.copy)
        if words:
            self.begin(words)

    def begin(self, words: Sequence[str]) -> None:
        """Run a command, as soon as nothing else is measured."""
        self.command = _command_with_a_folder(words, self)
        self.command.said.connect(self._show_progress)
        self.command.ended.connect(self._over)
        self._say(self.tr("Waits for the measurement before …"))
        self.bar.hide()
        take_turn(self.command, self._start)
        self.changed.emit()

    def show_result(self, printed: bytes) -> None:
        """Show the document printed (extend: to offer more). ValueError, LookupError, TypeError, MsgspecError."""
        by_key = msgspec.json.decode(printed, type=dict[str, msgspec.Raw])
        printed_document = msgspec.json.decode(by_key["document"], type=Document)
        self.state.setText(printed_document.summary)
        self.body.add_parts(printed_document.parts)

    def cancel(self) -> None:
        """End it without a result (override where it has one so far)."""
        self.close()

    def stop(self) -> bool:
        """Ask the command to end with what it has; False where it still waits for the measurement before."""
        self.stopping, process = True, self.command.process
        process.terminate()
        return process.state() != QProcess.ProcessState.NotRunning

    def add_buttons(self, *buttons: Button) -> None:
        for button in buttons:
            self._buttons.addWidget(button, *divmod(self._buttons.count(), BUTTONS))

    def _start(self) -> None:
        if self.command.running:
            self._since = time.monotonic()
            self._tick.start()
            self.bar.show()
            self._say(self._begins)
            self.command.start()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._leave()
        super().closeEvent(event)
        self.changed.emit()

    def _leave(self) -> Leaving | None:
        """Have the command end, and hear no more of it; what ends it, if it runs."""
        self._tick.stop()
        process = self.command.let_go()
        leaving = None if process is None else Leaving(process, EXPLAINS)
        leave_turn(self.command)
        return leaving

    def _at_quit(self) -> None:
        if (leaving := self._leave()) is not None:
            leaving.wait()

    def _say(self, text: str, *shorter: str) -> None:
        self.state.setText(text)
        self.progress.set_full(text, *shorter)

    def _show_progress(self, line: str) -> None:
        shared = SHARE.match(line)
        self._step = shared["step"].partition(":")[0] if shared else line  # what follows are names of kernels
        self._show_time()

    def _show_time(self) -> None:
        """Say how long all of it still takes, by the last one of its kind, or else how long it has taken."""
        took = time.monotonic() - self._since
        left = self.expected_s - took
        self.bar.setRange(0, 100 if self.expected_s else 0)
        self.bar.setValue(round(99 * min(took / self.expected_s, 1.0)) if self.expected_s else 0)
        text, seconds = (self.tr("about {0} s left"), left) if left >= 1 else (self.tr("{0} s so far"), took)
        text = text.format(round(seconds))
        self._say(f"{self._step or self._begins} · {text}", text)

    def _over(self, printed: bytes, why: str) -> None:
        self._tick.stop()
        leave_turn(self.command)
        self._ended(printed, why)
        self.over.emit()
        self.changed.emit()

    def _ended(self, printed: bytes, why: str) -> None:
        if why:
            self.state.setText(why)
            return
        try:
            self.show_result(printed)
        except (ValueError, LookupError, TypeError, msgspec.MsgspecError):
            self.state.setText(self.tr("What the command printed cannot be read."))
        else:
            self.expected_s = time.monotonic() - self._since
            self.copy.setEnabled(True)


class Boxed(QtWidgets.QFrame):
    """Sentences in a frame: as high as they are, up to TALLEST lines."""

    def __init__(self, label: Wrapped) -> None:
        super().__init__()
        self.setObjectName("banner")
        self._label, self._scrolled = label, Scrolled(label)
        lay_out(QtWidgets.QVBoxLayout(self), self._scrolled, margins=(10, 6, 6, 6))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        height = self._label.heightForWidth(self._scrolled.viewport().width())
        room = TALLEST * self._label.fontMetrics().lineSpacing()
        self._scrolled.setFixedHeight(min(height, room))
        policy = Qt.FocusPolicy.TabFocus if height > room else Qt.FocusPolicy.NoFocus  # keys scroll it
        self._scrolled.setFocusPolicy(policy)


def _command_with_a_folder(words: Sequence[str], parent: QObject) -> Command:
    """A command whose temporary files are gone when its process is, even if that was killed."""
    try:
        folder = OwnFolder(FOLDER)
    except OSError:
        return Command(words, parent, **LINES)  # the command says itself what is wrong
    command = Command(words, parent, TMPDIR=str(folder.path), **LINES)
    for gone in (command.process.finished, command.process.destroyed):
        gone.connect(lambda *_: folder.remove())
    return command
