"""The study of a sweep: its front, its trials as a table, parallel coordinates, and the importance of each setting.

Shows a study that is there, or runs `asrscope sweep` and shows the trials as they end. A stopped sweep can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QModelIndex, QSignalBlocker, Signal, SignalInstance
from PySide6.QtWidgets import QComboBox, QFormLayout, QWidget

from app.layout import NONE
from app.model import study_texts as texts
from app.model.recent import STUDY
from app.model.study import OBJECTIVES, TIME, Study, read, session_of, write_csv
from app.style.plain_text import Button, Label, Wrapped, describe, set_tip
from app.views.labs.layers import looks
from app.views.labs.panel import Panel
from app.views.study_charts import ParallelCoordinates, StudyFront
from app.views.table_twin import TableTwin
from app.widgets import ChoiceBox, NumberBox
from app.window.tasks.page import SHARE, VERB, TaskPage
from pipelines import config as settings
from profiler.errors import BadInput
from profiler.files.inputs import regular
from profiler.files.outputs import OutputError

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

tr = partial(QCoreApplication.translate, "Study")

SWEEP: Final = (*VERB, "sweep")
DETAILS: Final = 2  # Lines that the figures of the chosen trial take, at least: what is above them does not jump
EMPTY: Final = Study("", [], [], [], {}, [], False)


def begin(w: MainWindow, folder: Path, words: Sequence[str] = ()) -> None:
    """Show the study in `folder`, or run the sweep of `words` there."""
    w.memory.remember(STUDY, str(folder))
    w.strip.place(StudyPage(w, folder, words), True)


class FastestWithin(QWidget):
    """Names the fastest trial within a limit on another objective; as long as nobody has set one, all trials are."""

    chosen = Signal(int)  # The number of that trial

    def __init__(self) -> None:
        super().__init__()
        self._study, self._by_hand = EMPTY, False
        objectives = [(tr(about.title), name) for name, about in OBJECTIVES.items() if name != TIME]
        self.objective, self.limit = ChoiceBox(tr("Limit on"), objectives), NumberBox()
        self.objective.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.objective.currentIndexChanged.connect(lambda _: self._limit_by(hand=False))
        self.limit.setRange(0.0, 1e9)
        describe(self.limit, tr("Limit"))
        self.limit.valueChanged.connect(lambda _: self._limit_by(hand=True))
        self.sentence = Wrapped("")
        rows = QFormLayout(self)
        rows.setContentsMargins(*NONE)
        for title, box in ((tr("Fastest trial with"), self.objective), (tr("at most"), self.limit)):
            rows.addRow(Label(title), box)

    def show_study(self, study: Study, choose: bool) -> None:
        """Say which trial of a study is the fastest, and `choose` it."""
        if not self._study.trials:
            names = (texts.other_objective(study), *OBJECTIVES)
            places = (self.objective.findData(name) for name in names if name and study.figures(name))
            with QSignalBlocker(self.objective):
                self.objective.setCurrentIndex(next((at for at in places if at >= 0), 0))
        self._study = study
        name = str(self.objective.currentData())
        if not self._by_hand:
            self.limit.set_unit(f" {OBJECTIVES[name].unit}")
            with QSignalBlocker(self.limit):
                self.limit.setValue(float(f"{1.005 * max(study.figures(name), default=0.0):.3g}"))
        limit = self.limit.value()
        trial = study.fastest(name, limit)
        wanted = f"{tr(OBJECTIVES[name].title)} ≤ {texts.figure_text(limit, name)}"
        for box in (self.objective, self.limit):
            box.setEnabled(any(tried.rtf_ratio is not None for tried in study.trials))
        if trial is None:
            self.sentence.setText(tr("No trial has {0}.").format(wanted) if self.limit.isEnabled() else "")
            return
        ratio = texts.figure_text(study.figure(trial, TIME), TIME)
        text = tr("Fastest with {0}: trial {1}, {2} of the reference's time.").format(wanted, trial.id, ratio)
        if trial.id in study.points and (touching := study.points[trial.id].touches):
            others = tr(" and ").join(map(str, touching))
            text += " " + tr("Its interval touches that of {0}: their order is undecided.").format(others)
        self.sentence.setText(text)
        if choose:
            self.chosen.emit(trial.id)

    def _limit_by(self, hand: bool) -> None:
        """Another limit was entered by `hand`, or is to be on another objective."""
        self._by_hand = hand
        self.show_study(self._study, True)


class TrialTable(TableTwin):
    """The trials of a sweep; the current row is the one chosen."""

    chosen = Signal(int)
    opened = Signal(int)

    def __init__(self) -> None:
        super().__init__(tr("Trials of the sweep"))
        self.selectionModel().currentRowChanged.connect(lambda row, _: self._tell(self.chosen, row))
        self.activated.connect(lambda row: self._tell(self.opened, row))

    def _tell(self, signal: SignalInstance, row: QModelIndex) -> None:
        number = self.cells.row(row.row())[0] if row.isValid() else None
        if isinstance(number, int):
            signal.emit(number)

    def show_chosen(self, number: int | None) -> None:
        rows = range(self.cells.rowCount())
        row = next((at for at in rows if self.cells.row(at)[0] == number), None)
        if row is None:
            self.clearSelection()
        else:
            self.selectRow(row)


class StudyPage(TaskPage):
    """Trials and front of the sweep in `folder`, and what can be done with a trial; `words`: the sweep to run."""

    def __init__(self, w: MainWindow, folder: Path, words: Sequence[str] = ()) -> None:
        begins = tr("Reading settings and audio of the sweep …")
        super().__init__(tr("Sweep {0}").format(folder.name), (), begins, w)
        self._w, self.folder, self._words = w, folder, list(words)
        self.study = EMPTY
        self.chosen: int | None = None
        self._details: Mapping[int, str] = {}
        self._build()
        if words:
            self._go_on()
        else:
            self._read()

    def _build(self) -> None:
        self.front, self.lines = StudyFront(EMPTY), ParallelCoordinates(EMPTY)
        self.table, self.fastest = TrialTable(), FastestWithin()
        for chart in (self.front, self.lines):
            chart.chosen.connect(lambda name: self.choose(int(name)))
        self.table.chosen.connect(self.choose)
        self.fastest.chosen.connect(self.choose)
        open_session = self._w.files.open_session
        self.front.opened.connect(lambda name: self._with_session(int(name), open_session))
        self.table.opened.connect(lambda number: self._with_session(number, open_session))
        self.table.horizontalHeader().sortIndicatorChanged.connect(lambda *_: self._show_chosen())
        self.details = Wrapped("")
        self.details.setMinimumHeight(DETAILS * self.details.fontMetrics().lineSpacing())
        self.why_no_importance = Wrapped(tr("Known from ten trials on."))
        self.importance = Panel(texts.importance_chart(EMPTY), {})
        self.importance_table = TableTwin(tr("Importance of each setting"))
        for name, parts in (
            (tr("Front"), ((self.front, 1), (self.fastest, 0), (self.fastest.sentence, 0))),
            (tr("Trials"), ((self.table, 1),)),
            (tr("Parallel coordinates"), ((self.lines, 1),)),
            (tr("Importance"), ((self.why_no_importance, 0), (self.importance, 3), (self.importance_table, 2))),
        ):
            self.body.begin_page(name)
            for part, stretch in parts:
                self.body.add_widget(part, stretch)
        self.column.insertWidget(self.column.indexOf(self.body) + 1, self.details)
        self.use = Button(tr("Use these settings"), lambda: self._with_session(self.chosen, self._use_settings))
        self.open_session = Button(tr("Open the session"), lambda: self._with_session(self.chosen, open_session))
        ask = partial(self._w.files.ask_target, tr("Save the trials"), f"{self.folder.stem}.csv", tr("Tables (*.csv)"))
        self.save = Button(tr("Save as CSV…"), lambda: self.write_table(ask()))
        self.more = Button(tr("Stop"), lambda: self.cancel() if self.command.running else self._go_on())
        self._buttons.removeWidget(self.copy)
        self.add_buttons(self.use, self.open_session, self.save, self.more)
        self.copy.hide()

    def _go_on(self) -> None:
        self.stopping = False
        self.begin((*SWEEP, *(self._words or self.study.command), "--out", str(self.folder), "--json"))
        self._offer()

    def cancel(self) -> None:
        """Ask the sweep to end: the trial that runs closes its session first."""
        if self.stop():
            self.more.setEnabled(False)
            self.state.setText(tr("Stopping; the trial that runs is tried again when the sweep goes on …"))
        else:
            self._leave()
            self._over(b"", "")

    def _show_progress(self, line: str) -> None:
        shared = SHARE.match(line)
        self.bar.setRange(0, 100 if shared else 0)
        self.bar.setValue(int(shared["share"]) if shared else 0)
        if not self.stopping:
            self._say(shared["step"] if shared else line)
        self._read(sentence=False)

    def _show_time(self) -> None:
        """The sweep says itself how long it still takes."""

    def _ended(self, printed: bytes, why: str) -> None:
        self.more.setEnabled(True)
        self._read()
        if self.stopping:
            self.state.setText(tr("Stopped: {0}").format(self.state.text()))
        elif why:
            self.state.setText(why)

    def _read(self, sentence: bool = True) -> None:
        """Show the study as it is in its folder now; with `sentence`, how many trials there are."""
        try:
            study = read(self.folder)
        except BadInput as problem:
            if sentence:
                self.state.setText(str(problem))
            return
        finally:
            self._offer()
        if study != self.study:
            self._show_study(study)
        if sentence:
            self.state.setText(texts.summary(study))

    def _show_study(self, study: Study) -> None:
        self.study = study
        self._details = {trial.id: texts.details(study, trial) for trial in study.trials}
        tables = texts.trials(study), texts.importance_table(study)
        for twin, table in zip((self.table, self.importance_table), tables, strict=True):
            twin.cells.replace(table.headers, table.rows)
            twin.fit_columns()
        chart = texts.importance_chart(study)
        self.importance.show_chart(chart, looks(chart))
        for part in (self.importance, self.importance_table):
            part.setVisible(bool(study.importance))
        self.why_no_importance.setVisible(not study.importance)
        describe(self.importance, tr("Importance of each setting"), texts.importance_sentence(study))
        self.fastest.show_study(study, self.chosen is None)
        self._show_chosen()

    def choose(self, number: int) -> None:
        if number != self.chosen:
            self.chosen = number
            self._show_chosen()

    def _show_chosen(self) -> None:
        for chart in (self.front, self.lines):
            chart.show_study(self.study, self.chosen, self._details)
        describe(self.front, tr("Front of the sweep"), texts.front_sentence(self.study))
        describe(self.lines, tr("Parallel coordinates"), texts.lines_sentence(self.study))
        self.table.show_chosen(self.chosen)
        trial = self.study.by_id.get(self.chosen)
        self.details.setText(tr("No trial is chosen.") if trial is None else self._details[trial.id])
        self._offer()

    def _offer(self) -> None:
        trial, why = self.study.by_id.get(self.chosen), tr("Choose a trial first.")
        if trial is not None:
            why = "" if trial.state == "done" else tr("This trial has no result.")
        if self.command.running:
            why = tr("The sweep runs; stop it first.")
        for button, tip in ((self.use, tr("For the next run, on the audio chosen there")), (self.open_session, "")):
            button.setEnabled(not why)
            set_tip(button, why or tip)
        self.save.setEnabled(bool(self.study.trials))
        words = self._words or self.study.command
        self.more.setVisible(self.command.running or bool(words and not self.study.complete))
        self.more.setText(tr("Stop") if self.command.running else tr("Go on"))
        set_tip(self.more, "" if self.command.running else " ".join(("asrscope sweep", *words)))

    def _with_session(self, number: int | None, do: Callable[[Path], object]) -> None:
        trial = self.study.by_id.get(number)
        session = None if trial is None else session_of(trial, self.folder)
        if session is None or self.command.running:
            return
        if regular(session):
            do(session)
        else:
            self.state.setText(tr("The session of trial {0} is not there any more: {1}").format(number, session))

    def _use_settings(self, session: Path) -> None:
        """Take the settings of a trial, as its session has them, for the next run."""
        from profiler.session.reader import Session

        w = self._w
        try:
            with Session.open(session) as recorded:
                config, preset = recorded.configs[-1].tree, str(recorded.meta.get("preset", ""))
            settings.from_dict(config)
        except (OSError, ValueError, IndexError) as problem:
            self.state.setText(str(problem))
            return
        if (why := w.when.may_run.unavailable_reason()) is not None:
            self.state.setText(why)
            return
        w.pipeline.adopt(config, preset, session)
        w.pipeline.edit()
        w.show_desk()
        trial = self.details.text().partition(" · ")[0]
        text = tr("The next run uses the settings of {0}.").format(trial[:1].lower() + trial[1:])
        w.notices.next_run(text, w.runs, w.when.can_start())

    def write_table(self, path: Path | None) -> None:
        if path is None:
            return
        try:
            write_csv(self.study, path)
        except OutputError as problem:
            self.state.setText(str(problem))
            return
        self.state.setText(tr("Written: {0}").format(path))
