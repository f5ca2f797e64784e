"""The study of a sweep: its front, its trials as a table, parallel coordinates, and the importance of each setting.

Shows a study that is there, or runs `asrscope sweep` and shows the trials as they end. A stopped sweep can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QModelIndex, QSignalBlocker
from PySide6.QtWidgets import QComboBox, QFormLayout, QWidget

from app.layout import NONE
from app.model import study_texts as texts
from app.model.recent import STUDY
from app.model.study import OBJECTIVES, TIME, Study, Trial, read, session_of, write_csv
from app.style.plain_text import Button, Label, Wrapped, describe, set_tip
from app.views.labs.layers import looks
from app.views.labs.panel import Panel
from app.views.study_charts import ParallelCoordinates, StudyFront
from app.views.table_twin import TableModel, TableTwin
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


class StudyPage(TaskPage):
    """Trials and front of the sweep in `folder`, and what can be done with a trial; `words`: the sweep to run."""

    def __init__(self, w: MainWindow, folder: Path, words: Sequence[str] = ()) -> None:
        begins = tr("Reading settings and audio of the sweep …")
        super().__init__(tr("Sweep {0}").format(folder.name), (), begins, w)
        self._w, self.folder, self._words = w, folder, list(words)
        self.study = EMPTY
        self.chosen: int | None = None
        self._details: Mapping[int, str] = {}
        self._limited = False
        self._build()
        if words:
            self._go_on()
        else:
            self._read()

    def _build(self) -> None:
        self.front, self.lines = StudyFront(EMPTY), ParallelCoordinates(EMPTY)
        for chart in (self.front, self.lines):
            chart.chosen.connect(lambda name: self.choose(int(name)))
        self.front.opened.connect(lambda name: self._open(int(name)))
        self.rows = TableModel(self)
        self.table = TableTwin(self.rows)
        describe(self.table, tr("Trials of the sweep"))
        self.table.selectionModel().currentRowChanged.connect(lambda now, _: self._move_to(now))
        self.table.activated.connect(lambda index: self._open(self._number(index)))
        self.table.horizontalHeader().sortIndicatorChanged.connect(lambda *_: self._show_chosen())
        limited = [(tr(about.title), name) for name, about in OBJECTIVES.items() if name != TIME]
        self.objective = ChoiceBox(tr("Limit on"), limited)
        self.objective.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.objective.currentIndexChanged.connect(lambda _: self._limit_by(hand=False))
        self.limit = NumberBox()
        self.limit.setRange(0.0, 1e9)
        describe(self.limit, tr("Limit"))
        self.limit.valueChanged.connect(lambda _: self._limit_by(hand=True))
        limit = QWidget()
        rows = QFormLayout(limit)
        rows.setContentsMargins(*NONE)
        for title, box in ((tr("Fastest trial with"), self.objective), (tr("at most"), self.limit)):
            rows.addRow(Label(title), box)
        self.fastest, self.details = Wrapped(""), Wrapped("")
        self.details.setMinimumHeight(DETAILS * self.details.fontMetrics().lineSpacing())
        self.why_no_importance = Wrapped(tr("Known from ten trials on."))
        self.importance = Panel(texts.importance_chart(EMPTY), {})
        self.importance_rows = TableModel(self)
        self.importance_table = TableTwin(self.importance_rows)
        describe(self.importance_table, tr("Importance of each setting"))
        for name, parts in (
            (tr("Front"), ((self.front, 1), (limit, 0), (self.fastest, 0))),
            (tr("Trials"), ((self.table, 1),)),
            (tr("Parallel coordinates"), ((self.lines, 1),)),
            (tr("Importance"), ((self.why_no_importance, 0), (self.importance, 3), (self.importance_table, 2))),
        ):
            self.begin_page(name)
            for part, stretch in parts:
                self.add_widget(part, stretch)
        self._page = None
        self.add_widget(self.details, 0)
        self.use = Button(tr("Use these settings"), self._use)
        self.open_session = Button(tr("Open the session"), lambda: self._open(self.chosen))
        self.save = Button(tr("Save as CSV…"), self._save)
        self.more = Button(tr("Stop"), lambda: self.cancel() if self.working else self._go_on())
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
        found = SHARE.match(line)
        self.bar.setRange(0, 100 if found else 0)
        self.bar.setValue(int(found["share"]) if found else 0)
        if not self.stopping:
            self._say(found["step"] if found else line)
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
        first = not self.study.trials
        self.study = study
        self._details = {trial.id: texts.details(study, trial) for trial in study.trials}
        for twin, model, table in (
            (self.table, self.rows, texts.trials(study)),
            (self.importance_table, self.importance_rows, texts.importance_table(study)),
        ):
            model.replace(table.headers, table.rows)
            twin.fit_columns()
        chart = texts.importance_chart(study)
        self.importance.show_chart(chart, looks(chart))
        for part in (self.importance, self.importance_table):
            part.setVisible(bool(study.importance))
        self.why_no_importance.setVisible(not study.importance)
        describe(self.importance, tr("Importance of each setting"), texts.importance_sentence(study))
        if first:
            names = (texts.other_objective(study), *OBJECTIVES)
            known = (self.objective.findData(name) for name in names if name and self._figures(name))
            with QSignalBlocker(self.objective):
                self.objective.setCurrentIndex(next((at for at in known if at >= 0), 0))
        self._begin_limit()
        self._show_fastest(self.chosen is None)
        self._show_chosen()

    def choose(self, number: int | None) -> None:
        self.chosen = number
        self._show_chosen()

    def _show_chosen(self) -> None:
        for chart in (self.front, self.lines):
            chart.show_study(self.study, self.chosen, self._details)
        describe(self.front, tr("Front of the sweep"), texts.front_sentence(self.study))
        describe(self.lines, tr("Parallel coordinates"), texts.lines_sentence(self.study))
        rows = range(self.rows.rowCount())
        row = next((at for at in rows if self.rows.row(at)[0] == self.chosen), None)
        if row is None:
            self.table.clearSelection()
        else:
            self.table.selectRow(row)
        trial = self._trial(self.chosen)
        self.details.setText(tr("No trial is chosen.") if trial is None else self._details[trial.id])
        self._offer()

    def _trial(self, number: int | None) -> Trial | None:
        return None if number is None else self.study.by_id.get(number)

    def _number(self, index: QModelIndex) -> int | None:
        found = self.rows.row(index.row())[0] if index.isValid() else None
        return found if isinstance(found, int) else None

    def _move_to(self, index: QModelIndex) -> None:
        if (number := self._number(index)) not in (None, self.chosen):
            self.choose(number)

    def _offer(self) -> None:
        trial, why = self._trial(self.chosen), tr("Choose a trial first.")
        if trial is not None:
            why = "" if trial.state == "done" else tr("This trial has no result.")
        if self.working:
            why = tr("The sweep runs; stop it first.")
        for button, tip in ((self.use, tr("For the next run, on the audio chosen there")), (self.open_session, "")):
            button.setEnabled(not why)
            set_tip(button, why or tip)
        self.save.setEnabled(bool(self.study.trials))
        words = self._words or self.study.command
        self.more.setVisible(self.working or bool(words and not self.study.complete))
        self.more.setText(tr("Stop") if self.working else tr("Go on"))
        set_tip(self.more, "" if self.working else " ".join(("asrscope sweep", *words)))

    def _figures(self, name: str) -> list[float]:
        figures = (self.study.figure(trial, name) for trial in self.study.trials if trial.why is None)
        return [figure for figure in figures if figure is not None]

    def _limit_by(self, hand: bool) -> None:
        """Another limit was entered by `hand`, or is to be on another objective."""
        self._limited = hand
        self._begin_limit()
        self._show_fastest(True)

    def _begin_limit(self) -> None:
        """As long as nobody has set a limit, all trials are within it."""
        if not self._limited:
            name = str(self.objective.currentData())
            self.limit.set_unit(f" {OBJECTIVES[name].unit}")
            with QSignalBlocker(self.limit):
                self.limit.setValue(float(f"{1.005 * max(self._figures(name), default=0.0):.3g}"))

    def _show_fastest(self, choose: bool) -> None:
        name, limit = str(self.objective.currentData()), self.limit.value()
        study, trial = self.study, self.study.fastest(name, limit)
        wanted = f"{tr(OBJECTIVES[name].title)} ≤ {texts.figure_text(limit, name)}"
        for box in (self.objective, self.limit):
            box.setEnabled(any(one.rtf_ratio is not None for one in study.trials))
        if trial is None:
            self.fastest.setText(tr("No trial has {0}.").format(wanted) if self.limit.isEnabled() else "")
            return
        ratio = texts.figure_text(study.figure(trial, TIME), TIME)
        text = tr("Fastest with {0}: trial {1}, {2} of the reference's time.").format(wanted, trial.id, ratio)
        if trial.id in study.points and (touching := study.points[trial.id].touches):
            others = tr(" and ").join(map(str, touching))
            text += " " + tr("Its interval touches that of {0}: their order is undecided.").format(others)
        self.fastest.setText(text)
        if choose:
            self.choose(trial.id)

    def _open(self, number: int | None) -> None:
        self._with_session(number, self._w.files.open_session)

    def _use(self) -> None:
        self._with_session(self.chosen, self._use_settings)

    def _with_session(self, number: int | None, do: Callable[[Path], object]) -> None:
        trial = self._trial(number)
        session = None if trial is None else session_of(trial, self.folder)
        if session is None or self.working:
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
            with Session.open(session) as found:
                config, preset = found.configs[-1].tree, str(found.meta.get("preset", ""))
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

    def _save(self) -> None:
        target = self._w.files.ask_target(tr("Save the trials"), f"{self.folder.stem}.csv", tr("Tables (*.csv)"))
        if target is not None:
            self.write_table(target)

    def write_table(self, path: Path) -> None:
        try:
            write_csv(self.study, path)
        except OutputError as problem:
            self.state.setText(str(problem))
            return
        self.state.setText(tr("Written: {0}").format(path))
