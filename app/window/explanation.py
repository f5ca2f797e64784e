"""Explain a stage: runs `asrscope explain --json` on the session shown and shows its result as two tables.

The command decodes, so it runs in a process of its own; closing the dialog ends it without waiting, and the next one
starts when it is gone. Its temporary files lie in a folder that the window makes and removes, however it ends.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.layout import REST, lay_out
from app.model.processes.command import Command
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.processes.own_folder import OwnFolder
from app.style.plain_text import Button, Wrapped, describe, set_title
from app.views.table_twin import TableModel, TableTwin
from profiler.analysis.categories import PART_NAMES
from profiler.plain import counted
from profiler.process import children

if TYPE_CHECKING:
    from app.views.breakdown_model import StageLine
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Explanation")

EXPLAIN: Final = tuple(children.python("-m", "app.cli.main", "explain", "--json"))
SIZE: Final = QSize(860, 620)
LINES: Final = {"ASRSCOPE_PROGRESS": "lines"}
"""The command is to say how much of a step is done although nobody reads it on a terminal."""

FOLDER: Final = "asrscope-explain-"  # What the name of its folder for temporary files begins with

SHARE: Final = re.compile(r"(?P<step>.*?) +(?P<share>\d+) ?%$")
"""A line of progress that says how much of a step is done."""

LEAST_SHARE: Final = 0.05  # Of a step: from this share on, the time left is shown


class Variant(msgspec.Struct, frozen=True):
    """One way of doing the stage again; times in µs per frame, `low` and `high` of the middle half of the rounds."""

    name: str
    what: str
    us_per_frame: float
    low: float
    high: float


class Result(msgspec.Struct, frozen=True):
    """What `asrscope explain --json` prints, as far as it is shown."""

    evidence: str
    sentence: str
    us_per_frame: float
    ways: list[Variant]
    conclusion: str
    audio: str
    rounds: int
    verdict: str | None = None
    parts: dict[str, float] | None = None
    parts_low: dict[str, float] | None = None
    parts_high: dict[str, float] | None = None
    notes: list[str] = []


class Explanation(QDialog):
    """What the time of one stage consists of, as soon as it has been found out."""

    def __init__(
        self,
        session: Path,
        stage: str,
        parent: QWidget,
        command: Sequence[str] = EXPLAIN,
        recorded: StageLine | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Explain {0}").format(stage))
        self.resize(SIZE)
        self.state = Wrapped("")
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.sentence, self.conclusion = Wrapped(""), Wrapped("")
        self._ways, self._parts = TableModel(self), TableModel(self)
        self.ways, self.parts = TableTwin(self._ways), TableTwin(self._parts)
        describe(self.ways, self.tr("How long the stage took in each way"))
        describe(self.parts, self.tr("What the stage's time consists of"))
        self._recorded = recorded
        self.copy = Button(self.tr("Copy"))
        self.copy.setEnabled(False)
        self.copy.clicked.connect(self._copy)
        self.end = Button(self.tr("Cancel"))
        self.end.clicked.connect(self.close)
        column = lay_out(
            QVBoxLayout(self),
            *(self.state, self.bar, self.sentence, (self.ways, 3), (self.parts, 4)),
            self.conclusion,
        )
        column.addStretch(0)  # takes the room as long as there are no tables
        column.addLayout(lay_out(QHBoxLayout(), REST, self.copy, self.end))
        for each in (self.sentence, self.ways, self.parts, self.conclusion):
            each.hide()
        self._step, self._since = "", time.monotonic()
        self.command = command_with_a_folder((*command, str(session), stage), self)
        self.command.said.connect(self._show_progress)
        self.command.ended.connect(self._ended)
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self._program_ends)
        if (before := Leaving.find(EXPLAINS)) is None:
            self._start()
            return
        self.state.setText(self.tr("The explanation before is still ending …"))
        before.ended.connect(self._start)

    def _start(self) -> None:
        if self.working:
            self.state.setText(
                self.tr(
                    "Decoding some seconds of the session's audio again, the stage hot, cold and reshaped …"
                )
            )
            self.command.start()

    @property
    def working(self) -> bool:
        """Whether the command still runs."""
        return self.command.running

    def done(self, result: int) -> None:
        """However it is closed, by Escape too: end the command."""
        self._leave()
        super().done(result)

    def _leave(self) -> Leaving | None:
        """Have the command end, and hear no more of it; None where there is none any more."""
        process = self.command.let_go()
        return None if process is None else Leaving(process, EXPLAINS)

    def _program_ends(self) -> None:
        """The whole window is closed over it."""
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
            self._show_found(msgspec.json.decode(printed, type=Result))
        except (msgspec.MsgspecError, KeyError, IndexError):
            self.state.setText(self.tr("What the command printed cannot be read."))

    def _show_found(self, tree: Result) -> None:
        """Fill sentences and tables."""
        rounds = counted(tree.rounds, self.tr("round"), self.tr("rounds"))
        state = self.tr("Measured on this machine, now: {0} over {1}.").format(rounds, tree.audio)
        self.state.setText(" ".join([state, *tree.notes]))
        self.sentence.setText(self._both_measurements(tree))
        whole = tree.ways[0].us_per_frame
        self._ways.replace(
            [
                self.tr("done again"),
                self.tr("µs per frame"),
                self.tr("interquartile range"),
                self.tr("of the run"),
                self.tr("what that is"),
            ],
            [
                [
                    way.name,
                    f"{way.us_per_frame:.2f}",
                    f"{way.low:.2f} – {way.high:.2f}",
                    f"{way.us_per_frame / whole:.2f}",
                    way.what,
                ]
                for way in tree.ways
            ],
        )
        headers = [
            self.tr("part"),
            self.tr("here"),
            self.tr("interval"),
            self.tr("in the session"),
            self.tr("interval"),
        ]
        self._parts.replace(headers, self._part_rows(tree))
        self.conclusion.setText(tree.conclusion)
        for shown in (self.sentence, self.ways, self.parts, self.conclusion):
            shown.setVisible(shown is not self.parts or bool(tree.parts))
        for table in (self.ways, self.parts):
            table.fit_columns()
        self.copy.setEnabled(True)

    def _both_measurements(self, tree: Result) -> str:
        """What the stage took here, and in the session: they are two measurements."""
        graded = " · ".join(filter(None, (tree.verdict, tree.evidence)))
        here = self.tr("Here {0} µs per frame ({1})").format(f"{tree.us_per_frame:.2f}", graded)
        if self._recorded is None:
            return f"{here}. {tree.sentence}"
        line = self._recorded
        there = " · ".join(filter(None, (line.verdict, line.evidence)))
        beside = self.tr("in the session {0} µs per frame ({1})")
        return f"{here}; {beside.format(f'{1e3 * line.ms:.2f}', there)}. {tree.sentence}"

    def _part_rows(self, tree: Result) -> list[list[object]]:
        recorded = {} if self._recorded is None else {p.name: p for p in self._recorded.parts}
        parts = tree.parts or {}
        total = sum(parts.values()) or 1.0
        rows: list[list[object]] = []
        for key, value in parts.items():
            name, there = key.removesuffix("_s"), recorded.get(key.removesuffix("_s"))
            low, high = (
                (ends or {}).get(key, 0.0) / total for ends in (tree.parts_low, tree.parts_high)
            )
            row: list[object] = [PART_NAMES[name], _percent(value / total), _interval(low, high)]
            if there is not None:
                row += [_percent(there.share), _interval(there.low, there.high)]
            rows.append([*row, *[""] * (5 - len(row))])
        return rows

    def _copy(self) -> None:
        tables = [
            model.text(range(model.rowCount()))
            for model in (self._ways, self._parts)
            if model.rowCount()
        ]
        sentences = [self.windowTitle(), self.state.text(), self.sentence.text()]
        QGuiApplication.clipboard().setText(
            "\n\n".join(["\n".join(sentences), *tables, self.conclusion.text()])
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _interval(low: float, high: float) -> str:
    return f"{100 * low:.0f} – {100 * high:.0f} %"


def command_with_a_folder(words: Sequence[str], parent: QObject) -> Command:
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


def explain(window: MainWindow, stage: str = "") -> None:
    """Find out what the time of a stage consists of; without a name, of the one that the breakdown explains."""
    why, session = window.explain_unavailable_reason(), window.playhead.session
    if why is not None or session is None:
        window.notices.info(why or "")
        return
    tree = window.desk.breakdown.tree
    shown = tree.explained()
    wanted = stage or (shown.name if shown is not None else "")
    recorded = next((line for line in tree.stages if line.name == wanted), None)
    if not stage and recorded is None:
        window.notices.info(tr("Choose a stage of scoring or search in the breakdown first."))
        return
    dialog = Explanation(session.path, wanted, window, recorded=recorded)
    dialog.finished.connect(partial(closed, window))
    dialog.open()


def closed(window: MainWindow, *_: object) -> None:
    """A run may begin when its process has ended, which is heard of later."""
    window.refresh()
    leaving = Leaving.find(EXPLAINS)
    if leaving is not None:
        leaving.ended.connect(window.refresh)
